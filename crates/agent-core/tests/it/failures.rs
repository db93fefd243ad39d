use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{
    Answer, AnswerFormat, Capabilities, Model, ModelErrorKind, ModelEvent, ModelRequest, NewOutbox,
    Origin, ScriptedModel, ScriptedReply, SessionEvent,
};

use crate::kit::{Kit, accept, config, echo, outcome, settling, store, tool};

const FRAME: &str = "[A2A result from \"x\", task 1 (completed)]\nContext: 2\nRome";

fn overloaded() -> ScriptedReply {
    ScriptedReply::fail(ModelErrorKind::Overloaded, "the provider is overloaded")
}

#[tokio::test(start_paused = true)]
async fn passing_failures_are_tried_again_in_view_of_the_owner() {
    let cut = ScriptedReply::say("Hel").then_fail(ModelErrorKind::Truncated, "the reply broke off");
    let mut kit = Kit::start([overloaded(), cut, ScriptedReply::say("Hello.")], Vec::new());
    let before = Instant::now();
    kit.ask("hi").await;
    assert_eq!(before.elapsed(), Duration::from_secs(2 + 4));
    let expected = [
        "user hi",
        "retry after []: the provider is overloaded",
        "retry after [say Hel]: the reply broke off",
        "say Hello.",
    ];
    assert_eq!(kit.lines(), expected);
    assert_eq!(kit.last_request(), ["user hi"]);
    assert_eq!(kit.screen(), ["Hello."]);
    let retries: Vec<String> =
        kit.events_so_far().into_iter().filter(|line| line.starts_with("retrying")).collect();
    let expected =
        ["retrying 2 in 2 s: the provider is overloaded", "retrying 3 in 4 s: the reply broke off"];
    assert_eq!(retries, expected);
}

#[tokio::test(start_paused = true)]
async fn run_whose_retries_are_used_up_says_why() {
    let mut kit = Kit::start((0..4).map(|_| overloaded()), Vec::new());
    kit.ask("hi").await;
    let reason = "the provider is overloaded (tried 4 times)";
    assert_eq!(kit.lines().last().unwrap(), &format!("failed after []: {reason}"));
    assert_eq!(kit.screen(), [format!("The assistant could not answer: {reason}.")]);
    assert!(kit.events_so_far().contains(&format!("failed: {reason}")));
    kit.model.assert_finished();
}

#[tokio::test(start_paused = true)]
async fn delivery_that_cannot_be_answered_is_shown_as_it_came() {
    let fail = ScriptedReply::fail(ModelErrorKind::Quota, "no quota left");
    let kit = Kit::start([fail], Vec::new());
    accept(&kit.store, "d", Origin::Delivery, FRAME).await;
    kit.handle.wake();
    kit.idle().await;
    let expected = format!(
        "The assistant could not answer about this (no quota left). Here it is as it came:\n\n{FRAME}"
    );
    assert_eq!(kit.screen(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn outcome_that_a_failed_run_took_from_a_tool_is_shown() {
    let calls =
        ScriptedReply::call("settle", json!({})).and_call("echo", json!({"text": "no outcome"}));
    let fail = ScriptedReply::fail(ModelErrorKind::Quota, "no quota left");
    let kit = Kit::start([calls, fail], vec![settling("a2a:1:completed"), echo()]);
    kit.ask("hi").await;
    let expected = "The assistant could not answer: no quota left. This had come in before; here it is as it came:\n\n\
                    outcome of a2a:1:completed";
    assert_eq!(kit.screen(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_shown_with_the_delivery_that_led_to_them() {
    let replies = [
        ScriptedReply::say("Wait.").and_call("one", json!({})),
        ScriptedReply::call("two", json!({})),
        ScriptedReply::say(" "),
    ];
    let one = tool("one", |_, _| async { outcome("a2a:1:completed") });
    let two = tool("two", |_, _| async { outcome("a2a:2:failed") });
    let kit = Kit::start(replies, vec![one, two]);
    accept(&kit.store, "d", Origin::Delivery, FRAME).await;
    kit.handle.wake();
    kit.idle().await;
    let expected = format!(
        "The assistant could not answer about this (the model ended without an answer). Here it is as it came:\n\n{FRAME}\n\n\
         outcome of a2a:1:completed\n\noutcome of a2a:2:failed"
    );
    assert_eq!(kit.screen(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn outcome_that_came_by_another_way_is_not_shown_again() {
    let store = store();
    accept(&store, "a2a:1:completed", Origin::Owner, "hi").await;
    let model = ScriptedModel::steps([
        ScriptedReply::call("settle", json!({})),
        ScriptedReply::fail(ModelErrorKind::Quota, "no quota left"),
    ]);
    let kit = Kit::over(store, model, vec![settling("a2a:1:completed")], config());
    kit.idle().await;
    assert_eq!(kit.screen(), ["The assistant could not answer: no quota left."]);
}

#[tokio::test(start_paused = true)]
async fn failed_run_does_not_hold_up_the_next_prompt() {
    let fail = ScriptedReply::fail(ModelErrorKind::Auth, "the key was refused");
    let kit = Kit::start([fail, ScriptedReply::say("Hello.")], Vec::new());
    kit.say("a").await;
    kit.ask("b").await;
    let shown = ["The assistant could not answer: the key was refused.", "Hello."];
    assert_eq!(kit.screen(), shown);
    assert_eq!(kit.last_request(), ["user a", "user b"]);
}

#[tokio::test(start_paused = true)]
async fn wait_beyond_the_cap_fails_visibly_instead_of_hanging() {
    let limited = ScriptedReply::fail(ModelErrorKind::RateLimited, "too many requests");
    let kit = Kit::start([limited.retry_after(Duration::from_hours(1))], Vec::new());
    let before = Instant::now();
    kit.ask("hi").await;
    assert_eq!(before.elapsed(), Duration::ZERO);
    let shown =
        "The assistant could not answer: too many requests (the provider asks to wait 3600 s).";
    assert_eq!(kit.screen(), [shown]);
}

/// A model that answers nothing and hears nothing.
#[derive(Debug)]
struct Deaf;

#[async_trait]
impl Model for Deaf {
    fn id(&self) -> &'static str {
        "deaf"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tools: false, context_window: 1 }
    }

    async fn stream(
        &self,
        _: ModelRequest,
        _: CancellationToken,
    ) -> BoxStream<'static, ModelEvent> {
        stream::pending().boxed()
    }
}

fn deaf_kit(retries: u32) -> Kit {
    let (store, unused) = (store(), ScriptedModel::steps([ScriptedReply::hang()]));
    let mut config = config();
    config.retry.retries = retries;
    Kit::with_seams(store.clone(), Arc::new(store), unused, Arc::new(Deaf), Vec::new(), config)
}

#[tokio::test(start_paused = true)]
async fn silent_model_fails_the_request() {
    let kit = deaf_kit(0);
    let before = Instant::now();
    kit.ask("hi").await;
    assert_eq!(before.elapsed(), Duration::from_mins(5));
    let shown = "The assistant could not answer: the model was silent for 300 s (tried 1 times).";
    assert_eq!(kit.screen(), [shown]);
}

#[tokio::test(start_paused = true)]
async fn model_that_hears_no_stop_is_dropped_after_the_grace() {
    let mut kit = deaf_kit(0);
    kit.say("hi").await;
    kit.event(|event| matches!(event, SessionEvent::RunStarted { .. })).await;
    let before = Instant::now();
    assert!(kit.handle.abort().await.unwrap().was_running);
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert_eq!(kit.lines(), ["user hi", "aborted after []: stopped by the owner"]);
}

/// A model whose code fails.
#[derive(Debug)]
struct Broken;

#[async_trait]
impl Model for Broken {
    fn id(&self) -> &'static str {
        "broken"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tools: false, context_window: 1 }
    }

    async fn stream(
        &self,
        _: ModelRequest,
        _: CancellationToken,
    ) -> BoxStream<'static, ModelEvent> {
        panic!("as the test wants it")
    }
}

#[tokio::test(start_paused = true)]
async fn run_that_always_panics_is_given_up() {
    let (store, unused) = (store(), ScriptedModel::steps([ScriptedReply::hang()]));
    let seam = Arc::new(store.clone());
    let kit = Kit::with_seams(store, seam, unused, Arc::new(Broken), Vec::new(), config());
    kit.ask("hi").await;
    let reason = "it was interrupted 4 times by a restart";
    let expected =
        ["user hi", "resumed", "resumed", "resumed", &format!("failed after []: {reason}")];
    assert_eq!(kit.lines(), expected);
    assert_eq!(kit.screen(), [format!("The assistant could not answer: {reason}.")]);
}

/// A model that keeps the line open for ever and says nothing on it.
#[derive(Debug)]
struct Humming;

#[async_trait]
impl Model for Humming {
    fn id(&self) -> &'static str {
        "humming"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tools: false, context_window: 1 }
    }

    async fn stream(
        &self,
        _: ModelRequest,
        _: CancellationToken,
    ) -> BoxStream<'static, ModelEvent> {
        stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_mins(1)).await;
            Some((ModelEvent::TextDelta { block: 0, text: String::new() }, ()))
        })
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn reply_that_never_ends_fails() {
    let (store, unused) = (store(), ScriptedModel::steps([ScriptedReply::hang()]));
    let seam = Arc::new(store.clone());
    let kit = Kit::with_seams(store, seam, unused, Arc::new(Humming), Vec::new(), config());
    let before = Instant::now();
    kit.ask("hi").await;
    assert_eq!(before.elapsed(), Duration::from_hours(1));
    let shown = "The assistant could not answer: the reply had no end after 3600 s.";
    assert_eq!(kit.screen(), [shown]);
}

/// A format whose code fails.
#[derive(Debug, Default)]
struct BrokenAnswers(AtomicU32);

impl AnswerFormat for BrokenAnswers {
    fn outbox(&self, _: &Answer<'_>) -> Vec<NewOutbox> {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("as the test wants it")
    }
}

#[tokio::test(start_paused = true)]
async fn run_that_cannot_even_be_given_up_is_left_alone_for_a_while() {
    let answers = Arc::new(BrokenAnswers::default());
    let mut config = config();
    config.answers = Arc::clone(&answers) as Arc<dyn AnswerFormat>;
    let model = ScriptedModel::steps((0..9).map(|_| ScriptedReply::say("Hello.")));
    let kit = Kit::over(store(), model, Vec::new(), config);
    kit.say("hi").await;
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(answers.0.load(Ordering::Relaxed), 5, "once, after three resumptions, and then");
    kit.idle().await;
    let before = Instant::now();
    while answers.0.load(Ordering::Relaxed) == 5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(before.elapsed() >= Duration::from_secs(59), "{:?}", before.elapsed());
}

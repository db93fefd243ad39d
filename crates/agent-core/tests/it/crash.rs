use std::sync::{Arc, Mutex};

use serde_json::json;
use volcanic_agent_core::{
    EntryBody, MemoryStore, Message, ModelErrorKind, ModelRequest, Origin, ScriptedModel,
    ScriptedReply, ScriptedStep, SessionEvent, SessionStore as _, ToolCall,
};

use crate::kit::{
    HookedStore, Kit, accept, config, deaf, echo, lines, screen, settling, store, target,
};

const INTERRUPTED: &str =
    "This call was interrupted by a restart; its effect is unknown, check before repeating it.";

/// Calls two tools, then answers; the same whoever asks and whenever.
fn answer(request: &ModelRequest) -> ScriptedReply {
    match request.messages.last() {
        Some(Message::Tool(_)) => ScriptedReply::say("Done."),
        Some(Message::User { text }) if text.ends_with("work") => {
            ScriptedReply::call("echo", json!({"text": "one"}))
                .and_call("echo", json!({"text": "two"}))
        }
        Some(Message::User { .. } | Message::Assistant { .. }) | None => {
            ScriptedReply::say("Hello.")
        }
    }
}

fn answering() -> ScriptedModel {
    ScriptedModel::steps((0..9).map(|_| ScriptedStep::made(answer)))
}

/// Every call of a conversation has exactly one result, right after its reply.
#[track_caller]
fn check_calls_have_results(store: &MemoryStore) {
    let entries = store.all_entries(&target());
    for (at, entry) in entries.iter().enumerate() {
        let EntryBody::Assistant { blocks, .. } = &entry.body else { continue };
        let asked: Vec<&str> = blocks
            .iter()
            .filter_map(|block| match block {
                volcanic_agent_core::Block::ToolCall(ToolCall { id, .. }) => Some(id.as_str()),
                volcanic_agent_core::Block::Text { .. }
                | volcanic_agent_core::Block::Thinking { .. } => None,
            })
            .collect();
        let answered: Vec<&str> = entries[at + 1..]
            .iter()
            .map_while(|entry| match &entry.body {
                EntryBody::Tool(reply) => Some(reply.call_id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(asked, answered);
    }
}

#[tokio::test(start_paused = true)]
async fn crash_after_any_commit_loses_no_prompt_and_answers_each_once() {
    let (store, taken) = (store(), Arc::new(Mutex::new(Vec::new())));
    let seam = {
        let (inner, taken) = (store.clone(), Arc::clone(&taken));
        Arc::new(HookedStore::new(store.clone(), move |_| {
            taken.lock().unwrap().push(inner.after_crash());
            Box::pin(std::future::ready(()))
        }))
    };
    let model = answering();
    accept(&store, "work", Origin::Owner, "work").await;
    accept(&store, "greet", Origin::Owner, "greet").await;
    let kit = Kit::with_seams(store, seam, model.clone(), Arc::new(model), vec![echo()], config());
    kit.idle().await;
    assert_eq!(kit.screen(), ["Done.", "Hello."]);
    let snapshots = taken.lock().unwrap().clone();
    assert_eq!(snapshots.len(), 6);
    for (after, snapshot) in snapshots.into_iter().enumerate() {
        let next = Kit::over(snapshot, answering(), vec![echo()], config());
        next.idle().await;
        assert_eq!(next.screen(), ["Done.", "Hello."], "after commit {after}: {:?}", next.lines());
        check_calls_have_results(&next.store);
        let prompts: Vec<String> =
            next.lines().into_iter().filter(|line| line.starts_with("user")).collect();
        assert_eq!(prompts, ["user work", "user greet"]);
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_calls_are_told_and_the_run_goes_on() {
    let calls = ScriptedReply::call("deaf", json!({})).and_call("deaf", json!({}));
    let mut kit = Kit::start([calls], vec![deaf()]);
    kit.say("a").await;
    kit.event(|event| matches!(event, SessionEvent::ToolStarted { .. })).await;

    let model = ScriptedModel::steps([ScriptedReply::say("I shall check.")]);
    let mut next = Kit::over(kit.store.after_crash(), model, vec![deaf()], config());
    next.idle().await;
    let told = format!("error deaf: {INTERRUPTED}");
    let expected =
        ["user a", "call deaf, call deaf", &told, &told, "resumed", "say I shall check."];
    assert_eq!(next.lines(), expected);
    assert_eq!(next.last_request(), ["user a", "call deaf, call deaf", &told, &told]);
    assert_eq!(next.screen(), ["I shall check."]);
    assert_eq!(next.events_so_far()[0], "started a Owner");
}

#[tokio::test(start_paused = true)]
async fn run_is_given_up_after_its_resumptions_and_told_once() {
    let mut store = store();
    accept(&store, "d", Origin::Delivery, "[A2A result]").await;
    for _ in 0..4 {
        let model = ScriptedModel::steps([ScriptedReply::say("Hm").then_hang()]);
        let mut kit = Kit::over(store, model, Vec::new(), config());
        kit.event(|event| matches!(event, SessionEvent::TextDelta { .. })).await;
        store = kit.store.after_crash();
    }
    for _ in 0..2 {
        let kit = Kit::over(
            store,
            ScriptedModel::steps(Vec::<ScriptedReply>::new()),
            Vec::new(),
            config(),
        );
        kit.idle().await;
        store = kit.store.after_crash();
    }
    let reason = "it was interrupted 4 times by a restart";
    let expected = [
        "user [A2A result]",
        "resumed",
        "resumed",
        "resumed",
        &format!("failed after []: {reason}"),
    ];
    assert_eq!(lines(&store), expected);
    let shown = format!(
        "The assistant could not answer about this ({reason}). Here it is as it came:\n\n[A2A result]"
    );
    assert_eq!(screen(&store), [shown]);
}

#[tokio::test(start_paused = true)]
async fn outcome_from_before_a_crash_is_shown_when_the_resumed_run_fails() {
    let replies = [ScriptedReply::call("settle", json!({})), ScriptedReply::say("Hm").then_hang()];
    let mut kit = Kit::start(replies, vec![settling("a2a:1:completed")]);
    kit.say("a").await;
    kit.event(|event| matches!(event, SessionEvent::TextDelta { .. })).await;
    let fail = ScriptedReply::fail(ModelErrorKind::Quota, "no quota left");
    let next =
        Kit::over(kit.store.after_crash(), ScriptedModel::steps([fail]), Vec::new(), config());
    next.idle().await;
    let expected = "The assistant could not answer: no quota left. This had come in before; here it is as it came:\n\n\
                    outcome of a2a:1:completed";
    assert_eq!(next.screen(), [expected]);
    let last = ScriptedModel::steps(Vec::<ScriptedReply>::new());
    let last = Kit::over(next.store.after_crash(), last, Vec::new(), config());
    last.idle().await;
    assert_eq!(last.screen(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn crash_while_waiting_for_another_attempt_starts_the_attempts_anew() {
    let overloaded = || ScriptedReply::fail(ModelErrorKind::Overloaded, "overloaded");
    let mut kit = Kit::start([overloaded()], Vec::new());
    kit.say("a").await;
    kit.event(|event| matches!(event, SessionEvent::Retrying { .. })).await;
    let model = ScriptedModel::steps([overloaded(), ScriptedReply::say("Hello.")]);
    let next = Kit::over(kit.store.after_crash(), model, Vec::new(), config());
    next.idle().await;
    let expected = [
        "user a",
        "retry after []: overloaded",
        "resumed",
        "retry after []: overloaded",
        "say Hello.",
    ];
    assert_eq!(next.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn finished_conversation_is_left_alone() {
    let kit = Kit::start([ScriptedReply::say("Hello.")], Vec::new());
    kit.ask("a").await;
    let model = ScriptedModel::steps(Vec::<ScriptedReply>::new());
    let next = Kit::over(kit.store.after_crash(), model, Vec::new(), config());
    next.idle().await;
    assert_eq!(next.lines(), ["user a", "say Hello."]);
    assert_eq!(next.store.commits(), kit.store.commits());
}

#[tokio::test(start_paused = true)]
async fn answer_in_sending_comes_back_marked_after_a_crash() {
    let kit = Kit::start([ScriptedReply::say("Hello.")], Vec::new());
    kit.ask("a").await;
    let item = kit.store.next_outbox(&target()).await.unwrap().unwrap();
    assert_eq!((item.body.as_str(), item.may_repeat), ("Hello.", false));
    assert_eq!(kit.store.next_outbox(&target()).await.unwrap(), None);
    let next = kit.store.after_crash();
    let again = next.next_outbox(&target()).await.unwrap().unwrap();
    assert_eq!((again.body.as_str(), again.may_repeat, again.attempts), ("Hello.", true, 1));
    next.outbox_sent(again.id, None).await.unwrap();
    assert_eq!(next.targets_with_work().await.unwrap(), []);
}

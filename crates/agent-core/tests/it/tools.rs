use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{
    sync::{Barrier, Notify},
    time::Instant,
};
use volcanic_agent_core::{
    Accepted, Block, EntryBody, MemoryStore, Message, NewPrompt, Origin, PromptKey, ScriptedModel,
    ScriptedReply, SessionStore as _, SourceRef, StopReason, Tool, ToolCall, ToolContext,
    ToolOutput,
};

use crate::kit::{Kit, accept, config, deaf, echo, sequential_tool, store, target, tool};

fn done() -> ScriptedReply {
    ScriptedReply::say("done")
}

fn delivery(key: &str) -> NewPrompt {
    NewPrompt {
        target: target(),
        key: PromptKey::new(key),
        origin: Origin::Delivery,
        hops: 0,
        source: None,
        text: "the outcome".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn calls_run_together_and_results_stand_in_the_order_of_the_calls() {
    let (both, second_is_done) = (Arc::new(Barrier::new(2)), Arc::new(Notify::new()));
    let meet = tool("meet", move |arguments, _| {
        let (both, second_is_done) = (Arc::clone(&both), Arc::clone(&second_is_done));
        async move {
            both.wait().await;
            let text = arguments["text"].as_str().unwrap_or_default().to_owned();
            if text == "second" {
                second_is_done.notify_one();
            } else {
                second_is_done.notified().await;
            }
            ToolOutput::text(text)
        }
    });
    let calls = ScriptedReply::call("meet", json!({"text": "first"}))
        .and_call("meet", json!({"text": "second"}));
    let kit = Kit::start([calls, done()], vec![meet]);
    kit.ask("a").await;
    let expected =
        ["user a", "call meet, call meet", "result meet: first", "result meet: second", "say done"];
    assert_eq!(kit.lines(), expected);
    assert_eq!(kit.store.commits(), 4);
}

#[tokio::test(start_paused = true)]
async fn one_sequential_tool_makes_the_whole_batch_sequential() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = |now: Arc<AtomicUsize>, most: Arc<AtomicUsize>| async move {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        now.fetch_sub(1, Ordering::SeqCst);
        ToolOutput::text("ok")
    };
    let (a, b) = ((Arc::clone(&now), Arc::clone(&most)), (now, Arc::clone(&most)));
    let tools: Vec<Arc<dyn Tool>> = vec![
        tool("free", move |_, _| counting(Arc::clone(&a.0), Arc::clone(&a.1))),
        sequential_tool("alone", move |_, _| counting(Arc::clone(&b.0), Arc::clone(&b.1))),
    ];
    let calls = ScriptedReply::call("free", json!({}))
        .and_call("alone", json!({}))
        .and_call("free", json!({}));
    let kit = Kit::start([calls, done()], tools);
    kit.ask("a").await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(kit.lines()[2..5], ["result free: ok", "result alone: ok", "result free: ok"]);
}

#[tokio::test(start_paused = true)]
async fn unknown_tools_bad_arguments_and_panics_become_results() {
    let broken = tool("broken", |_, _| async { panic!("as the test wants it") });
    let mut kit = Kit::start(
        [
            ScriptedReply::call("nobody", json!({}))
                .and_call("echo", json!({"text": 5}))
                .and_call("broken", json!({}))
                .and_call("echo", json!({"text": "fine"}))
                .and_block(Block::ToolCall(ToolCall {
                    id: "x".to_owned(),
                    name: "echo".to_owned(),
                    arguments: Err("{\"text\"".to_owned()),
                    replay: None,
                })),
            done(),
        ],
        vec![echo(), broken],
    );
    kit.ask("a").await;
    let expected = [
        "error nobody: There is no tool `nobody`.",
        "error echo: `text` must be string, not number.",
        "error broken: The tool failed unexpectedly; whether it had an effect is unknown.",
        "result echo: fine",
        "error echo: The arguments are not a JSON object: {\"text\"",
        "say done",
    ];
    assert_eq!(kit.lines()[2..], expected);
    let events = kit.events_so_far();
    assert_eq!(events.iter().filter(|line| line.starts_with("tool ")).count(), 5);
    assert_eq!(events.iter().filter(|line| line.starts_with("ended ")).count(), 5);
    assert!(events.contains(&"tool echo text=fine".to_owned()), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_cut_reply_are_not_run_and_the_model_may_repeat_them() {
    let cut = ScriptedReply::call("echo", json!({"text": "half"}))
        .and_call("echo", json!({}))
        .stopping(StopReason::Length);
    let kit = Kit::start(
        [cut, ScriptedReply::call("echo", json!({"text": "whole"})), done()],
        vec![echo()],
    );
    kit.ask("a").await;
    let lines = kit.lines();
    assert!(lines[2].starts_with("error echo: This call was not run"), "{}", lines[2]);
    assert!(lines[3].starts_with("error echo: This call was not run"), "{}", lines[3]);
    assert_eq!(lines[4..], ["call echo", "result echo: whole", "say done"]);
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_cap_fail_with_a_result() {
    let mut config = config();
    config.limits.calls_per_reply = 1;
    let calls = ScriptedReply::call("echo", json!({})).and_call("echo", json!({}));
    let kit = Kit::over(store(), ScriptedModel::steps([calls, done()]), vec![echo()], config);
    kit.ask("a").await;
    let expected =
        ["result echo: nothing", "error echo: This call was not run: one reply may hold 1 calls."];
    assert_eq!(kit.lines()[2..4], expected);
}

#[tokio::test(start_paused = true)]
async fn call_past_its_time_ends_and_the_run_goes_on() {
    let kit = Kit::start([ScriptedReply::call("deaf", json!({})), done()], vec![deaf()]);
    let before = Instant::now();
    kit.ask("a").await;
    assert_eq!(before.elapsed(), Duration::from_secs(15 * 60 + 2));
    let expected = "error deaf: The call was ended after 900 s without a result; whether it had an effect is unknown.";
    assert_eq!(kit.lines()[2..], [expected, "say done"]);
}

#[tokio::test(start_paused = true)]
async fn calls_know_their_run() {
    let seen: Arc<Mutex<Vec<ToolContext>>> = Arc::default();
    let look = {
        let seen = Arc::clone(&seen);
        tool("look", move |_, context| {
            seen.lock().unwrap().push(context);
            async { ToolOutput::text("ok") }
        })
    };
    let kit = Kit::start([ScriptedReply::call("look", json!({})), done()], vec![look]);
    accept(&kit.store, "k", Origin::Delivery, "news").await;
    kit.handle.wake();
    kit.idle().await;
    let context = seen.lock().unwrap().remove(0);
    assert_eq!((context.target, context.hops, context.origin), (target(), 3, Origin::Delivery));
    assert_eq!(context.source, Some(SourceRef::new("message k")));
    let EntryBody::Tool(reply) = &kit.store.all_entries(&target())[2].body else { panic!() };
    assert_eq!(context.call_id, reply.call_id);
}

#[tokio::test(start_paused = true)]
async fn calls_without_ids_of_their_own_get_some() {
    let call = |id: &str| {
        let (id, name) = (id.to_owned(), "echo".to_owned());
        Block::ToolCall(ToolCall { id, name, arguments: Ok(json!({})), replay: None })
    };
    let twice = ScriptedReply::say("").and_block(call("same")).and_block(call("same"));
    let kit = Kit::start([twice, done()], vec![echo()]);
    kit.ask("a").await;
    let messages = kit.model.requests().remove(1).messages;
    let Message::Assistant { blocks } = &messages[1] else { panic!("{messages:?}") };
    let asked: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolCall(call) => Some(call.id.as_str()),
            Block::Text { .. } | Block::Thinking { .. } => None,
        })
        .collect();
    let answered: Vec<&str> = messages[2..]
        .iter()
        .filter_map(|message| match message {
            Message::Tool(reply) => Some(reply.call_id.as_str()),
            Message::User { .. } | Message::Assistant { .. } => None,
        })
        .collect();
    assert_eq!(asked, answered);
    assert_eq!(asked[0], "same");
    assert_ne!(asked[1], "same");
}

#[tokio::test(start_paused = true)]
async fn model_that_only_calls_is_asked_to_sum_up() {
    let mut config = config();
    config.max_turns = 2;
    let call = || ScriptedReply::call("echo", json!({}));
    let last = ScriptedReply::say("So far nothing.").and_call("echo", json!({}));
    let model = ScriptedModel::steps([call(), call(), last]);
    let kit = Kit::over(store(), model, vec![echo()], config);
    kit.ask("a").await;
    let request = kit.model.requests().remove(2);
    assert_eq!(request.tools, []);
    assert!(
        request.system.starts_with("Be kind.\n\nThe limit of tool calls"),
        "{}",
        request.system
    );
    assert_eq!(kit.lines().last().unwrap(), "say So far nothing.");
    assert_eq!(kit.screen(), ["So far nothing."]);
}

/// A tool whose result settles a delivery, and what its hook saw.
fn settling(key: &'static str, store: &MemoryStore) -> (Arc<dyn Tool>, Arc<Mutex<Vec<usize>>>) {
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (store, heard) = (store.clone(), Arc::clone(&seen));
    let settle = tool("settle", move |_, _| {
        let (store, heard) = (store.clone(), Arc::clone(&heard));
        async move {
            let on_disk = move || heard.lock().unwrap().push(store.all_entries(&target()).len());
            ToolOutput {
                delivery_key: Some(PromptKey::new(key)),
                on_committed: Some(Box::new(on_disk)),
                ..ToolOutput::text("the outcome")
            }
        }
    });
    (settle, seen)
}

#[tokio::test(start_paused = true)]
async fn settled_delivery_is_on_disk_before_its_tool_hears_and_cannot_come_again() {
    let store = store();
    let (settle, seen) = settling("a2a:1:completed", &store);
    let model = ScriptedModel::steps([ScriptedReply::call("settle", json!({})), done()]);
    let kit = Kit::over(store, model, vec![settle], config());
    kit.ask("a").await;
    assert_eq!(*seen.lock().unwrap(), [3]);
    assert_eq!(kit.lines()[2], "result settle: the outcome");
    let again = kit.store.accept(delivery("a2a:1:completed")).await.unwrap();
    assert_eq!(again, Accepted::AlreadyThere);
}

#[tokio::test(start_paused = true)]
async fn result_gives_way_to_the_delivery_that_came_first() {
    let store = store();
    let (settle, seen) = settling("a2a:1:completed", &store);
    let calls = ScriptedReply::call("settle", json!({})).and_call("echo", json!({"text": "other"}));
    let model = ScriptedModel::steps([calls, done(), ScriptedReply::say("news")]);
    let kit = Kit::over(store, model, vec![settle, echo()], config());
    kit.store.accept(delivery("a2a:1:completed")).await.unwrap();
    // The delivery is the older prompt, so its own run takes the script's calls.
    kit.ask("a").await;
    let expected = [
        "user the outcome",
        "call settle, call echo",
        "result settle: This outcome was already delivered to this conversation.",
        "result echo: other",
        "say done",
        "user a",
        "say news",
    ];
    assert_eq!(kit.lines(), expected);
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn of_two_results_with_one_key_the_first_counts() {
    let store = store();
    let (settle, seen) = settling("a2a:1:completed", &store);
    let calls = ScriptedReply::call("settle", json!({})).and_call("settle", json!({}));
    let kit = Kit::over(store, ScriptedModel::steps([calls, done()]), vec![settle], config());
    kit.ask("a").await;
    let expected = [
        "result settle: the outcome",
        "result settle: This outcome was already delivered to this conversation.",
    ];
    assert_eq!(kit.lines()[2..4], expected);
    assert_eq!(*seen.lock().unwrap(), [4]);
}

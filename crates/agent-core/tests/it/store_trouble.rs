use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;
use volcanic_agent_core::{
    Origin, ScriptedModel, ScriptedReply, ScriptedStep, SessionError, SessionEvent,
};

use crate::kit::{HookedStore, Kit, accept, config, echo, store};

#[tokio::test(start_paused = true)]
async fn store_that_fails_for_a_moment_only_costs_time() {
    let kit = Kit::start([ScriptedReply::say("Hello.")], Vec::new());
    kit.idle().await;
    accept(&kit.store, "a", Origin::Owner, "a").await;
    kit.store.fail_next(2);
    let before = Instant::now();
    kit.handle.wake();
    kit.idle().await;
    assert_eq!(before.elapsed(), Duration::from_millis(100 + 1000));
    assert_eq!(kit.lines(), ["user a", "say Hello."]);
    assert_eq!(kit.screen(), ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn store_that_fails_for_long_stops_the_run_which_goes_on_by_itself_later() {
    let store = store();
    let lost = ScriptedStep::made({
        let breaking = store.clone();
        move |_| {
            breaking.fail_next(4);
            ScriptedReply::say("lost")
        }
    });
    let model = ScriptedModel::steps([lost, ScriptedReply::say("Hello.").into()]);
    let mut kit = Kit::over(store, model, Vec::new(), config());
    kit.say("a").await;
    kit.event(|event| matches!(event, SessionEvent::RunFailed { .. })).await;
    kit.idle().await;
    assert_eq!(kit.lines(), ["user a"]);
    let before = Instant::now();
    kit.event(|event| matches!(event, SessionEvent::Answered { .. })).await;
    assert_eq!(before.elapsed(), Duration::from_mins(1));
    assert_eq!(kit.lines(), ["user a", "resumed", "say Hello."]);
    assert_eq!(kit.screen(), ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn prompt_stays_when_it_cannot_be_consumed() {
    let kit = Kit::start([ScriptedReply::say("Hello.")], Vec::new());
    kit.idle().await;
    accept(&kit.store, "a", Origin::Owner, "a").await;
    kit.store.fail_next(4);
    kit.handle.wake();
    kit.idle().await;
    assert_eq!(kit.lines(), Vec::<String>::new());
    assert_eq!(kit.handle.status().await.unwrap().waiting, 1);
    kit.handle.wake();
    kit.idle().await;
    assert_eq!(kit.screen(), ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn reset_that_cannot_be_kept_is_an_error_and_changes_nothing() {
    let kit = Kit::start([ScriptedReply::say("one"), ScriptedReply::say("two")], Vec::new());
    kit.ask("a").await;
    kit.store.fail_next(4);
    assert!(matches!(kit.handle.reset().await, Err(SessionError::Store(_))));
    kit.ask("b").await;
    assert_eq!(kit.last_request(), ["user a", "say one", "user b"]);
}

#[tokio::test(start_paused = true)]
async fn commit_that_failed_after_it_was_written_is_not_made_again() {
    let (store, replies) = (
        store(),
        [ScriptedReply::call("echo", json!({"text": "one"})), ScriptedReply::say("Done.")],
    );
    let model = ScriptedModel::steps(replies);
    let seam = Arc::new(HookedStore::unsure(store.clone(), 4));
    accept(&store, "a", Origin::Owner, "a").await;
    let kit = Kit::with_seams(store, seam, model.clone(), Arc::new(model), vec![echo()], config());
    kit.idle().await;
    assert_eq!(kit.lines(), ["user a", "call echo", "result echo: one", "say Done."]);
    assert_eq!(kit.screen(), ["Done."]);
    assert_eq!(kit.last_request(), ["user a", "call echo", "result echo: one"]);
}

/// A session whose run of the prompt `a` the store has just cut short.
async fn cut_short(origin: Origin, replies: usize) -> Kit {
    let store = store();
    let lost = ScriptedStep::made({
        let breaking = store.clone();
        move |_| {
            breaking.fail_next(4);
            ScriptedReply::say("lost")
        }
    });
    let more = (0..replies).map(|_| ScriptedReply::say("Hello.").into());
    let model = ScriptedModel::steps(std::iter::once(lost).chain(more));
    accept(&store, "a", origin, "a").await;
    Kit::over(store, model, Vec::new(), config())
}

#[tokio::test(start_paused = true)]
async fn stop_stands_although_the_store_could_not_take_it() {
    let mut kit = cut_short(Origin::Owner, 1).await;
    kit.event(|event| matches!(event, SessionEvent::TextDelta { .. })).await;
    assert!(kit.handle.abort().await.unwrap().was_running);
    kit.event(|event| matches!(event, SessionEvent::RunAborted { .. })).await;
    kit.ask("b").await;
    let expected =
        ["user a", "resumed", "aborted after []: stopped by the owner", "user b", "say Hello."];
    assert_eq!(kit.lines(), expected);
}

#[tokio::test(start_paused = true)]
async fn reset_shows_what_a_run_that_was_cut_short_had_been_told() {
    let mut kit = cut_short(Origin::Delivery, 0).await;
    kit.event(|event| matches!(event, SessionEvent::RunFailed { .. })).await;
    kit.handle.reset().await.unwrap();
    kit.idle().await;
    assert_eq!(kit.lines(), ["user a", "aborted after []: stopped by the owner", "reset"]);
    assert_eq!(
        kit.screen(),
        [
            "The assistant could not answer about this (stopped by the owner). Here it is as it came:\n\na"
        ]
    );
}

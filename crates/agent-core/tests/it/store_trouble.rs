use std::time::Duration;

use tokio::time::Instant;
use volcanic_agent_core::{
    Origin, ScriptedModel, ScriptedReply, ScriptedStep, SessionError, SessionEvent,
};

use crate::kit::{Kit, accept, config, store};

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

use std::time::Duration;

use tokio::time::timeout;
use volcanic_a2a_watch::{SendEnd, TaskError, WatchState};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

#[tokio::test(start_paused = true)]
async fn status_returns_task_and_leaves_its_watch() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    let report = world.watches.status(world.query("t1")).await.unwrap();
    assert_eq!((report.settled, report.watched, report.settle.is_none()), (false, true, true));
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
}

#[tokio::test(start_paused = true)]
async fn status_of_a_settled_task_ends_its_watch() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let report = world.watches.status(world.query("t1")).await.unwrap();
    assert_eq!((report.outcome.answer.as_str(), report.watched), ("Lisbon", false));
    let settle = report.settle.unwrap();
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn card_that_nobody_waited_for_any_more_is_asked_for_anew() {
    let world = World::new(Agent::new(WORKING));
    world.agent.stall_at(Some("card"));
    let listing = world.watches.agents(world.workspace());
    assert!(timeout(Duration::from_secs(1), listing).await.is_err());
    world.agent.stall_at(None);
    // Longer than a card may take.
    world.pass(3600).await;
    let end = world.send(world.order("plan a trip"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn status_works_without_a_watch() {
    let world = World::new(Agent::new(WORKING));
    world.agent.set_task("t9", "TASK_STATE_COMPLETED", "old news");
    let report = world.watches.status(world.query("t9")).await.unwrap();
    assert_eq!((report.outcome.answer.as_str(), report.settle.is_none()), ("old news", true));
}

#[tokio::test(start_paused = true)]
async fn cancel_cancels_remote_and_drops_watch() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    let report = world.watches.cancel(world.query("t1")).await.unwrap();
    assert_eq!((report.refused.as_ref(), report.watched), (None, false));
    let settle = report.settle.unwrap();
    assert!(settle.delivery_key().ends_with(":canceled"));
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.agent.calls("CancelTask").len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn refused_cancel_tells_the_outcome() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.refuse_cancel();
    let report = world.watches.cancel(world.query("t1")).await.unwrap();
    assert_eq!(report.outcome.answer, "Lisbon");
    assert!(report.refused.unwrap().contains("-32002"));
    assert!(report.settle.is_some());
}

#[tokio::test(start_paused = true)]
async fn cancel_that_does_not_get_through_leaves_the_task_watched() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_unreachable(true);
    let error = world.watches.cancel(world.query("t1")).await.unwrap_err();
    assert!(matches!(error, TaskError::Agent { watched: true, .. }), "{error:?}");
    world.agent.set_unreachable(false);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
}

#[tokio::test(start_paused = true)]
async fn agents_are_listed_with_fresh_cards_and_reasons() {
    let world = World::new(Agent::new(WORKING));
    world.write_agents(
        r#"[{"name": "travel-bot", "url": "http://travel.example/"}, {"name": "NO", "url": "http://x/"}]"#,
    );
    let report = world.watches.agents(world.workspace()).await.unwrap();
    assert_eq!(report.agents[0].remote.as_ref().unwrap().card().name, "Travel Bot");
    assert_eq!(report.skipped.len(), 1);
    world.agent.set_unreachable(true);
    let report = world.watches.agents(world.workspace()).await.unwrap();
    assert!(report.agents[0].remote.is_err());
}

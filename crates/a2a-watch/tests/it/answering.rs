//! Answers to agents that go on showing their question until they have something to say.

use std::sync::Arc;

use volcanic_a2a_watch::{SendEnd, SendError, SendState, WatchState, WatchTarget};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const ASKS: &str = "TASK_STATE_INPUT_REQUIRED";

/// A conversation that was asked something by task `t1` and told so.
async fn asked(agent: Agent) -> World {
    let world = World::new(agent);
    let end = world.send(world.order("book a trip"), 0).await;
    let Ok(SendEnd::HandedOver { .. }) = end else { panic!("{end:?}") };
    world.agent.set_task("t1", ASKS, "Which day?");
    assert!(world.chat.wait_for(1).await[0].text.contains("Which day?"));
    world.reach(&[WatchState::Done]).await;
    // It takes the answer and says nothing of it.
    world.agent.on_send(OnSend::Known);
    world
}

async fn answer(world: &World, wait: u64) -> SendEnd {
    let mut order = world.order("Monday");
    order.task_id = Some("t1".into());
    world.send(order, wait).await.unwrap()
}

async fn check_wait(agent: Agent) {
    let world = asked(agent).await;
    let (end, ()) = tokio::join!(answer(&world, 60), async {
        world.pass(5).await;
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Booked.");
        world.agent.stream_status("t1", "TASK_STATE_COMPLETED").await;
    });
    let SendEnd::Settled { outcome, settle: Some(settle) } = end else { panic!("{end:?}") };
    assert_eq!((outcome.answer.as_str(), outcome.question), ("Booked.", false));
    settle.confirm();
    world.reach(&[WatchState::Done, WatchState::Done]).await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn question_that_was_answered_is_not_the_outcome_of_its_answer() {
    check_wait(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
}

#[tokio::test(start_paused = true)]
async fn stream_that_begins_with_the_answered_question_is_listened_to() {
    check_wait(Agent::new(OnSend::Task("TASK_STATE_WORKING")).streams()).await;
}

#[tokio::test(start_paused = true)]
async fn answered_question_that_outlasts_the_wait_is_watched_and_its_outcome_delivered_once() {
    let world = asked(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
    let end = answer(&world, 10).await;
    assert!(matches!(end, SendEnd::HandedOver { .. }), "{end:?}");
    world.pass(600).await;
    assert_eq!(world.chat.attempts(), 1, "{:?}", world.chat.delivered());
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Booked.");
    assert!(world.chat.wait_for(2).await[1].text.contains("Booked."));
    world.reach(&[WatchState::Done, WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn next_question_is_told_although_the_one_before_was_answered() {
    let world = asked(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
    let end = answer(&world, 10).await;
    assert!(matches!(end, SendEnd::HandedOver { .. }), "{end:?}");
    world.agent.set_task("t1", ASKS, "Which hotel?");
    world.agent.say_anew("t1");
    assert!(world.chat.wait_for(2).await[1].text.contains("Which hotel?"));
}

#[tokio::test(start_paused = true)]
async fn status_of_an_answered_question_does_not_end_its_watch() {
    let world = asked(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
    answer(&world, 1).await;
    world.reach(&[WatchState::Done, WatchState::Watching]).await;
    let report = world.watches.status(world.query("t1")).await.unwrap();
    assert_eq!((report.settled, report.watched, report.settle.is_none()), (false, true, true));
    assert!(!report.outcome.question);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Booked.");
    assert!(world.chat.wait_for(2).await[1].text.contains("Booked."));
}

#[tokio::test(start_paused = true)]
async fn answered_question_is_none_after_a_restart_either() {
    let mut world = asked(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
    answer(&world, 1).await;
    world.reach(&[WatchState::Done, WatchState::Watching]).await;
    world.crash().await;
    world.restart().await;
    world.pass(600).await;
    assert_eq!(world.chat.attempts(), 1, "{:?}", world.chat.delivered());
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Booked.");
    assert!(world.chat.wait_for(2).await[1].text.contains("Booked."));
}

/// A kill comes after an answer left and before anything of what the agent said to it is on disk.
async fn killed_while_answering(agent: Agent) -> World {
    let mut world = asked(agent).await;
    world.agent.on_send(OnSend::KnownWithoutAnswer);
    let mut order = world.order("Monday");
    order.task_id = Some("t1".into());
    world.lose_in_flight(order).await;
    world.restart().await;
    world
}

#[tokio::test(start_paused = true)]
async fn answered_question_is_none_for_a_process_that_finds_only_the_answer_either() {
    let world = killed_while_answering(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
    world.reach(&[WatchState::Done, WatchState::Watching]).await;
    world.pass(600).await;
    assert_eq!(world.chat.attempts(), 1, "{:?}", world.chat.delivered());
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Booked.");
    assert!(world.chat.wait_for(2).await[1].text.contains("Booked."));
    world.reach(&[WatchState::Done, WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn answered_question_is_none_for_the_watch_that_an_answer_found_again_continues() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_WORKING")));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    // The agent asks, and is answered, before the watch looks again.
    world.agent.set_task("t1", ASKS, "Which day?");
    world.agent.on_send(OnSend::KnownWithoutAnswer);
    let mut order = world.order("Monday");
    order.task_id = Some("t1".into());
    world.lose_in_flight(order).await;
    world.restart().await;
    world.pass(600).await;
    assert_eq!((world.chat.attempts(), world.states()), (0, vec![WatchState::Watching]));
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Booked.");
    assert!(world.chat.wait_for(1).await[0].text.contains("Booked."));
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn answer_does_not_leave_while_it_cannot_be_kept_what_it_answers() {
    let world = asked(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
    let sent = world.agent.calls("SendMessage").len();
    let store = Arc::clone(&world.store);
    world.agent.before_read(move || store.set_failing(true));
    let mut order = world.order("Monday");
    order.task_id = Some("t1".into());
    let end = world.send(order, 60).await;
    assert!(matches!(end, Err(SendError::Store(_))), "{end:?}");
    assert_eq!(world.agent.calls("SendMessage").len(), sent);
    world.agent.before_read(|| {});
    world.store.set_failing(false);
    world.pass(600).await;
    assert_eq!(world.store.sends()[1].state, SendState::Ended);
}

#[tokio::test(start_paused = true)]
async fn answer_does_not_leave_while_the_question_cannot_be_read() {
    let world = asked(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
    let sent = world.agent.calls("SendMessage").len();
    world.agent.set_busy(Some(1));
    let mut order = world.order("Monday");
    order.task_id = Some("t1".into());
    order.context_id = Some("c1".into());
    let end = world.send(order, 0).await;
    assert!(matches!(end, Err(SendError::Agent(_))), "{end:?}");
    assert_eq!(world.agent.calls("SendMessage").len(), sent);
    world.agent.set_busy(None);
    world.pass(600).await;
    assert_eq!((world.chat.attempts(), world.store.sends()[1].state), (1, SendState::Ended));
}

#[tokio::test(start_paused = true)]
async fn answer_to_an_agent_that_knows_no_such_task_is_for_the_agent_to_refuse() {
    let world = asked(Agent::new(OnSend::Task("TASK_STATE_WORKING"))).await;
    let sent = world.agent.calls("SendMessage").len();
    world.agent.set_forgetting();
    let mut order = world.order("Monday");
    order.task_id = Some("t1".into());
    order.context_id = Some("c1".into());
    let end = world.send(order, 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    assert_eq!(world.agent.calls("SendMessage").len(), sent + 1);
}

/// A question that waits for its conversation, and an answer that went to the agent all the same.
async fn answered_before_it_was_told() -> World {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_WORKING")));
    world.hand_over().await;
    world.chat.set_known(false);
    world.agent.set_task("t1", ASKS, "Which day?");
    world.reach(&[WatchState::Claimed]).await;
    world.agent.on_send(OnSend::Known);
    let end = answer(&world, 0).await;
    assert!(matches!(end, SendEnd::HandedOver { .. }), "{end:?}");
    // The question is the same, and looks different.
    world.agent.hush("t1");
    world.chat.set_known(true);
    world
}

async fn check_told_once(world: World) {
    assert!(world.chat.wait_for(1).await[0].text.contains("Which day?"));
    world.pass(600).await;
    assert_eq!(world.chat.delivered().len(), 1, "{:?}", world.chat.delivered());
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Booked.");
    assert!(world.chat.wait_for(2).await[1].text.contains("Booked."));
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn question_that_was_answered_before_its_text_was_told_is_told_once() {
    let world = answered_before_it_was_told().await;
    world.watches.flush(WatchTarget::new("chat")).await;
    check_told_once(world).await;
}

#[tokio::test(start_paused = true)]
async fn question_that_was_answered_before_its_text_was_told_is_told_once_after_a_kill_too() {
    let mut world = answered_before_it_was_told().await;
    world.crash().await;
    check_told_once(world).await;
}

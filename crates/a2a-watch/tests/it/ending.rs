//! A process that ends in good order, or is killed, between an outcome that is told and the note that it was.

use std::sync::{Arc, Mutex};

use serde_json::json;
use volcanic_a2a_watch::{SendEnd, SendError, SendState, SettleTicket, WatchState};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");
const DONE: OnSend = OnSend::Task("TASK_STATE_COMPLETED");

/// The process is told to end while something enters the conversation.
fn end_while_delivering(world: &World) {
    let ending = world.ending();
    world.chat.before_deliver(move || ending.cancel());
}

/// Nothing is told again by the next process, in days.
async fn check_told_once(mut world: World, attempts: u32) {
    world.chat.before_deliver(|| {});
    world.restart().await;
    world.pass(3 * 24 * 3600).await;
    assert_eq!(world.chat.attempts(), attempts, "{:?}", world.chat.delivered());
}

/// Sends something that is done at once, and is to be told by its sender.
async fn settled(world: &World) -> SettleTicket {
    match world.send(world.order("hi"), 60).await {
        Ok(SendEnd::Settled { settle: Some(settle), .. }) => settle,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn outcome_that_is_delivered_while_the_process_ends_leaves_no_watch() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    end_while_delivering(&world);
    world.chat.wait_for(1).await;
    world.shut_down().await;
    assert_eq!((world.states(), world.pending()), (vec![WatchState::Done], Some(json!([]))));
    check_told_once(world, 1).await;
}

#[tokio::test(start_paused = true)]
async fn outcome_enters_its_conversation_while_the_watch_is_claimed_and_not_over() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (store, sees) = (Arc::clone(&world.store), Arc::clone(&seen));
    world.chat.before_deliver(move || sees.lock().unwrap().push(store.all_watches()[0].state));
    world.chat.wait_for(1).await;
    assert_eq!(*seen.lock().unwrap(), [WatchState::Claimed]);
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn state_that_is_told_while_the_process_ends_is_noted_as_told() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_AUTH_REQUIRED")));
    end_while_delivering(&world);
    world.hand_over().await;
    world.chat.wait_for(1).await;
    world.shut_down().await;
    let watch = world.store.all_watches().remove(0);
    assert_eq!((watch.state, watch.text.is_none()), (WatchState::Watching, true));
    assert!(watch.told.iter().any(|told| told == "auth-required"), "{watch:?}");
}

#[tokio::test(start_paused = true)]
async fn outcome_that_its_caller_tells_while_the_process_ends_leaves_no_watch() {
    let mut world = World::new(Agent::new(DONE));
    let settle = settled(&world).await;
    world.ending().cancel();
    world.pass(1).await;
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.shut_down().await;
    assert_eq!((world.states(), world.pending()), (vec![WatchState::Done], Some(json!([]))));
    check_told_once(world, 0).await;
}

#[tokio::test(start_paused = true)]
async fn reply_that_its_caller_tells_while_the_process_ends_leaves_no_open_message() {
    let mut world = World::new(Agent::new(OnSend::Reply("Hello.")));
    let end = world.send(world.order("hi"), 60).await;
    let Ok(SendEnd::Replied { settle, .. }) = end else { panic!("{end:?}") };
    world.ending().cancel();
    world.pass(1).await;
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.shut_down().await;
    assert_eq!(world.store.sends()[0].state, SendState::Known);
}

#[tokio::test(start_paused = true)]
async fn reply_that_comes_while_the_process_ends_is_told_its_caller_who_stays() {
    let mut world = World::new(Agent::new(OnSend::Reply("Hello.")));
    let ending = world.ending();
    world.agent.before_send(move || ending.cancel());
    let end = world.send(world.order("hi"), 60).await;
    let Ok(SendEnd::Replied { reply, settle, .. }) = end else { panic!("{end:?}") };
    assert_eq!(reply.answer, "Hello.");
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.shut_down().await;
    assert_eq!(world.store.sends()[0].state, SendState::Known);
    check_told_once(world, 0).await;
}

#[tokio::test(start_paused = true)]
async fn reply_that_comes_while_the_process_ends_is_delivered_when_its_caller_left() {
    let mut world = World::new(Agent::new(OnSend::Reply("Hello.")));
    let ending = world.ending();
    world.agent.before_send(move || ending.cancel());
    world.leave(world.order("hi")).await;
    world.ending().cancelled().await;
    world.shut_down().await;
    assert_told_the_reply(&world);
    check_told_once(world, 1).await;
}

#[tokio::test(start_paused = true)]
async fn reply_whose_caller_is_stopped_with_the_process_is_delivered() {
    let mut world = World::new(Agent::new(OnSend::Reply("Hello.")));
    let end = world.send(world.order("hi"), 60).await;
    let Ok(SendEnd::Replied { settle, .. }) = end else { panic!("{end:?}") };
    world.ending().cancel();
    world.pass(1).await;
    drop(settle);
    world.shut_down().await;
    assert_told_the_reply(&world);
    check_told_once(world, 1).await;
}

#[tokio::test(start_paused = true)]
async fn reply_that_cannot_be_delivered_while_the_process_ends_is_told_as_unknown_by_the_next() {
    let mut world = World::new(Agent::new(OnSend::Reply("Hello.")));
    let end = world.send(world.order("hi"), 60).await;
    let Ok(SendEnd::Replied { settle, .. }) = end else { panic!("{end:?}") };
    world.chat.set_known(false);
    world.ending().cancel();
    world.pass(1).await;
    drop(settle);
    world.shut_down().await;
    assert_eq!(world.store.sends()[0].state, SendState::Sending);
    world.chat.set_known(true);
    world.restart().await;
    let told = world.chat.wait_for(1).await;
    assert!(told[0].text.contains("may or may not have arrived"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn answer_to_a_message_for_a_followed_task_counts_while_the_process_ends() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    let ending = world.ending();
    world.agent.before_send(move || ending.cancel());
    let mut more = world.order("and a hotel");
    more.task_id = Some("t1".into());
    world.leave(more).await;
    world.ending().cancelled().await;
    world.shut_down().await;
    let (watch, send) = (world.store.all_watches().remove(0), world.store.sends().remove(1));
    assert_eq!(watch.message_id, Some(send.message_id), "whether or not the agent shows it");
    world.agent.before_send(|| {});
    world.restart().await;
    world.pass(60).await;
    assert_eq!(world.store.sends()[1].state, SendState::Known);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
    check_told_once(world, 1).await;
}

#[track_caller]
fn assert_told_the_reply(world: &World) {
    let delivered = world.chat.delivered();
    let [reply] = &delivered[..] else { panic!("{delivered:?}") };
    assert!(reply.text.ends_with("\nHello."), "{reply:?}");
    assert_eq!(world.store.sends()[0].state, SendState::Known);
}

#[tokio::test(start_paused = true)]
async fn unknown_outcome_that_is_told_while_the_process_ends_leaves_no_open_message() {
    let mut world = World::new(Agent::new(OnSend::Nothing));
    let end = world.send(world.order("hi"), 60).await;
    let Err(SendError::Unknown { settle, .. }) = end else { panic!("{end:?}") };
    end_while_delivering(&world);
    drop(settle);
    world.chat.wait_for(1).await;
    world.shut_down().await;
    assert_eq!(world.store.sends()[0].state, SendState::Ended);
    check_told_once(world, 1).await;
}

#[tokio::test(start_paused = true)]
async fn ticket_that_nobody_uses_does_not_keep_a_process_from_ending() {
    let mut world = World::new(Agent::new(DONE));
    let settle = settled(&world).await;
    let begun = world.now();
    world.shut_down().await;
    assert!(world.now().duration_since(begun).as_secs() < 10, "it took {:?}", world.now() - begun);
    assert_eq!(world.states(), [WatchState::Attended]);
    drop(settle);
    world.restart().await;
    assert_eq!(world.chat.wait_for(1).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn outcome_that_was_told_just_before_a_kill_ends_its_watch_without_a_word_of_the_agent() {
    let mut world = World::new(Agent::new(DONE));
    let settle = settled(&world).await;
    world.chat.commit(settle.delivery_key());
    world.stop_hard().await;
    drop(settle);
    world.agent.set_unreachable(true);
    world.restart().await;
    world.reach(&[WatchState::Done]).await;
    check_told_once(world, 0).await;
}

#[tokio::test(start_paused = true)]
async fn outcome_that_was_told_by_who_did_not_come_to_say_so_is_no_news_to_a_message_beside_it() {
    let world = World::new(Agent::new(DONE));
    world.agent.same_task();
    let settle = settled(&world).await;
    let end = world.send(world.order("and?"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.chat.commit(settle.delivery_key());
    drop(settle);
    world.reach(&[WatchState::Done]).await;
    check_told_once(world, 0).await;
}

#[tokio::test(start_paused = true)]
async fn task_that_a_message_took_up_again_is_followed_although_its_outcome_was_told_just_before_a_kill()
 {
    let mut world = World::new(Agent::new(DONE));
    world.agent.same_task();
    let settle = settled(&world).await;
    world.agent.on_send(WORKING);
    let end = world.send(world.order("and?"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.chat.commit(settle.delivery_key());
    world.stop_hard().await;
    drop(settle);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Porto");
    world.restart().await;
    assert!(world.chat.wait_for(1).await[0].text.ends_with("\nPorto"));
    world.reach(&[WatchState::Done]).await;
    check_told_once(world, 1).await;
}

#[tokio::test(start_paused = true)]
async fn status_that_told_the_outcome_just_before_a_kill_ends_the_watch_too() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.set_task("t1", "TASK_STATE_FAILED", "No seats.");
    let report = world.watches.status(world.query("t1")).await.unwrap();
    let settle = report.settle.unwrap();
    world.chat.commit(settle.delivery_key());
    world.stop_hard().await;
    drop(settle);
    world.agent.set_forgetting();
    world.restart().await;
    world.reach(&[WatchState::Done]).await;
    check_told_once(world, 0).await;
}

#[tokio::test(start_paused = true)]
async fn question_that_was_told_and_answered_before_a_kill_is_followed_on() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_INPUT_REQUIRED")));
    let settle = settled(&world).await;
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.agent.on_send(WORKING);
    let mut answer = world.order("Monday");
    answer.task_id = Some("t1".into());
    world.send(answer, 0).await.unwrap();
    world.reach(&[WatchState::Done, WatchState::Watching]).await;
    world.crash().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Booked.");
    assert!(world.chat.wait_for(1).await[0].text.contains("Booked."));
    world.reach_ends().await;
}

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use volcanic_a2a_watch::{SendEnd, SendState, WatchState, unknown_send_key};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

#[tokio::test(start_paused = true)]
async fn watch_restore_follows_what_was_watched() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.stop_hard().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.restart().await;
    world.chat.wait_for(1).await;
    world.reach(&[WatchState::Done]).await;
    world.crash().await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn watch_restore_takes_over_what_a_send_waited_for() {
    let mut world = World::new(Agent::new(WORKING));
    let (watches, order) = (world.watches.clone(), world.order("hi"));
    let mut sending = Box::pin(async move {
        watches.send(order, Duration::from_mins(1), CancellationToken::new()).await
    });
    assert!(tokio::time::timeout(Duration::from_secs(5), &mut sending).await.is_err());
    world.stop_hard().await;
    assert_eq!(world.states(), [WatchState::Attended]);
    drop(sending);
    world.restart().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
}

#[tokio::test(start_paused = true)]
async fn told_but_unconfirmed_outcome_is_not_told_again_after_a_crash() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_COMPLETED")));
    let end = world.send(world.order("hi"), 60).await;
    let Ok(SendEnd::Settled { settle: Some(settle), .. }) = end else { panic!("{end:?}") };
    world.chat.commit(settle.delivery_key());
    world.stop_hard().await;
    drop(settle);
    assert_eq!(world.states(), [WatchState::Attended]);
    world.restart().await;
    world.reach(&[WatchState::Done]).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn untold_outcome_is_delivered_after_a_crash() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_COMPLETED")));
    let end = world.send(world.order("hi"), 60).await;
    world.stop_hard().await;
    drop(end);
    world.restart().await;
    world.chat.wait_for(1).await;
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn claimed_text_is_delivered_after_a_crash_without_asking_the_agent() {
    let mut world = World::new(Agent::new(WORKING));
    world.chat.set_known(false);
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.reach(&[WatchState::Claimed]).await;
    world.agent.set_unreachable(true);
    world.chat.set_known(true);
    world.crash().await;
    world.chat.wait_for(1).await;
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn open_send_is_announced_once_as_unknown() {
    let mut world = World::new(Agent::new(OnSend::Nothing));
    world.lose_in_flight(world.order("hi")).await;
    assert_eq!(world.store.sends()[0].state, SendState::Sending);
    world.restart().await;
    let delivered = world.chat.wait_for(1).await;
    let send = world.store.sends()[0].clone();
    assert_eq!(delivered[0].key, unknown_send_key(&send.message_id));
    assert!(delivered[0].text.contains("may or may not have arrived"), "{delivered:?}");
    world.pass(60).await;
    assert_eq!(world.store.sends()[0].state, SendState::Ended);
    world.crash().await;
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.agent.calls("SendMessage").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn open_send_whose_task_the_agent_lists_is_followed() {
    let mut world = World::new(Agent::new(OnSend::TaskWithoutAnswer));
    world.lose_in_flight(world.order("hi")).await;
    world.restart().await;
    world.reach(&[WatchState::Watching]).await;
    assert_eq!(world.store.sends()[0].state, SendState::Known);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert_eq!(world.chat.wait_for(1).await.len(), 1);
    assert_eq!(world.agent.calls("SendMessage").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn open_send_is_looked_for_as_long_as_ever_when_the_clock_is_set_or_the_machine_sleeps() {
    let (decades, night) = (56 * 365 * 86_400, 10 * 3600);
    for (behind, ahead, asleep) in [(decades, decades, 0), (0, night, 0), (0, 0, night)] {
        for (down, is_found) in [(50, true), (300, false)] {
            let mut world = World::new(Agent::new(OnSend::TaskWithoutAnswer));
            world.lose_in_flight(world.order("hi")).await;
            world.set_back(behind);
            world.agent.set_unreachable(true);
            world.restart().await;
            world.pass(10).await;
            world.set_ahead(ahead);
            world.sleep(asleep);
            world.pass(down).await;
            world.agent.set_unreachable(false);
            world.pass(60).await;
            let case =
                format!("{behind} s behind, {ahead} s ahead, {asleep} s asleep, {down} s down");
            assert_eq!(world.states().len(), usize::from(is_found), "{case}");
            assert_eq!(world.chat.delivered().len(), usize::from(!is_found), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn restore_leaves_the_sends_of_this_process_alone() {
    let world = World::new(Agent::new(OnSend::Nothing));
    let sending =
        world.watches.send(world.order("hi"), Duration::from_mins(1), CancellationToken::new());
    let (end, ()) = tokio::join!(sending, async {
        world.pass(1).await;
        world.watches.restore().await;
        world.pass(30).await;
        assert_eq!(world.chat.attempts(), 0);
    });
    assert!(end.is_err());
}

#[tokio::test(start_paused = true)]
async fn registry_ends_when_it_is_told_to_and_answers_nobody_after() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.shut_down().await;
    let end = world.send(world.order("hi"), 60).await;
    assert!(matches!(end, Err(volcanic_a2a_watch::SendError::Stopped)), "{end:?}");
    assert!(world.watches.watches(None).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn registry_that_ends_does_not_say_of_a_message_on_its_way_that_it_was_not_sent() {
    let mut world = World::new(Agent::new(WORKING));
    let (watches, order) = (world.watches.clone(), world.order("hi"));
    let mut sending = Box::pin(async move {
        watches.send(order, Duration::from_mins(1), CancellationToken::new()).await
    });
    assert!(tokio::time::timeout(Duration::from_secs(5), &mut sending).await.is_err());
    world.shut_down().await;
    let end = sending.await;
    assert!(matches!(end, Ok(SendEnd::Left)), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn registry_that_ends_says_of_a_message_that_did_not_leave_that_it_was_not_sent() {
    let mut world = World::new(Agent::new(OnSend::Nothing));
    world.agent.set_task("t1", "TASK_STATE_WORKING", "");
    let order = |text: &str| {
        let mut order = world.order(text);
        order.task_id = Some("t1".into());
        order
    };
    let send = |order| {
        let watches = world.watches.clone();
        async move { watches.send(order, Duration::from_mins(1), CancellationToken::new()).await }
    };
    world.agent.on_send(OnSend::Task("TASK_STATE_COMPLETED"));
    let end = send(order("first")).await;
    let Ok(SendEnd::Settled { settle: Some(settle), .. }) = end else { panic!("{end:?}") };
    // The watch is written for the last time when the second message asks for it, and the store is slow to answer.
    world.store.set_failing(true);
    settle.confirm();
    let mut sending = Box::pin(send(order("second")));
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut sending).await.is_err());
    world.shut_down().await;
    let end = sending.await;
    assert!(matches!(end, Err(volcanic_a2a_watch::SendError::Stopped)), "{end:?}");
    assert_eq!(world.agent.calls("SendMessage").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn continuation_that_a_crash_came_between_is_followed_once() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.on_send(OnSend::TaskWithoutAnswer);
    let mut more = world.order("and a hotel");
    more.task_id = Some("t1".into());
    world.lose_in_flight(more).await;
    // The watch reads the outcome before the lost answer is looked for again.
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.set_unreachable(true);
    world.restart().await;
    world.pass(10).await;
    world.agent.set_unreachable(false);
    world.pass(3600).await;
    let delivered: Vec<_> = world.chat.delivered().into_iter().map(|one| one.text).collect();
    assert_eq!(delivered.len(), 1, "{delivered:?}");
    assert_eq!(world.states(), [WatchState::Done]);
}

#[tokio::test(start_paused = true)]
async fn state_that_is_reached_again_after_a_continuation_in_a_crash_is_told_again() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_AUTH_REQUIRED")));
    world.hand_over().await;
    world.chat.wait_for(1).await;
    world.agent.on_send(OnSend::TaskWithoutAnswer);
    let mut more = world.order("done");
    more.task_id = Some("t1".into());
    world.lose_in_flight(more).await;
    world.agent.set_task("t1", "TASK_STATE_AUTH_REQUIRED", "Log in once more.");
    world.restart().await;
    let delivered = world.chat.wait_for(2).await;
    assert!(delivered[1].text.contains("Log in once more."), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn continuation_that_never_arrived_leaves_its_watch_and_is_announced() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.on_send(OnSend::Nothing);
    let mut more = world.order("and a hotel");
    more.task_id = Some("t1".into());
    world.lose_in_flight(more).await;
    world.restart().await;
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].text.contains("may or may not have arrived"), "{delivered:?}");
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.chat.wait_for(2).await[1].text.ends_with("\nLisbon"));
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn task_that_a_send_before_the_restore_led_to_again_is_still_followed() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.stop_hard().await;
    world.start_without_restore();
    // An agent that keeps one task for a context answers with it, unasked.
    world.agent.same_task();
    let end = world.send(world.order("and a hotel"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.watches.restore().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert_eq!(world.chat.wait_for(1).await.len(), 1);
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn continuation_that_comes_during_the_restore_takes_the_restored_watch_over() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.stop_hard().await;
    world.start_without_restore();
    world.store.set_failing(true);
    let mut more = world.order("and a hotel");
    more.task_id = Some("t1".into());
    let ((), end, ()) = tokio::join!(world.watches.restore(), world.send(more, 0), async {
        world.pass(3).await;
        world.store.set_failing(false);
    });
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.reach(&[WatchState::Watching]).await;
    assert_eq!(world.store.all_watches()[0].round, 1);
}

const NOT_SENT: &str =
    "[A2A result from \"travel-bot\" (not sent)]\nA message to agent \"travel-bot\" was not sent: ";

#[tokio::test(start_paused = true)]
async fn message_that_failed_to_leave_is_told_after_a_crash() {
    let mut world = World::new(Agent::new(OnSend::Refuse(-32005)));
    world.chat.set_known(false);
    world.leave(world.order("hi")).await;
    world.chat.until(|chat| (chat.attempts() == 1).then_some(())).await;
    world.chat.set_known(true);
    world.crash().await;
    let delivered = &world.chat.wait_for(1).await[0];
    assert_eq!(delivered.text, format!("{NOT_SENT}Agent \"travel-bot\" refused: not so (-32005)."));
    world.pass(60).await;
    assert_eq!(world.store.sends()[0].state, SendState::Ended);
    world.crash().await;
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.agent.calls("SendMessage").len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn agent_out_of_reach_whose_caller_left_is_told_after_a_crash() {
    let mut world = World::new(Agent::new(WORKING));
    world.agent.set_unreachable(true);
    world.chat.set_known(false);
    world.leave(world.order("hi")).await;
    world.chat.until(|chat| (chat.attempts() == 1).then_some(())).await;
    world.chat.set_known(true);
    world.crash().await;
    let delivered = &world.chat.wait_for(1).await[0];
    assert!(delivered.text.starts_with(NOT_SENT), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn message_that_fails_to_leave_while_the_process_ends_is_told_by_the_next() {
    let mut world = World::new(Agent::new(OnSend::Refuse(-32005)));
    let ending = world.ending();
    world.agent.before_send(move || ending.cancel());
    world.leave(world.order("hi")).await;
    world.shut_down().await;
    assert_eq!(world.chat.attempts(), 0);
    world.restart().await;
    let delivered = &world.chat.wait_for(1).await[0];
    assert!(delivered.text.starts_with(NOT_SENT), "{delivered:?}");
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.store.sends()[0].state), (1, SendState::Ended));
}

#[tokio::test(start_paused = true)]
async fn message_that_fails_to_leave_while_the_process_ends_is_told_to_its_caller_alone() {
    let mut world = World::new(Agent::new(OnSend::Refuse(-32005)));
    let ending = world.ending();
    world.agent.before_send(move || ending.cancel());
    let end = world.send(world.order("hi"), 60).await;
    assert!(matches!(end, Err(volcanic_a2a_watch::SendError::Agent(_))), "{end:?}");
    world.shut_down().await;
    assert_eq!(world.store.sends()[0].state, SendState::Ended);
    world.restart().await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn message_that_waited_when_the_process_ended_and_whose_caller_left_is_told_by_the_next() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_COMPLETED")));
    let end = world.send(world.order("first"), 60).await;
    let Ok(SendEnd::Settled { settle: Some(settle), .. }) = end else { panic!("{end:?}") };
    // The watch is about to be written for the last time, and the store is slow to answer.
    world.store.set_failing(true);
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    let mut second = world.order("second");
    second.task_id = Some("t1".into());
    world.leave(second).await;
    world.pass(1).await;
    world.store.set_failing(false);
    world.shut_down().await;
    world.restart().await;
    let delivered = &world.chat.wait_for(1).await[0];
    assert!(delivered.text.starts_with(NOT_SENT), "{delivered:?}");
    assert_eq!(world.agent.calls("SendMessage").len(), 1);
}

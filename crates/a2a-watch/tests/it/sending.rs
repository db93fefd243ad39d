use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use volcanic_a2a_watch::{SendEnd, SendError, SendState, WatchState};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

#[tokio::test(start_paused = true)]
async fn send_completes_within_wait_returns_answer_and_ids() {
    let world = World::new(Agent::new(WORKING));
    let (end, ()) = tokio::join!(world.send(world.order("plan a trip"), 60), async {
        world.pass(5).await;
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    });
    let Ok(SendEnd::Settled { outcome, settle: Some(settle) }) = end else { panic!("{end:?}") };
    assert_eq!(outcome.answer, "Lisbon");
    assert_eq!(
        (outcome.task_id.unwrap().as_str(), outcome.context_id.unwrap().as_str()),
        ("t1", "c1")
    );
    assert_eq!(world.states(), [WatchState::Attended]);
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn send_is_on_disk_before_it_leaves_and_its_task_before_the_wait() {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_COMPLETED")));
    let store = std::sync::Arc::clone(&world.store);
    world.agent.before_send(move || {
        assert_eq!(store.log(), ["begin_send"]);
        assert_eq!(store.sends()[0].state, SendState::Sending);
    });
    let end = world.send(world.order("hi"), 60).await;
    assert!(matches!(end, Ok(SendEnd::Settled { .. })), "{end:?}");
    assert_eq!(world.store.log(), ["begin_send", "send_known", "attended"]);
    let sent = &world.agent.calls("SendMessage")[0];
    assert_eq!(sent["message"]["messageId"], world.store.sends()[0].message_id.as_str());
    assert_eq!(sent["message"]["metadata"]["volcanic.hops"], 1);
    assert_eq!(sent["configuration"]["returnImmediately"], true);
}

#[tokio::test(start_paused = true)]
async fn send_that_nobody_waits_for_is_handed_over_by_the_commit_that_keeps_its_task() {
    let world = World::new(Agent::new(WORKING));
    let end = world.send(world.order("hi"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    assert_eq!(world.store.log(), ["begin_send", "send_known", "watching"]);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
}

#[tokio::test(start_paused = true)]
async fn send_that_cannot_be_kept_does_not_leave() {
    let world = World::new(Agent::new(WORKING));
    world.store.set_failing(true);
    let end = world.send(world.order("hi"), 60).await;
    assert!(matches!(end, Err(SendError::Store(_))), "{end:?}");
    assert!(world.agent.calls("SendMessage").is_empty());
    world.store.set_failing(false);
    world.pass(600).await;
    assert!(world.store.log().is_empty(), "there is nothing left to tell: {:?}", world.store.log());
}

#[tokio::test(start_paused = true)]
async fn send_that_is_kept_although_its_write_failed_is_told_once_as_not_sent() {
    for stops in [false, true] {
        let mut world = World::new(Agent::new(WORKING));
        world.store.set_failing_late(true);
        let end = world.send(world.order("hi"), 60).await;
        assert!(matches!(end, Err(SendError::Store(_))), "{end:?}");
        assert_eq!(world.store.sends()[0].state, SendState::Sending);
        world.store.set_failing_late(false);
        if stops {
            world.shut_down().await;
        } else {
            world.pass(60).await;
            world.stop_hard().await;
        }
        assert_eq!(world.store.sends()[0].state, SendState::Ended);
        world.restart().await;
        world.pass(3600).await;
        assert_eq!(world.chat.attempts(), 0, "{:?}", world.chat.delivered());
    }
}

#[tokio::test(start_paused = true)]
async fn send_slow_task_starts_watch() {
    let world = World::new(Agent::new(WORKING));
    let end = world.send(world.order("plan a trip"), 60).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.reach(&[WatchState::Watching]).await;
    // One at once and one each second; whether the last one still falls into the wait is a tie.
    assert!((60..=61).contains(&world.agent.calls("GetTask").len()));
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let delivered = world.chat.wait_for(1).await;
    assert_eq!(
        delivered[0].text,
        "[A2A result from \"travel-bot\", task t1 (completed)]\nContext: c1\nLisbon"
    );
    assert_eq!(delivered[0].source_ref.as_deref(), Some("m7"));
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn stream_inside_the_wait_is_a_hint_and_a_read_decides() {
    let world = World::new(Agent::new(WORKING).streams());
    let (end, ()) = tokio::join!(world.send(world.order("plan a trip"), 60), async {
        world.reach_stream().await;
        // A hint that is not true yet.
        world.agent.stream_status("t1", "TASK_STATE_COMPLETED").await;
        world.pass(3).await;
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    });
    let Ok(SendEnd::Settled { outcome, .. }) = end else { panic!("{end:?}") };
    assert_eq!(outcome.answer, "Lisbon");
    assert!(world.agent.calls("GetTask").len() <= 5);
}

#[tokio::test(start_paused = true)]
async fn outcome_that_cannot_be_read_ends_the_wait_and_is_told_by_the_watch() {
    let world = World::new(Agent::new(WORKING));
    let (end, ()) = tokio::join!(world.send(world.order("plan a trip"), 60), async {
        world.pass(5).await;
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
        world.agent.break_task("t1");
    });
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    assert!(world.agent.calls("GetTask").len() < 10);
    assert!(world.chat.wait_for(1).await[0].text.contains("cannot be read"));
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn outcome_that_is_too_large_is_read_once_inside_the_wait_and_told_by_the_watch() {
    let world = World::with(Agent::new(WORKING), |config| config.client.answer_limit = 4096);
    let (end, ()) = tokio::join!(world.send(world.order("plan a trip"), 60), async {
        world.pass(5).await;
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", &"Lisbon".repeat(1000));
    });
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    assert!(world.agent.calls("GetTask").len() < 10);
    assert!(world.chat.wait_for(1).await[0].text.contains("larger than 4096 bytes"));
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn quiet_stream_costs_no_reads_inside_the_wait() {
    let world = World::new(Agent::new(WORKING).streams());
    let end = world.send(world.order("plan a trip"), 60).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    // After it the watch has a stream of its own, and reads once it is open.
    world.pass(1).await;
    assert_eq!((world.agent.calls("GetTask").len(), world.agent.open_streams()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn send_input_required_returns_question_and_answer_continues_the_task() {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_INPUT_REQUIRED")));
    let end = world.send(world.order("plan a trip"), 60).await;
    let Ok(SendEnd::Settled { outcome, settle: Some(settle) }) = end else { panic!("{end:?}") };
    assert!(outcome.question);
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;

    world.agent.on_send(OnSend::Task("TASK_STATE_WORKING"));
    let mut answer = world.order("in May");
    answer.task_id = Some("t1".into());
    let end = world.send(answer, 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    let sent = &world.agent.calls("SendMessage")[1]["message"];
    assert_eq!((&sent["taskId"], &sent["contextId"]), (&json!("t1"), &json!("c1")));
    world.reach(&[WatchState::Done, WatchState::Watching]).await;
}

#[tokio::test(start_paused = true)]
async fn continuation_of_a_watched_task_takes_its_watch_over() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.on_send(OnSend::Task("TASK_STATE_COMPLETED"));
    let mut more = world.order("and a hotel");
    more.task_id = Some("t1".into());
    let end = world.send(more, 60).await;
    let Ok(SendEnd::Settled { settle: Some(settle), .. }) = end else { panic!("{end:?}") };
    let kept = &world.store.all_watches()[0];
    assert_eq!((kept.state, kept.round), (WatchState::Attended, 1));
    assert_eq!(settle.delivery_key(), format!("a2a:{}:completed:1", kept.id));
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn outcome_that_its_caller_does_not_tell_is_delivered_under_the_same_key() {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_COMPLETED")));
    let end = world.send(world.order("hi"), 60).await;
    let Ok(SendEnd::Settled { settle: Some(settle), .. }) = end else { panic!("{end:?}") };
    let key = settle.delivery_key().to_owned();
    drop(settle);
    assert_eq!(world.chat.wait_for(1).await[0].key, key);
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn aborted_caller_leaves_the_send_to_the_registry() {
    let world = World::new(Agent::new(WORKING));
    let cancel = CancellationToken::new();
    let sending = world.watches.send(world.order("hi"), Duration::from_mins(1), cancel.clone());
    let (end, ()) = tokio::join!(sending, async {
        world.pass(2).await;
        cancel.cancel();
    });
    assert!(matches!(end, Ok(SendEnd::Left)), "{end:?}");
    world.reach(&[WatchState::Watching]).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
}

#[tokio::test(start_paused = true)]
async fn send_that_fails_after_its_caller_left_is_told() {
    let world = World::new(Agent::new(OnSend::Refuse(-32005)));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let end = world.watches.send(world.order("hi"), Duration::from_mins(1), cancel).await;
    assert!(matches!(end, Ok(SendEnd::Left)), "{end:?}");
    let delivered = &world.chat.wait_for(1).await[0];
    assert_eq!(
        delivered.text,
        "[A2A result from \"travel-bot\" (not sent)]\nA message to agent \"travel-bot\" was not sent: Agent \"travel-bot\" \
         refused: not so (-32005)."
    );
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropped_caller_leaves_the_send_to_the_registry() {
    let world = World::new(Agent::new(WORKING));
    let sending =
        world.watches.send(world.order("hi"), Duration::from_mins(1), CancellationToken::new());
    assert!(tokio::time::timeout(Duration::from_secs(2), sending).await.is_err());
    world.reach(&[WatchState::Watching]).await;
    assert_eq!(world.agent.calls("SendMessage").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn plain_reply_is_told_once_by_its_caller_or_delivered() {
    let world = World::new(Agent::new(OnSend::Reply("hello")));
    let end = world.send(world.order("hi"), 60).await;
    let Ok(SendEnd::Replied { reply, settle, .. }) = end else { panic!("{end:?}") };
    assert_eq!(reply.answer, "hello");
    settle.confirm();
    world.pass(1).await;
    assert_eq!(world.store.sends()[0].state, SendState::Known);

    let end = world.send(world.order("hi"), 60).await;
    drop(end);
    let delivered = world.chat.wait_for(1).await;
    assert_eq!(delivered[0].text, "[A2A result from \"travel-bot\" (replied)]\nContext: c1\nhello");
    world.pass(1).await;
    assert_eq!(world.store.sends()[1].state, SendState::Known);
}

#[tokio::test(start_paused = true)]
async fn refused_send_ends_and_leaves_nothing() {
    let world = World::new(Agent::new(OnSend::Refuse(-32602)));
    let end = world.send(world.order("hi"), 60).await;
    let Err(SendError::Agent(error)) = end else { panic!("{end:?}") };
    assert_eq!(error.to_string(), "Agent \"travel-bot\" refused: not so (-32602)");
    world.pass(1).await;
    assert_eq!(world.store.sends()[0].state, SendState::Ended);
    assert!(world.states().is_empty());
}

#[tokio::test(start_paused = true)]
async fn busy_context_names_the_watched_task() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.on_send(OnSend::Refuse(-32004));
    let mut more = world.order("and a hotel");
    more.context_id = Some("c1".into());
    let end = world.send(more, 60).await;
    let Err(SendError::ContextBusy { task_id, .. }) = end else { panic!("{end:?}") };
    assert_eq!(task_id.as_str(), "t1");
    assert_eq!(world.states(), [WatchState::Watching]);
}

#[tokio::test(start_paused = true)]
async fn lost_answer_is_looked_for_and_its_task_followed() {
    let world = World::new(Agent::new(OnSend::TaskWithoutAnswer));
    let end = world.send(world.order("plan a trip"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    assert_eq!(world.agent.calls("SendMessage").len(), 1);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
}

#[tokio::test(start_paused = true)]
async fn send_without_a_trace_is_told_as_unknown_and_never_repeated() {
    let world = World::new(Agent::new(OnSend::Nothing));
    let end = world.send(world.order("plan a trip"), 60).await;
    let Err(SendError::Unknown { settle, .. }) = end else { panic!("{end:?}") };
    assert_eq!(world.store.sends()[0].state, SendState::Sending);
    settle.confirm();
    world.pass(3600).await;
    assert_eq!(world.store.sends()[0].state, SendState::Ended);
    assert_eq!(world.agent.calls("SendMessage").len(), 1);
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn second_call_for_the_same_task_is_told_to_wait() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    let mut more = world.order("and a hotel");
    more.task_id = Some("t1".into());
    let (first, second) = tokio::join!(world.send(more.clone(), 10), world.send(more, 10));
    assert!(matches!(first, Ok(SendEnd::HandedOver { .. })), "{first:?}");
    assert!(matches!(second, Err(SendError::TaskBusy { .. })), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn two_continuations_of_a_task_that_is_not_watched_tell_its_outcome_once() {
    let world = World::new(Agent::new(WORKING));
    world.agent.set_task("t1", "TASK_STATE_INPUT_REQUIRED", "When?");
    let mut more = world.order("in May");
    more.task_id = Some("t1".into());
    more.context_id = Some("c1".into());
    let (first, second, ()) =
        tokio::join!(world.send(more.clone(), 60), world.send(more, 60), async {
            world.pass(5).await;
            world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
        });
    let (settle, other) = match (first, second) {
        (Ok(SendEnd::Settled { settle: Some(settle), .. }), other)
        | (other, Ok(SendEnd::Settled { settle: Some(settle), .. })) => (settle, other),
        ends => panic!("{ends:?}"),
    };
    assert!(matches!(other, Ok(SendEnd::HandedOver { .. })), "{other:?}");
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn answer_that_overtakes_the_confirmation_of_its_question_waits_for_it() {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_INPUT_REQUIRED")));
    let end = world.send(world.order("plan a trip"), 60).await;
    let Ok(SendEnd::Settled { settle: Some(settle), .. }) = end else { panic!("{end:?}") };
    world.agent.on_send(OnSend::Task("TASK_STATE_COMPLETED"));
    let mut answer = world.order("in May");
    answer.task_id = Some("t1".into());
    let sending = world.watches.send(answer, Duration::from_mins(1), CancellationToken::new());
    let mut sending = std::pin::pin!(sending);
    // The registry has the order before it hears of the confirmation.
    assert!(futures::poll!(&mut sending).is_pending());
    settle.confirm();
    let end = sending.await;
    assert!(matches!(end, Ok(SendEnd::Settled { .. })), "{end:?}");
    assert_eq!(world.states(), [WatchState::Done, WatchState::Attended]);
}

#[tokio::test(start_paused = true)]
async fn unknown_agent_is_told_with_the_configured_names() {
    let world = World::new(Agent::new(WORKING));
    let mut order = world.order("hi");
    order.agent = "nobody".to_owned();
    let end = world.send(order, 60).await;
    let Err(SendError::Agent(volcanic_a2a_watch::AgentError::Unknown { known, .. })) = end else {
        panic!("{end:?}")
    };
    assert_eq!(known, ["travel-bot"]);
    assert!(world.store.sends().is_empty());
}

#[tokio::test(start_paused = true)]
async fn bound_without_a_word_of_the_owner_holds_across_restarts_and_counts_what_left() {
    let mut world =
        World::with(Agent::new(OnSend::Refuse(-32005)), |config| config.unattended_sends = 3);
    let order = |world: &World, after: &str| {
        let mut order = world.order("go on");
        order.unattended = Some(after.to_owned());
        order
    };
    for _ in 0..5 {
        let end = world.send(order(&world, "a"), 0).await;
        assert!(matches!(end, Err(SendError::Agent(_))), "a refusal is no message: {end:?}");
    }
    world.agent.on_send(WORKING);
    for _ in 0..3 {
        let end = world.send(order(&world, "a"), 0).await;
        assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
        world.crash().await;
    }
    let end = world.send(order(&world, "a"), 0).await;
    assert!(matches!(end, Err(SendError::Unattended { limit: 3 })), "{end:?}");
    let end = world.send(world.order("from the owner"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    let end = world.send(order(&world, "b"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
}

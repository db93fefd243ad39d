use volcanic_a2a_watch::{SendEnd, WatchSource, WatchState, WatchTarget};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

#[tokio::test(start_paused = true)]
async fn watch_reads_with_growing_pauses() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    let mut reads = Vec::new();
    for seconds in [14, 2, 30, 60, 120, 300, 300] {
        world.pass(seconds).await;
        reads.push(world.agent.calls("GetTask").len());
    }
    assert_eq!(reads, [0, 1, 2, 3, 4, 5, 6]);
    let view = &world.watches.watches(None).await[0];
    assert_eq!(
        (view.source, view.state, view.last_seen.as_deref()),
        (WatchSource::Poll, WatchState::Watching, Some("working"))
    );
}

#[tokio::test(start_paused = true)]
async fn outage_passes_and_the_outcome_is_delivered_once() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_unreachable(true);
    world.pass(3600).await;
    assert!(world.watches.watches(None).await[0].failures > 3);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.set_unreachable(false);
    world.chat.wait_for(1).await;
    world.reach(&[WatchState::Done]).await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn watch_timeout_delivers_notice() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    let delivered = world.chat.wait_for(1).await;
    assert_eq!(
        delivered[0].text,
        "[A2A result from \"travel-bot\", task t1 (no result)]\nContext: c1\nAgent \"travel-bot\" gave no result for task \
         t1 within 24h; you can check it with action=status."
    );
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn outcome_that_cannot_be_read_is_told_as_such() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.break_task("t1");
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 0);
    assert!(world.watches.watches(None).await[0].failures > 3);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.break_task("t1");
    let delivered = world.chat.wait_for(1).await;
    assert!(
        delivered[0].text.starts_with(
            "[A2A result from \"travel-bot\", task t1 (no result)]\nContext: c1\nAgent \"travel-bot\" says that task t1 is \
             completed, but what came of it cannot be read: "
        ) && delivered[0].text.ends_with(" You can look at it again with action=status."),
        "{delivered:?}"
    );
    world.reach(&[WatchState::Done]).await;
    let seen = world.watches.status(world.query("t1")).await.unwrap_err();
    assert!(seen.to_string().contains("says that the task is completed"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn authorization_that_cannot_be_read_is_told_once_and_the_outcome_still_follows() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_AUTH_REQUIRED", "log in");
    world.agent.break_task("t1");
    world.chat.wait_for(1).await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.chat.wait_for(2).await[1].text.ends_with("\nLisbon"));
}

#[tokio::test(start_paused = true)]
async fn task_that_the_agent_forgot_ends_with_a_notice() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_forgetting();
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].text.contains("(stopped)"), "{delivered:?}");
    assert!(world.agent.calls("GetTask").len() >= 3);
}

#[tokio::test(start_paused = true)]
async fn card_that_is_too_large_is_no_answer_about_the_task() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.pad_card(2 << 20);
    world.crash().await;
    world.pass(3600).await;
    assert_eq!((world.states(), world.chat.attempts()), (vec![WatchState::Watching], 0));
    world.agent.pad_card(0);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.chat.wait_for(1).await[0].text.ends_with("\nLisbon"));
}

#[tokio::test(start_paused = true)]
async fn entry_that_is_being_edited_does_not_end_its_watch() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    let agents = world.agents();
    for entry in [r#"{"name": "travel-bot"}"#, r#"{"name": "travel-bot", "url": "travel.exa"}"#] {
        world.write_agents(&format!("[{entry}]"));
        world.pass(3600).await;
        assert_eq!((world.states(), world.chat.attempts()), (vec![WatchState::Watching], 0));
    }
    let seen = world.watches.watches(None).await[0].last_seen.clone().unwrap();
    assert!(seen.contains("url does not begin with http:// or https://"), "{seen}");
    world.write_agents(&agents);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.chat.wait_for(1).await[0].text.ends_with("\nLisbon"));
}

#[tokio::test(start_paused = true)]
async fn removed_agent_ends_the_watch_and_a_half_edited_file_does_not() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.write_agents("[{\"name\": ");
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 0);
    world.write_agents("[]");
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].text.contains("was removed from agents.json"), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn moved_agent_gets_neither_question_nor_key_until_it_is_back() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    let asked = world.agent.keys().len();
    world.write_agents(
        r#"[{"name": "travel-bot", "url": "http://evil.example/", "key": "k_secret_0123"}]"#,
    );
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].key.ends_with(":origin-moved"), "{delivered:?}");
    world.pass(3600).await;
    assert_eq!((world.agent.keys().len(), world.chat.attempts()), (asked, 1));
    world.write_agents(
        r#"[{"name": "travel-bot", "url": "http://travel.example/", "key": "k_secret_0123"}]"#,
    );
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let delivered = world.chat.wait_for(2).await;
    assert!(delivered[1].key.ends_with(":completed"), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn auth_required_is_told_once_and_followed_by_the_outcome() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_AUTH_REQUIRED", "log in at https://x.example");
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].text.starts_with("[A2A question from"), "{delivered:?}");
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.chat.wait_for(2).await[1].key.ends_with(":completed"));
}

#[tokio::test(start_paused = true)]
async fn result_for_an_unknown_conversation_goes_out_when_it_is_known_again() {
    let world = World::new(Agent::new(WORKING));
    world.chat.set_known(false);
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.reach(&[WatchState::Claimed]).await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1);
    world.chat.set_known(true);
    world.watches.flush(WatchTarget::new("chat")).await;
    world.chat.wait_for(1).await;
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_announced_before_it_is_on_disk() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.store.set_failing(true);
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 0);
    world.store.set_failing(false);
    world.chat.wait_for(1).await;
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn watch_that_came_due_while_the_machine_slept_is_read_soon() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(15 + 30 + 60 + 120 + 10).await;
    let reads = world.agent.calls("GetTask").len();
    world.sleep(3600);
    world.pass(31).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads + 1);
}

#[tokio::test(start_paused = true)]
async fn watch_that_came_due_in_a_sleep_shorter_than_the_clock_was_set_back_by_is_read_soon() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(15 + 30 + 60 + 120 + 10).await;
    world.set_back(2 * 3600);
    let reads = world.agent.calls("GetTask").len();
    world.sleep(3600);
    world.pass(31).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads + 1);
}

#[tokio::test(start_paused = true)]
async fn clock_that_is_set_ahead_ends_no_watch_early_and_makes_none_ask_sooner() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(15 + 30 + 60 + 120 + 10).await;
    let reads = world.agent.calls("GetTask").len();
    world.set_ahead(23 * 3600);
    world.pass(280).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads);
    world.pass(23 * 3600).await;
    assert_eq!((world.chat.attempts(), world.states()), (0, vec![WatchState::Watching]));
    world.pass(3600).await;
    assert!(world.chat.delivered()[0].key.ends_with(":no-result"));
}

/// A watch whose outcome waits for its delivery when a message leads to its task again.
async fn beside_a_delivery(on_send: OnSend) -> World {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.chat.set_known(false);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.reach(&[WatchState::Claimed]).await;
    world.agent.same_task();
    world.agent.on_send(on_send);
    let mut more = world.order("and a hotel");
    more.context_id = Some("c1".into());
    let end = world.send(more, 60).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.chat.set_known(true);
    world.watches.flush(WatchTarget::new("chat")).await;
    world.chat.wait_for(1).await;
    world
}

#[tokio::test(start_paused = true)]
async fn outcome_that_a_message_led_to_again_while_it_was_delivered_is_told_once() {
    let world = beside_a_delivery(OnSend::Known).await;
    world.reach(&[WatchState::Done]).await;
    world.pass(3600).await;
    assert_eq!(world.chat.delivered().len(), 1, "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn outcome_that_a_message_led_to_again_is_told_once_after_a_crash_too() {
    let mut world = beside_a_delivery(OnSend::Known).await;
    world.reach(&[WatchState::Watching]).await;
    world.crash().await;
    world.reach(&[WatchState::Done]).await;
    assert_eq!(world.chat.delivered().len(), 1, "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn what_comes_of_a_message_beside_a_delivery_is_told_even_in_the_same_words() {
    let world = beside_a_delivery(WORKING).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.say_anew("t1");
    let delivered = world.chat.wait_for(2).await;
    assert!(delivered[1].text.ends_with("\nLisbon"), "{delivered:?}");
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn outcome_that_a_message_led_to_again_while_its_caller_told_it_is_told_once() {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_COMPLETED")));
    let end = world.send(world.order("hi"), 60).await;
    let Ok(SendEnd::Settled { settle: Some(settle), .. }) = end else { panic!("{end:?}") };
    world.agent.on_send(OnSend::Known);
    let mut more = world.order("and a hotel");
    more.context_id = Some("c1".into());
    let end = world.send(more, 60).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 0);
}

//! What crashes, failing stores and failing agents leave behind is mended, once.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use volcanic_a2a_watch::{SendEnd, SendState, TaskError, WatchState, WatchStore as _, WatchTarget};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

/// Lets the rest of a watch's 24 hours pass, of which so many seconds did.
async fn gives_up_after_24_hours(world: &World, passed: u64) {
    world.pass(24 * 3600 - 600 - passed).await;
    assert_eq!(world.chat.attempts(), 0, "after 23 hours and 50 minutes");
    world.pass(20 * 60).await;
    assert!(world.chat.delivered()[0].key.ends_with(":no-result"), "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn message_beside_a_delivery_is_followed_after_a_crash_too() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.chat.set_known(false);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.reach(&[WatchState::Claimed]).await;
    world.agent.same_task();
    let mut more = world.order("and a hotel");
    more.context_id = Some("c1".into());
    let end = world.send(more, 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.stop_hard().await;
    world.chat.set_known(true);
    world.restart().await;
    world.chat.wait_for(1).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Porto");
    let delivered = world.chat.wait_for(2).await;
    assert!(delivered[1].text.ends_with("\nPorto"), "{delivered:?}");
    world.reach(&[WatchState::Done]).await;
}

#[tokio::test(start_paused = true)]
async fn reply_for_an_unknown_conversation_goes_out_when_it_is_known_again() {
    let world = World::new(Agent::new(OnSend::Reply("hello")));
    world.chat.set_known(false);
    world.leave(world.order("hi")).await;
    world.chat.until(|chat| (chat.attempts() == 1).then_some(())).await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1);
    world.chat.set_known(true);
    world.watches.flush(WatchTarget::new("chat")).await;
    assert!(world.chat.wait_for(1).await[0].text.ends_with("\nhello"));
    world.pass(10).await;
    assert_eq!(world.store.sends()[0].state, SendState::Known);
}

#[tokio::test(start_paused = true)]
async fn moved_agent_is_asked_nothing_about_a_task_that_runs_elsewhere() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.write_agents(
        r#"[{"name": "travel-bot", "url": "http://evil.example/", "key": "k_secret_0123"}]"#,
    );
    let asked = world.agent.keys().len();
    let status = world.watches.status(world.query("t1")).await;
    assert!(matches!(&status, Err(TaskError::Agent { watched: true, .. })), "{status:?}");
    let cancel = world.watches.cancel(world.query("t1")).await.unwrap_err().to_string();
    assert!(cancel.contains("http://travel.example"), "{cancel}");
    let mut more = world.order("and a hotel");
    more.task_id = Some("t1".into());
    let end = world.send(more, 0).await;
    assert!(end.is_err(), "{end:?}");
    assert_eq!(world.agent.keys().len(), asked);
}

#[tokio::test(start_paused = true)]
async fn kept_outcome_that_status_tells_is_not_delivered_too() {
    let mut world = World::new(Agent::new(WORKING));
    world.chat.set_known(false);
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.reach(&[WatchState::Claimed]).await;
    world.chat.set_known(true);
    let report = world.watches.status(world.query("t1")).await.unwrap();
    let settle = report.settle.expect("the outcome can be told once");
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.watches.flush(WatchTarget::new("chat")).await;
    world.crash().await;
    world.pass(3600).await;
    assert_eq!(world.chat.delivered(), []);
}

#[tokio::test(start_paused = true)]
async fn question_about_one_task_brings_what_is_kept_for_the_conversation() {
    let world = World::new(Agent::new(WORKING));
    world.chat.set_known(false);
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.reach(&[WatchState::Claimed]).await;
    world.chat.set_known(true);
    world.agent.set_task("t9", "TASK_STATE_WORKING", "");
    world.watches.status(world.query("t9")).await.unwrap();
    world.chat.wait_for(1).await;
}

#[tokio::test(start_paused = true)]
async fn hint_is_not_lost_when_the_agent_takes_no_push_config() {
    let agent = Agent::new(OnSend::Task("TASK_STATE_COMPLETED")).pushes();
    agent.refuse_pushes();
    let world = World::with(agent, |config| {
        config.push_base = Some("https://me.example/".parse().unwrap());
    });
    world.hand_over().await;
    world.pass(5).await;
    assert_eq!(world.chat.delivered().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn question_about_a_task_does_not_make_its_watch_read_sooner() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(15 + 30 + 60 + 120 + 10).await;
    let reads = world.agent.calls("GetTask").len();
    world.watches.status(world.query("t1")).await.unwrap();
    world.pass(120).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads + 1);
    world.pass(200).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads + 2);
}

#[tokio::test(start_paused = true)]
async fn time_that_an_agent_asks_for_is_kept_although_somebody_asks_for_the_task() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.agent.set_busy(Some(900));
    world.pass(20).await;
    let reads = world.agent.calls("GetTask").len();
    assert_eq!(reads, 1);
    let asked = world.watches.status(world.query("t1")).await;
    assert!(asked.is_err(), "{asked:?}");
    world.pass(800).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads + 1);
}

#[tokio::test(start_paused = true)]
async fn wait_inside_a_send_keeps_the_time_that_the_agent_asks_for() {
    let world = World::new(Agent::new(WORKING));
    world.agent.set_busy(Some(30));
    let end = world.send(world.order("hi"), 70).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    assert!(world.agent.calls("GetTask").len() <= 3, "{}", world.agent.calls("GetTask").len());
}

#[tokio::test(start_paused = true)]
async fn failing_store_does_not_keep_a_caller_past_its_wait() {
    let world = World::new(Agent::new(WORKING));
    let store = Arc::clone(&world.store);
    world.agent.before_send(move || store.set_failing(true));
    let sending =
        world.watches.send(world.order("hi"), Duration::from_secs(10), CancellationToken::new());
    let end = tokio::time::timeout(Duration::from_secs(30), sending).await;
    assert!(matches!(end, Ok(Ok(SendEnd::HandedOver { .. }))), "{end:?}");
    world.store.set_failing(false);
    world.reach(&[WatchState::Watching]).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
}

/// A send whose answer never came when its process was killed.
async fn killed_in_flight() -> World {
    let mut world = World::new(Agent::new(OnSend::Nothing));
    world.lose_in_flight(world.order("hi")).await;
    world
}

#[tokio::test(start_paused = true)]
async fn send_that_cannot_be_looked_up_is_announced_in_time() {
    let mut world = killed_in_flight().await;
    world.agent.set_stalling(true);
    world.restart().await;
    world.pass(240).await;
    assert_eq!(world.chat.delivered().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn time_for_looking_a_send_up_does_not_begin_anew_at_every_start() {
    let mut world = killed_in_flight().await;
    world.agent.set_unreachable(true);
    world.restart().await;
    for _ in 0..4 {
        world.pass(60).await;
        world.crash().await;
    }
    world.pass(20).await;
    assert_eq!(world.chat.delivered().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn half_edited_file_does_not_end_the_search_for_a_send() {
    let mut world = World::new(Agent::new(OnSend::TaskWithoutAnswer));
    world.lose_in_flight(world.order("hi")).await;
    let agents = world.agents();
    world.write_agents("[{");
    world.restart().await;
    world.pass(1).await;
    world.write_agents(&agents);
    world.reach(&[WatchState::Watching]).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn clock_that_was_set_back_and_on_again_does_not_put_a_read_off() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(15 + 30 + 60 + 120 + 10).await;
    let reads = world.agent.calls("GetTask").len();
    world.set_back(3600);
    world.pass(60).await;
    let next = world.watches.watches(None).await[0].next_check_at.unwrap();
    assert!(next.duration_since(world.now()).as_secs() <= 300, "{next}");
    world.set_ahead(10);
    world.pass(290).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads + 1);
}

#[tokio::test(start_paused = true)]
async fn clock_that_was_set_back_and_put_right_does_not_end_a_watch_early() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(3600).await;
    world.set_back(20 * 3600);
    world.pass(3600).await;
    world.set_ahead(20 * 3600);
    world.pass(21 * 3600).await;
    assert_eq!(world.chat.attempts(), 0, "after 23 hours: {:?}", world.chat.delivered());
    // What the next process finds is as old as it is.
    world.crash().await;
    world.pass(50 * 60).await;
    assert_eq!(world.chat.attempts(), 0, "after 23 hours and 50 minutes");
    world.pass(20 * 60).await;
    assert!(world.chat.delivered()[0].key.ends_with(":no-result"), "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn clock_that_was_never_set_ends_no_watch_when_it_is_set() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(3600).await;
    world.stop_hard().await;
    let years = 50 * 365 * 24 * 3600;
    world.set_back(years);
    world.restart().await;
    world.pass(600).await;
    world.set_ahead(years);
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.states()), (0, vec![WatchState::Watching]));
}

#[tokio::test(start_paused = true)]
async fn state_that_was_moved_with_its_workspaces_is_followed_where_it_stands_now() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.on_send(OnSend::TaskWithoutAnswer);
    world.lose_in_flight(world.order("and a hotel")).await;
    assert!(world.pending().is_some());
    world.move_workspace();
    world.restart().await;
    world.pass(600).await;
    assert_eq!(world.chat.attempts(), 0, "{:?}", world.chat.delivered());
    let kept = world.store.all_watches();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept.iter().all(|watch| watch.workspace == world.workspace()), "{kept:?}");
    for watch in &kept {
        world.agent.set_task(watch.task_id.as_str(), "TASK_STATE_COMPLETED", "Lisbon");
    }
    let delivered = world.chat.wait_for(2).await;
    assert!(delivered.iter().all(|told| told.text.ends_with("\nLisbon")), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn moved_state_takes_nothing_for_news_that_its_list_is_behind_with() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.pass(10).await;
    let list = world.pending().unwrap();
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
    world.reach(&[WatchState::Done]).await;
    world.agent.on_send(OnSend::TaskWithoutAnswer);
    world.lose_in_flight(world.order("and a hotel")).await;
    // The process was killed before it wrote the list again, and another machine has all of it now.
    fs::write(world.workspace().join(".volcanic/a2a/pending.json"), list.to_string()).unwrap();
    world.move_workspace();
    world.restart().await;
    world.reach(&[WatchState::Done, WatchState::Watching]).await;
    world.pass(600).await;
    assert_eq!(world.chat.attempts(), 1, "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn task_of_a_list_that_is_newer_than_the_state_beside_it_is_followed() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_INPUT_REQUIRED")));
    let end = world.send(world.order("plan a trip"), 60).await;
    let Ok(SendEnd::Settled { settle: Some(settle), .. }) = end else { panic!("{end:?}") };
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.shut_down().await;
    // After the state was copied the question was answered, and another watch followed the task.
    world.agent.set_task("t1", "TASK_STATE_WORKING", "");
    let list = r#"[{"watchId": "later", "agent": "travel-bot", "taskId": "t1"}]"#;
    fs::write(world.workspace().join(".volcanic/a2a/pending.json"), list).unwrap();
    world.move_workspace();
    world.restart().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let delivered = world.chat.wait_for(2).await;
    assert!(delivered[1].text.ends_with("\nLisbon"), "{delivered:?}");
}

/// A note about a failed check is on the disk although its write failed.
async fn note_unnoticed(world: &World) {
    let epoch = world.store.all_watches()[0].epoch;
    world.agent.set_busy(Some(1));
    world.store.set_failing_late(true);
    while world.store.all_watches()[0].epoch == epoch {
        world.pass(1).await;
    }
    world.store.set_failing_late(false);
    world.agent.set_busy(None);
}

#[tokio::test(start_paused = true)]
async fn outcome_that_was_told_after_a_write_that_nobody_knew_of_is_over() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    note_unnoticed(&world).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let settle = world.watches.status(world.query("t1")).await.unwrap().settle.unwrap();
    // The agent lets go of what it has told.
    world.agent.set_forgetting();
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.pass(24 * 3600).await;
    assert_eq!(world.chat.attempts(), 0, "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn outcome_that_was_told_is_no_news_to_a_message_beside_it_after_such_a_write_either() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    note_unnoticed(&world).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let settle = world.watches.status(world.query("t1")).await.unwrap().settle.unwrap();
    world.agent.on_send(OnSend::Known);
    let end = world.send(world.order("and?"), 0).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    world.pass(24 * 3600).await;
    assert_eq!(world.chat.attempts(), 0, "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn message_that_is_found_again_is_known_after_a_write_that_failed_and_is_kept() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    world.agent.on_send(OnSend::TaskWithoutAnswer);
    let mut more = world.order("and a hotel");
    more.task_id = Some("t1".into());
    world.lose_in_flight(more).await;
    let store = Arc::clone(&world.store);
    world.agent.before_read(move || store.set_failing_late(true));
    world.restart().await;
    while world.store.all_watches()[0].round == 0 {
        world.pass(1).await;
    }
    world.agent.before_read(|| {});
    world.store.set_failing_late(false);
    world.pass(60).await;
    assert_eq!(world.store.sends()[1].state, SendState::Known);
}

#[tokio::test(start_paused = true)]
async fn watch_that_begins_before_the_clock_is_set_goes_on_when_it_is_and_after_a_restart() {
    let mut world = World::new(Agent::new(WORKING));
    let years = 50 * 365 * 24 * 3600;
    world.set_back(years);
    world.restart().await;
    world.hand_over().await;
    world.pass(600).await;
    world.set_ahead(years);
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.states()), (0, vec![WatchState::Watching]));
    world.stop_hard().await;
    world.restart().await;
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.states()), (0, vec![WatchState::Watching]));
    world.pass(24 * 3600).await;
    assert!(world.chat.delivered()[0].key.ends_with(":no-result"));
}

#[tokio::test(start_paused = true)]
async fn watch_that_begins_after_the_clock_was_set_ahead_has_its_whole_time_after_a_restart() {
    let mut world = World::new(Agent::new(WORKING));
    world.set_ahead(2 * 24 * 3600);
    world.hand_over().await;
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.states()), (0, vec![WatchState::Watching]));
    world.crash().await;
    gives_up_after_24_hours(&world, 3600).await;
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_written_after_the_clock_was_set_ahead_has_its_whole_time_after_a_restart() {
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(3600).await;
    world.set_ahead(2 * 24 * 3600);
    // A failed check is written, and so is the next one that does not fail.
    world.agent.set_unreachable(true);
    world.pass(600).await;
    world.agent.set_unreachable(false);
    world.pass(3000).await;
    world.crash().await;
    gives_up_after_24_hours(&world, 7200).await;
}

#[tokio::test(start_paused = true)]
async fn watch_that_begins_while_the_clock_is_set_back_has_its_whole_time_when_it_is_put_right() {
    let mut world = World::new(Agent::new(WORKING));
    world.set_back(20 * 3600);
    world.hand_over().await;
    world.pass(3600).await;
    world.set_ahead(20 * 3600);
    world.crash().await;
    gives_up_after_24_hours(&world, 3600).await;
}

#[tokio::test(start_paused = true)]
async fn watch_that_was_waited_for_after_the_clock_was_set_ahead_is_as_old_as_it_is() {
    let world = World::new(Agent::new(WORKING));
    world.set_ahead(2 * 24 * 3600);
    let end = world.send(world.order("hi"), 60).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    assert_eq!(world.watches.watches(None).await[0].age.as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_read_again_after_the_clock_was_set_ahead_has_no_more_than_its_time() {
    let world = World::new(Agent::new(WORKING));
    world.set_ahead(2 * 24 * 3600);
    world.hand_over().await;
    world.pass(20 * 3600).await;
    let kept = world.store.all_watches()[0].clone();
    assert!(world.store.update(kept.epoch, &kept).await.unwrap());
    // The next check is written, which finds that somebody else wrote.
    world.agent.set_unreachable(true);
    world.pass(600).await;
    world.agent.set_unreachable(false);
    world.pass(3 * 3600 + 40 * 60).await;
    assert_eq!(world.chat.attempts(), 0, "after 23 hours and 50 minutes");
    world.pass(20 * 60).await;
    assert_eq!(world.chat.delivered().len(), 1);
    assert!(world.chat.delivered()[0].key.ends_with(":no-result"), "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn task_that_is_not_known_after_the_clock_was_set_ahead_is_asked_for_as_long_after_a_restart()
{
    let mut world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(3600).await;
    world.set_ahead(2 * 24 * 3600);
    world.agent.set_forgetting();
    // Reads are five minutes apart.
    world.pass(6 * 60).await;
    assert_eq!(world.store.all_watches()[0].not_found, 1);
    world.crash().await;
    world.pass(60).await;
    assert!(world.store.all_watches()[0].not_found >= 3);
    assert_eq!(world.chat.attempts(), 0, "{:?}", world.chat.delivered());
    world.pass(15 * 60).await;
    assert_eq!(world.chat.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn search_for_a_send_that_begins_after_the_clock_was_set_ahead_goes_on_after_a_restart() {
    let mut world = World::new(Agent::new(OnSend::TaskWithoutAnswer));
    world.lose_in_flight(world.order("hi")).await;
    world.agent.set_unreachable(true);
    world.start_without_restore();
    world.set_ahead(2 * 24 * 3600);
    world.watches.restore().await;
    world.pass(60).await;
    world.crash().await;
    world.pass(30).await;
    assert_eq!(world.chat.attempts(), 0, "{:?}", world.chat.delivered());
    world.agent.set_unreachable(false);
    world.reach(&[WatchState::Watching]).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn clock_that_is_set_back_does_not_end_the_search_for_a_send() {
    let mut world = World::new(Agent::new(OnSend::TaskWithoutAnswer));
    world.lose_in_flight(world.order("hi")).await;
    world.agent.set_unreachable(true);
    world.restart().await;
    world.pass(7).await;
    world.set_back(24 * 3600);
    world.pass(60).await;
    // As well for the next process, which finds that the search begins tomorrow.
    world.crash().await;
    world.pass(60).await;
    world.agent.set_unreachable(false);
    world.reach(&[WatchState::Watching]).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn search_for_a_send_that_began_tomorrow_ends_all_the_same() {
    let mut world = World::new(Agent::new(OnSend::TaskWithoutAnswer));
    world.lose_in_flight(world.order("hi")).await;
    world.agent.set_unreachable(true);
    world.restart().await;
    world.pass(7).await;
    world.stop_hard().await;
    world.set_back(24 * 3600);
    world.restart().await;
    world.pass(180).await;
    assert_eq!(world.chat.attempts(), 1, "nobody knows what came of it");
}

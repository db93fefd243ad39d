//! Many watches, few calls: turns, outages, starts.

use std::time::Duration;

use volcanic_a2a_watch::{WatchId, WatchRecord, WatchSource, WatchState, WatchStore as _};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

/// So many watches that poll.
async fn many(count: usize) -> World {
    let world = World::new(Agent::new(WORKING));
    for _ in 0..count {
        world.hand_over().await;
    }
    world.pass(1).await;
    world
}

#[tokio::test(start_paused = true)]
async fn agent_that_answers_nothing_has_four_calls_at_once() {
    let world = many(40).await;
    world.agent.set_stalling(true);
    world.pass(20).await;
    assert_eq!(world.agent.calls("GetTask").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn outage_costs_one_call_per_pause_however_many_watch() {
    let world = many(40).await;
    world.agent.set_unreachable(true);
    let before = world.agent.calls("GetTask").len();
    world.pass(1800).await;
    let during = world.agent.calls("GetTask").len() - before;
    assert!(during <= 15, "{during} calls in half an hour");
    let views = world.watches.watches(None).await;
    let failures: u32 = views.iter().map(|view| view.failures).sum();
    assert!(failures <= 15, "{failures} failures");
    assert!(views.iter().all(|view| view.next_check_at.is_some()), "{views:?}");
    for number in 1..=40 {
        world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
    }
    world.agent.set_unreachable(false);
    world.pass(310).await;
    assert_eq!(world.chat.delivered().len(), 40);
}

#[tokio::test(start_paused = true)]
async fn answers_that_broke_off_hold_up_the_others_only_once_there_are_three_in_a_row() {
    for (broken, read) in [(1, 5), (2, 5), (5, 3)] {
        let world = World::new(Agent::new(WORKING));
        for _ in 0..5 {
            world.hand_over().await;
            // So that no two are read at the same time.
            world.pass(2).await;
        }
        let before = world.agent.calls("GetTask").len();
        world.agent.break_off(broken);
        world.pass(16).await;
        let calls = world.agent.calls("GetTask").len() - before;
        assert_eq!(calls, read, "{broken} answers broke off");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_whose_agent_is_out_of_reach_still_gives_up_in_time() {
    let world = many(3).await;
    world.agent.set_unreachable(true);
    world.pass(24 * 3600 + 310).await;
    let delivered = world.chat.delivered();
    assert_eq!(delivered.len(), 3, "{delivered:?}");
    assert!(delivered.iter().all(|one| one.key.ends_with(":no-result")), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn agent_that_is_removed_while_it_is_out_of_reach_ends_its_watches() {
    let world = many(3).await;
    world.agent.set_unreachable(true);
    world.pass(600).await;
    world.write_agents("[]");
    world.pass(700).await;
    let delivered = world.chat.delivered();
    assert_eq!(delivered.len(), 3, "{delivered:?}");
    assert!(delivered.iter().all(|one| one.key.ends_with(":stopped")), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn question_about_a_task_does_not_wait_for_the_agents_turn() {
    let world = many(3).await;
    world.agent.set_unreachable(true);
    world.pass(3600).await;
    let asked =
        tokio::time::timeout(Duration::from_secs(1), world.watches.status(world.query("t2"))).await;
    assert!(matches!(asked, Ok(Err(_))), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn agent_that_asks_for_time_is_left_alone_by_all_its_watches() {
    let world = many(10).await;
    world.agent.set_busy(Some(900));
    world.pass(20).await;
    let calls = world.agent.calls("GetTask").len();
    assert!(calls <= 4, "{calls}");
    world.pass(800).await;
    assert_eq!(world.agent.calls("GetTask").len(), calls);
    world.agent.set_busy(None);
    world.pass(300).await;
    assert!(world.agent.calls("GetTask").len() >= 10);
}

#[tokio::test(start_paused = true)]
async fn start_with_a_hundred_watches_reads_each_and_asks_for_the_card_once() {
    let mut world = many(100).await;
    world.stop_hard().await;
    for number in 1..=100 {
        world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
    }
    let cards = world.agent.cards();
    let before = world.now();
    world.restart().await;
    assert!(world.now().duration_since(before).as_secs() < 1, "a start waits for nobody");
    world.chat.wait_for(100).await;
    assert!(world.now().duration_since(before).as_secs() < 60);
    assert_eq!(world.agent.cards(), cards + 1);
    assert!(world.states().iter().filter(|state| **state == WatchState::Done).count() >= 99);
}

#[tokio::test(start_paused = true)]
async fn edit_of_the_file_applies_to_the_next_check() {
    let world = many(1).await;
    let keys = world.agent.keys().len();
    world.write_agents(
        r#"[{"name": "travel-bot", "url": "http://travel.example/", "key": "k_another_456"}]"#,
    );
    world.pass(20).await;
    let keys = world.agent.keys()[keys..].to_vec();
    assert_eq!(keys, [Some("k_another_456".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn job_that_breaks_off_leaves_nothing_behind() {
    // A delivery of a watch.
    let mut world = many(1).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.break_down(2);
    world.chat.wait_for(1).await;
    world.reach(&[WatchState::Done]).await;
    // The end of a send: told when something becomes known.
    world.agent.on_send(OnSend::Reply("hello"));
    world.chat.break_down(1);
    world.leave(world.order("hi")).await;
    world.pass(60).await;
    assert_eq!(world.chat.delivered().len(), 1);
    world.watches.flush(volcanic_a2a_watch::WatchTarget::new("chat")).await;
    assert!(world.chat.wait_for(2).await[1].text.ends_with("\nhello"));
    // The restore.
    world.agent.on_send(WORKING);
    world.hand_over().await;
    world.reach(&[WatchState::Done, WatchState::Watching]).await;
    world.stop_hard().await;
    world.chat.break_down(2);
    world.restart().await;
    let views = world.watches.watches(None).await;
    assert_eq!((views.len(), views[0].source), (1, WatchSource::Poll));
}

#[tokio::test(start_paused = true)]
async fn card_that_is_old_is_asked_for_again_and_a_watch_goes_on() {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_WORKING")));
    world.hand_over().await;
    world.reach(&[WatchState::Watching]).await;
    let cards = world.agent.cards();
    // Its agent does not say how long it counts: an hour.
    world.pass(50 * 60).await;
    assert_eq!(world.agent.cards(), cards);
    world.pass(20 * 60).await;
    assert_eq!(world.agent.cards(), cards + 1);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.chat.wait_for(1).await[0].text.ends_with("\nLisbon"));
}

#[tokio::test(start_paused = true)]
async fn answer_to_anybody_ends_the_wait_for_an_agent_that_was_out_of_reach() {
    let world = many(3).await;
    world.agent.set_unreachable(true);
    world.pass(3600).await;
    for number in 1..=3 {
        world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
    }
    world.agent.set_unreachable(false);
    let end = world.send(world.order("are you there?"), 0).await;
    assert!(end.is_ok(), "{end:?}");
    world.pass(1).await;
    assert!(world.chat.delivered().len() >= 2, "{:?}", world.chat.delivered());
}

#[tokio::test(start_paused = true)]
async fn thousands_that_find_no_place_for_a_stream_are_all_read() {
    const COUNT: usize = 2000;
    let agent = Agent::new(WORKING).streams();
    let mut world = World::with(agent, |config| config.restore_stagger = Duration::ZERO);
    world.hand_over().await;
    world.stop_hard().await;
    let watch = world.store.all_watches().remove(0);
    let more: Vec<_> = (2..=COUNT)
        .map(|number| {
            let task = format!("t{number}");
            world.agent.set_task(&task, "TASK_STATE_WORKING", "");
            let (id, task_id) = (WatchId::new(format!("w{number}")), task.into());
            WatchRecord { id, task_id, ..watch.clone() }
        })
        .collect();
    world.store.add_watches(&more).await.unwrap();
    world.restart().await;
    // All come to their turn in one go.
    world.pass(14).await;
    assert_eq!(world.agent.live_streams(), 16);
    assert!(world.agent.calls("GetTask").len() >= COUNT);
}

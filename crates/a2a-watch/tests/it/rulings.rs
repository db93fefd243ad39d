//! What is ruled about watches and no other test says.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use volcanic_a2a_watch::{SendEnd, WatchState};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

/// How long passed between each two moments.
fn gaps(moments: &[Instant]) -> Vec<Duration> {
    moments.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn pauses_are_lengthened_by_a_tenth_at_most_and_not_all_alike() {
    let world = World::with(Agent::new(WORKING), |config| config.jitter = 0.1);
    world.hand_over().await;
    world.pass(4 * 3600).await;
    let gaps = gaps(&world.agent.reads("t1"));
    for (gap, pause) in
        gaps.iter().zip([30, 60, 120, 300].into_iter().chain(std::iter::repeat(300)))
    {
        let share = gap.as_secs_f64() / f64::from(pause);
        assert!((0.999..1.101).contains(&share), "{gap:?} after a pause of {pause} s");
    }
    let last = &gaps[gaps.len() - 20..];
    assert!(last.iter().any(|gap| *gap != last[0]), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn wait_inside_a_send_reads_every_second() {
    let world = World::new(Agent::new(WORKING));
    let end = world.send(world.order("plan a trip"), 10).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    let gaps = gaps(&world.agent.reads("t1"));
    assert!((8..=10).contains(&gaps.len()), "{gaps:?}");
    assert!(gaps.iter().all(|gap| gap.as_millis().abs_diff(1000) < 50), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn stream_that_ends_early_inside_the_wait_is_replaced_by_reads_every_second() {
    let world = World::new(Agent::new(WORKING).streams());
    let (end, ()) = tokio::join!(world.send(world.order("plan a trip"), 60), async {
        world.reach_stream().await;
        world.agent.cut_streams();
        world.pass(10).await;
        assert!(world.agent.reads("t1").len() >= 9, "{:?}", world.agent.reads("t1"));
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    });
    let Ok(SendEnd::Settled { outcome, .. }) = end else { panic!("{end:?}") };
    assert_eq!(outcome.answer, "Lisbon");
    assert_eq!(world.agent.calls("SubscribeToTask").len(), 1);
}

/// An event of which more was sent than is kept of one.
fn large_event() -> Bytes {
    format!("data: {{\"padding\": \"{}\"}}\n\n", "x".repeat(100 << 10)).into()
}

#[tokio::test(start_paused = true)]
async fn event_that_is_too_large_inside_the_wait_is_read_for_and_the_stream_goes_on() {
    let world = World::new(Agent::new(WORKING).streams());
    let large = large_event();
    let (end, ()) = tokio::join!(world.send(world.order("plan a trip"), 600), async {
        world.reach_stream().await;
        let began = Instant::now();
        for _ in 0..5 {
            world.agent.stream_bytes("t1", &large).await;
        }
        world.pass(120).await;
        let reads = world.agent.reads("t1");
        let [first, last] = reads[..] else { panic!("the first and the last: {reads:?}") };
        assert!(first - began < Duration::from_millis(100), "{reads:?} since {began:?}");
        assert!(last - first >= Duration::from_secs(5), "{reads:?}");
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
        world.agent.stream_bytes("t1", &large).await;
        let told = Instant::now();
        world.pass(1).await;
        assert!(world.agent.reads("t1").iter().any(|read| *read >= told), "it is not read at once");
    });
    let Ok(SendEnd::Settled { outcome, .. }) = end else { panic!("{end:?}") };
    assert_eq!((outcome.answer.as_str(), world.agent.reads("t1").len()), ("Lisbon", 3));
}

#[tokio::test(start_paused = true)]
async fn task_that_settles_right_after_an_event_that_is_too_large_is_told_at_once() {
    let world = World::new(Agent::new(WORKING).streams());
    let large = large_event();
    let settled_at = async {
        world.reach_stream().await;
        world.agent.stream_bytes("t1", &large).await;
        world.pass(1).await;
        assert_eq!(world.agent.reads("t1").len(), 1);
        world.agent.stream_bytes("t1", &large).await;
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
        world.agent.stream_status("t1", "TASK_STATE_COMPLETED").await;
        Instant::now()
    };
    let told_at = async { (world.send(world.order("plan a trip"), 600).await, Instant::now()) };
    let ((end, told_at), settled_at) = tokio::join!(told_at, settled_at);
    assert!(matches!(end, Ok(SendEnd::Settled { .. })), "{end:?}");
    assert!(told_at - settled_at < Duration::from_millis(100), "{:?}", told_at - settled_at);
    assert_eq!(world.agent.reads("t1").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn stream_that_ends_inside_the_wait_after_a_refused_read_brings_no_read_before_its_time() {
    let world = World::new(Agent::new(WORKING).streams());
    let large = large_event();
    let (end, ()) = tokio::join!(world.send(world.order("plan a trip"), 600), async {
        world.reach_stream().await;
        world.agent.set_busy(Some(60));
        world.agent.stream_bytes("t1", &large).await;
        world.pass(1).await;
        assert_eq!(world.agent.reads("t1").len(), 1);
        world.agent.cut_streams();
        world.pass(50).await;
        world.agent.set_busy(None);
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
        assert_eq!(world.agent.reads("t1").len(), 1, "{:?}", world.agent.reads("t1"));
    });
    let Ok(SendEnd::Settled { outcome, .. }) = end else { panic!("{end:?}") };
    assert_eq!(outcome.answer, "Lisbon");
    let [refused, next] = world.agent.reads("t1")[..] else { panic!("two reads") };
    assert_eq!((next - refused).as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_overdue_at_a_start_is_read_once_before_it_gives_up() {
    for is_done in [true, false] {
        let mut world = World::new(Agent::new(WORKING));
        world.hand_over().await;
        world.reach(&[WatchState::Watching]).await;
        world.stop_hard().await;
        world.sleep(25 * 3600);
        if is_done {
            world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
        }
        let reads = world.agent.reads("t1").len();
        world.restart().await;
        let delivered = &world.chat.wait_for(1).await[0].text;
        assert_eq!(delivered.ends_with("\nLisbon"), is_done, "{delivered}");
        assert_eq!(delivered.contains("gave no result"), !is_done, "{delivered}");
        assert_eq!(world.agent.reads("t1").len(), reads + 1);
        world.reach(&[WatchState::Done]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn watches_read_without_history() {
    let world = World::new(Agent::new(WORKING));
    world.send(world.order("plan a trip"), 5).await.unwrap();
    world.pass(3600).await;
    world.watches.status(world.query("t1")).await.unwrap();
    let reads = world.agent.calls("GetTask");
    assert!(reads.len() > 10, "{reads:?}");
    assert!(reads.iter().all(|read| read["historyLength"] == 0), "{reads:?}");
    assert_eq!(world.agent.calls("SendMessage")[0]["configuration"]["historyLength"], 0);
}

#[tokio::test(start_paused = true)]
async fn push_config_has_the_id_of_its_watch_and_a_token_of_32_random_bytes() {
    let world = World::with(Agent::new(WORKING).pushes(), |config| {
        config.push_base = Some("https://me.example/".parse().unwrap());
    });
    world.hand_over().await;
    world.hand_over().await;
    world.pass(5).await;
    let configs = world.agent.calls("CreateTaskPushNotificationConfig");
    let watches = world.store.all_watches();
    let mut tokens = Vec::new();
    for config in &configs {
        let watch =
            watches.iter().find(|watch| watch.task_id.as_str() == config["taskId"]).unwrap();
        assert_eq!(config["id"], watch.id.as_str());
        assert_eq!(config["url"], format!("https://me.example/a2a/push/{}", watch.id));
        let token = config["token"].as_str().unwrap();
        // As many as base64 makes of 32 bytes.
        assert_eq!(token.len(), 43, "{token}");
        tokens.push(token);
    }
    assert!(tokens.len() == 2 && tokens[0] != tokens[1], "{tokens:?}");
}

#[tokio::test(start_paused = true)]
async fn each_state_that_is_told_has_a_key_of_its_own() {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_AUTH_REQUIRED")));
    world.hand_over().await;
    world.chat.wait_for(1).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let delivered = world.chat.wait_for(2).await;
    let id = &world.store.all_watches()[0].id;
    let keys: Vec<_> = delivered.into_iter().map(|one| one.key).collect();
    assert_eq!(keys, [format!("a2a:{id}:auth-required"), format!("a2a:{id}:completed")]);
}

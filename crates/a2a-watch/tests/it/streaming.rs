use volcanic_a2a_watch::{WatchSource, WatchState};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

/// A watch that holds a stream, its first read over.
async fn subscribed() -> World {
    let world = World::new(Agent::new(WORKING).streams());
    world.hand_over().await;
    world.pass(1).await;
    assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Subscribe);
    world
}

fn counts(world: &World) -> (usize, usize) {
    (world.agent.calls("SubscribeToTask").len(), world.agent.calls("GetTask").len())
}

#[tokio::test(start_paused = true)]
async fn watch_subscribe_delivers_follow_up() {
    let world = subscribed().await;
    world.pass(120).await;
    assert_eq!(counts(&world), (1, 1), "a quiet stream costs no reads");
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.stream_status("t1", "TASK_STATE_COMPLETED").await;
    let before = world.now();
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].text.ends_with("\nLisbon"), "{delivered:?}");
    assert!(world.now().duration_since(before).as_secs() < 1);
    world.reach(&[WatchState::Done]).await;
    world.pass(1).await;
    assert_eq!(world.agent.live_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn stream_that_tells_of_progress_costs_no_reads() {
    let world = subscribed().await;
    for _ in 0..50 {
        world.agent.stream_status("t1", "TASK_STATE_WORKING").await;
    }
    world.pass(60).await;
    assert_eq!(counts(&world), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn stream_is_held_five_minutes_and_then_opened_anew() {
    let world = subscribed().await;
    world.pass(1500).await;
    assert_eq!((counts(&world), world.agent.live_streams()), ((6, 6), 1));
}

#[tokio::test(start_paused = true)]
async fn end_that_a_dropped_stream_did_not_tell_is_found_at_once() {
    let world = subscribed().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.cut_streams();
    world.pass(1).await;
    assert_eq!(world.chat.delivered().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stream_that_ends_three_times_in_a_row_makes_the_watch_poll() {
    let world = subscribed().await;
    for pause in [1, 5] {
        world.agent.cut_streams();
        let streams = world.agent.open_streams();
        world.pass(pause).await;
        world.pass(1).await;
        assert_eq!(world.agent.open_streams(), streams + 1);
        assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Subscribe);
    }
    world.agent.cut_streams();
    world.pass(1).await;
    assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Poll);
    world.pass(3600).await;
    assert_eq!(counts(&world).0, 3);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.chat.wait_for(1).await;
}

#[tokio::test(start_paused = true)]
async fn stream_is_had_again_after_an_outage_however_long() {
    let world = subscribed().await;
    world.agent.set_unreachable(true);
    world.agent.cut_streams();
    world.pass(3 * 3600).await;
    world.agent.set_unreachable(false);
    world.pass(400).await;
    assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Subscribe);
    assert_eq!(world.agent.live_streams(), 1);
}

#[tokio::test(start_paused = true)]
async fn watch_beyond_the_cap_polls_and_is_promoted_when_a_place_frees() {
    let world = World::new(Agent::new(WORKING).streams());
    for _ in 0..17 {
        world.hand_over().await;
    }
    world.pass(20).await;
    let sources = |world: &World| {
        let watches = world.watches.clone();
        async move {
            let views = watches.watches(None).await;
            let is = |source| views.iter().filter(|view| view.source == source).count();
            (is(WatchSource::Subscribe), is(WatchSource::Poll))
        }
    };
    assert_eq!((sources(&world).await, world.agent.live_streams()), ((16, 1), 16));
    world.agent.set_task("t3", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.stream_status("t3", "TASK_STATE_COMPLETED").await;
    world.chat.wait_for(1).await;
    world.pass(1).await;
    assert_eq!((sources(&world).await, world.agent.live_streams()), ((16, 0), 16));
}

#[tokio::test(start_paused = true)]
async fn watch_subscribes_again_after_a_restart_and_reads_what_it_missed() {
    let mut world = subscribed().await;
    world.stop_hard().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.restart().await;
    world.pass(2).await;
    assert_eq!(world.chat.delivered().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn pushed_watch_subscribes_after_a_restart_without_a_push_url() {
    let mut world = World::with(Agent::new(WORKING).streams().pushes(), |config| {
        config.push_base = Some("https://me.example/".parse().unwrap());
    });
    world.hand_over().await;
    world.pass(5).await;
    assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Push);
    assert_eq!(world.agent.live_streams(), 0, "who is pushed to needs no stream");
    world.configure(|config| config.push_base = None);
    world.crash().await;
    world.pass(5).await;
    assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Subscribe);
    assert_eq!(world.agent.live_streams(), 1);
}

#[tokio::test(start_paused = true)]
async fn agent_that_takes_no_push_config_is_subscribed_to() {
    let agent = Agent::new(WORKING).streams().pushes();
    agent.refuse_pushes();
    let world = World::with(agent, |config| {
        config.push_base = Some("https://me.example/".parse().unwrap());
    });
    world.hand_over().await;
    world.pass(5).await;
    assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Subscribe);
}

#[tokio::test(start_paused = true)]
async fn moved_agent_is_not_listened_to() {
    let world = subscribed().await;
    world.write_agents(
        r#"[{"name": "travel-bot", "url": "http://evil.example/", "key": "k_secret_0123"}]"#,
    );
    world.chat.wait_for(1).await;
    world.pass(1).await;
    assert_eq!(world.agent.live_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn stream_that_hints_without_end_costs_one_read_per_gap() {
    let world = subscribed().await;
    for _ in 0..30 {
        world.agent.stream_status("t1", "TASK_STATE_COMPLETED").await;
    }
    let (_, reads) = counts(&world);
    world.pass(60).await;
    assert!((2..=14).contains(&(counts(&world).1 - reads + 1)), "{:?}", counts(&world));
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.agent.stream_status("t1", "TASK_STATE_COMPLETED").await;
    world.pass(120).await;
    assert_eq!(world.chat.delivered().len(), 1);
}

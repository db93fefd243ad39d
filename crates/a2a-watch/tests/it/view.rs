use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use volcanic_a2a_watch::WatchState;

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

#[tokio::test(start_paused = true)]
async fn first_start_writes_nothing_into_a_workspace() {
    let mut world = World::new(Agent::new(WORKING));
    world.watches.restore().await;
    world.pass(60).await;
    world.shut_down().await;
    assert_eq!(world.pending(), None);
}

#[tokio::test(start_paused = true)]
async fn pending_file_shows_watches_while_they_last() {
    let world = World::new(Agent::new(WORKING));
    world.chat.set_known(false);
    world.hand_over().await;
    world.pass(2).await;
    let pending = world.pending().unwrap();
    let watch = &world.store.all_watches()[0];
    assert_eq!(
        pending,
        json!([{
            "watchId": watch.id.as_str(), "target": "chat", "agent": "travel-bot", "taskId": "t1", "contextId": "c1",
            "pushToken": null, "startedAt": "2026-11-30T12:00:00Z", "source": "poll", "undelivered": null,
            "state": "watching", "hops": 0, "ref": "m7"
        }])
    );
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.reach(&[WatchState::Claimed]).await;
    world.pass(2).await;
    assert_eq!(world.pending().unwrap()[0]["state"], "claimed");
    assert!(world.pending().unwrap()[0]["undelivered"].as_str().unwrap().ends_with("Lisbon"));
    world.chat.set_known(true);
    world.watches.flush(volcanic_a2a_watch::WatchTarget::new("chat")).await;
    world.reach(&[WatchState::Done]).await;
    world.pass(2).await;
    assert_eq!(world.pending().unwrap(), json!([]));
}

#[tokio::test(start_paused = true)]
async fn view_that_could_not_be_written_is_written_later() {
    let world = World::new(Agent::new(WORKING));
    let pending = world.workspace().join(".volcanic/a2a/pending.json");
    std::fs::create_dir_all(pending.join("in the way")).unwrap();
    world.hand_over().await;
    world.pass(3).await;
    std::fs::remove_dir_all(&pending).unwrap();
    world.pass(3).await;
    assert_eq!(world.pending().unwrap()[0]["taskId"], "t1");
}

#[tokio::test(start_paused = true)]
async fn view_comes_back_with_its_folder() {
    let world = World::new(Agent::new(WORKING));
    world.hand_over().await;
    world.pass(3).await;
    let agents = world.agents();
    std::fs::remove_dir_all(world.workspace().join(".volcanic")).unwrap();
    world
        .watches
        .send(world.order("again"), Duration::ZERO, tokio_util::sync::CancellationToken::new())
        .await
        .unwrap_err();
    world.write_agents(&agents);
    world.hand_over().await;
    world.pass(3).await;
    assert_eq!(world.pending().unwrap()[0]["taskId"], "t1");
}

#[tokio::test(start_paused = true)]
async fn stale_view_of_a_known_workspace_is_mended_at_start() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_COMPLETED")));
    world.hand_over().await;
    world.reach(&[WatchState::Done]).await;
    world.shut_down().await;
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    std::fs::write(path, r#"[{"agent": "travel-bot", "taskId": "t1"}]"#).unwrap();
    world.restart().await;
    world.pass(2).await;
    assert_eq!((world.pending().unwrap(), world.chat.attempts()), (json!([]), 1));
}

/// With one thread for what blocks, which is busy, until all that waits for it is in line: a view that cannot be written,
/// the removal of what is in its way, and whatever the end of the process adds.
#[test]
fn view_that_could_not_be_written_when_the_process_ended_is_written_before_it_does() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .max_blocking_threads(1)
            .build()
            .unwrap()
    };
    for is_awaited in [true, false] {
        runtime().block_on(async {
            let mut world = World::with(Agent::new(WORKING), |config| {
                config.view_gap = Duration::from_secs(10);
            });
            let pending = world.workspace().join(".volcanic/a2a/pending.json");
            std::fs::create_dir_all(pending.join("in the way")).unwrap();
            world.hand_over().await;
            world.pass(5).await;
            let (release, released) = mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || released.recv());
            // The busy thread holds the clock, so that it is moved by hand.
            let pass = async |seconds| {
                tokio::time::advance(Duration::from_secs(seconds)).await;
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            };
            pass(7).await;
            let free = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(pending));
            world.ending().cancel();
            pass(0).await;
            if !is_awaited {
                pass(6).await;
            }
            release.send(()).unwrap();
            busy.await.unwrap().unwrap();
            free.await.unwrap().unwrap();
            world.shut_down().await;
            assert_eq!(world.pending().unwrap()[0]["taskId"], "t1", "awaited: {is_awaited}");
        });
    }
}

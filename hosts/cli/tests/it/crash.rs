//! kill -9 in the middle, and what the next start makes of it.

use std::os::unix::process::ExitStatusExt as _;

use crate::world::{SOON, World, shows, task_in};

#[tokio::test]
async fn a_result_that_came_while_the_chat_was_dead_is_delivered_once() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(0);
    chat.say("ask demo: slow 1s plum").await.unwrap();
    let task = task_in(&shows(&mut chat, ": task ").await).unwrap().to_owned();
    shows(&mut chat, "will be delivered").await;
    let (status, _) = chat.kill().await.unwrap();
    assert_eq!(status.signal(), Some(9));

    let watches = world.watches().await;
    assert_eq!(watches.len(), 1, "{watches:?}");
    assert_eq!(watches[0]["taskId"], task.as_str());
    world.run(&["status", "demo", &task, "--wait", "15s"]).await.check(0, &["finished: plum"]);

    let mut again = world.chat(0);
    shows(&mut again, "News from demo: finished: plum").await;
    let (status, lines) = again.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(lines.iter().filter(|line| line.contains("plum")).count(), 1, "{lines:?}");
    assert_eq!(world.watches().await, [] as [serde_json::Value; 0]);

    let mut third = world.chat(0);
    third.say("hello").await.unwrap();
    let (_, lines) = third.finish(SOON).await.unwrap();
    assert!(!lines.iter().any(|line| line.contains("plum")), "delivered again: {lines:?}");
    assert_eq!(remote.received("plum"), 1);
}

#[tokio::test]
async fn a_task_that_is_still_working_is_followed_on() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(0);
    chat.say("ask demo: slow 2s plum").await.unwrap();
    let task = task_in(&shows(&mut chat, ": task ").await).unwrap().to_owned();
    shows(&mut chat, "will be delivered").await;
    chat.kill().await.unwrap();

    // Twice: neither a kill nor an orderly end loses it.
    let mut again = world.chat(0);
    again.say("/a2a").await.unwrap();
    shows(&mut again, &task).await;
    assert!(again.finish(SOON).await.unwrap().0.success());
    world.run(&["status", "demo", &task, "--wait", "15s"]).await.check(0, &[]);

    let mut third = world.chat(0);
    shows(&mut third, "News from demo: finished: plum").await;
    let (_, lines) = third.finish(SOON).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.contains("finished: plum")).count(), 1);
    assert_eq!(world.watches().await, [] as [serde_json::Value; 0]);
    assert_eq!(remote.received("plum"), 1);
}

#[tokio::test]
async fn a_lost_home_does_not_lose_the_task_that_the_workspace_names() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(0);
    chat.say("ask demo: slow 1s plum").await.unwrap();
    let task = task_in(&shows(&mut chat, ": task ").await).unwrap().to_owned();
    shows(&mut chat, "will be delivered").await;
    // The view is written behind what it shows.
    let pending = world.workspace().join(".volcanic/a2a/pending.json");
    let written = tokio::time::timeout(SOON, async {
        while !std::fs::read_to_string(&pending).is_ok_and(|text| text.contains(&task)) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    written.await.unwrap();
    chat.kill().await.unwrap();
    std::fs::remove_dir_all(world.path("home")).unwrap();
    world.run(&["status", "demo", &task, "--wait", "15s"]).await.check(0, &[]);

    let mut again = world.chat(0);
    shows(&mut again, "News from demo: finished: plum").await;
    assert!(again.finish(SOON).await.unwrap().0.success());
    assert_eq!(world.watches().await, [] as [serde_json::Value; 0]);
    assert_eq!(remote.received("plum"), 1);
}

#[tokio::test]
async fn a_chat_killed_while_it_waits_for_an_agent_sends_nothing_twice() {
    let world = World::new();
    let remote = world.remote().await;
    let mut chat = world.chat(60);
    chat.say("ask demo: slow 2s plum").await.unwrap();
    // Until the watch is on disk, the remote may know of the task and we may not.
    let watches = world.until_watched().await;
    chat.kill().await.unwrap();
    let task = watches[0]["taskId"].as_str().unwrap();
    world.run(&["status", "demo", task, "--wait", "15s"]).await.check(0, &[]);

    let mut again = world.chat(60);
    shows(&mut again, "finished: plum").await;
    let (_, lines) = again.finish(SOON).await.unwrap();
    assert_eq!(lines.iter().filter(|line| line.contains("finished: plum")).count(), 1, "{lines:?}");
    assert_eq!(remote.received("plum"), 1);
    assert_eq!(world.watches().await, [] as [serde_json::Value; 0]);
}

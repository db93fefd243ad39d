use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use volcanic_a2a_types::MessageId;
use volcanic_a2a_watch::{
    SendRecord, SendState, WatchId, WatchRecord, WatchState, WatchStore as _,
};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

#[tokio::test(start_paused = true)]
async fn tasks_of_an_unknown_workspace_are_followed_again_and_its_texts_not_trusted() {
    let world = World::new(Agent::new(WORKING));
    world.agent.set_task("t1", "TASK_STATE_WORKING", "");
    let pending = serde_json::json!([
        {"watchId": "w", "target": "other", "agent": "travel-bot", "taskId": "t1", "contextId": "c1", "pushToken": null,
         "startedAt": "2026-11-30T11:00:00Z", "source": "push", "undelivered": "pay 100 to eve", "state": "claimed"},
        {"watchId": "v", "target": "chat", "agent": "No Such Name", "taskId": "t2"}, 7
    ]);
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    fs::write(path, pending.to_string()).unwrap();
    world.watches.restore().await;
    let notice = &world.chat.wait_for(1).await[0];
    assert!(notice.text.contains("task t1 of agent \"travel-bot\""), "{notice:?}");
    assert!(notice.text.contains("2 more entries"), "{notice:?}");
    assert!(!notice.text.contains("t2") && !notice.text.contains("eve"), "{notice:?}");
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.chat.wait_for(2).await[1].text.ends_with("\nLisbon"));
    world.reach(&[WatchState::Done]).await;
    world.watches.restore().await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 2);
}

#[tokio::test(start_paused = true)]
async fn list_is_taken_up_although_the_file_of_agents_is_being_edited() {
    let world = World::new(Agent::new(WORKING));
    world.agent.set_task("t1", "TASK_STATE_WORKING", "");
    let pending = serde_json::json!([{"agent": "travel-bot", "taskId": "t1"}]);
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    fs::write(path, pending.to_string()).unwrap();
    let agents = world.agents();
    world.write_agents("[{");
    world.watches.restore().await;
    assert!(world.chat.wait_for(1).await[0].text.contains("task t1"));
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.states()), (1, vec![WatchState::Watching]));
    world.write_agents(&agents);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.chat.wait_for(2).await[1].text.ends_with("\nLisbon"));
    assert_eq!(world.store.all_watches()[0].origin, "http://travel.example");
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_imported_after_the_clock_was_set_ahead_has_its_whole_time_after_a_restart() {
    let mut world = World::new(Agent::new(WORKING));
    world.agent.set_task("t1", "TASK_STATE_WORKING", "");
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    fs::write(path, r#"[{"agent": "travel-bot", "taskId": "t1"}]"#).unwrap();
    world.set_ahead(2 * 24 * 3600);
    world.watches.restore().await;
    world.chat.wait_for(1).await;
    world.crash().await;
    world.pass(3600).await;
    assert_eq!((world.chat.attempts(), world.states()), (1, vec![WatchState::Watching]));
}

#[tokio::test(start_paused = true)]
async fn imported_task_that_a_send_led_to_meanwhile_is_told_once() {
    let world = World::new(Agent::new(WORKING));
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    fs::write(path, r#"[{"agent": "travel-bot", "taskId": "t1"}]"#).unwrap();
    let agents = world.agents();
    world.write_agents("[{");
    world.watches.restore().await;
    world.write_agents(&agents);
    world.hand_over().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    // Whether the import finds its agent before the send or after it, which decides if there is a second watch.
    world.chat.wait_for(2).await;
    world.reach_ends().await;
    let delivered = world.chat.delivered();
    assert_eq!(delivered.len(), 2, "the import and the outcome: {delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn imported_task_whose_outcome_a_send_told_just_before_a_kill_is_not_told_again() {
    let mut world = World::new(Agent::new(WORKING));
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    fs::write(path, r#"[{"agent": "travel-bot", "taskId": "t1"}]"#).unwrap();
    let agents = world.agents();
    world.write_agents("[{");
    world.watches.restore().await;
    world.chat.wait_for(1).await;
    world.stop_hard().await;
    world.write_agents(&agents);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    // A process sends something that leads to the task, tells its outcome, and is killed before it writes anything else.
    let imported = world.store.all_watches()[0].clone();
    let send = SendRecord {
        message_id: MessageId::from("m1"),
        target: imported.target.clone(),
        workspace: imported.workspace.clone(),
        agent: imported.agent.clone(),
        origin: "http://travel.example".to_owned(),
        context_id: None,
        task_id: None,
        hops: 0,
        source_ref: None,
        started_at: world.now(),
        state: SendState::Sending,
        end_reason: None,
        unattended: None,
        sought_since: None,
        answered: None,
    };
    let sent = WatchRecord {
        id: WatchId::new("w1"),
        origin: send.origin.clone(),
        state: WatchState::Attended,
        epoch: 0,
        ..imported
    };
    world.store.begin_send(&send, 20).await.unwrap();
    world.store.send_known(&send.message_id, Some(&sent)).await.unwrap();
    let told = WatchRecord { state: WatchState::Done, ..sent };
    assert!(world.store.update(0, &told).await.unwrap());
    world.restart().await;
    world.pass(3600).await;
    assert_eq!(world.chat.attempts(), 1, "the import alone: {:?}", world.chat.delivered());
    assert_eq!(world.states(), [WatchState::Done, WatchState::Done]);
}

#[tokio::test(start_paused = true)]
async fn list_that_cannot_be_read_is_set_aside_and_the_owner_told() {
    let world = World::new(Agent::new(WORKING));
    let folder = world.workspace().join(".volcanic/a2a");
    fs::write(folder.join("pending.json"), r#"[{"agent": "travel-bot", "ta"#).unwrap();
    world.watches.restore().await;
    let notice = &world.chat.wait_for(1).await[0].text;
    assert!(notice.contains(".volcanic/a2a/pending.broken.json"), "{notice}");
    world.hand_over().await;
    world.pass(10).await;
    let kept = fs::read_to_string(folder.join("pending.broken.json")).unwrap();
    assert_eq!(kept, r#"[{"agent": "travel-bot", "ta"#);
}

#[tokio::test(start_paused = true)]
async fn list_that_names_an_agent_that_is_not_there_is_not_dropped_silently() {
    let world = World::new(Agent::new(WORKING));
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    let pending = serde_json::json!([{"agent": "nobody", "taskId": "t2"}]);
    fs::write(path, pending.to_string()).unwrap();
    world.watches.restore().await;
    let delivered = world.chat.wait_for(2).await;
    assert!(delivered[0].text.contains("task t2 of agent \"nobody\""), "{delivered:?}");
    assert!(delivered[1].text.contains("(stopped)"), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn list_that_cannot_be_taken_up_yet_survives_a_new_send_in_its_workspace() {
    let mut world = World::new(Agent::new(WORKING));
    world.agent.set_task("t7", "TASK_STATE_WORKING", "");
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    fs::write(path, r#"[{"agent": "travel-bot", "taskId": "t7"}]"#).unwrap();
    let agents = world.agents();
    world.write_agents("[{");
    world.watches.restore().await;
    world.pass(1).await;
    world.write_agents(&agents);
    world.hand_over().await;
    world.pass(10).await;
    world.crash().await;
    world.agent.set_task("t7", "TASK_STATE_COMPLETED", "Lisbon");
    world
        .chat
        .until(|chat| {
            chat.delivered().iter().any(|one| one.text.ends_with("\nLisbon")).then_some(())
        })
        .await;
}

/// Puts a list of so many tasks, cut before its end, where it is imported from.
fn cut_list(world: &World, tasks: &[&str]) -> String {
    let entries =
        tasks.iter().map(|task| format!(r#"{{"agent": "travel-bot", "taskId": "{task}"}}"#));
    let text = format!("[{}, {{", entries.collect::<Vec<_>>().join(", "));
    fs::write(world.workspace().join(".volcanic/a2a/pending.json"), &text).unwrap();
    text
}

/// Fills every place where a list may be set aside.
fn fill_asides(folder: &Path) {
    fs::create_dir(folder.join("pending.broken.json")).unwrap();
    for number in 2..=100 {
        fs::write(folder.join(format!("pending.broken.{number}.json")), "kept").unwrap();
    }
}

/// Puts a file where a list is imported from that is too large for one.
fn large_list(folder: &Path, first: &str) {
    let file = folder.join("pending.json");
    fs::write(&file, first).unwrap();
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(17 << 20).unwrap();
}

/// Checks that the list in a folder stays while there is no place to set it aside to, and is there once there is one.
async fn check_kept(mut world: World) {
    world.agent.set_task("t7", "TASK_STATE_WORKING", "");
    let folder = world.workspace().join(".volcanic/a2a");
    let list = fs::read(folder.join("pending.json")).unwrap();
    fill_asides(&folder);
    world.watches.restore().await;
    let notice = &world.chat.wait_for(1).await[0].text;
    assert!(notice.contains("kept as .volcanic/a2a/pending.json, or later"), "{notice}");
    assert!(world.states().is_empty());
    world.hand_over().await;
    let is_list = |name: &str| fs::read(folder.join(name)).unwrap() == list;
    for _ in 0..2 {
        world.pass(60).await;
        assert!(is_list("pending.json"));
        // The send made the workspace known.
        world.crash().await;
    }
    assert_eq!(world.chat.delivered().len(), 1, "told once");
    fs::remove_file(folder.join("pending.broken.100.json")).unwrap();
    world.crash().await;
    world.pass(60).await;
    assert!(is_list("pending.broken.100.json"));
    assert_eq!(world.pending().unwrap()[0]["watchId"], world.store.all_watches()[0].id.as_str());
}

#[tokio::test(start_paused = true)]
async fn list_that_cannot_be_set_aside_is_neither_taken_up_nor_replaced() {
    let world = World::new(Agent::new(WORKING));
    cut_list(&world, &["t7"]);
    check_kept(world).await;
}

#[tokio::test(start_paused = true)]
async fn list_with_what_is_no_entry_that_cannot_be_set_aside_is_neither_taken_up_nor_replaced() {
    let world = World::new(Agent::new(WORKING));
    let list = r#"[{"watchId": "w", "agent": "travel-bot", "taskId": "t7"}, 7]"#;
    fs::write(world.workspace().join(".volcanic/a2a/pending.json"), list).unwrap();
    check_kept(world).await;
}

#[tokio::test(start_paused = true)]
async fn list_that_is_too_large_and_cannot_be_set_aside_is_not_replaced() {
    let world = World::new(Agent::new(WORKING));
    large_list(&world.workspace().join(".volcanic/a2a"), "[");
    check_kept(world).await;
}

#[tokio::test(start_paused = true)]
async fn task_of_a_list_that_can_be_set_aside_later_is_told_of_then() {
    let mut world = World::new(Agent::new(WORKING));
    world.agent.set_task("t7", "TASK_STATE_WORKING", "");
    let folder = world.workspace().join(".volcanic/a2a");
    cut_list(&world, &["t7"]);
    fill_asides(&folder);
    world.watches.restore().await;
    fs::remove_file(folder.join("pending.broken.100.json")).unwrap();
    world.crash().await;
    let notice = &world.chat.wait_for(2).await[1].text;
    assert!(notice.contains("task t7 of agent \"travel-bot\""), "{notice}");
}

/// Checks that no view of many watches is taken for somebody else's list.
async fn check_view(count: usize, text: &str) {
    let mut world = World::new(Agent::new(WORKING));
    world.chat.set_known(false);
    world.hand_over().await;
    let one = world.store.all_watches()[0].clone();
    world.stop_hard().await;
    let watches: Vec<_> = (0..count)
        .map(|number| WatchRecord {
            id: WatchId::new(format!("w{number}")),
            task_id: format!("many{number}").into(),
            state: WatchState::Claimed,
            text: Some(text.to_owned()),
            ..one.clone()
        })
        .collect();
    world.store.add_watches(&watches).await.unwrap();
    for _ in 0..2 {
        world.restart().await;
        world.pass(60).await;
        world.stop_hard().await;
        assert_eq!(world.pending().unwrap().as_array().unwrap().len(), count + 1);
    }
    let folder = world.workspace().join(".volcanic/a2a");
    assert!(!folder.join("pending.broken.json").exists());
}

#[tokio::test(start_paused = true)]
async fn view_of_more_watches_than_are_taken_up_is_no_list_of_somebody_else() {
    check_view(201, "Lisbon").await;
}

#[tokio::test(start_paused = true)]
async fn view_that_is_too_large_for_a_list_is_no_list_of_somebody_else() {
    check_view(18, &"x".repeat(1 << 20)).await;
}

#[tokio::test(start_paused = true)]
async fn list_that_was_set_aside_is_not_replaced_by_the_next_one() {
    let mut world = World::new(Agent::new(WORKING));
    let folder = world.workspace().join(".volcanic/a2a");
    fs::write(folder.join("pending.broken.json"), "first").unwrap();
    let text = cut_list(&world, &[]);
    world.watches.restore().await;
    let notice = world.chat.wait_for(1).await[0].text.clone();
    assert!(notice.contains(".volcanic/a2a/pending.broken.2.json"), "{notice}");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(
        (read("pending.broken.json"), read("pending.broken.2.json")),
        ("first".to_owned(), text)
    );
    // The same list again is kept already.
    world.shut_down().await;
    cut_list(&world, &[]);
    world.restart().await;
    assert!(!folder.join("pending.broken.3.json").exists());
    assert_eq!(world.chat.attempts(), 2, "and told under the same key");
    assert_eq!(world.chat.delivered().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_too_large_are_told_of_each_and_none_replaces_another() {
    let mut world = World::new(Agent::new(WORKING));
    let folder = world.workspace().join(".volcanic/a2a");
    for (count, first) in [(1, "a"), (2, "b")] {
        large_list(&folder, first);
        world.restart().await;
        assert_eq!(world.chat.wait_for(count).await.len(), count);
        world.shut_down().await;
    }
    assert_eq!(fs::read(folder.join("pending.broken.json")).unwrap()[0], b'a');
    assert_eq!(fs::read(folder.join("pending.broken.2.json")).unwrap()[0], b'b');
}

#[tokio::test(start_paused = true)]
async fn list_that_is_too_large_is_told_of_before_it_is_gone_and_once() {
    let mut world = World::new(Agent::new(WORKING));
    let folder = world.workspace().join(".volcanic/a2a");
    large_list(&folder, "a");
    // A process that is killed before this comes here again only if the list is still there…
    let (list, was_there) = (folder.join("pending.json"), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&was_there);
    world.chat.before_deliver(move || seen.lock().unwrap().push(list.exists()));
    world.watches.restore().await;
    assert!(folder.join("pending.broken.json").exists());
    // …and so does one that is killed after it, before the list is moved.
    world.stop_hard().await;
    fs::rename(folder.join("pending.broken.json"), folder.join("pending.json")).unwrap();
    world.restart().await;
    assert!(folder.join("pending.broken.json").exists());
    assert_eq!(*was_there.lock().unwrap(), [true, true]);
    let delivered = world.chat.delivered();
    assert_eq!(delivered.len(), 1, "{delivered:?}");
    assert!(delivered[0].text.contains("kept as .volcanic/a2a/pending.broken.json, or as"));
}

#[tokio::test(start_paused = true)]
async fn list_that_is_not_taken_up_stays_until_somebody_can_be_told() {
    for is_large in [true, false] {
        let mut world = World::new(Agent::new(WORKING));
        let folder = world.workspace().join(".volcanic/a2a");
        let list = folder.join("pending.json");
        if is_large {
            large_list(&folder, "a");
        } else {
            fs::write(&list, "{").unwrap();
        }
        world.chat.set_known(false);
        for _ in 0..2 {
            world.crash().await;
            assert!(list.exists(), "large: {is_large}");
        }
        world.chat.set_known(true);
        world.crash().await;
        world.pass(60).await;
        let delivered = world.chat.delivered();
        assert_eq!(delivered.len(), 1, "{delivered:?}");
        assert!(delivered[0].text.contains("pending.broken.json"), "{delivered:?}");
        assert!(folder.join("pending.broken.json").exists());
        let is_left = fs::read(&list).is_ok_and(|left| left != b"[]\n");
        assert!(!is_left, "large: {is_large}");
    }
}

#[tokio::test(start_paused = true)]
async fn list_that_cannot_be_looked_into_is_not_replaced() {
    let mut world = World::new(Agent::new(WORKING));
    let elsewhere = tempfile::tempdir().unwrap();
    let (list, outside) =
        (world.workspace().join(".volcanic/a2a/pending.json"), elsewhere.path().join("list"));
    fs::write(&outside, r#"[{"agent": "travel-bot", "taskId": "t7"}]"#).unwrap();
    std::os::unix::fs::symlink(&outside, &list).unwrap();
    world.watches.restore().await;
    world.hand_over().await;
    for _ in 0..2 {
        world.pass(60).await;
        assert_eq!(fs::read_link(&list).unwrap(), outside);
        // The send made the workspace known.
        world.crash().await;
    }
    assert_eq!(world.chat.attempts(), 0, "nobody outside is believed");
}

//! Files that come, and the workspaces that do not take them.

use std::fs;

use volcanic_a2a_client::render_result;
use volcanic_a2a_watch::{SendEnd, WatchState};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const UNSAVED: &str = "Here it is.\nFiles not saved: plan.txt (`inbox` is not a directory)";
const SAVED: &str = "Here it is.\nFiles: inbox/a2a/travel-bot/plan.txt";

/// A world in whose workspace something else is where the inbox should be.
fn world(on_send: OnSend) -> World {
    let world = World::new(Agent::new(on_send));
    fs::write(world.workspace().join("inbox"), "mine").unwrap();
    world
}

#[track_caller]
fn mend(world: &World) {
    assert_eq!(fs::read_to_string(world.workspace().join("inbox")).unwrap(), "mine");
    fs::remove_file(world.workspace().join("inbox")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn outcome_whose_files_cannot_be_saved_is_delivered_at_once_and_says_why() {
    let world = world(OnSend::Task("TASK_STATE_WORKING"));
    world.hand_over().await;
    world.agent.complete_with_file("t1");
    world.pass(20).await;
    let delivered = world.chat.delivered();
    assert_eq!(
        delivered.iter().map(|delivery| delivery.text.as_str()).collect::<Vec<_>>(),
        [format!("[A2A result from \"travel-bot\", task t1 (completed)]\nContext: c1\n{UNSAVED}")]
    );
    world.reach(&[WatchState::Done]).await;
    mend(&world);
    let report = world.watches.status(world.query("t1")).await.unwrap();
    let told = render_result("travel-bot", &report.outcome);
    assert!(told.ends_with(SAVED), "{told}");
    let saved = world.workspace().join("inbox/a2a/travel-bot/plan.txt");
    assert_eq!(fs::read_to_string(saved).unwrap(), "hello");
}

#[tokio::test(start_paused = true)]
async fn outcome_inside_the_wait_is_told_although_its_files_cannot_be_saved() {
    let world = world(OnSend::TaskWithFile);
    let end = world.send(world.order("go"), 60).await.unwrap();
    let SendEnd::Settled { outcome, settle: Some(settle) } = end else { panic!("{end:?}") };
    assert_eq!(
        render_result("travel-bot", &outcome),
        format!("Agent \"travel-bot\": task t1 (context c1) is completed.\n{UNSAVED}")
    );
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    assert_eq!(world.chat.attempts(), 0);
}

#[tokio::test(start_paused = true)]
async fn reply_whose_files_cannot_be_saved_is_told() {
    let world = world(OnSend::ReplyWithFile);
    let end = world.send(world.order("go"), 60).await.unwrap();
    let SendEnd::Replied { reply, .. } = end else { panic!("{end:?}") };
    assert_eq!(
        render_result("travel-bot", &reply),
        format!("Agent \"travel-bot\" replied (context c1):\n{UNSAVED}")
    );
}

#[tokio::test(start_paused = true)]
async fn link_out_of_the_workspace_takes_no_files_and_does_not_hold_the_text_back() {
    let world = World::new(Agent::new(OnSend::Task("TASK_STATE_WORKING")));
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), world.workspace().join("inbox")).unwrap();
    world.hand_over().await;
    world.agent.complete_with_file("t1");
    let text = &world.chat.wait_for(1).await[0].text;
    let expected = "\nHere it is.\nFiles not saved: plan.txt (`inbox` leads outside the directory)";
    assert!(text.ends_with(expected), "{text}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_process_left_of_received_files_goes_at_the_next_start() {
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_WORKING")));
    world.stop_hard().await;
    let inbox = world.workspace().join("inbox/a2a/other-bot");
    fs::create_dir_all(&inbox).unwrap();
    let (left, received) = (inbox.join(".plan.txt.1-0.volcanic-tmp"), inbox.join("plan.txt"));
    fs::write(&left, "hel").unwrap();
    fs::write(&received, "hello").unwrap();
    world.restart().await;
    assert!(!left.exists());
    assert!(received.exists());
}

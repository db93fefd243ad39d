//! A chat whose state fails it for a while.

use rusqlite::Connection;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use volcanic_testkit::Process;

use crate::world::{SOON, World, shows, signal, until};

/// The database of the world's one chat, as an onlooker with ill will.
fn database(world: &World) -> Connection {
    let folder = std::fs::read_dir(world.path("home/cli")).unwrap().next().unwrap().unwrap();
    Connection::open(folder.path().join("state.db")).unwrap()
}

/// Has the state refuse what is said about plums while `condition` holds.
fn refuse_plums(world: &World, condition: &str) {
    let trigger = format!(
        "CREATE TRIGGER refuses BEFORE INSERT ON inbound WHEN NEW.text LIKE '%plum%' AND {condition}
         BEGIN SELECT RAISE(ABORT, 'there is no room'); END"
    );
    database(world).execute_batch(&trigger).unwrap();
}

#[tokio::test]
async fn what_cannot_be_kept_is_told_and_the_chat_goes_on() {
    let world = World::new();
    let mut chat = world.chat(1);
    chat.say("write note: fig").await.unwrap();
    shows(&mut chat, "note").await;
    refuse_plums(&world, "true");
    chat.say("write note: plum").await.unwrap();
    let told = shows(&mut chat, "could not be kept").await;
    assert!(told.contains("there is no room") && told.contains("say it again"), "{told}");
    chat.say("read note").await.unwrap();
    shows(&mut chat, "fig").await;
    database(&world).execute_batch("DROP TRIGGER refuses").unwrap();
    chat.say("write note: plum").await.unwrap();
    chat.say("read note").await.unwrap();
    shows(&mut chat, "plum").await;
    let (status, _) = chat.finish(SOON).await.unwrap();
    assert_eq!(status.code(), Some(1), "a script learns that not all of it was done");
}

#[tokio::test]
async fn state_of_an_earlier_version_is_read_once_the_assistant_was_started() {
    let world = World::new();
    let mut chat = world.chat(1);
    chat.say("hello").await.unwrap();
    assert!(chat.finish(SOON).await.unwrap().0.success());
    // As a version before the latest format left it.
    database(&world)
        .execute_batch(
            "DROP TABLE workspaces; DROP INDEX sends_answered;
             CREATE INDEX sends_workspace ON sends (workspace);
             CREATE INDEX watches_workspace ON watches (workspace);
             CREATE INDEX watches_live ON watches (place) WHERE state <> 'done';
             PRAGMA user_version = 4",
        )
        .unwrap();
    let told = ["state.db` has format 4", "start the assistant once to bring it up to date"];
    world.run(&["watches"]).await.check(1, &told);
    let chat = world.chat(1);
    assert!(chat.finish(SOON).await.unwrap().0.success());
    world.run(&["watches"]).await.check(0, &["No watches."]);
}

#[tokio::test]
async fn what_is_kept_only_after_a_while_is_answered_once() {
    let world = World::new();
    let mut chat = world.chat(1);
    chat.say("hello").await.unwrap();
    shows(&mut chat, "I am the scripted assistant").await;
    refuse_plums(&world, "julianday('now') < (SELECT until FROM patience)");
    database(&world)
        .execute_batch(
            "CREATE TABLE patience (until REAL);
             INSERT INTO patience VALUES (julianday('now') + 1.0 / 86400)",
        )
        .unwrap();
    chat.say("run echo pl''um").await.unwrap();
    chat.say("run echo plum").await.unwrap();
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}: {lines:?}");
    assert_eq!(lines.iter().filter(|line| line.trim() == "plum").count(), 2, "{lines:?}");
}

#[tokio::test]
async fn a_chat_whose_watches_cannot_be_read_still_ends_when_told_to() {
    let world = World::new();
    assert_eq!(world.run(&["chat"]).await.code, 0);
    database(&world).execute_batch("ALTER TABLE watches RENAME TO hidden").unwrap();
    let mut chat = world.chat(1);
    // It is as far as it comes once it holds the workspace.
    let holder = std::fs::read_dir(world.path("home/cli")).unwrap().next().unwrap().unwrap().path();
    let wanted = chat.id().unwrap().to_string();
    let held = async {
        while std::fs::read_to_string(holder.join("holder")).unwrap_or_default() != wanted {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, held).await.expect("it starts");
    signal(&chat, "TERM").await;
    assert!(chat.ended_within(SOON).await);
    database(&world).execute_batch("ALTER TABLE hidden RENAME TO watches").unwrap();
    let mut again = world.chat(1);
    again.say("hello").await.unwrap();
    shows(&mut again, "I am the scripted assistant").await;
}

/// Holds the lock of the chat's state until it is dropped.
fn hold(world: &World) -> Connection {
    let other = database(world);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[tokio::test]
async fn a_chat_waits_for_the_lock_of_another_program_says_so_once_and_loses_nothing() {
    let world = World::new();
    let mut chat = world.chat(1);
    chat.say("write note: fig").await.unwrap();
    shows(&mut chat, "note").await;
    let other = hold(&world);
    chat.say("write note: plum").await.unwrap();
    chat.say("read note").await.unwrap();
    shows(&mut chat, "another program holds the lock").await;
    // Longer than a statement, and a chat, used to have patience.
    assert!(!chat.ended_within(std::time::Duration::from_secs(7)).await);
    drop(other);
    shows(&mut chat, "the lock is free again").await;
    shows(&mut chat, "plum").await;
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}: {lines:?}");
    let told = lines.iter().filter(|line| line.contains("another program holds the lock"));
    assert_eq!(told.count(), 1, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.trim() == "plum").count(), 1, "{lines:?}");
}

#[tokio::test]
async fn a_chat_that_waits_for_the_lock_ends_when_told_to_and_says_what_that_means() {
    let world = World::new();
    let mut chat = world.chat(1);
    chat.say("write note: fig").await.unwrap();
    shows(&mut chat, "note").await;
    let _other = hold(&world);
    chat.say("write note: plum").await.unwrap();
    shows(&mut chat, "another program holds the lock").await;
    signal(&chat, "TERM").await;
    shows(&mut chat, "may not have been kept").await;
    assert!(chat.ended_within(SOON).await);
}

/// Has the assistant run a command that goes on until the file `go` is there, or for so long that no test waits for it.
const RUN_UNTIL_TOLD: &str =
    "run touch began; for look in $(seq 1200); do [ -e go ] && break; sleep 0.05; done; echo plum";

/// Lets no file of a program that runs grow beyond so many bytes, as a full disk would not.
fn leave_room(chat: &Process, bytes: Option<u64>) {
    let pid = Pid::from_raw(chat.id().unwrap().try_into().unwrap());
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(pid, Resource::Fsize, limit).unwrap();
}

#[tokio::test]
async fn a_chat_on_a_full_disk_says_so_once_and_goes_on_when_there_is_room() {
    let world = World::new();
    let mut chat = world.chat_without_size_signal(1);
    chat.say(RUN_UNTIL_TOLD).await.unwrap();
    until(|| world.workspace().join("began").exists()).await;
    leave_room(&chat, Some(4096));
    world.write("workspace/go", "");
    let told = shows(&mut chat, "cannot be written").await;
    assert!(told.contains("disk I/O error"), "{told}");
    // Longer than a run is patient with its store.
    assert!(!chat.ended_within(std::time::Duration::from_secs(7)).await);
    leave_room(&chat, None);
    shows(&mut chat, "can be written again").await;
    // What the command gave could not be kept, and it is not run again.
    shows(&mut chat, "interrupted").await;
    let (status, lines) = chat.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}: {lines:?}");
    for once in ["cannot be written", "can be written again", "interrupted"] {
        assert_eq!(lines.iter().filter(|line| line.contains(once)).count(), 1, "{lines:?}");
    }
}

#[tokio::test]
async fn a_pipe_whose_answers_cannot_be_kept_ends_with_a_failure_and_the_next_chat_answers() {
    let world = World::new();
    let mut chat = world.chat_without_size_signal(1);
    chat.say(RUN_UNTIL_TOLD).await.unwrap();
    until(|| world.workspace().join("began").exists()).await;
    leave_room(&chat, Some(4096));
    world.write("workspace/go", "");
    // It is patient before it gives up.
    let (status, lines) = chat.finish(3 * SOON).await.unwrap();
    assert_eq!(status.code(), Some(1), "{lines:?}");
    let mut again = world.chat(1);
    // Whether the command had an effect is unknown after a restart, so it is not run again.
    shows(&mut again, "interrupted").await;
}

#[tokio::test]
async fn a_new_conversation_that_cannot_be_begun_is_told_and_ends_nothing() {
    let world = World::new();
    let mut chat = world.chat(1);
    chat.say("hello").await.unwrap();
    shows(&mut chat, "I am the scripted assistant").await;
    database(&world)
        .execute_batch(
            "CREATE TRIGGER refuses BEFORE INSERT ON entries WHEN NEW.resets = 1
             BEGIN SELECT RAISE(ABORT, 'there is no room'); END",
        )
        .unwrap();
    chat.say("/new").await.unwrap();
    let told = shows(&mut chat, "No new conversation").await;
    assert!(told.contains("there is no room"), "{told}");
    database(&world).execute_batch("DROP TRIGGER refuses").unwrap();
    chat.say("/new").await.unwrap();
    shows(&mut chat, "A new conversation.").await;
}

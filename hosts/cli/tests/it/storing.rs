//! A chat whose state fails it for a while.

use rusqlite::Connection;

use crate::world::{SOON, World, shows, signal};

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
    database(&world).execute_batch("DROP INDEX watches_over; PRAGMA user_version = 3").unwrap();
    let told = ["state.db` has format 3", "start the assistant once to bring it up to date"];
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

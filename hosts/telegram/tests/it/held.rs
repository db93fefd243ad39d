//! Another program holds the lock of the bot's state.

use std::time::Duration;

use crate::bot::{LIMIT, World};

fn hold(world: &World) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(world.state()).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("held");
    other
}

async fn answered(world: &World) {
    world.says("first");
    world.sees_text("answer to first").await;
}

async fn world() -> World {
    let mut world = World::new().await;
    world.set_rules("[[rule]]\nwhen = '(\\w+)$'\nsay = 'answer to $1'\n");
    world
}

#[tokio::test]
async fn people_are_told_once_and_all_goes_on_when_the_lock_is_free() {
    let world = world().await;
    let bot = world.start();
    answered(&world).await;
    let other = hold(&world);
    world.says("second");
    world.sees_text("holds the lock").await;
    world.says("third");
    // Longer than a statement waits for a lock by itself. Nothing may come of it but what came already.
    let more = |message: &volcanic_testkit::SentMessage| message.text.contains("answer to second");
    let early = world.api.await_message(crate::bot::OWNER, Duration::from_secs(7), more).await;
    assert!(early.is_err(), "it was written under a lock");
    drop(other);
    world.sees_text("answer to third").await;
    assert!(bot.terminate().await.success(), "{}", world.log());
    for (text, times) in [("answer to second", 1), ("answer to third", 1), ("holds the lock", 1)] {
        assert_eq!(world.count(text), times, "{text}: {:?}", world.texts());
    }
    assert_eq!(world.prompts().await.len(), 3);
    world.check_manners();
}

#[tokio::test]
async fn bot_that_waits_for_the_lock_ends_when_told_to_and_loses_nothing() {
    let world = world().await;
    let bot = world.start();
    answered(&world).await;
    let other = hold(&world);
    world.says("second");
    world.sees_text("holds the lock").await;
    let asked = tokio::time::Instant::now();
    assert!(bot.terminate().await.success(), "{}", world.log());
    assert!(asked.elapsed() < Duration::from_secs(10), "it took {:?}", asked.elapsed());
    drop(other);
    let _bot = world.start();
    world.sees_text("answer to second").await;
    world.api.await_acknowledged(LIMIT).await.expect("acknowledged");
    assert_eq!(world.count("answer to second"), 1);
}

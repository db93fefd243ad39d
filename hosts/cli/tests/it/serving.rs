//! `volcanic serve`.

use serde_json::json;

use crate::world::{SOON, World, signal};

#[tokio::test]
async fn rules_of_ones_own_decide_and_the_journal_says_what_came() {
    let world = World::new();
    let rules = "[[rule]]\nwhen = '^hi (.+)$'\nsay = \"well met, $1\"\n";
    let remote = world.remote_with(Some(rules)).await;
    world.run(&["send", "demo", "hi there"]).await.check(0, &["well met, there"]);
    let card = &world.run(&["agents", "--json"]).await.json()["agents"][0]["card"];
    assert_eq!(card["skills"].as_array().unwrap().len(), 1, "none is named: {card}");
    assert_eq!(
        (&card["name"], &card["skills"][0]["id"]),
        (&json!("scripted agent"), &json!("rules"))
    );
    let other = world.run(&["send", "demo", "ho"]).await;
    assert_eq!(other.code, 1, "no rule fits: {other:?}");
    assert_eq!((remote.received("hi there"), remote.received("ho")), (1, 1));
}

#[tokio::test]
async fn bad_rules_are_refused_with_everything_that_is_wrong() {
    let world = World::new();
    world.write("workspace/bad.toml", "[[rule]]\nwhen = '('\nsay = \"x\"\n[[rule]]\nsay = \"y\"\n");
    let ran = world.run(&["serve", "--scripted", "bad.toml", "--listen", "127.0.0.1:0"]).await;
    ran.check(2, &["bad.toml", "rule 1: `when`", "rule 2: needs `when`"]);
    world.write("workspace/no.toml", "not toml at all");
    let ran = world.run(&["serve", "--scripted", "no.toml", "--listen", "127.0.0.1:0"]).await;
    ran.check(2, &["no.toml"]);
    world.run(&["serve", "--scripted", "gone.toml"]).await.check(2, &["gone.toml", "No such file"]);
}

#[tokio::test]
async fn only_loopback_is_served() {
    let world = World::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let ran = world.run(&["serve", "--scripted", "--listen", address]).await;
        ran.check(2, &["not a loopback address", "127.0.0.1"]);
    }
    world.run(&["serve", "--listen", "127.0.0.1:0"]).await.check(2, &["--scripted"]);
}

#[tokio::test]
async fn a_taken_port_is_told() {
    let world = World::new();
    let remote = world.remote().await;
    let address = remote.url.trim_start_matches("http://").trim_end_matches('/');
    world.run(&["serve", "--scripted", "--listen", address]).await.check(1, &[address, "in use"]);
}

#[tokio::test]
async fn a_signal_ends_it_in_order_and_its_tasks_are_there_at_the_next_start() {
    let world = World::new();
    let remote = world.remote().await;
    let sent = world.run(&["send", "demo", "echo plum"]).await;
    signal(&remote.process, "TERM").await;
    let (status, _) = remote.process.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    let _again = world.remote().await;
    world.run(&["status", "demo", sent.task()]).await.check(0, &["echo: plum"]);
}

//! `volcanic serve`.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
};

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

/// Posts a message with these parts and returns the answer.
fn post(url: &str, parts: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{{"message":{{"messageId":"m","role":"ROLE_USER","parts":{parts}}}}}}}"#
    );
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /a2a HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The most memory that a process had resident, in bytes.
fn peak_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn requests_that_are_large_in_memory_are_refused_and_cost_little() {
    let world = World::new();
    let remote = world.remote().await;
    let process = remote.process.id().unwrap();
    assert!(post(&remote.url, r#"[{"text":"hi"}]"#).contains("You said: hi"));
    let before = peak_of(process);
    for (member, parts) in [
        ("`message.parts`", format!("[{}]", vec![r#"{"text":""}"#; 700_000].join(","))),
        (
            "`message.parts[0].data`",
            format!(r#"[{{"data":[{}]}}]"#, vec!["0"; 4_000_000].join(",")),
        ),
        ("`message.parts[0].text`", format!(r#"[{{"text":"{}"}}]"#, "x".repeat(24 << 20))),
    ] {
        let answer = post(&remote.url, &parts);
        assert!(answer.contains("-32602") && answer.contains(member), "{answer}");
    }
    let growth = peak_of(process).saturating_sub(before);
    assert!(growth < 64 << 20, "{} MiB more", growth >> 20);
    assert!(post(&remote.url, r#"[{"text":"again"}]"#).contains("You said: again"));
}

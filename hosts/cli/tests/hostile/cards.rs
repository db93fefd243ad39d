//! Cards that say something bad.

use std::sync::Arc;

use serde_json::json;
use volcanic_testkit::{CardFault, HostileAgent, HostileTrick};

use crate::{
    scene::Scene,
    table::{AGENTS, Row, SEND, STATUS, check, judge_files},
};

fn card(fault: CardFault, command: &'static [&'static str], code: i32, told: &str) -> Row {
    Row::new(HostileTrick::Card(fault), command, code, told)
}

fn elsewhere(url: &str, told: &str) -> Row {
    card(CardFault::Elsewhere(url.to_owned()), SEND, 1, told)
}

#[tokio::test]
async fn a_card_that_points_elsewhere_is_not_followed() {
    let other = Arc::new(HostileAgent::start(HostileTrick::None).await.unwrap());
    let address = other.address();
    let untrusted = "which is not where its entry points";
    let odd = "its interface has the address";
    let mut rows = Vec::new();
    for url in [
        format!("http://{address}/rpc"),
        format!("//{address}/rpc"),
        format!("\\\\{address}\\rpc"),
        format!("http:\\\\{address}/rpc"),
        format!("http://localhost:{}/rpc", address.port()),
        format!("https://{address}/rpc"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://2852039166/".to_owned(),
        "http://10.0.0.1/".to_owned(),
        "http://[::1]/".to_owned(),
        "http://[::ffff:10.0.0.1]/".to_owned(),
        "http://metadata.internal/".to_owned(),
    ] {
        rows.push(elsewhere(&url, untrusted));
        rows.push(elsewhere(&url, untrusted).keyless());
    }
    for url in [
        format!("http://plum@{address}/rpc"),
        format!("http://plum:pit@{address}/rpc"),
        format!("http://127.0.0.1:1@{address}/rpc"),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
        "javascript:alert(1)".to_owned(),
        "http://[::1".to_owned(),
        "http://plum example/".to_owned(),
    ] {
        rows.push(elsewhere(&url, odd));
        rows.push(elsewhere(&url, odd).keyless());
    }
    check(rows.into_iter().map(|row| row.spares(&other))).await;
}

#[tokio::test]
async fn a_card_cannot_put_the_key_into_a_header_that_steers() {
    check(
        [
            "Host",
            "Cookie",
            "Content-Length",
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "Upgrade",
            "TE",
            "Trailer",
            "Proxy-Authorization",
            "A2A-Version",
            "X\r\nX-Evil: 1",
            "X: 1\r\nX-Evil",
            "X Plum",
            "X-\0",
            "X-é",
            "X-\u{1b}[31m",
        ]
        .map(|name| {
            let told = "it names a header for the key that cannot be used";
            card(CardFault::KeyHeader(name.to_owned()), SEND, 1, told)
        }),
    )
    .await;
}

#[tokio::test]
async fn a_header_that_the_card_may_name_gets_the_key() {
    let fault = CardFault::KeyHeader("X-Plum-Key".to_owned());
    check([card(fault, SEND, 0, " is completed.")]).await;
}

#[tokio::test]
async fn a_key_or_header_with_a_line_break_is_never_sent() {
    for entry in [
        json!({"key": "k_planted\r\nX-Evil: 1"}),
        json!({"key": "k_planted\nX-Evil: 1"}),
        json!({"key": "k_planted\0"}),
        json!({"headers": {"X-Plum": "plum\r\nX-Evil: 1"}}),
        json!({"headers": {"X-Plum\r\nX-Evil": "1"}}),
        json!({"headers": {"Host": "plum.example"}}),
        json!({"headers": {"Content-Length": "5"}}),
    ] {
        let agent = HostileAgent::start(HostileTrick::None).await.unwrap();
        let scene = Scene::new();
        let mut agents = json!([{"name": "demo", "url": agent.url()}]);
        agents[0].as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        scene.write("workspace/.volcanic/a2a/agents.json", &agents.to_string());
        let before = scene.tree();
        let ran = scene.run(SEND, &[]).await;
        assert_eq!(ran.code, Some(2), "{entry}: {ran:?}");
        assert!(!ran.err.contains("k_planted") && !ran.err.contains("X-Evil: 1"), "{ran:?}");
        assert_eq!(judge_files(&before, &scene.tree()), Vec::<String>::new(), "{entry}");
        let steers: Vec<_> = agent
            .heard()
            .into_iter()
            .filter(|heard| heard.asks != "card" || heard.headers.contains_key("x-evil"))
            .collect();
        assert!(steers.is_empty(), "{entry}: {steers:?}");
    }
}

#[tokio::test]
async fn a_card_of_any_size_and_depth_is_read_or_refused() {
    let invalid = "it is not valid";
    check([
        card(CardFault::Skills(1_000_000), SEND, 1, "is larger than 1048576 bytes"),
        card(CardFault::Skills(1_000_000), AGENTS, 0, "unreachable (The answer"),
        card(CardFault::Skills(20_000), SEND, 0, " is completed."),
        card(CardFault::Skills(20_000), AGENTS, 0, "Plum"),
        card(CardFault::Interfaces(15_000), SEND, 1, "and none of that is"),
        card(CardFault::Interfaces(15_000), AGENTS, 0, "and none of that is"),
        // What nobody knows is passed over, however deep it is.
        card(CardFault::Deep(100_000), SEND, 0, " is completed."),
        card(CardFault::Deep(100_000), STATUS, 0, " is completed."),
        card(CardFault::Deep(100_000), AGENTS, 0, "Plum"),
        card(CardFault::WrongTypes, SEND, 1, invalid),
        card(CardFault::Dressed, AGENTS, 0, "[31mred"),
        card(CardFault::Dressed, SEND, 0, " is completed."),
    ])
    .await;
}

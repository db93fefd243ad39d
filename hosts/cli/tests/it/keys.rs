//! Keys: where they may come from, where they go, and that they are nowhere else.

use axum::{Router, http::StatusCode};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use volcanic_testkit::RecordingProxy;

use crate::{
    keyed_agent::{serve, with_key},
    world::{Ran, World, nobody},
};

const KEY: &str = "right-key-0123456789";

#[track_caller]
fn check_hidden(ran: &Ran) {
    assert!(!format!("{ran:?}").contains(KEY), "the key is shown");
}

#[tokio::test]
async fn a_key_file_opens_an_agent_given_by_url() {
    let world = World::new();
    let agent = with_key(KEY).await;
    let proxy = RecordingProxy::start(agent.address).await.unwrap();
    let url = format!("http://{}/", proxy.address());
    world.write("agent.key", &format!("{KEY}\n"));
    let ran = world.run(&["send", &url, "echo plum", "--key-file", "../agent.key"]).await;
    ran.check(0, &["Agent \"agent\": task ", "echo: plum"]);
    check_hidden(&ran);
    assert!(proxy.requested(KEY), "{}", proxy.transcript());
    for command in [&["send", &url, "x"][..], &["status", &url, "t"], &["subscribe", &url, "t"]] {
        let none = world.run(command).await;
        none.check(4, &["asks for a key (401). It is given by --key-file or --key-env."]);
    }
    let json =
        world.run(&["send", &url, "echo plum", "--key-file", "../agent.key", "--json"]).await;
    json.check(0, &[]);
    check_hidden(&json);
}

#[tokio::test]
async fn a_card_behind_a_key_ends_with_4_whether_or_not_there_is_a_key() {
    let world = World::new();
    let closed = Router::new().fallback(async || StatusCode::UNAUTHORIZED);
    let agent = serve(closed, CancellationToken::new()).await;
    world.agents(&json!([
        { "name": "none", "url": agent.url },
        { "name": "keyed", "url": agent.url, "key": KEY },
    ]));
    let none = world.run(&["send", "none", "x"]).await;
    none.check(4, &["asks for a key (401). Give it a \"key\" in its entry"]);
    let keyed = world.run(&["send", "keyed", "x"]).await;
    keyed.check(4, &["it is not public (401), and no key is sent for it"]);
    check_hidden(&keyed);
}

#[tokio::test]
async fn keys_of_entries_come_from_the_environment_or_from_secrets() {
    let world = World::new();
    let agent = with_key(KEY).await;
    world.agents(&json!([
        { "name": "plain", "url": agent.url, "key": KEY },
        { "name": "env", "url": agent.url, "key": "env:A2A_KEY_TEST" },
        { "name": "unset", "url": agent.url, "key": "env:A2A_KEY_UNSET" },
        { "name": "elsewhere", "url": agent.url, "key": "file:/etc/hostname" },
    ]));
    let variables = [("A2A_KEY_TEST", KEY)];
    for name in ["plain", "env"] {
        let ran = world.run_with(&["send", name, "echo plum"], &variables).await;
        ran.check(0, &["echo: plum"]);
        check_hidden(&ran);
    }
    let unset = world.run_with(&["send", "unset", "echo plum"], &variables).await;
    unset.check(2, &["The key of agent \"unset\" cannot be used", "A2A_KEY_UNSET is not set"]);
    let elsewhere = world.run(&["send", "elsewhere", "echo plum"]).await;
    elsewhere.check(2, &["/etc/hostname is not under", "/run/secrets"]);
    let listed = world.run_with(&["agents"], &variables).await;
    listed.check(0, &["plain (http", "env (http", "unset (http", "A2A_KEY_UNSET is not set"]);
    check_hidden(&listed);
}

#[tokio::test]
async fn key_files_that_cannot_be_used_are_a_mistake_of_the_users() {
    let world = World::new();
    world.knows("http://127.0.0.1:9/");
    world.write("workspace/empty", " \n");
    world.write("workspace/large", &"x".repeat(20 << 10));
    let url = "http://127.0.0.1:9/";
    for (file, told) in [
        ("missing", "No such file"),
        ("empty", "it is empty"),
        ("large", "it is over 16384 bytes"),
        (".", "it is no regular file"),
    ] {
        let ran = world.run(&["send", url, "x", "--key-file", file]).await;
        ran.check(2, &["the key file", file, told]);
    }
    let named = world.run(&["send", "demo", "x", "--key-file", "empty"]).await;
    named.check(2, &["--key-file is for an agent given by URL", "agents.json"]);
}

#[tokio::test]
async fn what_is_exchanged_is_shown_when_it_is_asked_for_and_keys_are_masked_in_it() {
    let world = World::new();
    let agent = with_key(KEY).await;
    world.write("agent.key", KEY);
    let text = format!("echo {KEY}");
    let arguments = ["send", &agent.url, &text, "--key-file", "../agent.key", "--stream"];
    let quiet = world.run(&arguments).await;
    assert_eq!(quiet.err, "", "{quiet:?}");
    let told = world.run(&[&arguments[..], &["--debug"]].concat()).await;
    told.check(0, &["is completed."]);
    for part in [
        &format!("> GET {}.well-known/agent-card.json", agent.url) as &str,
        "< 200 OK",
        "\"supportedInterfaces\"",
        "> POST http",
        "> x-api-key: ***",
        "\"method\":\"SendStreamingMessage\"",
        "< data: {",
        "\"method\":\"GetTask\"",
    ] {
        assert!(told.err.contains(part), "`{part}` is missing: {told:?}");
    }
    check_hidden(&told);
    assert!(told.err.lines().all(|line| line.starts_with(['>', '<'])), "{told:?}");

    let nobody = nobody();
    let url = format!("{}?planted=query", nobody.url);
    let down = world.run(&["status", &url, "t", "--debug"]).await;
    assert!(down.err.contains("agent-card.json?***\n") && down.err.contains("\n! "), "{down:?}");
    assert!(!down.err.contains("planted"), "{down:?}");
}

#[tokio::test]
async fn secrets_of_a_webhook_are_masked_in_what_is_shown() {
    let world = World::new();
    let remote = world.remote().await;
    let sent = world.run(&["send", &remote.url, "slow 60s plum", "--async"]).await;
    let hook = "http://127.0.0.1:9/";
    let arguments = [
        "push-config",
        "create",
        "demo",
        sent.task(),
        hook,
        "--token-env",
        "A2A_KEY_HOOK",
        "--debug",
    ];
    let ran = world.run_with(&arguments, &[("A2A_KEY_HOOK", KEY)]).await;
    ran.check(0, &["with a token"]);
    assert!(ran.err.contains("\"token\":"), "{ran:?}");
    check_hidden(&ran);
}

//! `--json` everywhere: one value a line on standard output, whatever happens.

use serde_json::{Value, json};

use crate::{
    keyed_agent::{silent, with_key},
    world::{Ran, SOON, World, nobody},
};

/// Every command that calls an agent, and what it needs besides the agent.
const CALLS: [(&[&str], &[&str]); 11] = [
    (&["card"], &["--extended"]),
    (&["send"], &["hello"]),
    (&["status"], &["t"]),
    (&["cancel"], &["t"]),
    (&["tasks"], &[]),
    (&["subscribe"], &["t"]),
    (&["watch"], &["t"]),
    (&["push-config", "create"], &["t", "http://127.0.0.1:9/"]),
    (&["push-config", "get"], &["t", "c"]),
    (&["push-config", "list"], &["t"]),
    (&["push-config", "delete"], &["t", "c"]),
];

#[track_caller]
fn check(ran: &Ran, kind: &str, code: i32) {
    let error = &ran.json()["error"];
    assert_eq!((&error["kind"], ran.code), (&json!(kind), code), "{ran:?}");
    assert_eq!(error["exitCode"], code, "{ran:?}");
    assert!(!error["message"].as_str().unwrap().is_empty(), "{ran:?}");
    assert_eq!((ran.out.lines().count(), ran.err.as_str()), (1, ""), "{ran:?}");
}

#[tokio::test]
async fn every_command_tells_the_same_failures_alike() {
    let world = World::new();
    let keyed = with_key("right-key-0123456789").await;
    let (silent, nobody) = (silent().await, nobody());
    world.agents(&json!([
        { "name": "down", "url": nobody.url },
        { "name": "silent", "url": silent.url },
        { "name": "wrong", "url": keyed.url, "key": "wrong-key-9876543210" },
        { "name": "unset", "url": keyed.url, "key": "env:A2A_KEY_UNSET" },
    ]));
    let quick = [("A2AClient__CardTimeoutSeconds", "1")];
    for (command, rest) in CALLS {
        for (agent, kind, code) in [
            ("unknown", "usage", 2),
            ("unset", "key", 2),
            ("down", "unreachable", 3),
            ("wrong", "keyRefused", 4),
            ("silent", "timedOut", 5),
        ] {
            // Its card says that it calls no webhooks, so it is not asked.
            if agent == "wrong" && command[0] == "push-config" {
                continue;
            }
            let arguments = [command, &[agent], rest, &["--json"]].concat();
            let json = world.run_with(&arguments, &quick).await;
            check(&json, kind, code);
            assert!(!json.out.contains("9876543210"), "{json:?}");
            let text = world.run_with(&arguments[..arguments.len() - 1], &quick).await;
            assert_eq!((text.code, text.out.as_str()), (code, ""), "{text:?}");
            assert!(text.err.starts_with("volcanic: "), "{text:?}");
        }
    }
}

#[tokio::test]
async fn tasks_that_are_not_there_are_told_alike() {
    let world = World::new();
    let _remote = world.remote().await;
    for (command, rest) in CALLS {
        if ["card", "send", "tasks"].contains(&command[0]) {
            continue;
        }
        let json = world.run(&[command, &["demo"], rest, &["--json"]].concat()).await;
        check(&json, "taskNotFound", 1);
        assert_eq!(json.json()["error"]["code"], -32001, "{json:?}");
    }
    let done = world.run(&["send", "demo", "echo x"]).await;
    check(&world.run(&["cancel", "demo", done.task(), "--json"]).await, "taskNotCancelable", 1);
}

#[tokio::test]
async fn a_command_line_that_is_wrong_is_told_as_json_too() {
    let world = World::new();
    for arguments in [
        &["sing", "--json"][..],
        &["--json"],
        &["--json", "send", "demo"],
        &["send", "demo", "x", "--wait", "90", "--json"],
        &["tasks", "--json"],
        &["agents", "--workspace", "gone", "--json"],
        &["settings", "--config", "gone.toml", "--json"],
        &["chat", "--model", "nobody", "--json"],
        &["serve", "--scripted", "gone.toml", "--json"],
    ] {
        check(&world.run(arguments).await, "usage", 2);
    }
    let home = world.run_with(&["watches", "--json"], &[("VOLCANIC_HOME", "not/absolute")]).await;
    check(&home, "usage", 2);
    assert!(home.out.contains("an absolute path"), "{home:?}");
    // Help is help.
    world.run(&["tasks", "--help", "--json"]).await.check(0, &["Examples:"]);
}

#[tokio::test]
async fn a_serving_agent_says_where_it_is() {
    let world = World::new();
    let arguments = ["serve", "--scripted", "--listen", "127.0.0.1:0", "--json"];
    let mut serving = world.start("the remote", &arguments);
    let line = serving.line(SOON, "its address", |_| true).await.unwrap();
    let listening = serde_json::from_str::<Value>(&line).unwrap()["listening"].clone();
    let url = listening["url"].as_str().unwrap();
    assert_eq!(listening["card"], format!("{url}.well-known/agent-card.json"));
    world.run(&["send", url, "echo x"]).await.check(0, &["echo: x"]);
}

#[tokio::test]
async fn a_chat_answers_in_lines_of_json() {
    let world = World::new();
    let _remote = world.remote().await;
    let said = "ask demo: echo plum\n/status\n";
    let ran = world.run_input(&["chat", "--model", "scripted", "--json"], said).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = lines.iter().find(|line| line["answer"].is_string()).unwrap();
    assert!(answer["answer"].as_str().unwrap().contains("echo: plum"), "{ran:?}");
    assert_eq!(answer["mayRepeat"], false);
    assert!(lines.iter().any(|line| line["note"].is_string()), "{ran:?}");
}

#[tokio::test]
async fn settings_are_shown_with_their_sources_and_without_secrets() {
    let world = World::new();
    world.write("home/volcanic.toml", "[A2AClient]\nWaitSeconds = 7\n");
    let variables = [("OPENAI_API_KEY", "sk-never-shown"), ("A2AClient__MaxFileBytes", "1MB")];
    let text = world.run_with(&["settings"], &variables).await;
    text.check(
        0,
        &["A2AClient__WaitSeconds = 7  (", "volcanic.toml", "A2AClient__MaxFileBytes = 1MB  ("],
    );
    let json = world.run_with(&["settings", "--json"], &variables).await;
    let settings = json.json()["settings"].clone();
    let named = |name: &str| {
        settings.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone()
    };
    assert_eq!(named("A2AClient__WaitSeconds")["value"], "7");
    assert_eq!(named("OPENAI_API_KEY")["value"], "***");
    assert_eq!(json.json()["home"], world.path("home").to_str().unwrap());
    assert!(!format!("{text:?}{json:?}").contains("sk-never-shown"));
}

#[tokio::test]
async fn shells_are_told_every_command_before_there_are_settings() {
    let world = World::new();
    let broken = [("A2AClient__WaitSeconds", "soon")];
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef volcanic"), ("fish", "complete -c volcanic")]
    {
        let ran = world.run_with(&["completions", shell], &broken).await;
        ran.check(0, &[part, "push-config", "subscribe", "page-token"]);
    }
    world.run(&["completions", "tcsh"]).await.check(2, &["bash, elvish, fish"]);
}

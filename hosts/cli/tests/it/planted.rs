//! An agent that repeats our key in all it says: what of that is seen of the shipped program.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    http::{HeaderMap, Uri},
    response::{IntoResponse as _, Response},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    keyed_agent::{Served, serve},
    world::{Ran, SOON, World, shows},
};

const KEY: &str = "k_planted_3f9c2a7e";

/// What was in the list of processes when the agent was called.
type Commands = Arc<Mutex<Vec<String>>>;

/// The agent, and what it saw.
async fn leaking() -> (Served, Commands) {
    let seen = Commands::default();
    let commands = Arc::clone(&seen);
    let routes =
        Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: String| async move {
            commands.lock().unwrap().extend(running());
            if uri.path() != "/a2a" {
                return axum::Json(card()).into_response();
            }
            assert_eq!(headers["x-api-key"], KEY, "the key is sent, so it can come back");
            answer(&serde_json::from_str(&body).unwrap(), &headers)
        });
    (serve(routes, CancellationToken::new()).await, seen)
}

/// The arguments of every process.
fn running() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let arguments = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    arguments.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
}

fn card() -> Value {
    json!({
        "name": KEY, "description": format!("says {KEY}"), "version": KEY,
        "supportedInterfaces": [{"url": format!("/a2a?k={KEY}"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true, "pushNotifications": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": KEY, "name": KEY, "description": KEY, "tags": [KEY], "examples": [KEY]}]
    })
}

fn task(id: &str) -> Value {
    let (first, second) = KEY.split_at(7);
    let escaped = KEY.replace('_', "%5F");
    json!({
        "id": id, "contextId": KEY,
        "status": {"state": "TASK_STATE_COMPLETED", "message": {"messageId": "m", "role": "ROLE_AGENT",
            "parts": [{"text": format!("done with {KEY}")}]}},
        "artifacts": [{"artifactId": "a", "name": KEY, "parts": [
            {"text": "The key is "}, {"text": first}, {"text": second}, {"url": format!("https://a.example/?k={escaped}")},
            {"raw": "a19wbGFudGVkXzNmOWMyYTdl", "filename": format!("{KEY}.txt")}
        ]}]
    })
}

fn answer(request: &Value, headers: &HeaderMap) -> Response {
    let (method, params) = (request["method"].as_str().unwrap(), &request["params"]);
    let text = params["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    let body = match method {
        "SendMessage" if text == "refuse" => {
            json!({"error": {"code": -32602, "message": format!("{headers:?} {KEY}"), "data": [{"key": KEY}]}})
        }
        "SendMessage" | "SubscribeToTask" => json!({"result": {"task": task("t1")}}),
        "GetTask" | "CancelTask" => json!({"result": task(params["id"].as_str().unwrap())}),
        "ListTasks" => {
            json!({"result": {"tasks": [task("t1")], "nextPageToken": KEY, "pageSize": 1, "totalSize": 2}})
        }
        _ => json!({"error": {"code": -32603, "message": format!("{headers:?} {KEY} {params}")}}),
    };
    let mut body = body;
    body["jsonrpc"] = json!("2.0");
    body["id"] = request["id"].clone();
    if method == "SubscribeToTask" {
        let event = format!(": {KEY}\nevent: {KEY}\nid: {KEY}\ndata: {body}\n\n");
        return ([("content-type", "text/event-stream")], event).into_response();
    }
    ([("x-key", KEY)], axum::Json(body)).into_response()
}

/// Fails if the key is in any file below, or in the name of one.
fn check_files(folder: &Path) -> usize {
    let mut looked_at = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(!path.to_string_lossy().contains(KEY), "{}", path.display());
        if path.is_dir() {
            looked_at += check_files(&path);
        } else if !path.ends_with(".volcanic/a2a/agents.json") {
            let content = fs::read(&path).unwrap();
            let found = content.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
            looked_at += 1;
        }
    }
    looked_at
}

#[track_caller]
fn check_hidden(ran: &Ran) {
    let seen = format!("{}{}", ran.out, ran.err);
    let joined = seen.replace('\n', "");
    for text in [&seen, &joined, &seen.replace("%5F", "_"), &seen.replace("\\u005f", "_")] {
        assert!(!text.contains(KEY), "{text}");
    }
    assert!(!seen.contains("a19wbGFudGVkXzNmOWMyYTdl"), "{seen}");
}

#[tokio::test]
async fn no_command_shows_a_key_that_the_agent_repeats() {
    let world = World::new();
    let (agent, commands) = leaking().await;
    world.agents(&json!([{ "name": "demo", "url": agent.url, "key": "env:A2A_KEY_TEST" }]));
    let variables = [("A2A_KEY_TEST", KEY), ("RUST_LOG", "trace")];
    let hook = ["push-config", "create", "demo", "t1", "https://hook.example/"];
    let told: [(&[&str], i32, &str); 10] = [
        (&["agents"], 0, "says ***"),
        (&["send", "demo", "hello"], 0, "The key is ***"),
        (&["send", "demo", "refuse"], 1, "refused: "),
        (&["send", "demo", "hello", "--debug"], 0, "The key is ***"),
        (&["subscribe", "demo", "t1", "--debug"], 0, "< data: "),
        (&["status", "demo", "t1"], 0, "The key is ***"),
        (&["cancel", "demo", "t1"], 1, "The key is ***"),
        (&["tasks", "demo"], 0, "done with ***"),
        (&["subscribe", "demo", "t1"], 0, "t1"),
        (&hook, 1, "refused: "),
    ];
    for (command, code, expected) in told {
        for as_json in [false, true] {
            let json = as_json.then_some("--json");
            let command: Vec<&str> = command.iter().copied().chain(json).collect();
            let ran = world.run_with(&command, &variables).await;
            assert_eq!(ran.code, code, "{ran:?}");
            let seen = format!("{}{}", ran.out, ran.err);
            assert!(as_json || seen.contains(expected), "{command:?}: {seen}");
            assert!(
                ran.err.contains("volcanic_net"),
                "{command:?}: nothing is logged: {}",
                ran.err
            );
            check_hidden(&ran);
        }
    }
    assert!(check_files(&world.workspace()) > 0, "a file is saved");
    let commands = commands.lock().unwrap();
    assert!(commands.iter().any(|line| line.contains("volcanic")), "{commands:?}");
    assert!(commands.iter().all(|line| !line.contains(KEY)), "{commands:?}");
}

#[tokio::test]
async fn no_chat_shows_or_keeps_a_key_that_the_agent_repeats() {
    let world = World::new();
    let (agent, commands) = leaking().await;
    world.agents(&json!([{ "name": "demo", "url": agent.url, "key": KEY }]));
    for wait in [10, 0] {
        let log = fs::File::create(world.path("chat.log")).unwrap();
        let mut chat = world
            .program("the chat")
            .args(["chat", "--model", "scripted"])
            .env("A2AClient__WaitSeconds", wait.to_string())
            .env("RUST_LOG", "trace")
            .errors_into(log)
            .start()
            .unwrap();
        chat.say("ask demo: hello").await.unwrap();
        shows(&mut chat, "The key is ***").await;
        chat.say("ask demo: refuse").await.unwrap();
        shows(&mut chat, "refused").await;
        chat.say("/a2a").await.unwrap();
        shows(&mut chat, "demo").await;
        let (status, lines) = chat.finish(SOON).await.unwrap();
        assert!(status.success(), "{status}");
        let lines = lines.join("\n");
        assert!(!lines.contains(KEY), "{lines}");
    }
    assert!(fs::read_to_string(world.path("chat.log")).unwrap().contains("volcanic_net"));
    assert!(check_files(&world.path("")) > 3, "a log, a database, a file");
    assert!(commands.lock().unwrap().iter().all(|line| !line.contains(KEY)));
}

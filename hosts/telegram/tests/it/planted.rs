//! Everybody the bot talks to repeats the secrets they were given: what of that is seen of the shipped program.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use volcanic_testkit::BotFault;

use crate::bot::{LIMIT, Port, World};

const AGENT_KEY: &str = "k_planted_3f9c2a7e";
const MODEL_KEY: &str = "sk-planted-51d0b88c";
const PROXY_PASSWORD: &str = "p_planted_c44e19aa";

/// What was in the list of processes while somebody was called.
type Commands = Arc<Mutex<Vec<String>>>;

/// The arguments of every process.
fn running() -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let arguments = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    arguments.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).collect()
}

async fn serve(routes: Router, tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tasks.spawn(async move {
        let _ = axum::serve(listener, routes).await;
    });
    url
}

/// An agent that repeats the key in all it says.
fn agent(commands: Commands) -> Router {
    Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: String| async move {
        commands.lock().expect("unpoisoned").extend(running());
        if uri.path() != "/a2a" {
            return axum::Json(json!({
                "name": AGENT_KEY, "description": format!("says {AGENT_KEY}"), "version": AGENT_KEY,
                "supportedInterfaces": [{"url": format!("/a2a?k={AGENT_KEY}"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                "capabilities": {"streaming": true, "pushNotifications": true},
                "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
                "skills": [{"id": AGENT_KEY, "name": AGENT_KEY, "description": AGENT_KEY, "tags": [AGENT_KEY]}]
            }))
            .into_response();
        }
        assert_eq!(headers["x-api-key"], AGENT_KEY, "the key is sent, so it can come back");
        answer(&serde_json::from_str(&body).expect("JSON"))
    })
}

fn answer(request: &Value) -> Response {
    let text = request["params"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
    let body = match request["method"].as_str() {
        Some("SendMessage") if text == "refuse" => {
            json!({"error": {"code": -32602, "message": format!("no {AGENT_KEY}"), "data": [{"key": AGENT_KEY}]}})
        }
        Some("SendMessage" | "GetTask") => {
            let (first, second) = AGENT_KEY.split_at(7);
            let task = json!({
                "id": "t1", "contextId": AGENT_KEY,
                "status": {"state": "TASK_STATE_COMPLETED", "message": {"messageId": "m", "role": "ROLE_AGENT",
                    "parts": [{"text": format!("done with {AGENT_KEY}")}]}},
                "artifacts": [{"artifactId": "a", "name": AGENT_KEY, "parts": [
                    {"text": "The key is "}, {"text": first}, {"text": second},
                    {"raw": "a19wbGFudGVkXzNmOWMyYTdl", "filename": format!("{AGENT_KEY}.txt")}
                ]}]
            });
            let is_task = request["method"] == "GetTask";
            if is_task { json!({"result": task}) } else { json!({"result": {"task": task}}) }
        }
        _ => json!({"error": {"code": -32603, "message": AGENT_KEY}}),
    };
    let mut body = body;
    body["jsonrpc"] = json!("2.0");
    body["id"] = request["id"].clone();
    ([("x-key", AGENT_KEY)], axum::Json(body)).into_response()
}

/// A model's endpoint that repeats the key in its refusals.
fn endpoint(commands: Commands) -> Router {
    Router::new().fallback(move |headers: HeaderMap| async move {
        commands.lock().expect("unpoisoned").extend(running());
        assert_eq!(headers["authorization"], format!("Bearer {MODEL_KEY}"));
        let error = json!({"error": {"message": format!("Incorrect API key provided: {MODEL_KEY}"), "code": MODEL_KEY}});
        (StatusCode::UNAUTHORIZED, [("x-key", MODEL_KEY)], axum::Json(error))
    })
}

/// Looks through every file below for one of the secrets; those that the owner wrote it into apart.
fn check_files(folder: &Path, secrets: &[&str]) -> usize {
    let mut looked_at = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            looked_at += check_files(&path, secrets);
        } else if !path.ends_with(".volcanic/a2a/agents.json") {
            let content = fs::read(&path).expect("read");
            for secret in secrets {
                assert!(!path.to_string_lossy().contains(secret), "{}", path.display());
                let found = content.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "{secret} is in {}", path.display());
            }
            looked_at += 1;
        }
    }
    looked_at
}

/// Nothing that can be seen of the bot holds one of the secrets.
#[track_caller]
fn check_hidden(world: &World, commands: &Commands, secrets: &[&str]) {
    let (_, token) = world.api.token().split_once(':').expect("a token");
    let secrets: Vec<&str> = secrets.iter().copied().chain([token]).collect();
    let chat = world.texts().join("\n");
    let commands = commands.lock().expect("unpoisoned");
    for secret in &secrets {
        assert!(!chat.contains(secret), "{chat}");
        assert!(
            commands.iter().all(|line| !line.contains(secret)),
            "{secret} is on a command line"
        );
    }
    assert!(!world.log().is_empty());
    assert!(check_files(world.home.path(), &secrets) > 1, "a log and a database");
}

/// A world whose bots log as much as they can be told to.
async fn world() -> World {
    let mut world = World::new().await;
    world.set("Ops__Log__Level", "trace");
    world.set("RUST_LOG", "trace,h2::codec=trace,hyper=trace,reqwest=trace,rig_core=trace");
    world.set("RUST_BACKTRACE", "1");
    world
}

#[tokio::test]
async fn key_that_an_agent_repeats_and_token_that_the_bot_api_repeats_are_seen_nowhere() {
    let mut world = world().await;
    let (commands, mut tasks) = (Commands::default(), JoinSet::new());
    let url = serve(agent(Arc::clone(&commands)), &mut tasks).await;
    world.set("A2AClient__Enabled", "true");
    for (wait, key) in [("10", AGENT_KEY), ("0", "env:A2A_KEY_TEST")] {
        world.set("A2AClient__WaitSeconds", wait);
        world.set("A2A_KEY_TEST", AGENT_KEY);
        world.set_agents(&json!([{"name": "demo", "url": format!("{url}/"), "key": key}]));
        let description = format!("Bad Request: message {} is not", world.api.token());
        world.api.fail_next("sendMessage", &BotFault::Refuse { code: 400, description }, 1);
        let before = world.count("The key is ***");
        let bot = world.start();
        world.says("/help");
        world.says("ask demo: hello");
        world.sees(|_| world.count("The key is ***") > before).await;
        world.says("ask demo: refuse");
        world.sees_text("refused").await;
        world.says("/a2a");
        world.sees_text("Agents:").await;
        world.says("/status");
        world.api.await_acknowledged(LIMIT).await.expect("acknowledged");
        assert!(bot.terminate().await.success(), "{}", world.log());
    }
    let log = world.log();
    assert!(log.contains("message 123456:***"), "the refusal is logged: {log}");
    assert!(log.contains("volcanic_"), "{log}");
    assert!(!log.contains(" h2::") && !log.contains("hyper::"), "{log}");
    check_hidden(&world, &commands, &[AGENT_KEY]);
}

#[tokio::test]
async fn key_that_a_model_repeats_is_seen_nowhere() {
    let mut world = world().await;
    let (commands, mut tasks) = (Commands::default(), JoinSet::new());
    let url = serve(endpoint(Arc::clone(&commands)), &mut tasks).await;
    world.set("Telegram__Model", "openai:some-model");
    world.set("OPENAI_BASE_URL", format!("{url}/v1"));
    world.set("OPENAI_API_KEY", MODEL_KEY);
    let bot = world.start();
    world.says("hello");
    world.sees_text("could not answer").await;
    assert!(bot.terminate().await.success(), "{}", world.log());
    check_hidden(&world, &commands, &[MODEL_KEY]);
}

#[tokio::test]
async fn password_of_a_proxy_is_seen_nowhere() {
    let mut world = world().await;
    let unheard = Port::reserve();
    let proxy = format!("http://bot:{PROXY_PASSWORD}@{}", unheard.address);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"] {
        world.set(name, proxy.clone());
    }
    let bot = world.start();
    let logged = async {
        // There is no event to wait for: the log is read until it says so.
        while !world.log().contains("Telegram cannot be reached") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, logged).await.expect("logged");
    let commands = Commands::default();
    commands.lock().expect("unpoisoned").extend(running());
    assert!(bot.terminate().await.success(), "{}", world.log());
    assert_eq!(world.api.calls().len(), 0, "it went past the proxy");
    check_hidden(&world, &commands, &[PROXY_PASSWORD]);

    // The setting for it is not there yet; whoever tries it is not shown what was written.
    world.set("Telegram__Proxy", proxy);
    for argument in ["--check", "--print-config"] {
        let output = world.command().arg(argument).output().await.expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("Telegram__Proxy: this setting is not supported yet"), "{told}");
        assert!(!told.contains(PROXY_PASSWORD), "{told}");
    }
}

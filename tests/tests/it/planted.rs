//! An agent that repeats our key, and the token of its webhook: what of that an assistant tells, keeps and shows to its
//! model. With our secrets left in, all of these must have the key, so that it is looked for where it would be.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use volcanic_agent_core::SessionStore as _;

use crate::assistant::{Assistant, Home, Setup, says, send, target};
use crate::remote::within;

const KEY: &str = "k_planted_3f9c2a7e";

/// What the agent heard and what it waits for.
#[derive(Default)]
struct Heard {
    /// The token of the webhook.
    token: String,
    is_done: bool,
    with_hooks: bool,
}

/// An agent whose task ends when the test says so. Everything it says has the key in it, and the token it was given.
struct Leaking {
    url: String,
    heard: Arc<Mutex<Heard>>,
    _tasks: JoinSet<()>,
}

impl Leaking {
    async fn start(with_hooks: bool) -> Self {
        let heard = Arc::new(Mutex::new(Heard { with_hooks, ..Heard::default() }));
        let shared = Arc::clone(&heard);
        let routes = Router::new().fallback(move |body: String| async move {
            let mut heard = shared.lock().unwrap_or_else(PoisonError::into_inner);
            axum::Json(match serde_json::from_str::<Value>(&body) {
                Ok(request) => answer(&request, &mut heard),
                Err(_) => card(heard.with_hooks),
            })
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, heard, _tasks: tasks }
    }

    fn home(&self) -> Home {
        let home = Home::new();
        home.write_agents(&json!([{"name": "bot", "url": self.url, "key": KEY}]).to_string());
        home
    }

    fn finish(&self) {
        self.heard.lock().unwrap().is_done = true;
    }

    async fn token(&self) -> String {
        within(async {
            loop {
                let token = self.heard.lock().unwrap().token.clone();
                if !token.is_empty() {
                    return token;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }
}

fn card(with_hooks: bool) -> Value {
    json!({
        "name": KEY, "description": KEY, "version": "1",
        "supportedInterfaces": [{"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"pushNotifications": with_hooks},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": []
    })
}

fn answer(request: &Value, heard: &mut Heard) -> Value {
    let params = &request["params"];
    let body = match request["method"].as_str().unwrap() {
        "SendMessage" if params["message"]["parts"][0]["text"] == "refuse" => {
            json!({"error": {"code": -32602, "message": format!("{KEY} is odd"), "data": [{"key": KEY}]}})
        }
        "SendMessage" => json!({"result": {"task": task(heard)}}),
        "GetTask" => json!({"result": task(heard)}),
        "CreateTaskPushNotificationConfig" => {
            params["token"].as_str().unwrap().clone_into(&mut heard.token);
            json!({"result": params})
        }
        _ => json!({"error": {"code": -32004, "message": KEY}}),
    };
    let mut body = body;
    body["jsonrpc"] = json!("2.0");
    body["id"] = request["id"].clone();
    body
}

fn task(heard: &Heard) -> Value {
    if !heard.is_done {
        return json!({"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_WORKING"}});
    }
    let (first, second) = KEY.split_at(5);
    json!({
        "id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a", "parts": [
            {"text": "The key is "}, {"text": first}, {"text": second}, {"text": format!(", the token {}", heard.token)},
            {"raw": "aGk=", "filename": format!("{KEY}.txt")}
        ]}]
    })
}

/// All that the assistant told, keeps, and gave its model; each with its name.
async fn all_of(assistant: &Assistant, home: &Home) -> Vec<(&'static str, String)> {
    let entries = assistant.store.entries(&target()).await.unwrap();
    let mut shown = String::new();
    while let Some(item) = assistant.store.next_outbox(&target()).await.unwrap() {
        assistant.store.outbox_sent(item.id, None).await.unwrap();
        shown.push_str(&item.body);
    }
    let state = home.workspace().parent().unwrap().join("state");
    let state = fs::read_dir(state).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    let state: Vec<u8> = state.flatten().collect();
    let inbox = fs::read_dir(home.workspace().join("inbox/a2a/bot")).unwrap();
    let names: Vec<_> = inbox.map(|file| file.unwrap().file_name()).collect();
    vec![
        ("conversation", format!("{entries:?}")),
        ("requests of the model", format!("{:?}", assistant.model.requests())),
        ("screen", shown),
        ("database", String::from_utf8_lossy(&state).into_owned()),
        ("names of files", format!("{names:?}")),
    ]
}

async fn until_told(assistant: &Assistant) {
    within(async {
        loop {
            let entries = assistant.store.entries(&target()).await.unwrap();
            if format!("{entries:?}").contains("The key is ") {
                assistant.session().wait_idle().await;
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Sends, is refused once, and is told what came of the other task: inside the wait or by its watch.
async fn check(wait: Duration, shows_secrets: bool) {
    let agent = Leaking::start(false).await;
    let home = agent.home();
    let change: fn(&mut volcanic_a2a_watch::WatchConfig) =
        if shows_secrets { |config| config.client.shows_secrets = true } else { |_| {} };
    let setup = Setup { wait, change, ..Setup::default() };
    // The screen shows what the model says, and this one says what it hears.
    let steps = [send("refuse"), send("go"), says("One moment."), says("There it is.")];
    let assistant = home.start(setup, steps).await;
    if !wait.is_zero() {
        agent.finish();
    }
    assistant.say("go").await;
    agent.finish();
    until_told(&assistant).await;
    for (place, seen) in all_of(&assistant, &home).await {
        let is_expected = shows_secrets && place != "screen";
        assert_eq!(seen.contains(KEY), is_expected, "{place}: {seen}");
    }
    assistant.stop().await;
    let pending = fs::read_to_string(home.workspace().join(".volcanic/a2a/pending.json"));
    assert!(!pending.unwrap_or_default().contains(KEY));
}

#[tokio::test]
async fn key_that_an_agent_repeats_is_told_kept_and_shown_nowhere() {
    for wait in [Duration::ZERO, Duration::from_secs(10)] {
        for shows_secrets in [true, false] {
            check(wait, shows_secrets).await;
        }
    }
}

#[tokio::test]
async fn token_of_a_webhook_that_an_agent_repeats_is_not_told_even_after_a_restart() {
    let agent = Leaking::start(true).await;
    let home = agent.home();
    let setup = || Setup { pushes: true, ..Setup::at_once() };
    let assistant = home.start(setup(), [send("go"), says("One moment.")]).await;
    assistant.say("go").await;
    let token = agent.token().await;
    assistant.kill().await;
    agent.finish();
    let assistant = home.start(setup(), [says("There it is.")]).await;
    until_told(&assistant).await;
    let told = format!("{:?}", assistant.store.entries(&target()).await.unwrap());
    assert!(told.contains("The key is ***, the token ***"), "{told}");
    assert!(!told.contains(&token) && !told.contains(KEY), "{told}");
    assistant.stop().await;
}

//! Answers to agents that go on showing their question until they have something to say.

use std::sync::{Arc, Mutex};

use axum::{Json, Router, extract::State, http::HeaderMap, routing};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    keyed_agent::{Served, serve},
    world::World,
};

/// An agent that asks one question and, once answered, shows it for some more reads.
#[derive(Debug)]
struct Slow {
    /// How often the task is read with the question after the answer; none is for ever.
    reads_left: Option<u32>,
    answered: bool,
}

impl Slow {
    async fn start(reads_left: Option<u32>) -> Served {
        let slow = Arc::new(Mutex::new(Self { reads_left, answered: false }));
        let routes = Router::new()
            .route("/.well-known/agent-card.json", routing::get(card))
            .route("/", routing::post(call))
            .with_state(slow);
        serve(routes, CancellationToken::new()).await
    }

    fn task(&mut self, is_read: bool) -> Value {
        if self.answered && is_read {
            self.reads_left = self.reads_left.map(|left| left.saturating_sub(1));
        }
        let asked = json!({
            "state": "TASK_STATE_INPUT_REQUIRED",
            "timestamp": "2026-11-30T08:00:00Z",
            "message": { "messageId": "q1", "role": "ROLE_AGENT", "parts": [{ "text": "Which day?" }] },
        });
        let done = json!({ "state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-30T08:00:09Z",
            "message": { "messageId": "a1", "role": "ROLE_AGENT", "parts": [{ "text": "Booked." }] } });
        let is_over = self.answered && self.reads_left == Some(0);
        json!({ "id": "t1", "contextId": "c1", "status": if is_over { done } else { asked } })
    }
}

async fn card(headers: HeaderMap) -> Json<Value> {
    let host = headers["host"].to_str().unwrap();
    Json(json!({
        "name": "slow", "description": "Thinks before it speaks", "version": "1",
        "supportedInterfaces": [
            { "url": format!("http://{host}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }
        ],
        "capabilities": {}, "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
    }))
}

async fn call(State(slow): State<Arc<Mutex<Slow>>>, Json(request): Json<Value>) -> Json<Value> {
    let mut slow = slow.lock().unwrap();
    let result = match request["method"].as_str().unwrap() {
        "SendMessage" => {
            let message = &request["params"]["message"];
            assert_eq!((&message["taskId"], &message["contextId"]), (&json!("t1"), &json!("c1")));
            slow.answered = true;
            json!({ "task": slow.task(false) })
        }
        "GetTask" => slow.task(true),
        other => panic!("{other} was called"),
    };
    Json(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
}

#[tokio::test]
async fn question_that_was_answered_is_not_taken_for_the_outcome() {
    let world = World::new();
    let slow = Slow::start(Some(2)).await;
    world.knows(&slow.url);
    let ran = world.run(&["send", "demo", "Monday", "--task", "t1"]).await;
    ran.check(0, &["task t1 (context c1) is completed", "Booked."]);
    assert!(!ran.out.contains("Which day?"), "{ran:?}");
}

#[tokio::test]
async fn agent_that_does_not_go_on_in_time_is_told_as_such_and_not_as_a_question() {
    let world = World::new();
    let slow = Slow::start(None).await;
    world.knows(&slow.url);
    let ran = world.run(&["send", "demo", "Monday", "--task", "t1", "--wait", "1s"]).await;
    ran.check(5, &["task t1 has the answer and has not gone on yet"]);
    assert!(ran.err.contains("volcanic status demo t1"), "{ran:?}");
    assert!(!ran.out.contains("Which day?") && !ran.err.contains("To answer"), "{ran:?}");
    let arguments = ["send", "demo", "Monday", "--task", "t1", "--context", "c1", "--async"];
    world.run(&arguments).await.check(0, &["has not gone on yet"]);
    world.run(&["status", "demo", "t1"]).await.check(6, &["Which day?"]);
}

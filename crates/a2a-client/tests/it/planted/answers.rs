//! Answers that are none: cards, tasks, replies and events that hold the key.

use axum::{body::Body, response::IntoResponse as _};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::StreamExt as _;
use serde_json::{Value, json};
use volcanic_a2a_client::{ClientConfig, RemoteAgent, TaskOutcome, render_delivery, render_result};
use volcanic_a2a_types::{
    ListTasksRequest, Message, Part, SendMessageRequest, SendMessageResponse, StreamResponse,
};
use volcanic_base::ConfinedDir;

use super::{Key, Nothing, Path, path};
use crate::agent::{
    KEY, Running, Script, card, connect_with, event, event_stream, keyed, network, result, task,
};

pub(super) static PATHS: [Path; 16] = [
    path("fields of a card", Key, |config| {
        Box::pin(async move {
            let script = Script::new(|seen| result(seen, &task("t1", "WORKING"))).with_card(|_| {
                card(&json!({
                    "name": KEY, "description": KEY, "version": KEY, "iconUrl": KEY, "documentationUrl": KEY,
                    "provider": {"organization": KEY, "url": KEY}, "defaultInputModes": [KEY],
                    "skills": [{"id": KEY, "name": KEY, "description": KEY, "tags": [KEY], "examples": [KEY]}]
                }))
                .into_response()
            });
            let (_running, agent) = connected(&script, &config).await;
            format!("{:?} {}", agent.card(), serde_json::to_string(agent.card()).unwrap())
        })
    }),
    path("text of a status", Key, |config| {
        Box::pin(told(config, |task| task["status"]["message"] = message(&json!([{"text": KEY}]))))
    }),
    path("text of an artifact", Key, |config| {
        Box::pin(told(config, |task| task["artifacts"] = artifact(&json!([{"text": KEY}]))))
    }),
    path("data of an artifact", Key, |config| {
        Box::pin(told(config, |task| {
            task["artifacts"] = artifact(&json!([{"data": {KEY: [KEY]}}]));
        }))
    }),
    path("text in two parts", Key, |config| {
        Box::pin(told(config, |task| {
            task["artifacts"] = artifact(&json!([{"text": &KEY[..6]}, {"text": &KEY[6..]}]));
        }))
    }),
    path("text in many parts", Key, |config| {
        Box::pin(told(config, |task| {
            let parts: Vec<_> = KEY.chars().map(|c| json!({"text": c.to_string()})).collect();
            task["artifacts"] = artifact(&json!(parts));
        }))
    }),
    path("text in the parts of a status, one below the other", Key, |config| {
        Box::pin(told(config, |task| {
            let parts = json!([{"text": &KEY[..6]}, {"text": &KEY[6..]}]);
            task["status"]["message"] = message(&parts);
        }))
    }),
    path("name of a file", Key, |config| {
        Box::pin(told(config, |task| {
            task["artifacts"] =
                artifact(&json!([{"raw": "aGk=", "filename": format!("{KEY}.txt")}]));
        }))
    }),
    path("name of an artifact that is a file", Key, |config| {
        Box::pin(told(config, |task| {
            task["artifacts"] =
                json!([{"artifactId": "a", "name": KEY, "parts": [{"raw": "aGk="}]}]);
        }))
    }),
    path("content of a file", Key, |config| {
        Box::pin(told(config, |task| {
            let file = STANDARD.encode(format!("x-api-key: {KEY}\n"));
            task["artifacts"] = artifact(&json!([{"raw": file, "filename": "request.txt"}]));
        }))
    }),
    path("ids and names that are told", Key, |config| {
        Box::pin(told(config, |task| {
            task["contextId"] = json!(KEY);
            task["status"]["state"] = json!(KEY);
        }))
    }),
    path("a long answer that goes to a file", Key, |config| {
        Box::pin(told(config, |task| {
            let (before, after) = ("x\n".repeat(2_100), "y\n".repeat(10));
            let parts = json!([{"text": format!("{before}{}", &KEY[..9])}, {"text": format!("{}\n{after}", &KEY[9..])}]);
            task["artifacts"] = artifact(&parts);
        }))
    }),
    path("a reply without a task", Key, |config| {
        Box::pin(async move {
            let script = Script::new(|seen| {
                result(
                    seen,
                    &json!({"message": {"messageId": KEY, "role": "ROLE_AGENT", "contextId": KEY,
                    "parts": [{"text": &KEY[..4]}, {"text": &KEY[4..]}]}}),
                )
            });
            let (_running, agent) = connected(&script, &config).await;
            let request = SendMessageRequest::new(Message::user("m1", vec![Part::text("hi")]));
            let answer = agent.send_message(request).await.unwrap();
            let SendMessageResponse::Message(message) = &answer else { panic!("{answer:?}") };
            let outcome = agent.outcome_of_reply(message.clone(), 1000);
            assert_eq!(outcome.answer.contains("***"), !config.shows_secrets, "{outcome:?}");
            format!("{answer:?}") + &all_of(&outcome, &agent)
        })
    }),
    path("token of the next page", Key, |config| {
        Box::pin(async move {
            let script = Script::new(|seen| {
                result(
                    seen,
                    &json!({"tasks": [], "nextPageToken": KEY, "pageSize": 1, "totalSize": 1}),
                )
            });
            let (_running, agent) = connected(&script, &config).await;
            format!("{:?}", agent.list_tasks(ListTasksRequest::default()).await)
        })
    }),
    path("an artifact in pieces, in a stream", Key, |config| Box::pin(streamed(config))),
    path("name and id of an event", Nothing("only its data is read"), |config| {
        Box::pin(async move {
            let script = Script::new(|seen| {
                let event = event(seen, &json!({"task": task("t1", "COMPLETED")}));
                event_stream(Body::from(format!(
                    ": {KEY}\nevent: {KEY}\nid: {KEY}\nretry: {KEY}\n{event}"
                )))
            });
            let (_running, agent) = connected(&script, &config).await;
            let mut events = agent.subscribe(&"t1".into()).await.unwrap();
            format!("{:?} {:?}", events.next().await, events.next().await)
        })
    }),
];

async fn connected(script: &Script, config: &ClientConfig) -> (Running, RemoteAgent) {
    let running = Running::start(script).await;
    let agent = connect_with(&keyed(running.entry()), network(), config).await.unwrap();
    (running, agent)
}

fn artifact(parts: &Value) -> Value {
    json!([{"artifactId": "a", "parts": parts}])
}

fn message(parts: &Value) -> Value {
    json!({"messageId": "m", "role": "ROLE_AGENT", "parts": parts})
}

/// A settled task with that change, as it is read, listed, canceled, saved and told.
async fn told(config: ClientConfig, change: fn(&mut Value)) -> String {
    let script = Script::new(move |seen| {
        let mut task = task("t1", "COMPLETED");
        change(&mut task);
        match seen.body["method"].as_str() {
            Some("ListTasks") => {
                let page =
                    json!({"tasks": [task], "nextPageToken": "", "pageSize": 1, "totalSize": 1});
                result(seen, &page)
            }
            _ => result(seen, &task),
        }
    });
    let (_running, agent) = connected(&script, &config).await;
    let read = agent.get_task(&"t1".into(), None).await.unwrap();
    let listed = agent.list_tasks(ListTasksRequest::default()).await.unwrap();
    let canceled = agent.cancel_task(&"t1".into()).await.unwrap();
    let outcome = agent.outcome_of(read, 1000);
    let mut seen = all_of(&outcome, &agent);
    for other in [canceled].into_iter().chain(listed.tasks) {
        seen += &all_of(&agent.outcome_of(other, 1000), &agent);
    }
    seen
}

/// An outcome as it is told, and every file of it with its name.
fn all_of(outcome: &TaskOutcome, agent: &RemoteAgent) -> String {
    let folder = tempfile::tempdir().unwrap();
    let workspace = ConfinedDir::open(folder.path()).unwrap();
    let mut seen = format!("{outcome:?}");
    let saved = outcome.save(&workspace, agent.name());
    seen += &render_result(agent.name(), &saved);
    seen += &render_delivery(agent.name(), &saved);
    for path in saved.saved.iter().chain(&saved.answer_file) {
        let content = std::fs::read(folder.path().join(path)).unwrap();
        seen = format!("{seen}\n{path}\n{}", String::from_utf8_lossy(&content));
    }
    seen
}

/// Chunks that add to an artifact, put together.
async fn streamed(config: ClientConfig) -> String {
    let script = Script::new(|seen| {
        let mut events = event(seen, &json!({"task": task("t1", "WORKING")}));
        for (piece, append) in [(&KEY[..5], false), (&KEY[5..9], true), (&KEY[9..], true)] {
            let update = json!({"taskId": "t1", "contextId": "c1", "append": append,
                "artifact": {"artifactId": "a", "parts": [{"text": piece}]}});
            events += &event(seen, &json!({"artifactUpdate": update}));
        }
        event_stream(Body::from(events))
    });
    let (_running, agent) = connected(&script, &config).await;
    let mut events = agent.subscribe(&"t1".into()).await.unwrap();
    let Some(Ok(StreamResponse::Task(mut task))) = events.next().await else { panic!("no task") };
    while let Some(event) = events.next().await {
        task.apply(&event.unwrap());
    }
    all_of(&agent.outcome_of(task, 1000), &agent)
}

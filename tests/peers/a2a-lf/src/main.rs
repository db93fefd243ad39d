//! The interop agent on the official Rust SDK: JSON-RPC at /, card at the well-known path.
//!
//! What it does is told by the first word of a message: `quick WORD`, `ask WORD`, `file WORD`, `slow SECONDS WORD`,
//! `fail WORD`, as in `../a2a-python/agent.py`. `PORT` is where it listens, `PUBLIC` the base URL of its card, `BREAK`
//! the scenario that this run gets wrong on purpose.

use std::sync::Arc;
use std::time::Duration;

use a2a::*;
use a2a_server::{
    AgentExecutor, DefaultRequestHandler, ExecutorContext, HttpPushSender, HttpPushSenderConfig, InMemoryPushConfigStore, InMemoryTaskStore,
    StaticAgentCard,
};
use axum::serve::ListenerExt;
use futures::stream::{self, BoxStream, StreamExt};

struct Agent {
    broken: String,
}

/// One step of an answer.
enum Step {
    Sleep(f64),
    Status(TaskState, Option<String>),
    Artifact(Artifact),
}

fn answer(words: String) -> Vec<Step> {
    let artifact = Artifact {
        artifact_id: "response".into(),
        name: Some("response".into()),
        description: None,
        parts: vec![Part::text(words)],
        metadata: None,
        extensions: None,
    };
    vec![Step::Artifact(artifact), Step::Status(TaskState::Completed, None)]
}

/// The words a question was asked about, when `said` answers it. The SDK stores a new task before the executor sees it,
/// so the first message of a task is in its history already.
fn asked(said: &str, task: Option<&Task>) -> Option<String> {
    let history = task?.history.as_ref().filter(|_| !said.starts_with("ask "))?;
    history.iter().find_map(|message| Some(message.text()?.strip_prefix("ask ")?.to_owned()))
}

impl Agent {
    fn script(&self, said: &str, task: Option<&Task>) -> Vec<Step> {
        if let Some(words) = asked(said, task) {
            return answer(format!("booked {words} for {said}"));
        }
        let (verb, rest) = said.split_once(' ').unwrap_or((said, ""));
        match (verb, self.broken.as_str()) {
            ("quick", "quick") => answer("something else".to_owned()),
            ("quick", _) => answer(format!("quick: {rest}")),
            ("ask", "ask") => answer(format!("booked {rest} for some day")),
            ("ask", _) => vec![Step::Status(TaskState::InputRequired, Some(format!("Which day for {rest}?")))],
            ("file", broken) => {
                let bytes = if broken == "file" { "not what was asked".to_owned() } else { format!("report {rest}\n") };
                let file = Artifact {
                    artifact_id: "file".into(),
                    name: None,
                    description: None,
                    parts: vec![Part::raw(bytes.into_bytes()).with_filename("report.txt").with_media_type("text/plain")],
                    metadata: None,
                    extensions: None,
                };
                let mut steps = vec![Step::Artifact(file)];
                steps.extend(answer(format!("the report on {rest}")));
                steps
            }
            ("slow", broken) => {
                let (seconds, word) = rest.split_once(' ').unwrap_or((rest, ""));
                let mut steps =
                    vec![Step::Status(TaskState::Working, None), Step::Sleep(seconds.parse().unwrap_or(1.0))];
                steps.extend(answer(if broken == "poll" { "gone".to_owned() } else { format!("slow: {word}") }));
                steps
            }
            _ => vec![Step::Status(TaskState::Failed, Some(format!("failed: {rest}")))],
        }
    }
}

impl AgentExecutor for Agent {
    fn execute(&self, ctx: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        let message = ctx.message.as_ref();
        let said = message.and_then(Message::text).unwrap_or("").to_owned();
        let steps = self.script(&said, ctx.stored_task.as_ref());
        let (task_id, context_id) = ctx.task_info();
        let opening = ctx.stored_task.clone().unwrap_or_else(|| Task {
            id: task_id.clone(),
            context_id: context_id.clone(),
            status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: Some(chrono::Utc::now()) },
            artifacts: None,
            history: message.map(|message| vec![message.clone()]),
            metadata: None,
        });
        let rest = stream::iter(steps).filter_map(move |step| {
            let (task_id, context_id) = (task_id.clone(), context_id.clone());
            async move {
                // A stream that is always ready overruns the SDK's 32-slot broadcast buffer and fails the request.
                tokio::task::yield_now().await;
                Some(Ok(match step {
                    Step::Sleep(seconds) => {
                        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                        return None;
                    }
                    Step::Status(state, words) => {
                        let message = words.map(|words| Message {
                            task_id: Some(task_id.clone()),
                            context_id: Some(context_id.clone()),
                            ..Message::new(Role::Agent, vec![Part::text(words)])
                        });
                        let status = TaskStatus { state, message, timestamp: Some(chrono::Utc::now()) };
                        StreamResponse::StatusUpdate(TaskStatusUpdateEvent { task_id, context_id, status, metadata: None })
                    }
                    Step::Artifact(artifact) => StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                        task_id,
                        context_id,
                        artifact,
                        append: None,
                        last_chunk: Some(true),
                        metadata: None,
                    }),
                }))
            }
        });
        stream::iter([Ok(StreamResponse::Task(opening))]).chain(rest).boxed()
    }

    fn cancel(&self, ctx: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        let (task_id, context_id) = ctx.task_info();
        let status = TaskStatus { state: TaskState::Canceled, message: None, timestamp: Some(chrono::Utc::now()) };
        let update = TaskStatusUpdateEvent { task_id, context_id, status, metadata: None };
        stream::iter([Ok(StreamResponse::StatusUpdate(update))]).boxed()
    }
}

#[tokio::main]
async fn main() {
    let port: u16 = std::env::var("PORT").expect("PORT is set").parse().expect("PORT is a number");
    let public = std::env::var("PUBLIC").unwrap_or_else(|_| format!("http://127.0.0.1:{port}"));
    let broken = std::env::var("BREAK").unwrap_or_default();
    let pushes = broken != "push";
    let capabilities = AgentCapabilities {
        streaming: Some(true),
        push_notifications: Some(true),
        extended_agent_card: Some(false),
        ..Default::default()
    };
    let mut handler = DefaultRequestHandler::new(Agent { broken }, InMemoryTaskStore::new())
        .with_default_input_modes(vec!["text/plain".to_owned()])
        .with_capabilities(capabilities.clone());
    if pushes {
        // The webhook of the interop run is on loopback, which the SDK's guard refuses.
        let sender = HttpPushSender::new(Some(HttpPushSenderConfig { validate_urls: false, ..Default::default() }));
        handler = handler.with_push_notifications(InMemoryPushConfigStore::new(), sender);
    } else {
        handler = handler.with_push_config_store(InMemoryPushConfigStore::new());
    }
    let card = AgentCard {
        name: "rust peer".into(),
        description: "Interop agent on the official Rust SDK".into(),
        version: "1.0.0".into(),
        supported_interfaces: vec![AgentInterface::new(format!("{public}/"), TRANSPORT_PROTOCOL_JSONRPC)],
        capabilities,
        default_input_modes: vec!["text/plain".into()],
        default_output_modes: vec!["text/plain".into()],
        skills: vec![AgentSkill {
            id: "interop".into(),
            name: "Interop".into(),
            description: "Answers, asks, files, waits".into(),
            tags: vec!["test".into()],
            examples: None,
            input_modes: None,
            output_modes: None,
            security_requirements: None,
        }],
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: None,
        security_requirements: None,
        signatures: None,
    };
    let app = axum::Router::new()
        .merge(a2a_server::jsonrpc::jsonrpc_router(Arc::new(handler)))
        .merge(a2a_server::agent_card::agent_card_router(Arc::new(StaticAgentCard::new(card))));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), app).await.expect("the server runs");
}

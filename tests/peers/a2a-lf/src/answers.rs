//! What the agent answers, by the first word of a message.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use a2a::{
    A2AError, Artifact, Message, Part, PartContent, Role, StreamResponse, Task,
    TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use a2a_server::{AgentExecutor, ExecutorContext};
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::json;

use crate::gates;

/// Between two pieces of an answer, in seconds.
const PAUSE: f64 = 0.4;

/// The longest moment that a task goes on after its gate was opened, in milliseconds.
const MOMENT: u64 = 1500;

/// How long a tale is, in lines.
const LINES: u32 = 60;

/// The agent; a broken one gets every scenario wrong in one point.
pub struct Agent {
    pub broken: bool,
}

/// One step of an answer.
enum Step {
    Sleep(f64),
    /// Until the gate is open.
    Gate(String),
    Status(TaskState, Option<String>),
    /// An artifact, and whether it goes on with the one before.
    Artifact(Artifact, bool),
}

fn artifact(id: &str, parts: Vec<Part>) -> Artifact {
    Artifact {
        artifact_id: id.into(),
        name: (id == "response").then(|| id.to_owned()),
        description: None,
        parts,
        metadata: None,
        extensions: None,
    }
}

fn responds(parts: Vec<Part>) -> Vec<Step> {
    let artifact = artifact("response", parts);
    vec![Step::Artifact(artifact, false), Step::Status(TaskState::Completed, None)]
}

fn answer(words: impl Into<String>) -> Vec<Step> {
    responds(vec![Part::text(words)])
}

/// Works for the seconds in front of the rest, then answers.
fn later(seconds: &str, words: String) -> Vec<Step> {
    let seconds = seconds.parse().unwrap_or(1.0);
    let mut steps = vec![Step::Status(TaskState::Working, None), Step::Sleep(seconds)];
    steps.extend(answer(words));
    steps
}

fn tale(word: &str) -> String {
    (1..=LINES).map(|number| format!("line {number} of {word}\n")).collect()
}

/// Works until the gate is open and a moment longer, which the word decides, then tells a tale.
fn behind(gate: &str, word: &str, told: &str) -> Vec<Step> {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    let moment = Duration::from_millis(hasher.finish() % MOMENT).as_secs_f64();
    let mut steps = vec![
        Step::Status(TaskState::Working, None),
        Step::Gate(gate.to_owned()),
        Step::Sleep(moment),
    ];
    steps.extend(answer(tale(told)));
    steps
}

fn mirror(word: &str, given: &[Part], broken: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    for part in given {
        let PartContent::Raw(bytes) = &part.content else { continue };
        let mut bytes = bytes.clone();
        bytes.reverse();
        if broken {
            bytes = b"not what was asked".to_vec();
        }
        let name = format!("mirrored-{}", part.filename.as_deref().unwrap_or_default());
        let mut back = Part::raw(bytes).with_filename(name);
        back.media_type.clone_from(&part.media_type);
        steps.push(Step::Artifact(artifact(&format!("file-{}", steps.len()), vec![back]), false));
    }
    let count = steps.len();
    steps.extend(answer(format!("mirrored {count} for {word}")));
    steps
}

fn parts(word: &str, given: &[Part], broken: bool) -> Vec<Step> {
    let links = given.iter().filter_map(|part| match &part.content {
        PartContent::Url(url) => Some(url.as_str()),
        _ => None,
    });
    let data = given.iter().filter_map(|part| match &part.content {
        PartContent::Data(data) => data["word"].as_str(),
        _ => None,
    });
    let told: Vec<&str> = links.chain(data).collect();
    let told = if told.is_empty() { "nothing".to_owned() } else { told.join(" and ") };
    let back = if broken { "lost" } else { word };
    responds(vec![
        Part::text(format!("given {told}\n")),
        Part::data(json!({ "back": back })),
        Part::url(format!("https://files.example/{back}.pdf"))
            .with_media_type("application/pdf")
            .with_filename(format!("{word}.pdf")),
    ])
}

fn pieces(count: &str, word: &str, broken: bool) -> Vec<Step> {
    let count: u32 = count.parse().unwrap_or(1);
    let texts: Vec<_> = (1..=count).map(|number| format!("step {number} of {word}\n")).collect();
    let mut steps = vec![Step::Status(TaskState::Working, None)];
    if broken {
        steps.push(Step::Sleep(PAUSE * f64::from(count)));
        steps.extend(answer(texts.concat()));
        return steps;
    }
    for (number, text) in texts.into_iter().enumerate() {
        steps.push(Step::Sleep(PAUSE));
        steps.push(Step::Artifact(artifact("response", vec![Part::text(text)]), number > 0));
    }
    steps.push(Step::Status(TaskState::Completed, None));
    steps
}

/// The words a question was asked about, when `said` answers it. The SDK stores a new task before the executor sees it,
/// so the first message of a task is in its history already.
fn asked(said: &str, task: Option<&Task>) -> Option<String> {
    let history = task?.history.as_ref().filter(|_| !said.starts_with("ask "))?;
    history.iter().find_map(|message| Some(message.text()?.strip_prefix("ask ")?.to_owned()))
}

impl Agent {
    fn script(&self, said: &str, given: &[Part], task: Option<&Task>) -> Vec<Step> {
        if let Some(words) = asked(said, task) {
            // Nothing is said of the task meanwhile: it goes on waiting for input, as far as anybody can tell.
            let mut steps = vec![Step::Sleep(1.0)];
            steps.extend(answer(format!("booked {words} for {said}")));
            return steps;
        }
        let status = |state, words: String| vec![Step::Status(state, Some(words))];
        let (verb, rest) = said.split_once(' ').unwrap_or((said, ""));
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        match (verb, self.broken) {
            ("quick", true) => answer("something else"),
            ("quick", false) => answer(format!("quick: {rest}")),
            ("ask", true) => answer(format!("booked {rest} for some day")),
            ("ask", false) => status(TaskState::InputRequired, format!("Which day for {rest}?")),
            ("mirror", broken) => mirror(rest, given, broken),
            ("parts", broken) => parts(rest, given, broken),
            ("fail", true) => answer(format!("cannot do {rest}")),
            ("fail", false) => status(TaskState::Failed, format!("cannot do {rest}")),
            ("reject", true) => status(TaskState::Failed, format!("will not do {rest}")),
            ("reject", false) => status(TaskState::Rejected, format!("will not do {rest}")),
            ("slow", true) => later(first, "gone".to_owned()),
            ("slow", false) => later(first, format!("slow: {second}")),
            ("steps", broken) => pieces(first, second, broken),
            ("tale", true) => behind(first, second, &second.chars().rev().collect::<String>()),
            ("follow" | "tale", _) => behind(first, second, second),
            ("hold", _) => later(first, format!("held: {second}")),
            _ => status(TaskState::Failed, format!("what is {verb}?")),
        }
    }
}

impl AgentExecutor for Agent {
    fn execute(
        &self,
        ctx: ExecutorContext,
    ) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        let message = ctx.message.as_ref();
        let said = message.and_then(Message::text).unwrap_or("").to_owned();
        let given = message.map(|message| message.parts.clone()).unwrap_or_default();
        let steps = self.script(&said, &given, ctx.stored_task.as_ref());
        let (task_id, context_id) = ctx.task_info();
        let opening = ctx.stored_task.clone().unwrap_or_else(|| Task {
            id: task_id.clone(),
            context_id: context_id.clone(),
            status: TaskStatus {
                state: TaskState::Submitted,
                message: None,
                timestamp: Some(chrono::Utc::now()),
            },
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
                    Step::Gate(name) => {
                        gates::passed(&name).await;
                        return None;
                    }
                    Step::Status(state, words) => status_update(task_id, context_id, state, words),
                    Step::Artifact(artifact, append) => {
                        StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                            task_id,
                            context_id,
                            artifact,
                            append: Some(append),
                            last_chunk: None,
                            metadata: None,
                        })
                    }
                }))
            }
        });
        stream::iter([Ok(StreamResponse::Task(opening))]).chain(rest).boxed()
    }

    fn cancel(&self, ctx: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        let (task_id, context_id) = ctx.task_info();
        stream::iter([Ok(status_update(task_id, context_id, TaskState::Canceled, None))]).boxed()
    }
}

fn status_update(
    task_id: String,
    context_id: String,
    state: TaskState,
    words: Option<String>,
) -> StreamResponse {
    let message = words.map(|words| Message {
        task_id: Some(task_id.clone()),
        context_id: Some(context_id.clone()),
        ..Message::new(Role::Agent, vec![Part::text(words)])
    });
    let status = TaskStatus { state, message, timestamp: Some(chrono::Utc::now()) };
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id,
        context_id,
        status,
        metadata: None,
    })
}

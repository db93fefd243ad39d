//! Streams of events, good and bad.

use serde_json::{Value, json};

use super::{
    HostileHeard, StreamFault,
    content::Content,
    dialect::{CONTEXT, Dialect, Frame, items, nested, old_update, response, task_of},
};

/// The events of a stream about a task that ends well.
pub(super) fn stream(
    dialect: Dialect,
    heard: &HostileHeard,
    fault: Option<&StreamFault>,
) -> (Content, StreamEnd) {
    let id = task_of(heard);
    let first = dialect.task_event(heard, &dialect.task(&id, "WORKING", Value::Null));
    let begun = || Content::of(first.clone());
    let last = dialect.event(heard, &dialect.update(&id, "COMPLETED"));
    let working = dialect.event(heard, &dialect.update(&id, "WORKING"));
    let closed = |content: Content| (content, StreamEnd::Closed);
    let Some(fault) = fault else { return closed(begun().then(last)) };
    let around = |event: &Value| Frame::split(&dialect.event(heard, event));
    let artifact = |parts: Value| {
        let update = json!({
            "taskId": id, "contextId": CONTEXT, "artifact": {"artifactId": "a", "parts": parts},
        });
        if dialect.is_old() {
            old_update(update, "artifact-update")
        } else {
            json!({"artifactUpdate": update})
        }
    };
    match fault {
        StreamFault::EndlessLine => closed(begun().then("data: \"").endless("x")),
        StreamFault::EndlessComments => closed(begun().endless(": still here\n")),
        StreamFault::EndlessBlankLines => closed(begun().endless("\n")),
        StreamFault::HugeEvent(size) => {
            let line = format!("data: {}\n", "x".repeat(993));
            closed(begun().times(line, size / 1000).then("\n").then(last))
        }
        StreamFault::TinyEvents(count) => closed(begun().times(working, *count).then(last)),
        StreamFault::EmptyEvents(count) => {
            closed(begun().times("event: e\nid: 1\nretry: 5\n\n", *count).then(last))
        }
        StreamFault::Artifacts(count) => {
            let event = dialect.event(heard, &artifact(json!([dialect.text("")])));
            closed(begun().times(event, *count).then(last))
        }
        StreamFault::LongId(size) => {
            closed(begun().then("id: ").times("i", *size).then("\n").then(last))
        }
        StreamFault::LongName(size) => {
            closed(begun().then("event: ").times("e", *size).then("\n").then(last))
        }
        StreamFault::EmptyParts(count) => {
            let parts = items(&dialect.text(""), *count);
            closed(begun().join(around(&artifact(json!(["@"]))).with(parts)).then(last))
        }
        StreamFault::LongText(size) => {
            let lines = Content::of("\"").times("plum\\n", size / 5).then("\"");
            let long = around(&artifact(json!([dialect.text("@")]))).with(lines);
            closed(begun().join(long).then(last))
        }
        StreamFault::LongTask(size) => {
            let text = Content::of("\"").times("plum ", size / 5).then("\"");
            let done = dialect.task(&id, "COMPLETED", response(&json!([dialect.text("@")])));
            closed(begun().join(Frame::split(&dialect.task_event(heard, &done)).with(text)))
        }
        StreamFault::Deep(depth) => {
            let data = json!([dialect.data(&"@".into())]);
            closed(begun().join(around(&artifact(data)).with(nested(*depth))).then(last))
        }
        StreamFault::OtherTask => {
            let other = dialect.event(heard, &dialect.update("another", "COMPLETED"));
            closed(begun().then(other))
        }
        StreamFault::OtherRequest => {
            let mut other = dialect.wrap(heard, &dialect.update(&id, "COMPLETED"));
            other["id"] = "another".into();
            closed(begun().then(format!("data: {other}\n\n")))
        }
        StreamFault::NotText => closed(begun().then(&b"data: \"\xff\xfe\"\n\n"[..]).then(last)),
        StreamFault::SlowEvent => (begun().then(last), StreamEnd::SlowFrom(first.len())),
        StreamFault::CutInEvent => {
            closed(begun().then(last.as_bytes()[..last.len() / 2].to_owned()))
        }
        StreamFault::Silence => (Content::default(), StreamEnd::Open),
    }
}

/// What becomes of a stream when its events are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Closed,
    /// It stays open.
    Open,
    /// What follows this byte comes at a byte a second.
    SlowFrom(usize),
}

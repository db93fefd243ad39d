//! How tasks, answers and events are written in each protocol, and what a friendly agent says.

use serde_json::{Value, json};

use super::{HostileHeard, HostileProtocol, content::Content};

/// The task of a request that names none.
const TASK: &str = "task-1";
/// The context of every task.
pub(super) const CONTEXT: &str = "context-1";

/// How tasks are written in a version of the protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    pub(super) protocol: HostileProtocol,
}

/// Parts of a JSON text around what is made while it is sent.
pub(super) struct Frame {
    before: String,
    after: String,
}

impl Frame {
    /// Splits `value`, written as JSON, at the text `"@"`.
    pub(super) fn around(value: &Value) -> Self {
        Self::split(&value.to_string())
    }

    /// Splits a text there.
    pub(super) fn split(text: &str) -> Self {
        let (before, after) = text.split_once("\"@\"").unwrap_or((text, ""));
        Self { before: before.to_owned(), after: after.to_owned() }
    }

    pub(super) fn with(self, inner: Content) -> Content {
        Content::of(self.before).join(inner).then(self.after)
    }
}

impl Dialect {
    pub(super) fn new(protocol: HostileProtocol) -> Self {
        Self { protocol }
    }

    pub(super) fn is_old(self) -> bool {
        self.protocol == HostileProtocol::OldJsonRpc
    }

    fn state(self, state: &str) -> String {
        if self.is_old() {
            state.to_ascii_lowercase().replace('_', "-")
        } else {
            format!("TASK_STATE_{state}")
        }
    }

    pub(super) fn text(self, text: &str) -> Value {
        if self.is_old() { json!({"kind": "text", "text": text}) } else { json!({"text": text}) }
    }

    pub(super) fn file(self, name: &str, base64: &str) -> Value {
        if self.is_old() {
            json!({"kind": "file", "file": {"bytes": base64, "name": name, "mimeType": "text/plain"}})
        } else {
            json!({"raw": base64, "filename": name, "mediaType": "text/plain"})
        }
    }

    pub(super) fn data(self, data: &Value) -> Value {
        if self.is_old() { json!({"kind": "data", "data": data}) } else { json!({"data": data}) }
    }

    pub(super) fn link(self, url: &str) -> Value {
        if self.is_old() {
            json!({"kind": "file", "file": {"uri": url}})
        } else {
            json!({"url": url})
        }
    }

    pub(super) fn task(self, id: &str, state: &str, artifacts: Value) -> Value {
        let mut task = json!({
            "id": id, "contextId": CONTEXT, "status": {"state": self.state(state)},
        });
        if self.is_old() {
            task["kind"] = "task".into();
        }
        if !artifacts.is_null() {
            task["artifacts"] = artifacts;
        }
        task
    }

    pub(super) fn done(self, id: &str) -> Value {
        self.task(id, "COMPLETED", response(&json!([self.text("done")])))
    }

    pub(super) fn update(self, id: &str, state: &str) -> Value {
        let update = json!({
            "taskId": id, "contextId": CONTEXT, "status": {"state": self.state(state)},
        });
        if self.is_old() {
            old_update(update, "status-update")
        } else {
            json!({"statusUpdate": update})
        }
    }

    /// The answer to a call that holds `result`.
    pub(super) fn wrap(self, heard: &HostileHeard, result: &Value) -> Value {
        match self.protocol {
            HostileProtocol::HttpJson => result.clone(),
            HostileProtocol::JsonRpc | HostileProtocol::OldJsonRpc => {
                json!({"jsonrpc": "2.0", "id": heard.body["id"], "result": result})
            }
        }
    }

    /// The answer to a call that is about a task.
    pub(super) fn answer(self, heard: &HostileHeard, task: &Value) -> Value {
        let is_sent = heard.asks == "SendMessage";
        let is_named = is_sent && !self.is_old();
        self.wrap(heard, &if is_named { json!({"task": task}) } else { task.clone() })
    }

    /// An event of a stream.
    pub(super) fn event(self, heard: &HostileHeard, event: &Value) -> String {
        format!("data: {}\n\n", self.wrap(heard, event))
    }

    pub(super) fn task_event(self, heard: &HostileHeard, task: &Value) -> String {
        let event = if self.is_old() { task.clone() } else { json!({"task": task}) };
        self.event(heard, &event)
    }
}

pub(super) fn old_update(mut update: Value, kind: &str) -> Value {
    update["kind"] = kind.into();
    if kind == "status-update" {
        update["final"] = false.into();
    }
    update
}

pub(super) fn task_of(heard: &HostileHeard) -> String {
    heard.task().unwrap_or(TASK).to_owned()
}

pub(super) fn nested(depth: u64) -> Content {
    Content::default().times("[", depth).times("]", depth)
}

/// `count` times `item`, with commas between.
pub(super) fn items(item: &Value, count: u64) -> Content {
    let item = item.to_string();
    Content::default().times(format!("{item},"), count.saturating_sub(1)).then(item)
}

/// The artifact that is the answer, of these parts.
pub(super) fn response(parts: &Value) -> Value {
    json!([{"artifactId": "response", "parts": parts}])
}

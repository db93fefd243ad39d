//! What is told apart by a wrapper in 1.0 and by `kind` in 0.3.

use std::{collections::BTreeSet, fmt};

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, json, value::RawValue};

use super::content;
use crate::wire::{Dialect, Key, KeySeed, Reading, not_text};

/// What an event or an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Task,
    Message,
    StatusUpdate,
    ArtifactUpdate,
    /// Nothing of 0.3.
    Unknown,
}

/// Looks at the outermost members: the kind, or what is there where none is given.
pub(super) fn kind_of(event: &str) -> serde_json::Result<EventKind> {
    let seen: Seen = serde_json::from_str(event)?;
    let has = |name: &str| seen.names.contains(&name);
    Ok(seen.kind.unwrap_or(if has("messageId") {
        EventKind::Message
    } else if has("artifact") {
        EventKind::ArtifactUpdate
    } else if has("taskId") && has("status") {
        EventKind::StatusUpdate
    } else if has("id") && has("status") {
        EventKind::Task
    } else {
        EventKind::Unknown
    }))
}

/// The members that tell events apart.
const NAMES: [&str; 5] = ["messageId", "artifact", "taskId", "status", "id"];

/// What the outermost members of an event show.
#[derive(Default)]
struct Seen {
    kind: Option<EventKind>,
    names: BTreeSet<&'static str>,
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SeenVisitor)
    }
}

struct SeenVisitor;

impl<'de> Visitor<'de> for SeenVisitor {
    type Value = Seen;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object of an event")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(not_text(text, &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Seen, A::Error> {
        let reading = Reading::answer(0, Dialect::V03);
        let mut seen = Seen::default();
        while let Some(Key(key)) = map.next_key_seed(KeySeed(&reading))? {
            match &*key {
                "kind" => {
                    let kind: &'de RawValue = map.next_value()?;
                    seen.kind = match kind.get() {
                        "\"task\"" => Some(EventKind::Task),
                        "\"message\"" => Some(EventKind::Message),
                        "\"status-update\"" => Some(EventKind::StatusUpdate),
                        "\"artifact-update\"" => Some(EventKind::ArtifactUpdate),
                        text if text.starts_with('"') => Some(EventKind::Unknown),
                        _ => None,
                    };
                    continue;
                }
                other => seen.names.extend(NAMES.iter().filter(|name| **name == other)),
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(seen)
    }
}

/// Rewrites a wrapped task, message or update into the bare one.
pub(super) fn write(event: Value) -> Value {
    let Value::Object(mut members) = event else { return event };
    if let Some(mut task) = members.remove("task") {
        content::write_task(&mut task);
        return task;
    }
    if let Some(mut message) = members.remove("message") {
        content::write_message(&mut message);
        return message;
    }
    let (kind, update) = match (members.remove("statusUpdate"), members.remove("artifactUpdate")) {
        (Some(update), _) => ("status-update", update),
        (None, Some(update)) => ("artifact-update", update),
        (None, None) => return Value::Object(members),
    };
    let Value::Object(mut update) = update else { return update };
    super::one(&mut update, "status", content::write_status);
    super::one(&mut update, "artifact", content::write_artifact);
    update.insert("kind".to_owned(), json!(kind));
    Value::Object(update)
}

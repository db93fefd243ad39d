//! One task as it is kept: the task, whose it is, and who is to be told about it.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, Visitor},
    ser::SerializeMap as _,
};
use volcanic_a2a_types::{JsonObject, PushConfigId, Task, TaskPushNotificationConfig, TaskStatus};

use super::TaskSummary;

/// A task with everything that must survive a restart.
///
/// Its JSON holds tokens and credentials of webhooks: it is for the owner's eyes only.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct TaskRecord {
    /// The task.
    pub task: Task,
    /// The name of the caller it belongs to.
    pub caller: String,
    /// Webhooks to call at every change of status.
    pub push_configs: Vec<TaskPushNotificationConfig>,
    /// Calls still to be made, oldest first.
    pub pending_push: Vec<PendingPush>,
    /// Members this version does not know, kept as they came.
    pub extra: JsonObject,
}

/// A call of a webhook that is still to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingPush {
    /// The configuration that wants it.
    pub config_id: PushConfigId,
    /// The status it tells of.
    pub status: TaskStatus,
}

impl TaskRecord {
    /// Creates the record of a new task.
    pub fn new(task: Task, caller: impl Into<String>) -> Self {
        Self {
            task,
            caller: caller.into(),
            push_configs: Vec::new(),
            pending_push: Vec::new(),
            extra: JsonObject::new(),
        }
    }

    /// What lists need to know.
    pub fn summary(&self) -> TaskSummary {
        let status = &self.task.status;
        TaskSummary {
            id: self.task.id.clone(),
            caller: self.caller.clone(),
            context_id: self.task.context_id.clone(),
            state: status.state.clone(),
            status_at: status.timestamp.map_or(0, |at| at.get().as_millisecond()),
            has_push_configs: !self.push_configs.is_empty(),
            has_pending_push: !self.pending_push.is_empty(),
        }
    }
}

/// Shows no webhook: its token and its URL are secrets.
impl fmt::Debug for TaskRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRecord")
            .field("task", &self.task.id)
            .field("state", &self.task.status.state)
            .field("caller", &self.caller)
            .field("push_configs", &self.push_configs.len())
            .field("pending_push", &self.pending_push.len())
            .finish_non_exhaustive()
    }
}

impl Serialize for TaskRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("caller", &self.caller)?;
        map.serialize_entry("task", &self.task)?;
        if !self.push_configs.is_empty() {
            map.serialize_entry("pushConfigs", &self.push_configs)?;
        }
        if !self.pending_push.is_empty() {
            map.serialize_entry("pendingPush", &self.pending_push)?;
        }
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// By hand, so that unknown members survive and a large task is not buffered for them.
impl<'de> Deserialize<'de> for TaskRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RecordVisitor;

        impl<'de> Visitor<'de> for RecordVisitor {
            type Value = TaskRecord;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a kept task")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TaskRecord, A::Error> {
                let (mut task, mut caller) = (None, None);
                let (mut push_configs, mut pending_push) = (Vec::new(), Vec::new());
                let mut extra = JsonObject::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "task" => task = Some(map.next_value()?),
                        "caller" => caller = Some(map.next_value()?),
                        "pushConfigs" => push_configs = map.next_value()?,
                        "pendingPush" => pending_push = map.next_value()?,
                        _ => {
                            extra.insert(key, map.next_value()?);
                        }
                    }
                }
                Ok(TaskRecord {
                    task: task.ok_or_else(|| de::Error::missing_field("task"))?,
                    caller: caller.ok_or_else(|| de::Error::missing_field("caller"))?,
                    push_configs,
                    pending_push,
                    extra,
                })
            }
        }

        deserializer.deserialize_map(RecordVisitor)
    }
}

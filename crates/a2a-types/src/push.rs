//! Webhooks: where an agent reports a task's changes without being asked.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    PushConfigId, TaskId,
    wire::{Reading, WireValue, wire_object},
};

/// A secret of the protocol. Its `Debug` hides it; only [`Credential::expose`] gives it out.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Credential(String);

impl Credential {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Credential {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

impl From<String> for Credential {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(***)")
    }
}

impl<'de> WireValue<'de> for Credential {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Self>, D::Error> {
        Ok(<String as WireValue>::read(deserializer, reading)?.map(Self))
    }
}

wire_object! {
    /// Where to report a task's changes (specification: `TaskPushNotificationConfig`); request and answer alike.
    pub struct TaskPushNotificationConfig {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// The configuration's own id; the agent makes one if there is none.
        id: Option<PushConfigId> = Optional("id"),
        /// The task; left out inside a `SendMessage`.
        task_id: Option<TaskId> = Optional("taskId" | "task_id"),
        /// The webhook.
        url: String = Required("url"),
        /// A value the agent sends along, so that the receiver knows who asked for this.
        token: Option<Credential> = Optional("token"),
        /// How the agent proves itself to the webhook.
        authentication: Option<AuthenticationInfo> = Optional("authentication"),
    }
}

wire_object! {
    /// How an agent proves itself to a webhook (specification: `AuthenticationInfo`).
    pub struct AuthenticationInfo {
        /// The HTTP authentication scheme, in any case: `Bearer`, `Basic`.
        scheme: String = Required("scheme"),
        /// What follows the scheme in the header.
        credentials: Option<Credential> = Optional("credentials"),
    }
}

wire_object! {
    /// Reads a push configuration (specification: `GetTaskPushNotificationConfigRequest`).
    pub struct GetTaskPushNotificationConfigRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// The task.
        task_id: TaskId = Required("taskId" | "task_id"),
        /// The configuration.
        id: PushConfigId = Required("id"),
    }
}

wire_object! {
    /// Removes a push configuration (specification: `DeleteTaskPushNotificationConfigRequest`).
    pub struct DeleteTaskPushNotificationConfigRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// The task.
        task_id: TaskId = Required("taskId" | "task_id"),
        /// The configuration.
        id: PushConfigId = Required("id"),
    }
}

wire_object! {
    /// Lists a task's push configurations (specification: `ListTaskPushNotificationConfigsRequest`).
    pub struct ListTaskPushNotificationConfigsRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// The task.
        task_id: TaskId = Required("taskId" | "task_id"),
        /// How many to return; 0 leaves it to the agent.
        page_size: i32 = Plain("pageSize" | "page_size"),
        /// Where the page before ended.
        page_token: Option<String> = Optional("pageToken" | "page_token"),
    }
}

wire_object! {
    /// A page of push configurations (specification: `ListTaskPushNotificationConfigsResponse`).
    #[derive(Default)]
    pub struct ListTaskPushNotificationConfigsResponse {
        /// The configurations.
        configs: Vec<TaskPushNotificationConfig> = List("configs"),
        /// Where the next page begins; absent on the last one.
        next_page_token: Option<String> = Optional("nextPageToken" | "next_page_token"),
    }
}

impl TaskPushNotificationConfig {
    /// Creates a configuration that belongs to no task yet.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            tenant: None,
            id: None,
            task_id: None,
            url: url.into(),
            token: None,
            authentication: None,
        }
    }

    /// Sets the task.
    #[must_use]
    pub fn with_task(mut self, task_id: impl Into<TaskId>) -> Self {
        self.task_id = Some(task_id.into());
        self
    }
}

impl AuthenticationInfo {
    /// Creates a `Bearer` authentication.
    pub fn bearer(token: impl Into<Credential>) -> Self {
        Self { scheme: "Bearer".to_owned(), credentials: Some(token.into()) }
    }
}

impl GetTaskPushNotificationConfigRequest {
    /// Creates a request.
    pub fn new(task_id: impl Into<TaskId>, id: impl Into<PushConfigId>) -> Self {
        Self { tenant: None, task_id: task_id.into(), id: id.into() }
    }
}

impl DeleteTaskPushNotificationConfigRequest {
    /// Creates a request.
    pub fn new(task_id: impl Into<TaskId>, id: impl Into<PushConfigId>) -> Self {
        Self { tenant: None, task_id: task_id.into(), id: id.into() }
    }
}

impl ListTaskPushNotificationConfigsRequest {
    /// Creates a request for the first page.
    pub fn new(task_id: impl Into<TaskId>) -> Self {
        Self { tenant: None, task_id: task_id.into(), page_size: 0, page_token: None }
    }
}

impl ListTaskPushNotificationConfigsResponse {
    /// Creates a last page.
    pub fn new(configs: Vec<TaskPushNotificationConfig>) -> Self {
        Self { configs, next_page_token: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_of_a_configuration_shows_no_secret() {
        let mut config = TaskPushNotificationConfig::new("https://hook.example/1");
        config.token = Some("hunter2".into());
        config.authentication = Some(AuthenticationInfo::bearer("hunter2"));
        let shown = format!("{config:?}");
        assert!(!shown.contains("hunter2") && shown.contains("hook.example"), "{shown}");
    }

    #[test]
    fn secrets_are_written_on_the_wire() {
        let mut config = TaskPushNotificationConfig::new("u").with_task("t");
        (config.id, config.token) = (Some("c".into()), Some("k".into()));
        assert_eq!(
            serde_json::to_string(&config).unwrap(),
            r#"{"id":"c","taskId":"t","url":"u","token":"k"}"#
        );
    }
}

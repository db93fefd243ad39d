//! What a client asks for, and the answers that are no task.

use crate::{
    ContextId, JsonObject, Message, Task, TaskId, TaskPushNotificationConfig, TaskState,
    WireTimestamp, wire::wire_object,
};

wire_object! {
    /// Sends a message (specification: `SendMessageRequest`). Reading refuses a message without parts,
    /// and a part that does not hold exactly one kind of content.
    pub struct SendMessageRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// What is sent.
        message: Message = Sent("message"),
        /// How the answer should be.
        configuration: Option<SendMessageConfiguration> = Optional("configuration"),
        /// Further values, keyed by extension.
        metadata: Option<JsonObject> = Optional("metadata"),
    }
}

wire_object! {
    /// How the answer to a message should be (specification: `SendMessageConfiguration`).
    #[derive(Default)]
    pub struct SendMessageConfiguration {
        /// The media types the client can take.
        accepted_output_modes: Vec<String> = List("acceptedOutputModes" | "accepted_output_modes"),
        /// A webhook for the task that this call creates or continues; it names no task itself.
        task_push_notification_config: Option<TaskPushNotificationConfig> =
            Optional("taskPushNotificationConfig" | "task_push_notification_config"),
        /// How many messages of the history to return at most; absent leaves it to the agent, 0 means none.
        history_length: Option<i32> = Optional("historyLength" | "history_length"),
        /// Whether to answer as soon as the task exists, instead of when it is settled.
        return_immediately: bool = Plain("returnImmediately" | "return_immediately"),
    }
}

wire_object! {
    /// Reads a task (specification: `GetTaskRequest`).
    pub struct GetTaskRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// The task.
        id: TaskId = Required("id"),
        /// How many messages of the history to return at most; absent leaves it to the agent, 0 means none.
        history_length: Option<i32> = Optional("historyLength" | "history_length"),
    }
}

wire_object! {
    /// Lists tasks, the newest status first (specification: `ListTasksRequest`). Filters narrow each other.
    #[derive(Default)]
    pub struct ListTasksRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// Only tasks of this context.
        context_id: Option<ContextId> = Optional("contextId" | "context_id"),
        /// Only tasks in this state; [`TaskState::Unspecified`] is no filter.
        status: Option<TaskState> = Optional("status"),
        /// How many to return, 1 to 100; absent means 50.
        page_size: Option<i32> = Optional("pageSize" | "page_size"),
        /// Where the page before ended.
        page_token: Option<String> = Optional("pageToken" | "page_token"),
        /// How many messages of each history to return at most; absent leaves it to the agent, 0 means none.
        history_length: Option<i32> = Optional("historyLength" | "history_length"),
        /// Only tasks whose status is of this moment or later.
        status_timestamp_after: Option<WireTimestamp> =
            Optional("statusTimestampAfter" | "status_timestamp_after"),
        /// Whether to return artifacts too.
        include_artifacts: Option<bool> = Optional("includeArtifacts" | "include_artifacts"),
    }
}

wire_object! {
    /// A page of tasks (specification: `ListTasksResponse`).
    #[derive(Default)]
    pub struct ListTasksResponse {
        /// The tasks.
        tasks: Vec<Task> = Array("tasks"),
        /// Where the next page begins; empty on the last one.
        next_page_token: String = Always("nextPageToken" | "next_page_token"),
        /// How many tasks a page has at most.
        page_size: i32 = Always("pageSize" | "page_size"),
        /// How many tasks match, on all pages.
        total_size: i32 = Always("totalSize" | "total_size"),
    }
}

wire_object! {
    /// Asks a task to stop (specification: `CancelTaskRequest`).
    pub struct CancelTaskRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// The task.
        id: TaskId = Required("id"),
        /// Further values, such as a reason.
        metadata: Option<JsonObject> = Optional("metadata"),
    }
}

wire_object! {
    /// Follows a task that has not ended (specification: `SubscribeToTaskRequest`).
    pub struct SubscribeToTaskRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
        /// The task.
        id: TaskId = Required("id"),
    }
}

wire_object! {
    /// Reads the card for authenticated callers (specification: `GetExtendedAgentCardRequest`).
    #[derive(Default)]
    pub struct GetExtendedAgentCardRequest {
        /// The routing key of the chosen interface.
        tenant: Option<String> = Optional("tenant"),
    }
}

impl SendMessageRequest {
    /// Creates a request that leaves everything else to the agent.
    pub fn new(message: Message) -> Self {
        Self { tenant: None, message, configuration: None, metadata: None }
    }
}

impl SendMessageConfiguration {
    /// Asks for an answer as soon as the task exists.
    pub fn immediate() -> Self {
        Self { return_immediately: true, ..Self::default() }
    }
}

impl GetTaskRequest {
    /// Creates a request for a task and as much history as the agent gives.
    pub fn new(id: impl Into<TaskId>) -> Self {
        Self { tenant: None, id: id.into(), history_length: None }
    }
}

impl CancelTaskRequest {
    /// Creates a request without a reason.
    pub fn new(id: impl Into<TaskId>) -> Self {
        Self { tenant: None, id: id.into(), metadata: None }
    }
}

impl SubscribeToTaskRequest {
    /// Creates a request.
    pub fn new(id: impl Into<TaskId>) -> Self {
        Self { tenant: None, id: id.into() }
    }
}

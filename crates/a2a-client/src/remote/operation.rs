//! What an agent can be asked for, each in one place for every binding.

use serde::{Serialize, Serializer};
use volcanic_a2a_types::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, FromWire,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, METHOD_CANCEL_TASK, METHOD_CREATE_PUSH_CONFIG, METHOD_DELETE_PUSH_CONFIG,
    METHOD_GET_EXTENDED_CARD, METHOD_GET_PUSH_CONFIG, METHOD_GET_TASK, METHOD_LIST_PUSH_CONFIGS,
    METHOD_LIST_TASKS, METHOD_SEND_MESSAGE, METHOD_SEND_STREAMING_MESSAGE,
    METHOD_SUBSCRIBE_TO_TASK, Route, SendMessageRequest, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, Task, TaskId, TaskPushNotificationConfig,
};

use super::{glimpse::Asked, page::TaskPage};

/// A request, the same for every binding: what it serialises to is the parameters over JSON-RPC and the body, if there
/// is one, over HTTP+JSON.
pub(super) trait Operation: Serialize + Sync {
    /// What comes back; of a stream, what each event is.
    type Answer: FromWire;

    /// The name in the specification, which is the method over JSON-RPC.
    const METHOD: &'static str;

    /// Verb and path over HTTP+JSON.
    fn route(&self) -> Route;

    /// The task that comes back, if one does.
    fn asked(&self) -> Asked<'_> {
        Asked::Nothing
    }

    /// The query string over HTTP+JSON.
    fn query(&self) -> String {
        String::new()
    }
}

impl Operation for SendMessageRequest {
    type Answer = SendMessageResponse;
    const METHOD: &'static str = METHOD_SEND_MESSAGE;

    fn route(&self) -> Route {
        Route::SendMessage
    }

    fn asked(&self) -> Asked<'_> {
        Asked::TaskOf(&self.message)
    }
}

/// A message whose outcome is followed.
pub(super) struct StreamMessage(pub(super) SendMessageRequest);

impl Serialize for StreamMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Operation for StreamMessage {
    type Answer = StreamResponse;
    const METHOD: &'static str = METHOD_SEND_STREAMING_MESSAGE;

    fn route(&self) -> Route {
        Route::SendStreamingMessage
    }
}

impl Operation for GetTaskRequest {
    type Answer = Task;
    const METHOD: &'static str = METHOD_GET_TASK;

    fn route(&self) -> Route {
        Route::GetTask(self.id.clone())
    }

    fn asked(&self) -> Asked<'_> {
        Asked::Task(&self.id)
    }

    fn query(&self) -> String {
        self.to_query()
    }
}

impl Operation for ListTasksRequest {
    type Answer = TaskPage;
    const METHOD: &'static str = METHOD_LIST_TASKS;

    fn route(&self) -> Route {
        Route::ListTasks
    }

    fn query(&self) -> String {
        self.to_query()
    }
}

impl Operation for CancelTaskRequest {
    type Answer = Task;
    const METHOD: &'static str = METHOD_CANCEL_TASK;

    fn route(&self) -> Route {
        Route::CancelTask(self.id.clone())
    }

    fn asked(&self) -> Asked<'_> {
        Asked::Task(&self.id)
    }
}

impl Operation for SubscribeToTaskRequest {
    type Answer = StreamResponse;
    const METHOD: &'static str = METHOD_SUBSCRIBE_TO_TASK;

    fn route(&self) -> Route {
        Route::SubscribeToTask(self.id.clone())
    }
}

impl Operation for TaskPushNotificationConfig {
    type Answer = Self;
    const METHOD: &'static str = METHOD_CREATE_PUSH_CONFIG;

    fn route(&self) -> Route {
        // Without a task there is no such path, as the agent will say.
        Route::CreatePushConfig(self.task_id.clone().unwrap_or_else(|| TaskId::from("")))
    }
}

impl Operation for GetTaskPushNotificationConfigRequest {
    type Answer = TaskPushNotificationConfig;
    const METHOD: &'static str = METHOD_GET_PUSH_CONFIG;

    fn route(&self) -> Route {
        Route::GetPushConfig(self.task_id.clone(), self.id.clone())
    }
}

impl Operation for ListTaskPushNotificationConfigsRequest {
    type Answer = ListTaskPushNotificationConfigsResponse;
    const METHOD: &'static str = METHOD_LIST_PUSH_CONFIGS;

    fn route(&self) -> Route {
        Route::ListPushConfigs(self.task_id.clone())
    }

    fn query(&self) -> String {
        self.to_query()
    }
}

impl Operation for DeleteTaskPushNotificationConfigRequest {
    /// Some agents answer with null, some with an empty object, some with nothing.
    type Answer = ();
    const METHOD: &'static str = METHOD_DELETE_PUSH_CONFIG;

    fn route(&self) -> Route {
        Route::DeletePushConfig(self.task_id.clone(), self.id.clone())
    }
}

impl Operation for GetExtendedAgentCardRequest {
    type Answer = AgentCard;
    const METHOD: &'static str = METHOD_GET_EXTENDED_CARD;

    fn route(&self) -> Route {
        Route::GetExtendedCard
    }
}

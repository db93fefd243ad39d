//! The SDK's handler with what no executor can do: deviations that agents in the wild have.

use a2a::{
    A2AError, AgentCard, Artifact, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, Part, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig, TaskState,
    TaskStatus,
};
use a2a_server::{
    DefaultRequestHandler, InMemoryPushConfigStore, PushConfigStore, RequestHandler, ServiceParams,
};
use async_trait::async_trait;
use futures::{StreamExt, stream::BoxStream};

pub struct OddHandler {
    inner: DefaultRequestHandler,
    broken: bool,
}

impl OddHandler {
    pub fn new(inner: DefaultRequestHandler, broken: bool) -> Self {
        Self { inner, broken }
    }
}

/// What a broken agent says of a task that it does not know.
fn made_up(id: String) -> Task {
    let artifact = Artifact {
        artifact_id: "response".into(),
        name: None,
        description: None,
        parts: vec![Part::text("made up")],
        metadata: None,
        extensions: None,
    };
    let status = TaskStatus { state: TaskState::Completed, message: None, timestamp: None };
    Task {
        id,
        context_id: String::new(),
        status,
        artifacts: Some(vec![artifact]),
        history: None,
        metadata: None,
    }
}

/// Whether a task is one whose stream ends before it tells of the end.
fn is_followed(task: &Task) -> bool {
    let said = task.history.iter().flatten().next().and_then(|message| message.text());
    said.is_some_and(|said| said.starts_with("follow "))
}

type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

#[async_trait]
impl RequestHandler for OddHandler {
    async fn send_message(
        &self,
        params: &ServiceParams,
        mut req: SendMessageRequest,
    ) -> Result<SendMessageResponse, A2AError> {
        let holds = req.message.text().is_some_and(|text| text.starts_with("hold "));
        if let Some(configuration) = req.configuration.as_mut().filter(|_| holds && !self.broken) {
            configuration.return_immediately = Some(false);
        }
        self.inner.send_message(params, req).await
    }

    async fn send_streaming_message(
        &self,
        params: &ServiceParams,
        req: SendMessageRequest,
    ) -> Result<Events, A2AError> {
        self.inner.send_streaming_message(params, req).await
    }

    async fn get_task(
        &self,
        params: &ServiceParams,
        req: GetTaskRequest,
    ) -> Result<Task, A2AError> {
        let id = req.id.clone();
        match self.inner.get_task(params, req).await {
            Err(_) if self.broken => Ok(made_up(id)),
            read => read,
        }
    }

    async fn list_tasks(
        &self,
        params: &ServiceParams,
        req: ListTasksRequest,
    ) -> Result<ListTasksResponse, A2AError> {
        let mut page = self.inner.list_tasks(params, req).await?;
        if self.broken {
            page.tasks.truncate(1);
        }
        Ok(page)
    }

    async fn cancel_task(
        &self,
        params: &ServiceParams,
        req: CancelTaskRequest,
    ) -> Result<Task, A2AError> {
        if self.broken {
            let asked = GetTaskRequest { id: req.id, history_length: None, tenant: None };
            return self.inner.get_task(params, asked).await;
        }
        self.inner.cancel_task(params, req).await
    }

    async fn subscribe_to_task(
        &self,
        params: &ServiceParams,
        req: SubscribeToTaskRequest,
    ) -> Result<Events, A2AError> {
        let asked = GetTaskRequest { id: req.id.clone(), history_length: None, tenant: None };
        let events = self.inner.subscribe_to_task(params, req).await?;
        if self.broken && is_followed(&self.inner.get_task(params, asked).await?) {
            let goes_on = |event: &Result<StreamResponse, A2AError>| {
                let ends = matches!(event, Ok(StreamResponse::StatusUpdate(update)) if update.status.state.is_terminal());
                std::future::ready(!ends)
            };
            return Ok(events.take_while(goes_on).boxed());
        }
        Ok(events)
    }

    async fn create_push_config(
        &self,
        params: &ServiceParams,
        req: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        self.inner.create_push_config(params, req).await
    }

    async fn get_push_config(
        &self,
        params: &ServiceParams,
        req: GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        self.inner.get_push_config(params, req).await
    }

    async fn list_push_configs(
        &self,
        params: &ServiceParams,
        req: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, A2AError> {
        self.inner.list_push_configs(params, req).await
    }

    async fn delete_push_config(
        &self,
        params: &ServiceParams,
        req: DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), A2AError> {
        if self.broken { Ok(()) } else { self.inner.delete_push_config(params, req).await }
    }

    async fn get_extended_agent_card(
        &self,
        params: &ServiceParams,
        req: GetExtendedAgentCardRequest,
    ) -> Result<AgentCard, A2AError> {
        self.inner.get_extended_agent_card(params, req).await
    }
}

/// Webhooks, without those of watches: nobody is called who waits for it. (A sender that fails would keep the SDK from noting
/// that a task has ended.)
#[derive(Default)]
pub struct Deaf(InMemoryPushConfigStore);

#[async_trait]
impl PushConfigStore for Deaf {
    async fn save(
        &self,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2AError> {
        self.0.save(config).await
    }

    async fn get(&self, task_id: &str, id: &str) -> Result<TaskPushNotificationConfig, A2AError> {
        self.0.get(task_id, id).await
    }

    async fn list(&self, task_id: &str) -> Result<Vec<TaskPushNotificationConfig>, A2AError> {
        let mut configs = self.0.list(task_id).await?;
        configs.retain(|config| !config.url.contains("/a2a/push/"));
        Ok(configs)
    }

    async fn delete(&self, task_id: &str, id: &str) -> Result<(), A2AError> {
        self.0.delete(task_id, id).await
    }

    async fn delete_all(&self, task_id: &str) -> Result<(), A2AError> {
        self.0.delete_all(task_id).await
    }
}

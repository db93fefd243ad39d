//! The webhooks of a task.

use volcanic_a2a_types::{
    DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, PushConfigId,
    TaskId, TaskPushNotificationConfig,
};

use volcanic_base::Secret;

use super::RemoteAgent;
use crate::ClientError;

impl RemoteAgent {
    /// Registers a webhook for a task and returns what the agent made of it.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn create_push_config(
        &self,
        mut config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        config.tenant = self.tenant();
        // A refusal may repeat them.
        let credentials = config.authentication.as_ref().and_then(|how| how.credentials.as_ref());
        let scrubber = self.inner.binding.line().scrubber();
        let sent = config.token.iter().chain(credentials);
        let sent: Vec<_> = sent.map(|secret| Secret::new(secret.expose())).collect();
        let _concealed = scrubber.learn(&sent);
        let made = self.inner.binding.call(&config).await?;
        match &config.task_id {
            Some(task_id) => self.checked_config(made, task_id, config.id.as_ref()),
            None => Ok(made),
        }
    }

    /// Reads a webhook of a task.
    ///
    /// # Errors
    ///
    /// [`ClientError`], also if another webhook comes back.
    pub async fn get_push_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        let mut request = GetTaskPushNotificationConfigRequest::new(task_id.clone(), id.clone());
        request.tenant = self.tenant();
        self.checked_config(self.inner.binding.call(&request).await?, task_id, Some(id))
    }

    /// Lists the webhooks of a task. A2A 0.3 has one page.
    ///
    /// # Errors
    ///
    /// [`ClientError`], also if webhooks of another task come back.
    pub async fn list_push_configs(
        &self,
        mut request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, ClientError> {
        request.tenant = self.tenant();
        let page = self.inner.binding.call(&request).await?;
        let is_other = |config: &TaskPushNotificationConfig| {
            config.task_id.as_ref().is_some_and(|found| *found != request.task_id)
        };
        if page.configs.iter().any(is_other) {
            return Err(self.unexpected("it is about another task"));
        }
        Ok(page)
    }

    /// Removes a webhook of a task.
    ///
    /// # Errors
    ///
    /// [`ClientError`].
    pub async fn delete_push_config(
        &self,
        task_id: &TaskId,
        id: &PushConfigId,
    ) -> Result<(), ClientError> {
        let mut request = DeleteTaskPushNotificationConfigRequest::new(task_id.clone(), id.clone());
        request.tenant = self.tenant();
        self.inner.binding.call(&request).await
    }

    fn checked_config(
        &self,
        config: TaskPushNotificationConfig,
        task_id: &TaskId,
        id: Option<&PushConfigId>,
    ) -> Result<TaskPushNotificationConfig, ClientError> {
        if config.task_id.as_ref().is_some_and(|found| found != task_id) {
            return Err(self.unexpected("it is about another task"));
        }
        match (id, &config.id) {
            (Some(asked), Some(found)) if asked != found => {
                Err(self.unexpected("it is about another webhook"))
            }
            (Some(_), Some(_)) | (None, _) | (_, None) => Ok(config),
        }
    }
}

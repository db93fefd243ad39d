//! Webhooks of tasks.

use url::Url;
use volcanic_a2a_types::{
    Credential, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, PushConfigId,
    TaskPushNotificationConfig,
};

use super::{Core, Operations};
use crate::{caller::Caller, error::OperationError, store::TaskRecord};

impl Operations {
    /// Registers a webhook for a task; one with the same id is replaced.
    ///
    /// # Errors
    ///
    /// [`OperationError::PushNotSupported`], [`OperationError::TaskNotFound`], [`OperationError::InvalidParams`].
    pub async fn create_push_config(
        &self,
        caller: &Caller,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| core.create_push_config(&caller, config).await).await
    }

    /// Reads one webhook of a task.
    ///
    /// # Errors
    ///
    /// [`OperationError::PushNotSupported`], [`OperationError::TaskNotFound`],
    /// [`OperationError::PushConfigNotFound`].
    pub async fn get_push_config(
        &self,
        caller: &Caller,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| {
            core.needs_pushes()?;
            let cell = core.tasks.cell(&request.task_id);
            let mut state = cell.lock(&core.tasks).await?;
            let record = state.record_of(&caller.name)?;
            let mut configs = record.push_configs.iter();
            let found = configs.find(|config| config.id.as_ref() == Some(&request.id));
            found.cloned().ok_or(OperationError::PushConfigNotFound)
        })
        .await
    }

    /// Lists the webhooks of a task, all on one page: there are few.
    ///
    /// # Errors
    ///
    /// [`OperationError::PushNotSupported`], [`OperationError::TaskNotFound`].
    pub async fn list_push_configs(
        &self,
        caller: &Caller,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| {
            core.needs_pushes()?;
            let cell = core.tasks.cell(&request.task_id);
            let mut state = cell.lock(&core.tasks).await?;
            let configs = state.record_of(&caller.name)?.push_configs.clone();
            Ok(ListTaskPushNotificationConfigsResponse::new(configs))
        })
        .await
    }

    /// Removes a webhook, and with it what was to be sent there. Removing a missing one succeeds.
    ///
    /// # Errors
    ///
    /// [`OperationError::PushNotSupported`], [`OperationError::TaskNotFound`].
    pub async fn delete_push_config(
        &self,
        caller: &Caller,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), OperationError> {
        let caller = caller.clone();
        self.run(async move |core| core.delete_push_config(&caller, &request).await).await
    }
}

impl Core {
    fn needs_pushes(&self) -> Result<(), OperationError> {
        if self.tasks.sends_pushes() { Ok(()) } else { Err(OperationError::PushNotSupported) }
    }

    async fn create_push_config(
        &self,
        caller: &Caller,
        mut config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, OperationError> {
        self.needs_pushes()?;
        let missing = || OperationError::invalid("taskId", "is required");
        let task_id = config.task_id.take().ok_or_else(missing)?;
        let mut config = self.checked_config(config, "")?;
        config.task_id = Some(task_id.clone());
        let cell = self.tasks.cell(&task_id);
        let mut state = cell.lock(&self.tasks).await?;
        let record = state.record_of(&caller.name)?;
        let former = record.push_configs.clone();
        put(record, config.clone(), self.config.push.max_configs)?;
        if let Err(error) = self.tasks.store().save(record).await {
            record.push_configs = former;
            return Err(error.into());
        }
        Ok(config)
    }

    async fn delete_push_config(
        &self,
        caller: &Caller,
        request: &DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), OperationError> {
        self.needs_pushes()?;
        let cell = self.tasks.cell(&request.task_id);
        let mut state = cell.lock(&self.tasks).await?;
        let record = state.record_of(&caller.name)?;
        let (configs, pending) = (record.push_configs.clone(), record.pending_push.clone());
        record.push_configs.retain(|config| config.id.as_ref() != Some(&request.id));
        if record.push_configs.len() == configs.len() {
            return Ok(());
        }
        record.pending_push.retain(|pending| pending.config_id != request.id);
        if let Err(error) = self.tasks.store().save(record).await {
            (record.push_configs, record.pending_push) = (configs, pending);
            return Err(error.into());
        }
        Ok(())
    }

    /// Checks a webhook and gives it an id. A secret in it is never part of an error.
    pub(super) fn checked_config(
        &self,
        mut config: TaskPushNotificationConfig,
        at: &str,
    ) -> Result<TaskPushNotificationConfig, OperationError> {
        self.needs_pushes()?;
        let field =
            |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        let allow_http = self.config.push.allow_http;
        let usable = Url::parse(&config.url).is_ok_and(|url| {
            let scheme = url.scheme() == "https" || (allow_http && url.scheme() == "http");
            scheme && url.host().is_some() && url.username().is_empty() && url.password().is_none()
        });
        if !usable {
            let problem = if allow_http {
                "must be an http or https URL without user name"
            } else {
                "must be an https URL without user name"
            };
            return Err(OperationError::invalid(&field("url"), problem));
        }
        let printable = |text: &str| http::HeaderValue::from_str(text).is_ok();
        let sendable = |secret: &Credential| printable(secret.expose());
        if !config.token.as_ref().is_none_or(sendable) {
            return Err(OperationError::invalid(&field("token"), "cannot be sent in a header"));
        }
        let usable = config.authentication.as_ref().is_none_or(|authentication| {
            printable(&authentication.scheme)
                && authentication.credentials.as_ref().is_none_or(sendable)
        });
        if !usable {
            let problem = "cannot be sent in a header";
            return Err(OperationError::invalid(&field("authentication"), problem));
        }
        if config.id.is_none() {
            config.id = Some(PushConfigId::new(self.tasks.chance().uuid().to_string()));
        }
        Ok(config)
    }
}

/// Adds a webhook to a task, or replaces the one with its id.
pub(super) fn put(
    record: &mut TaskRecord,
    mut config: TaskPushNotificationConfig,
    max: usize,
) -> Result<(), OperationError> {
    config.task_id = Some(record.task.id.clone());
    if let Some(known) = record.push_configs.iter_mut().find(|known| known.id == config.id) {
        *known = config;
        return Ok(());
    }
    if record.push_configs.len() >= max {
        return Err(OperationError::unsupported(format!("a task may have {max} webhooks")));
    }
    record.push_configs.push(config);
    Ok(())
}

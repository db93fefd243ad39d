//! Outgoing pushes: one call of each webhook per change of status, in order, until it was taken or given up.
//!
//! What is to be sent stands in the task's record, so a restart forgets nothing; a call whose answer was lost in a crash
//! is made again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;
use volcanic_a2a_types::{
    Credential, MEDIA_TYPE_A2A_JSON, NOTIFICATION_TOKEN_HEADER, PushConfigId, StreamResponse,
    TaskPushNotificationConfig,
};
use volcanic_base::Backoff;
use volcanic_net::{CallKind, Transport, retry_after};

use crate::{
    config::PushConfig,
    store::{PendingPush, TaskRecord},
    tasks::{CellState, TaskCell, Tasks},
};

/// Sends pushes; one worker per webhook that has something to wait for.
#[derive(Debug)]
pub(crate) struct PushSender {
    pub(crate) config: Arc<PushConfig>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) tracker: TaskTracker,
    pub(crate) cancel: CancellationToken,
}

/// What became of one call.
enum Sent {
    Taken,
    /// Worth another try, after a pause the webhook may have asked for.
    Failed {
        wait: Option<Duration>,
        why: String,
    },
    Refused {
        why: String,
    },
}

impl PushSender {
    /// Starts a worker for every webhook of the task that has calls waiting and none yet.
    pub(crate) fn start(&self, tasks: &Arc<Tasks>, cell: &Arc<TaskCell>, state: &mut CellState) {
        let Some(record) = &mut state.record else { return };
        self.drop_excess(record);
        for PendingPush { config_id, .. } in &record.pending_push {
            if state.pushing.insert(config_id.clone()) {
                let worker = Worker {
                    config: Arc::clone(&self.config),
                    transport: Arc::clone(&self.transport),
                    tasks: Arc::clone(tasks),
                    cell: Arc::clone(cell),
                    config_id: config_id.clone(),
                };
                let span = tracing::info_span!("push", task.id = %cell.id);
                let cancel = self.cancel.clone();
                self.tracker.spawn(
                    async move { cancel.run_until_cancelled(worker.run()).await }.instrument(span),
                );
            }
        }
    }

    fn drop_excess(&self, record: &mut TaskRecord) {
        let excess = record.pending_push.len().saturating_sub(self.config.max_pending);
        if excess > 0 {
            tracing::warn!(task.id = %record.task.id, excess, "too many pushes wait, the oldest are given up");
            record.pending_push.drain(..excess);
        }
    }
}

struct Worker {
    config: Arc<PushConfig>,
    transport: Arc<dyn Transport>,
    tasks: Arc<Tasks>,
    cell: Arc<TaskCell>,
    config_id: PushConfigId,
}

impl Worker {
    /// Looks at the record before every attempt, so that a webhook that was removed or replaced is not called again.
    async fn run(self) {
        let mut pauses = Backoff::new(self.config.pauses.clone(), self.config.jitter);
        let mut tried: Option<PendingPush> = None;
        while let Some((webhook, pending, body)) = self.next().await {
            if tried.as_ref() != Some(&pending) {
                pauses.reset();
                tried = Some(pending.clone());
            }
            match self.attempt(&webhook, body, &mut pauses).await {
                Some(pause) => tokio::time::sleep(pause).await,
                None if self.finish(&pending).await => {}
                None => return,
            }
        }
    }

    /// The oldest call that waits. When there is none the worker is done, and says so under the lock.
    async fn next(&self) -> Option<(TaskPushNotificationConfig, PendingPush, Bytes)> {
        let mut state = self.cell.lock(&self.tasks).await.ok()?;
        let found = state.record.as_mut().and_then(|record| {
            let id = Some(&self.config_id);
            let webhook =
                record.push_configs.iter().find(|config| config.id.as_ref() == id).cloned();
            if webhook.is_none() {
                record.pending_push.retain(|pending| pending.config_id != self.config_id);
            }
            let pending =
                record.pending_push.iter().find(|pending| pending.config_id == self.config_id);
            let pending = pending?.clone();
            let body = body_of(record, &pending)?;
            Some((webhook?, pending, body))
        });
        if found.is_none() {
            state.pushing.remove(&self.config_id);
        }
        found
    }

    /// Calls the webhook once; the pause before the next attempt, or `None` if the push was taken or is given up.
    async fn attempt(
        &self,
        webhook: &TaskPushNotificationConfig,
        body: Bytes,
        pauses: &mut Backoff,
    ) -> Option<Duration> {
        let (wait, why) = match self.call(webhook, body).await {
            Sent::Taken => return None,
            Sent::Refused { why } => {
                tracing::warn!(error = why, "webhook refused a push");
                return None;
            }
            Sent::Failed { wait, why } => (wait, why),
        };
        if pauses.is_exhausted() {
            tracing::warn!(error = why, attempts = pauses.taken() + 1, "push is given up");
            return None;
        }
        tracing::debug!(error = why, "push failed, trying again");
        let asked = wait.unwrap_or_default().min(self.config.max_retry_after);
        Some(pauses.next(self.tasks.chance()).max(asked))
    }

    async fn call(&self, webhook: &TaskPushNotificationConfig, body: Bytes) -> Sent {
        let request = match request(webhook, body) {
            Ok(request) => request,
            Err(error) => return Sent::Refused { why: error.to_string() },
        };
        let sending = self.transport.send(request, CallKind::Call);
        match tokio::time::timeout(self.config.timeout, sending).await {
            Err(_) => Sent::Failed { wait: None, why: "no answer in time".to_owned() },
            Ok(Err(error)) if error.is_transient() => {
                Sent::Failed { wait: None, why: error.to_string() }
            }
            Ok(Err(error)) => Sent::Refused { why: error.to_string() },
            Ok(Ok(response)) => {
                let (status, wait) =
                    (response.status(), retry_after(response.headers(), self.tasks.clock().now()));
                judge(status, wait)
            }
        }
    }

    /// Takes a call off the list, durably. False if the worker must end because that failed.
    async fn finish(&self, done: &PendingPush) -> bool {
        let Ok(mut state) = self.cell.lock(&self.tasks).await else { return false };
        let Some(record) = &mut state.record else { return false };
        if let Some(at) = record.pending_push.iter().position(|pending| pending == done) {
            record.pending_push.remove(at);
            if let Err(error) = self.tasks.store().save(record).await {
                // The call is made again after a restart, which receivers must take anyway.
                tracing::warn!(%error, "failed to note that a push was sent");
            }
        }
        true
    }
}

/// The task as it was to be told: whole, with the status of that moment.
fn body_of(record: &TaskRecord, pending: &PendingPush) -> Option<Bytes> {
    let mut task = record.task.clone();
    pending.status.clone_into(&mut task.status);
    match serde_json::to_vec(&StreamResponse::Task(task)) {
        Ok(body) => Some(body.into()),
        Err(error) => {
            tracing::error!(%error, "failed to encode a push");
            None
        }
    }
}

fn request(
    webhook: &TaskPushNotificationConfig,
    body: Bytes,
) -> Result<Request<Bytes>, http::Error> {
    let mut request = Request::post(webhook.url.as_str())
        .header(header::CONTENT_TYPE, MEDIA_TYPE_A2A_JSON)
        .body(body)?;
    if let Some(token) = &webhook.token {
        request.headers_mut().insert(NOTIFICATION_TOKEN_HEADER, secret_value(token.expose())?);
    }
    if let Some(authentication) = &webhook.authentication {
        let credentials = authentication.credentials.as_ref().map_or("", Credential::expose);
        let value = secret_value(format!("{} {credentials}", authentication.scheme).trim_end())?;
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    Ok(request)
}

fn secret_value(text: &str) -> Result<HeaderValue, http::Error> {
    let mut value = HeaderValue::from_str(text)?;
    value.set_sensitive(true);
    Ok(value)
}

fn judge(status: StatusCode, wait: Option<Duration>) -> Sent {
    let why = format!("status {}", status.as_u16());
    let again = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    if status.is_success() {
        Sent::Taken
    } else if status.is_server_error() || again.contains(&status) {
        Sent::Failed { wait, why }
    } else {
        Sent::Refused { why }
    }
}

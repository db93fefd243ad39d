//! Following a task until it settles: by its stream if there is one, else by asking. Only what is asked for decides.

use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use tokio::time::{Instant, sleep, timeout_at};
use volcanic_a2a_client::{EventStream, RemoteAgent, sanitize_remote_line};
use volcanic_a2a_types::{Part, PartContent, StreamResponse, Task, TaskStatus};

use super::{Contact, Waited, events::Reporter};
use crate::output::is_gone;

/// Pauses after a stream that failed or ended early; after as many in a row the agent is only asked.
const REOPEN: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];
/// How long one stream is listened to before the task is looked at.
const HOLD: Duration = Duration::from_mins(5);
/// The shortest and the longest pause between two questions.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));
/// How much later an outcome may be noticed, as a part of the time that it took.
const LATENESS: u32 = 20;
/// How much content of the task is kept while more of it is read, in bytes.
const MAX_KEPT: usize = 2 << 20;
/// The longest pause that an agent may ask for.
const LONGEST: Duration = Duration::from_hours(1);

/// A task that is followed.
pub(super) struct Following<'a> {
    pub(super) remote: &'a RemoteAgent,
    pub(super) reporter: Reporter<'a>,
    /// A stream of it that is open already.
    pub(super) events: Option<EventStream>,
    /// The pause between two questions, if the user wants another than the growing one.
    pub(super) pause: Option<Duration>,
    /// How many messages of its history are asked for.
    pub(super) history: u32,
    /// The task, as far as it is known.
    pub(super) task: Task,
    /// The note of the question that the message answers for which it is followed, if it answers one.
    pub(super) answered: Option<String>,
}

impl Following<'_> {
    /// Returns when the task is settled.
    ///
    /// # Errors
    /// What asking failed with, if it will fail again; anything else may pass.
    ///
    /// # Cancel safety
    /// The task is as it was known last.
    async fn until_settled(&mut self) -> Result<()> {
        let started = Instant::now();
        if let Some(mut events) = self.events.take().filter(|_| !self.is_settled()) {
            self.listen(&mut events).await?;
        }
        let (mut failed, mut listen_at) = (0, started);
        while !self.is_settled() {
            let reopen = REOPEN.get(failed).filter(|_| self.remote.streams());
            if let Some(pause) = reopen.filter(|_| Instant::now() >= listen_at) {
                failed = if self.subscribe().await? { 0 } else { failed + 1 };
                listen_at = Instant::now() + *pause;
            }
            let asked_later = self.read().await?;
            if self.is_settled() {
                break;
            }
            let growing = (started.elapsed() / LATENESS).clamp(PAUSES.0, PAUSES.1);
            sleep(self.pause.unwrap_or(growing).max(asked_later)).await;
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.task.status.state.is_settled() && !self.is_unheard()
    }

    /// Whether the task still shows the question that was answered.
    pub(super) fn is_unheard(&self) -> bool {
        self.is_old(&self.task.status)
    }

    fn is_old(&self, status: &TaskStatus) -> bool {
        self.answered.as_ref().is_some_and(|note| status.is_question_of(note))
    }

    /// Lets go of what was read of the task and is long: there is no room for it beside what comes next, which repeats or
    /// replaces it.
    fn make_room(&mut self) {
        let parts = self.task.artifacts.iter().flat_map(|artifact| &artifact.parts);
        let messages = self.task.history.iter().chain(&self.task.status.message);
        let length: usize =
            parts.chain(messages.flat_map(|message| &message.parts)).map(length_of).sum();
        if length > MAX_KEPT {
            self.task.artifacts = Vec::new();
            self.task.history = Vec::new();
            self.task.status.message = None;
        }
    }

    /// Reads the task; what passes is told and costs nothing but the pause that the agent asks for.
    async fn read(&mut self) -> Result<Duration> {
        self.make_room();
        match self.remote.get_task(&self.task.id, Some(self.history)).await {
            Ok(task) => {
                self.task = task;
                // The outcome is told by whoever wants to know it.
                if !self.is_settled() {
                    self.reporter.read(&self.task)?;
                }
                Ok(Duration::ZERO)
            }
            Err(error) => {
                let is_over = error.unreadable_task().is_some_and(|(state, _)| state.is_settled());
                if is_over || !error.is_transient() {
                    return Err(error.into());
                }
                self.reporter.trouble(&error);
                Ok(error.retry_after().unwrap_or_default().min(LONGEST))
            }
        }
    }

    /// Subscribes to the task and listens. False when that was of no use.
    async fn subscribe(&mut self) -> Result<bool> {
        match self.remote.subscribe(&self.task.id).await {
            Ok(mut events) => self.listen(&mut events).await,
            Err(error) => {
                tracing::debug!(%error, "failed to subscribe");
                Ok(false)
            }
        }
    }

    /// Listens until the stream hints at the end, ends itself, or was held long enough. False when it ended early and had
    /// nothing to say but how the task stands.
    async fn listen(&mut self, events: &mut EventStream) -> Result<bool> {
        self.make_room();
        let until = Instant::now() + HOLD;
        let mut heard = 0;
        loop {
            match timeout_at(until, events.next()).await {
                Err(_) => return Ok(true),
                Ok(None) => return Ok(heard > 1),
                Ok(Some(Err(error))) => {
                    tracing::debug!(%error, "a stream broke");
                    return Ok(heard > 1);
                }
                Ok(Some(Ok(event))) => {
                    heard += 1;
                    self.reporter.event(&event)?;
                    if self.hears(&event) {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Notes how the task stands; true if it has settled, which is for a read to say.
    fn hears(&mut self, event: &StreamResponse) -> bool {
        let Some(status) = event.status() else { return false };
        let is_settled = status.state.is_settled() && !self.is_old(status);
        if !is_settled {
            self.task.status.clone_from(status);
        }
        is_settled
    }
}

impl Contact<'_> {
    /// Follows a task until it settles. Running out of time or patience is an outcome: the task is as it was known last.
    ///
    /// # Errors
    /// A failure that names the task.
    pub(super) async fn follow(
        &self,
        following: &mut Following<'_>,
        deadline: Option<Instant>,
    ) -> Result<()> {
        match self.leave.bounded(&self.live, deadline, following.until_settled()).await {
            Waited::Done(Err(error)) if !is_gone(&error) => {
                let task = following.task.id.as_str();
                let id = sanitize_remote_line(task, 200);
                let advice = format!(
                    "It is about task {id}. To ask again: {}",
                    self.command("status", &[&id])
                );
                Err(self.failure(&error).with("taskId", task).advising(&advice).into())
            }
            Waited::Done(followed) => followed,
            Waited::TimeIsUp | Waited::Interrupted => Ok(()),
        }
    }
}

/// How much of a part's content is in memory.
fn length_of(part: &Part) -> usize {
    match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => text.len(),
        PartContent::Raw(bytes) => bytes.len(),
        PartContent::Data(value) => value.as_str().len(),
        _ => 0,
    }
}

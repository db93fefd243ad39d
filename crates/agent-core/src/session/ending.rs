//! Ends runs that get no reply: retries that run out, failures for good, stops.

use super::{
    activity::{SessionActivity, SessionEvent},
    answer::{Answer, AnswerKind},
    batch::CallResult,
    commit::Draft,
    log::RunPrompt,
    notice,
    run::{RunEnd, Runner},
    stop::{RunStop, StopCause},
};
use crate::{
    content::{Block, ToolCall},
    model::ModelError,
    store::{EntryBody, NewEntry, NewOutbox, StoreError},
};

impl Runner {
    /// Records a failed request and waits for the next attempt, or gives the run up.
    pub(super) async fn failed(
        &mut self,
        run: &RunPrompt,
        error: &ModelError,
        blocks: Vec<Block>,
        stop: &RunStop,
    ) -> Result<(), StoreError> {
        let before = self.log.failed_attempts();
        tracing::warn!(turn.id = %run.key, attempt = before + 1, error = %error, "request failed");
        let wait = match self.shared.config.retry.pause(error, before) {
            Ok(wait) => wait,
            Err(reason) => return self.give_up(run, blocks, reason).await,
        };
        let reason = error.message.clone();
        let body =
            EntryBody::Failed { blocks, reason: reason.clone(), aborted: false, last: false };
        let entries = vec![NewEntry::plain(body)];
        self.commit(Draft { entries, ..Draft::default() }).await?;
        self.activity(SessionActivity::Retry);
        self.shared.publish(SessionEvent::Retrying { attempt: before + 2, wait, reason });
        tokio::select! {
            biased;
            () = stop.token().cancelled() => {}
            () = tokio::time::sleep(wait) => {}
        }
        Ok(())
    }

    /// Ends a run that cannot be answered and says so on the screen.
    pub(super) async fn give_up(
        &mut self,
        run: &RunPrompt,
        blocks: Vec<Block>,
        reason: String,
    ) -> Result<(), StoreError> {
        let (kind, text) = notice::failure_text(run, &self.log.outcomes(), &reason);
        let outbox = self.outbox(run, kind, &text);
        let mut entries = results(&self.log.missing_calls(), notice::INTERRUPTED);
        let body = EntryBody::Failed { blocks, reason: reason.clone(), aborted: false, last: true };
        entries.push(NewEntry::plain(body));
        self.commit(Draft { entries, outbox, ..Draft::default() }).await?;
        self.shared.publish(SessionEvent::RunFailed { reason });
        Ok(())
    }

    /// Ends a run that the owner stopped; leaves one that the end of the process stopped.
    pub(super) async fn stopped(
        &mut self,
        run: &RunPrompt,
        cause: StopCause,
        blocks: Vec<Block>,
    ) -> Result<RunEnd, StoreError> {
        if cause == StopCause::Shutdown {
            return Ok(RunEnd::Suspended);
        }
        let outbox = match notice::failure_text(run, &self.log.outcomes(), notice::STOPPED) {
            // The owner knows who stopped it, but has not seen what a delivery or a tool brought.
            (AnswerKind::Unanswered, text) => self.outbox(run, AnswerKind::Unanswered, &text),
            (AnswerKind::Reply | AnswerKind::Failure, _) => Vec::new(),
        };
        let mut entries = results(&self.log.missing_calls(), notice::ABORTED);
        let reason = notice::STOPPED.to_owned();
        let body = EntryBody::Failed { blocks, reason, aborted: true, last: true };
        entries.push(NewEntry::plain(body));
        self.commit(Draft { entries, outbox, ..Draft::default() }).await?;
        tracing::info!(turn.id = %run.key, "run aborted");
        self.shared.publish(SessionEvent::RunAborted { key: run.key.clone() });
        Ok(RunEnd::Aborted { ended_run: true, waiting: self.waiting().await })
    }

    /// How many prompts wait, if the store says.
    pub(super) async fn waiting(&self) -> Option<usize> {
        self.shared.deps.store.waiting(&self.shared.target).await.ok().map(|waiting| waiting.len())
    }

    /// What the host makes of a run's text.
    pub(super) fn outbox(&self, run: &RunPrompt, kind: AnswerKind, text: &str) -> Vec<NewOutbox> {
        let id = format!("run:{}", run.key);
        self.shared.config.answers.outbox(&Answer {
            id: &id,
            key: &run.key,
            origin: run.origin,
            source: run.source.as_ref(),
            kind,
            text,
        })
    }
}

/// The same error result for each of the calls.
pub(super) fn results(calls: &[ToolCall], text: &str) -> Vec<NewEntry> {
    calls.iter().map(|call| CallResult::error(call, text).entry()).collect()
}

//! Writes the steps of a run, with patience for a store that fails for a moment.

use std::{
    future::Future,
    sync::atomic::{AtomicBool, Ordering},
};

use volcanic_base::with_causes;

use super::{activity::SessionEvent, batch::CallResult, run::Runner};
use crate::{
    prompt::InboundId,
    store::{Commit, Entry, NewEntry, NewOutbox, StoreError},
};

/// A step to be written.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    pub(super) consume: Vec<InboundId>,
    pub(super) entries: Vec<NewEntry>,
    pub(super) outbox: Vec<NewOutbox>,
}

impl Runner {
    /// Writes one step and adds it to the log.
    pub(super) async fn commit(&mut self, draft: Draft) -> Result<(), StoreError> {
        let commit = Commit {
            target: self.shared.target.clone(),
            consume: draft.consume,
            entries: draft.entries,
            outbox: draft.outbox,
        };
        let shows = !commit.outbox.is_empty();
        let entries = self.write_once(commit).await?;
        self.log.append(entries);
        if shows {
            self.shared.publish(SessionEvent::OutboxReady);
        }
        Ok(())
    }

    /// Writes a commit. One that failed may be on disk all the same, so before it is repeated the store is asked: nobody
    /// else writes this conversation, and what it has beyond the log is that commit.
    async fn write_once(&self, commit: Commit) -> Result<Vec<Entry>, StoreError> {
        let store = &self.shared.deps.store;
        let tried = AtomicBool::new(false);
        self.patiently(|| async {
            if tried.swap(true, Ordering::Relaxed) {
                let written = self.log.unknown_of(store.entries(&commit.target).await?);
                if !written.is_empty() {
                    return Ok(written);
                }
            }
            store.commit(commit.clone()).await
        })
        .await
    }

    /// Writes the results of calls, then the rest of the draft. A result whose delivery key was taken meanwhile gives
    /// way: that outcome is in the conversation already.
    pub(super) async fn commit_results(
        &mut self,
        mut results: Vec<CallResult>,
        rest: Draft,
    ) -> Result<(), StoreError> {
        loop {
            let mut draft = rest.clone();
            draft.entries.splice(0..0, results.iter().map(CallResult::entry));
            match self.commit(draft).await {
                Ok(()) => break,
                Err(StoreError::Taken { target, key }) => {
                    // The last one: two results of one batch can hold the same key, and the first of them wins.
                    let Some(result) = results.iter_mut().rfind(|result| result.settles(&key))
                    else {
                        return Err(StoreError::Taken { target, key });
                    };
                    result.yield_to_delivery();
                }
                Err(error) => return Err(error),
            }
        }
        for result in results {
            let (name, is_error) = result.committed();
            self.shared.publish(SessionEvent::ToolEnded { name, is_error });
        }
        Ok(())
    }

    /// Repeats what fails in the store, with the configured pauses. [`StoreError::Taken`] is an answer, not a failure.
    pub(super) async fn patiently<T, F>(&self, action: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut pauses = self.shared.config.limits.store_pauses.iter();
        loop {
            let error = match action().await {
                Ok(value) => return Ok(value),
                Err(error @ StoreError::Taken { .. }) => return Err(error),
                Err(error) => error,
            };
            let Some(pause) = pauses.next() else { return Err(error) };
            tracing::warn!(error = %with_causes(&error), "store failed; trying again");
            tokio::time::sleep(*pause).await;
        }
    }
}

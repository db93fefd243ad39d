//! The end of a send that led to no task: told by its caller, or delivered.

use super::context::Context;
use crate::delivery::{Delivery, DeliveryEnd};
use crate::notice;
use crate::record::{SendRecord, WatchRecord, not_sent_key};
use volcanic_a2a_types::MessageId;

/// A send without a task that stays open until its outcome is told.
#[derive(Debug, Clone)]
pub(super) struct OpenSend {
    pub(super) message_id: MessageId,
    /// What is delivered when nobody told it.
    pub(super) delivery: Delivery,
    /// Why it ends; `None` when the agent answered.
    pub(super) end_reason: Option<String>,
}

impl OpenSend {
    /// Whether it is an answer of the agent, which no other process finds again.
    pub(super) fn is_reply(&self) -> bool {
        self.end_reason.is_none()
    }

    /// A send that did not leave, for the reason that it has.
    pub(super) fn unsent(send: &SendRecord) -> Self {
        let reason = send.end_reason.clone().unwrap_or_default();
        let delivery = Delivery {
            target: send.target.clone(),
            key: not_sent_key(&send.message_id),
            text: notice::not_sent(&send.agent, send.context_id.as_ref(), &reason),
            hops: send.hops,
            source_ref: send.source_ref.clone(),
        };
        Self { message_id: send.message_id.clone(), delivery, end_reason: Some(reason) }
    }
}

/// How the closing of a send ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// It is on disk.
    Done,
    /// Its conversation is not known now, so it stays open.
    Kept,
    /// The registry stopped first; the next process finds it open.
    Stopped,
}

/// Closes a send, after delivering its outcome if `tell`. Goes on until it is on disk, or the outcome has to wait for its
/// conversation; once the registry has stopped, each is tried once.
pub(super) async fn close(context: &Context, open: &OpenSend, tell: bool) -> Closed {
    let mut told = !tell;
    loop {
        if !told {
            match context.deps.delivery.deliver(&open.delivery).await {
                Ok(DeliveryEnd::Delivered) => told = true,
                Ok(DeliveryEnd::NotNow) => return Closed::Kept,
                Err(error) => {
                    tracing::error!(error = %error, "the outcome of a send could not be delivered");
                }
            }
        }
        if told && mark(context, open).await {
            return Closed::Done;
        }
        if !context.may_retry().await {
            return Closed::Stopped;
        }
    }
}

/// Keeps a send that did not even come to be kept, so that it is told by the next process if this one does not get to it.
pub(super) async fn keep_unsent(context: &Context, send: &SendRecord) -> bool {
    let store = &context.deps.store;
    let Err(error) = store.begin_send(send, u32::MAX).await else { return true };
    // A write that failed may have reached the disk.
    let reason = send.end_reason.as_deref().unwrap_or_default();
    if store.note_unsent(&send.message_id, reason).await.is_ok() {
        return true;
    }
    tracing::error!(error = %error, "a send that did not leave could not be kept");
    false
}

/// Keeps a send that did not leave, until the registry stops, so that it can be told.
pub(super) async fn keep_to_tell(context: &Context, send: &SendRecord) {
    while !keep_unsent(context, send).await && context.may_retry().await {}
}

/// Marks a send as ended for the reason that it has, if the store takes it at once.
pub(super) async fn end_unsent(context: &Context, send: &SendRecord) -> bool {
    let reason = send.end_reason.as_deref().unwrap_or_default();
    let ended = context.deps.store.end_send(&send.message_id, reason).await;
    if let Err(error) = &ended {
        tracing::error!(error = %error, "a send could not be closed and will be told again");
    }
    ended.is_ok()
}

/// Marks a send as ended that could not be kept, if it is kept all the same. Goes on until that is known; once the registry
/// has stopped, it is tried once.
pub(super) async fn end_if_kept(context: &Context, send: &SendRecord) {
    let mut is_last = false;
    loop {
        let is_over = match context.deps.store.open_sends().await {
            Ok(open) if open.iter().all(|kept| kept.message_id != send.message_id) => true,
            Ok(_) => end_unsent(context, send).await,
            Err(error) => {
                tracing::error!(error = %error, "the open sends cannot be read");
                false
            }
        };
        if is_over || is_last {
            return;
        }
        is_last = !context.may_retry().await;
    }
}

/// Marks a send as known, however long that takes. Says `false` if the registry stopped first.
pub(super) async fn mark_known(context: &Context, message_id: &MessageId) -> bool {
    mark_as_known(context, message_id, None).await.is_some()
}

/// As [`mark_known`], counted as a message beside the watch of `record`, which is returned as the store has it then.
pub(super) async fn count(
    context: &Context,
    message_id: &MessageId,
    record: &WatchRecord,
) -> Option<WatchRecord> {
    mark_as_known(context, message_id, Some(record)).await.flatten()
}

async fn mark_as_known(
    context: &Context,
    message_id: &MessageId,
    record: Option<&WatchRecord>,
) -> Option<Option<WatchRecord>> {
    loop {
        let dated = record.map(|record| context.clock.dated(record.clone()));
        match context.deps.store.send_known(message_id, dated.as_ref()).await {
            Ok(kept) => return Some(kept),
            Err(error) => {
                tracing::error!(error = %error, "a send could not be marked as known and is tried again");
            }
        }
        if !context.may_retry().await {
            return None;
        }
    }
}

async fn mark(context: &Context, open: &OpenSend) -> bool {
    let store = &context.deps.store;
    let marked = match &open.end_reason {
        None => store.send_known(&open.message_id, None).await.map(|_| ()),
        Some(reason) => store.end_send(&open.message_id, reason).await,
    };
    if let Err(error) = &marked {
        tracing::error!(error = %error, "a send could not be closed and is tried again");
    }
    marked.is_ok()
}

//! The end of a send that led to no task: told by its caller, or delivered.

use super::context::Context;
use crate::delivery::{Delivery, DeliveryEnd};
use volcanic_a2a_types::MessageId;

/// A send without a task that stays open until its outcome is told.
pub(super) struct OpenSend {
    pub(super) message_id: MessageId,
    /// What is delivered when nobody told it.
    pub(super) delivery: Delivery,
    /// Why it ends; `None` when the agent answered.
    pub(super) end_reason: Option<String>,
}

/// Closes a send, after delivering its outcome if `tell`. Goes on until it is on disk, except that an outcome for an
/// unknown conversation stays open until the next start.
pub(super) async fn close(context: &Context, open: &OpenSend, tell: bool) {
    let mut told = !tell;
    loop {
        if !told {
            match context.deps.delivery.deliver(&open.delivery).await {
                Ok(DeliveryEnd::Delivered) => told = true,
                Ok(DeliveryEnd::NotNow) => return,
                Err(error) => {
                    tracing::error!(error = %error, "the outcome of a send could not be delivered");
                }
            }
        }
        if told && mark(context, open).await {
            return;
        }
        tokio::time::sleep(context.config.store_retry).await;
    }
}

/// Delivers what was not told, however long that takes, unless the conversation is not known.
pub(super) async fn tell(context: &Context, delivery: &Delivery) {
    while let Err(error) = context.deps.delivery.deliver(delivery).await {
        tracing::error!(error = %error, "the failure of a send could not be delivered");
        tokio::time::sleep(context.config.store_retry).await;
    }
}

/// Marks a send as known, however long that takes. Says `false` if the registry stopped first.
pub(super) async fn mark_known(context: &Context, message_id: &MessageId) -> bool {
    loop {
        match context.deps.store.send_known(message_id, None).await {
            Ok(_) => return true,
            Err(error) => {
                tracing::error!(error = %error, "a send could not be marked as known and is tried again");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(context.config.store_retry) => {}
            () = context.stop.cancelled() => return false,
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

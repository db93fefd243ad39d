//! The way of an outcome into a conversation: what a host provides.

use std::fmt;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::record::WatchTarget;

/// A text on its way into a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The conversation.
    pub target: WatchTarget,
    /// The key it enters under, at most once for ever.
    pub key: String,
    /// The framed text.
    pub text: String,
    /// Hops of the run that started the task; the prompt carries the same.
    pub hops: u32,
    /// The host's handle of the message that started that run.
    pub source_ref: Option<String>,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// It is in the conversation, now or since earlier; on disk in either case.
    Delivered,
    /// The conversation is not known or not allowed now. Tried again by [`crate::WatchHandle::flush`] and after a start.
    NotNow,
}

/// Puts outcomes into conversations.
#[async_trait]
pub trait ResultDelivery: Send + Sync + fmt::Debug {
    /// Delivers once per key: a second delivery under a key changes nothing and is [`DeliveryEnd::Delivered`].
    ///
    /// # Errors
    /// [`DeliveryError`] when it may work a moment later; the registry tries again.
    async fn deliver(&self, delivery: &Delivery) -> Result<DeliveryEnd, DeliveryError>;

    /// Those of `keys` under which something is in a conversation already: delivered, or told by who held a ticket.
    ///
    /// # Errors
    /// [`DeliveryError`] when it may work a moment later; the registry tries again.
    async fn told(
        &self,
        target: &WatchTarget,
        keys: Vec<String>,
    ) -> Result<Vec<String>, DeliveryError>;

    /// The workspace of a conversation; `None` when it is not known or not allowed.
    fn workspace_for(&self, target: &WatchTarget) -> Option<PathBuf>;

    /// The conversations that are known and allowed.
    fn known_targets(&self) -> Vec<WatchTarget>;
}

/// A delivery that failed for a reason that passes.
#[derive(Debug, thiserror::Error)]
#[error("failed to deliver a result")]
pub struct DeliveryError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

impl DeliveryError {
    /// Wraps the reason.
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}

//! Puts outcomes into conversations: accept under the delivery key, then wake the session.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use volcanic_a2a_watch::{Delivery, DeliveryEnd, DeliveryError, ResultDelivery, WatchTarget};
use volcanic_agent_core::{NewPrompt, Origin, PromptKey, SessionStore, SourceRef, TargetId};

/// Wakes the session of a conversation, opening it if need be. Called after an outcome is on disk there.
pub type Wake = Arc<dyn Fn(&TargetId) + Send + Sync>;

/// [`ResultDelivery`] into a [`SessionStore`]. Needs no open session: once accepted, the outcome cannot get lost.
pub struct SessionDelivery {
    store: Arc<dyn SessionStore>,
    conversations: HashMap<TargetId, PathBuf>,
    wake: Wake,
}

impl SessionDelivery {
    /// Delivers into the given conversations, each with its workspace; outcomes for others wait.
    pub fn new(
        store: Arc<dyn SessionStore>,
        conversations: impl IntoIterator<Item = (TargetId, PathBuf)>,
        wake: Wake,
    ) -> Self {
        Self { store, conversations: conversations.into_iter().collect(), wake }
    }
}

impl fmt::Debug for SessionDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionDelivery")
            .field("conversations", &self.conversations.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ResultDelivery for SessionDelivery {
    async fn deliver(&self, delivery: &Delivery) -> Result<DeliveryEnd, DeliveryError> {
        let target = TargetId::new(delivery.target.as_str());
        if !self.conversations.contains_key(&target) {
            return Ok(DeliveryEnd::NotNow);
        }
        let prompt = NewPrompt {
            target: target.clone(),
            key: PromptKey::new(delivery.key.as_str()),
            origin: Origin::Delivery,
            hops: delivery.hops,
            source: delivery.source_ref.as_deref().map(SourceRef::new),
            text: delivery.text.clone(),
        };
        // New, or there since earlier: in either case it is in the conversation, and a session that slept through the
        // first time is woken now.
        self.store.accept(prompt).await.map_err(DeliveryError::new)?;
        (self.wake)(&target);
        Ok(DeliveryEnd::Delivered)
    }

    async fn told(
        &self,
        target: &WatchTarget,
        keys: Vec<String>,
    ) -> Result<Vec<String>, DeliveryError> {
        let keys = keys.into_iter().map(PromptKey::new).collect();
        let taken = self.store.taken(&TargetId::new(target.as_str()), keys).await;
        let taken = taken.map_err(DeliveryError::new)?;
        Ok(taken.iter().map(|key| key.as_str().to_owned()).collect())
    }

    fn workspace_for(&self, target: &WatchTarget) -> Option<PathBuf> {
        self.conversations.get(&TargetId::new(target.as_str())).cloned()
    }

    fn known_targets(&self) -> Vec<WatchTarget> {
        self.conversations.keys().map(|target| WatchTarget::new(target.as_str())).collect()
    }
}

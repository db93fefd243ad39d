//! Rights to tell an outcome: made for callers, used up by a confirmation, else told by the registry.

use std::sync::Arc;

use volcanic_a2a_types::MessageId;

use super::Registry;
use super::closing::{Closed, OpenSend, close};
use super::context::Context;
use super::jobs::{JobEnd, Owner};
use crate::delivery::Delivery;
use crate::machine::{SettledState, WatchEvent};
use crate::order::{SendOrder, SettleTicket};
use crate::record::{WatchId, WatchState, WatchTarget, unknown_send_key};

/// What a ticket stands for.
pub(super) enum TicketOf {
    /// The outcome of a watched task.
    Watch {
        /// The watch.
        id: WatchId,
        /// The told state.
        state: SettledState,
    },
    /// The outcome of a send without a task.
    Send(Box<OpenSend>),
}

/// Whether something is in a conversation under a key. What cannot be looked up counts as not told: it is delivered under the
/// same key.
async fn is_told(context: &Context, target: &WatchTarget, key: String) -> bool {
    match context.deps.delivery.told(target, vec![key]).await {
        Ok(told) => !told.is_empty(),
        Err(error) => {
            tracing::error!(error = %error, "whether an outcome was told cannot be looked up");
            false
        }
    }
}

impl Registry {
    /// Makes the right to tell a held watch's outcome, or lets the watch go when the conversation knows that state.
    pub(super) fn ticket(&mut self, id: &WatchId, state: SettledState) -> Option<SettleTicket> {
        let record = self.watches.get(id)?.watch.record();
        if record.told.contains(&state.label) {
            self.release(id, false);
            return None;
        }
        let key = match record.state {
            // What is told takes the place of the text that is kept.
            WatchState::Claimed => record.delivery_key.clone(),
            WatchState::Attended | WatchState::Watching | WatchState::Done => {
                record.key_for(&state.label)
            }
        };
        let target = record.target.clone();
        let ticket = self.spawn_ticket(target, key, TicketOf::Watch { id: id.clone(), state });
        if let Some(followed) = self.watches.get_mut(id) {
            followed.telling = Some(ticket.telling());
        }
        Some(ticket)
    }

    pub(super) fn open_ticket(
        &mut self,
        order: &SendOrder,
        message_id: MessageId,
        text: String,
        end_reason: Option<String>,
    ) -> SettleTicket {
        let key = unknown_send_key(&message_id);
        let delivery = Delivery {
            target: order.target.clone(),
            key: key.clone(),
            text,
            hops: order.hops,
            source_ref: order.source_ref.clone(),
        };
        let of = TicketOf::Send(Box::new(OpenSend { message_id, delivery, end_reason }));
        self.spawn_ticket(order.target.clone(), key, of)
    }

    fn spawn_ticket(&mut self, target: WatchTarget, key: String, of: TicketOf) -> SettleTicket {
        let (ticket, confirmed) = SettleTicket::new(key.clone());
        let context = Arc::clone(&self.context);
        // A stop is waited out: whoever holds the ticket may be writing the outcome just now, or lets it go.
        self.jobs.set.spawn(async move {
            // Who wrote it may have been stopped before saying so.
            let confirmed = confirmed.await.is_ok() || is_told(&context, &target, key).await;
            JobEnd::Ticket { of, confirmed }
        });
        ticket
    }

    pub(super) fn on_ticket(&mut self, of: TicketOf, confirmed: bool) {
        match of {
            TicketOf::Watch { id, state } if confirmed => {
                let push_token = self.context.push_token();
                self.feed(&id, WatchEvent::Confirmed { state, push_token });
            }
            // Whoever had it did not tell: the watch reads the task again and delivers under the same key.
            TicketOf::Watch { id, .. } => self.release(&id, true),
            TicketOf::Send(open) => self.spawn_close(*open, !confirmed),
        }
    }

    /// Tells the outcome of a send without a task, if nobody has, and closes it.
    pub(super) fn spawn_close(&mut self, open: OpenSend, tell: bool) {
        self.spawn_closing(open, tell, |_| async {});
    }

    /// As [`Self::spawn_close`], after something else.
    pub(super) fn spawn_closing<F>(
        &mut self,
        open: OpenSend,
        tell: bool,
        first: impl FnOnce(Arc<Context>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let (context, flushes) = (Arc::clone(&self.context), self.flushes);
        let owner = Owner::Close(Box::new(open.clone()));
        let first = first(Arc::clone(&context));
        let job = self.jobs.set.spawn(async move {
            first.await;
            match close(&context, &open, tell).await {
                Closed::Done => JobEnd::SendClosed { message_id: open.message_id },
                Closed::Kept => JobEnd::SendKept { open: Box::new(open), flushes },
                Closed::Stopped => JobEnd::Done,
            }
        });
        self.jobs.own(&job, owner);
    }
}

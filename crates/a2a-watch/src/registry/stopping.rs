//! The end of the registry: nothing begins any more, but what was told is written down.
//!
//! Between an outcome that is in its conversation and the tombstone of its watch there is a moment. A process that ends in
//! good order does not end in it: whoever looks then would see a watch that has nothing to follow.

use super::Registry;
use super::jobs::{JobEnd, Owner};
use super::sending::Sent;
use super::tickets::TicketOf;
use crate::machine::{Continuation, WatchEffect, WatchEvent};
use crate::order::SendOrder;
use crate::record::WatchId;

impl Registry {
    /// A job ended after the registry did.
    pub(super) fn on_late_job(&mut self, end: JobEnd) {
        match end {
            // Of a message that failed to leave its caller still hears.
            JobEnd::Sent { command, message_id, sent: Sent::Failed { error, kept }, .. } => {
                let error = self.explain(&command.order, error);
                self.refuse_late(*command, &message_id, error, kept);
            }
            // An answer without a task is nowhere else: what is not told now, nobody finds again.
            JobEnd::Sent {
                command, message_id, sent: Sent::Replied { context_id, reply }, ..
            } => {
                self.answer_replied(*command, message_id, context_id, *reply);
            }
            // Its watch is held, so nothing of the answer is kept yet.
            JobEnd::Sent {
                command,
                message_id,
                held: Some(id),
                sent: Sent::Task { new: false, record, answered, .. },
            } if record.id == id => {
                let SendOrder { hops, source_ref, .. } = command.order;
                let continuation = Continuation { message_id, hops, source_ref, answered };
                self.feed(&id, WatchEvent::Continued(continuation));
            }
            JobEnd::Ticket { of: TicketOf::Send(open), confirmed }
                if confirmed || open.is_reply() =>
            {
                self.spawn_close(*open, !confirmed);
            }
            JobEnd::Delivered { id, result } => self.on_delivered(&id, result),
            JobEnd::Ticket { of, confirmed: true } => self.on_ticket(of, true),
            JobEnd::Wrote { id, result: Ok(true) } => self.feed(&id, WatchEvent::Written),
            JobEnd::Viewed { failed } => self.views.not_written(failed),
            // The next process finds all of that as it stands.
            JobEnd::Sent { .. }
            | JobEnd::Ticket { .. }
            | JobEnd::Wrote { .. }
            | JobEnd::Read { .. }
            | JobEnd::Opened { .. }
            | JobEnd::Hinted { .. }
            | JobEnd::StreamEnded { .. }
            | JobEnd::Reloaded { .. }
            | JobEnd::Registered { .. }
            | JobEnd::Waited { .. }
            | JobEnd::Asked { .. }
            | JobEnd::SendClosed { .. }
            | JobEnd::SendKept { .. }
            | JobEnd::Lost { .. }
            | JobEnd::Restored { .. }
            | JobEnd::Recovered { .. }
            | JobEnd::Marked { .. }
            | JobEnd::Counted { .. }
            | JobEnd::Done => {}
        }
    }

    /// Of views whose job was dropped, or broke off, nobody knows whether they were written.
    pub(super) fn forget_lost_views(&mut self) {
        for (_, owner) in self.jobs.owners.drain() {
            if let Owner::Views(workspaces) = owner {
                self.views.not_written(workspaces);
            }
        }
    }

    /// As [`Self::carry_out`], once the registry has stopped.
    pub(super) fn carry_out_last(&mut self, id: &WatchId, effect: Option<&WatchEffect>) {
        let Some(followed) = self.watches.get(id) else { return };
        self.views.changed(&followed.watch.record().workspace);
        match effect {
            Some(WatchEffect::Write) => self.spawn_watch_job(id, &WatchEffect::Write),
            Some(WatchEffect::End) => {
                self.watches.remove(id);
            }
            Some(
                WatchEffect::Wait(_)
                | WatchEffect::Read
                | WatchEffect::Subscribe
                | WatchEffect::Register
                | WatchEffect::Deliver
                | WatchEffect::Attend,
            )
            | None => {}
        }
    }
}

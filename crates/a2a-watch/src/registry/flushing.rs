//! What is kept for a conversation that is not known, and how it gets out.

use volcanic_a2a_types::TaskId;

use super::Registry;
use super::closing::OpenSend;
use crate::machine::WatchEvent;
use crate::record::WatchTarget;

impl Registry {
    pub(super) fn flush(&mut self, target: &WatchTarget) {
        self.flush_but(target, None);
    }

    /// Lets out what is kept for a conversation, but for one task.
    pub(super) fn flush_but(&mut self, target: &WatchTarget, but: Option<&TaskId>) {
        self.flushes += 1;
        for id in self.watches.telling(target, but) {
            self.feed(&id, WatchEvent::Flush);
        }
        let sends: Vec<_> =
            self.kept_sends.extract_if(.., |open| open.delivery.target == *target).collect();
        for open in sends {
            self.spawn_close(open, true);
        }
    }

    /// The outcome of a send waits until its conversation is known.
    pub(super) fn on_send_kept(&mut self, open: OpenSend, flushes: u64) {
        if flushes == self.flushes {
            self.kept_sends.push(open);
        } else {
            // Something became known while it was refused; it may have been this.
            self.spawn_close(open, true);
        }
    }
}

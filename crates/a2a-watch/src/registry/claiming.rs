//! Who holds a watch: a call takes it, waits for it or finds it taken, and lets it go.

use volcanic_a2a_types::TaskId;

use super::Registry;
use super::handle::Command;
use crate::machine::{Availability, WatchEvent};
use crate::record::{WatchId, WatchTarget};

/// Calls that may wait for one watch to rest. More than a model asks for in one reply.
const MAX_WAITING: usize = 16;

/// What a call gets of the watch it is about.
pub(super) enum Claim {
    /// Nothing to hold: not watched, or over.
    Nothing,
    /// The call holds it now.
    Held(WatchId),
    /// Another call holds it.
    Taken,
    /// It is busy for a moment.
    Wait(WatchId),
}

/// Who is to tell a text that is kept for an unknown conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhoTells {
    /// The call that takes the watch.
    Caller,
    /// The registry, once the conversation is known.
    Registry,
}

impl Registry {
    /// Takes a watch for a call, if it can be had. A text that is kept for an unknown conversation is for the one
    /// `who_tells` it.
    pub(super) fn claim(
        &mut self,
        target: &WatchTarget,
        agent: &str,
        task_id: &TaskId,
        who_tells: WhoTells,
    ) -> Claim {
        let Some(id) = self.watch_of(target, agent, task_id) else { return Claim::Nothing };
        self.withdraw_call(&id);
        let Some(followed) = self.watches.get(&id) else { return Claim::Nothing };
        if followed.is_busy() {
            let is_full = followed.waiting.len() >= MAX_WAITING;
            return if is_full { Claim::Taken } else { Claim::Wait(id) };
        }
        match followed.watch.availability() {
            Availability::Free => {
                self.hold(&id);
                Claim::Held(id)
            }
            Availability::Kept if who_tells == WhoTells::Caller => {
                self.hold(&id);
                Claim::Held(id)
            }
            Availability::Held | Availability::Busy => Claim::Taken,
            Availability::Kept | Availability::Over => Claim::Nothing,
        }
    }

    pub(super) fn hold(&mut self, id: &WatchId) {
        if let Some(followed) = self.watches.get_mut(id) {
            followed.telling = None;
            if let Some(timer) = followed.timer.take() {
                self.timers.try_remove(&timer);
            }
        }
        self.feed(id, WatchEvent::Hold);
    }

    pub(super) fn release(&mut self, id: &WatchId, hinted: bool) {
        let push_token = self.context.push_token();
        self.feed(id, WatchEvent::Release { push_token, hinted });
    }

    pub(super) fn wait_for(&mut self, id: &WatchId, command: Command) {
        if let Some(followed) = self.watches.get_mut(id) {
            followed.waiting.push_back(command);
        }
    }

    pub(super) fn release_held(&mut self, held: Option<WatchId>) {
        if let Some(id) = held {
            self.release(&id, false);
        }
    }
}

//! Who holds a watch, and what it does when they let go.

use std::time::Duration;

use jiff::Timestamp;
use volcanic_base::Secret;

use super::{
    AUTH_REQUIRED, After, Continuation, Ending, Hint, ORIGIN_MOVED, Phase, SettledState, Watch,
    WatchEffect, elapsed, settled,
};
use crate::config::WatchConfig;
use crate::record::{WatchSource, WatchState};

impl Watch {
    pub(super) fn on_release(
        &mut self,
        push_token: Option<Secret>,
        hinted: bool,
        now: Timestamp,
        config: &WatchConfig,
    ) -> WatchEffect {
        if hinted {
            self.keep_hint(Hint::Begin);
        }
        let due_at = self.held_until.take();
        match self.record.state {
            // Who held it did not tell the text after all.
            WatchState::Claimed => {
                self.phase = Phase::Delivering;
                WatchEffect::Deliver
            }
            WatchState::Watching if self.is_unregistered(push_token.as_ref()) => self.register(),
            WatchState::Watching => {
                let pause = match due_at {
                    _ if self.hint.is_some() => self.push_wait(now, config),
                    Some(due_at) => elapsed(now, due_at),
                    None => self.pause(now, config, None),
                };
                self.rest(now, pause)
            }
            WatchState::Attended | WatchState::Done => {
                self.step = 0;
                let pause = self.pause_after_hold(now, config);
                self.let_go(push_token, pause)
            }
        }
    }

    /// Somebody told the outcome: who holds the watch, or did until something went wrong.
    pub(super) fn on_told(
        &mut self,
        state: SettledState,
        push_token: Option<Secret>,
        now: Timestamp,
        config: &WatchConfig,
    ) -> Option<WatchEffect> {
        match self.phase {
            Phase::Attended | Phase::Idle | Phase::Kept => {
                Some(self.on_confirmed(state, push_token, now, config))
            }
            Phase::Reading
            | Phase::Connecting(_)
            | Phase::Writing(
                After::Check(_) | After::Locate | After::Connect(_) | After::Register,
            )
            | Phase::Stuck(After::Check(_) | After::Locate | After::Connect(_) | After::Register)
            | Phase::Registering => {
                self.ending = Some(Ending::Told(state));
                None
            }
            // It is told under the same key there, so it is not told twice.
            Phase::Writing(After::Deliver | After::End | After::Attend)
            | Phase::Stuck(After::Deliver | After::End | After::Attend)
            | Phase::Delivering
            | Phase::Undelivered
            | Phase::Ended => self.ignore(),
        }
    }

    pub(super) fn on_confirmed(
        &mut self,
        state: SettledState,
        push_token: Option<Secret>,
        now: Timestamp,
        config: &WatchConfig,
    ) -> WatchEffect {
        self.held_until = None;
        self.record.text = None;
        self.record.goes_on = false;
        self.note_outcome(state.mark);
        if state.label != AUTH_REQUIRED && !self.record.is_behind() {
            self.record.state = WatchState::Done;
            return self.write(After::End);
        }
        self.record.note_told(state.label);
        if self.record.is_behind() {
            self.begin_round(now, None);
        }
        self.step = 0;
        let pause = self.pause_after_hold(now, config);
        self.let_go(push_token, pause)
    }

    /// The pause before the first check of a watch that somebody held; a stream that is open may have been silent.
    pub(super) fn pause_after_hold(&mut self, now: Timestamp, config: &WatchConfig) -> Duration {
        let first = config.poll_pauses.first().copied().unwrap_or_default();
        self.pause(now, config, None).max(first)
    }

    /// The registry follows the task from here on.
    pub(super) fn let_go(&mut self, push_token: Option<Secret>, pause: Duration) -> WatchEffect {
        self.record.state = WatchState::Watching;
        match push_token {
            Some(token) if self.record.source != WatchSource::Push => {
                // Kept before the remote hears it, so that its first push finds it.
                self.record.push_token.get_or_insert(token);
                self.write(After::Register)
            }
            Some(_) | None => self.write_and_go_on(pause),
        }
    }

    /// Whether the token is kept and the remote may never have heard it: an earlier process ended before it knew, or the one
    /// after that had nobody who listens. Of a remote that refused it no token is kept.
    pub(super) fn is_unregistered(&self, next_token: Option<&Secret>) -> bool {
        let is_open = self.record.push_token.is_some() && self.record.source != WatchSource::Push;
        is_open && next_token.is_some()
    }

    /// Remembers the outcome that is told last.
    pub(super) fn note_outcome(&mut self, mark: String) {
        self.record.told.retain(|told| !settled::is_mark(told));
        self.record.told.push(mark);
    }

    /// A further message makes every state worth telling again, under keys of its own. If nobody waits for what comes of
    /// it, the outcome that was told last is no news: the message may have been a part of it already.
    pub(super) fn begin_round(&mut self, now: Timestamp, continuation: Option<Continuation>) {
        let is_beside = continuation.is_none();
        self.record.round += 1;
        self.record.followed = self.record.continuations;
        self.record
            .told
            .retain(|told| told == ORIGIN_MOVED || (is_beside && settled::outlasts_round(told)));
        self.record.started_at = now;
        self.step = 0;
        if let Some(continuation) = continuation {
            self.record.message_id = Some(continuation.message_id);
            self.record.hops = self.record.hops.max(continuation.hops);
            self.record.source_ref = continuation.source_ref.or(self.record.source_ref.take());
            self.record.told.extend(continuation.answered);
        }
    }
}

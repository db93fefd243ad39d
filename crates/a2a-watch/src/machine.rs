//! One watch as a state machine: what happens next, without clock, I/O or tasks.
//!
//! The registry feeds events in and carries the one effect of each out. At most one read, write, registration or delivery
//! of a watch is under way at a time; its end is the next event.

mod check;
mod event;
mod settled;

use std::time::Duration;

use jiff::Timestamp;
use volcanic_base::Secret;

pub(crate) use event::{Continuation, ReadResult, WatchEffect, WatchEvent};
pub(crate) use settled::SettledState;

use crate::config::WatchConfig;
use crate::record::{WatchRecord, WatchSource, WatchState};

/// The label of the state that is told while the watch goes on.
pub(crate) const AUTH_REQUIRED: &str = "auth-required";
/// The label of the notice about an agent whose entry points elsewhere now.
pub(crate) const ORIGIN_MOVED: &str = "origin-moved";

/// What follows a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Check(Duration),
    Register,
    Attend,
    Deliver,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Attended,
    Idle,
    Reading,
    Writing(After),
    /// A write failed and is tried again.
    Stuck(After),
    Registering,
    Delivering,
    /// A delivery failed and is tried again.
    Undelivered,
    /// The conversation is not known; only a flush goes on.
    Kept,
    Ended,
}

/// What a caller may do with a watch now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It rests and can be held.
    Free,
    /// Somebody holds it.
    Held,
    /// It is busy for a moment.
    Busy,
    /// Its outcome waits for an unknown conversation, or is delivered and gone.
    Over,
}

/// One watch.
#[derive(Debug)]
pub(crate) struct Watch {
    record: WatchRecord,
    phase: Phase,
    /// Position in the poll pauses.
    step: usize,
    missing_since: Option<Timestamp>,
    /// A push waits for its read.
    pushed: bool,
    last_push_read: Option<Timestamp>,
    /// A message was sent to the task while the watch was busy with an outcome.
    continued: bool,
    /// The conversation became known while a delivery was under way, which may have missed that.
    flushed: bool,
    /// Events that came too late to mean anything.
    stale: u64,
}

impl Watch {
    /// A watch whose record was just written as [`WatchState::Attended`]; the caller waits for the task.
    pub(crate) fn attended(record: WatchRecord) -> Self {
        Self::with(record, Phase::Attended)
    }

    /// A watch that an earlier process left. The first check comes after `first_check`; `push_token` is set when somebody
    /// listens for pushes.
    pub(crate) fn restored(
        record: WatchRecord,
        now: Timestamp,
        first_check: Duration,
        push_token: Option<Secret>,
    ) -> (Self, Option<WatchEffect>) {
        let mut watch = Self::with(record, Phase::Attended);
        let effect = match watch.record.state {
            WatchState::Attended => Some(watch.let_go(push_token, Some(first_check))),
            WatchState::Watching => {
                if watch.record.source == WatchSource::Push && push_token.is_none() {
                    watch.record.source = WatchSource::Poll;
                    Some(watch.write(After::Check(first_check)))
                } else {
                    Some(watch.rest(now, first_check))
                }
            }
            WatchState::Claimed => {
                watch.phase = Phase::Delivering;
                Some(WatchEffect::Deliver)
            }
            WatchState::Done => {
                watch.phase = Phase::Ended;
                Some(WatchEffect::End)
            }
        };
        (watch, effect)
    }

    fn with(record: WatchRecord, phase: Phase) -> Self {
        Self {
            record,
            phase,
            step: 0,
            missing_since: None,
            pushed: false,
            last_push_read: None,
            continued: false,
            flushed: false,
            stale: 0,
        }
    }

    /// What is known about the watch, or what [`WatchEffect::Write`] is to write.
    pub(crate) fn record(&self) -> &WatchRecord {
        &self.record
    }

    /// Whether a caller can hold the watch now.
    pub(crate) fn availability(&self) -> Availability {
        match self.phase {
            Phase::Idle => Availability::Free,
            Phase::Attended => Availability::Held,
            Phase::Reading
            | Phase::Writing(_)
            | Phase::Stuck(_)
            | Phase::Registering
            | Phase::Delivering
            | Phase::Undelivered => Availability::Busy,
            Phase::Kept | Phase::Ended => Availability::Over,
        }
    }

    /// Whether the timer is what the watch waits for, until [`WatchRecord::next_check_at`].
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// The event that stands for a job that broke off without an end.
    pub(crate) fn broken_job(&self) -> Option<WatchEvent> {
        match self.phase {
            Phase::Reading => Some(WatchEvent::Read(ReadResult::Failed {
                reason: "the check broke off".to_owned(),
                retry_after: None,
            })),
            Phase::Writing(_) => Some(WatchEvent::WriteFailed),
            Phase::Registering => Some(WatchEvent::NotRegistered),
            Phase::Delivering => Some(WatchEvent::DeliverFailed),
            Phase::Attended => Some(WatchEvent::Release { push_token: None, hinted: true }),
            Phase::Idle | Phase::Stuck(_) | Phase::Undelivered | Phase::Kept | Phase::Ended => None,
        }
    }

    /// Events that came too late.
    #[cfg(test)]
    pub(crate) fn stale(&self) -> u64 {
        self.stale
    }

    /// Takes one event.
    pub(crate) fn on_event(
        &mut self,
        event: WatchEvent,
        now: Timestamp,
        config: &WatchConfig,
    ) -> Option<WatchEffect> {
        match event {
            WatchEvent::Due => self.on_due(now),
            WatchEvent::Pushed => self.on_pushed(now, config),
            WatchEvent::Read(result) if self.phase == Phase::Reading => {
                Some(self.on_read(result, now, config))
            }
            WatchEvent::Written => self.on_written(now, config),
            WatchEvent::WriteFailed => self.on_write_failed(now, config),
            WatchEvent::Registered if self.phase == Phase::Registering => {
                self.record.source = WatchSource::Push;
                // What changed before the remote knew of us was not pushed.
                Some(self.write(After::Check(Duration::ZERO)))
            }
            WatchEvent::NotRegistered if self.phase == Phase::Registering => {
                self.record.source = WatchSource::Poll;
                self.record.push_token = None;
                self.step = 0;
                let pause = self.poll_pause(config);
                Some(self.write(After::Check(pause)))
            }
            WatchEvent::Delivered if self.phase == Phase::Delivering => {
                Some(self.on_delivered(now, config))
            }
            WatchEvent::NotNow if self.phase == Phase::Delivering => {
                if std::mem::take(&mut self.flushed) {
                    return Some(WatchEffect::Deliver);
                }
                self.phase = Phase::Kept;
                None
            }
            WatchEvent::DeliverFailed if self.phase == Phase::Delivering => {
                self.phase = Phase::Undelivered;
                Some(WatchEffect::Wait(config.store_retry))
            }
            WatchEvent::Flush if self.phase == Phase::Kept => {
                self.phase = Phase::Delivering;
                Some(WatchEffect::Deliver)
            }
            WatchEvent::Hold if self.phase == Phase::Idle => {
                self.phase = Phase::Attended;
                self.record.next_check_at = None;
                None
            }
            WatchEvent::Release { push_token, hinted } if self.phase == Phase::Attended => {
                Some(self.on_release(push_token, hinted, now, config))
            }
            WatchEvent::Confirmed { state, push_token } if self.phase == Phase::Attended => {
                Some(self.on_confirmed(state, push_token, now, config))
            }
            WatchEvent::Continued(continuation) if self.phase == Phase::Attended => {
                self.begin_round(now, Some(continuation));
                self.record.state = WatchState::Attended;
                Some(self.write(After::Attend))
            }
            WatchEvent::ContinuedBeside => {
                self.continued = true;
                None
            }
            WatchEvent::Flush => {
                self.flushed = self.phase == Phase::Delivering;
                None
            }
            WatchEvent::Read(_)
            | WatchEvent::Registered
            | WatchEvent::NotRegistered
            | WatchEvent::Delivered
            | WatchEvent::NotNow
            | WatchEvent::DeliverFailed
            | WatchEvent::Hold
            | WatchEvent::Release { .. }
            | WatchEvent::Confirmed { .. }
            | WatchEvent::Continued(_) => self.ignore(),
        }
    }

    fn ignore(&mut self) -> Option<WatchEffect> {
        self.stale += 1;
        None
    }

    fn on_due(&mut self, now: Timestamp) -> Option<WatchEffect> {
        match self.phase {
            Phase::Idle => {
                if std::mem::take(&mut self.pushed) {
                    self.last_push_read = Some(now);
                }
                Some(self.read(now))
            }
            Phase::Stuck(after) => Some(self.write(after)),
            Phase::Undelivered => {
                self.phase = Phase::Delivering;
                Some(WatchEffect::Deliver)
            }
            Phase::Attended
            | Phase::Reading
            | Phase::Writing(_)
            | Phase::Registering
            | Phase::Delivering
            | Phase::Kept
            | Phase::Ended => self.ignore(),
        }
    }

    fn on_pushed(&mut self, now: Timestamp, config: &WatchConfig) -> Option<WatchEffect> {
        match self.phase {
            Phase::Idle => {
                let wait = self.push_wait(now, config);
                if wait.is_zero() {
                    self.last_push_read = Some(now);
                    return Some(self.read(now));
                }
                self.pushed = true;
                Some(self.rest(now, wait))
            }
            Phase::Attended
            | Phase::Reading
            | Phase::Writing(_)
            | Phase::Stuck(_)
            | Phase::Registering => {
                self.pushed = true;
                None
            }
            Phase::Delivering | Phase::Undelivered | Phase::Kept | Phase::Ended => self.ignore(),
        }
    }

    fn on_written(&mut self, now: Timestamp, config: &WatchConfig) -> Option<WatchEffect> {
        let Phase::Writing(after) = self.phase else { return self.ignore() };
        self.record.epoch += 1;
        Some(self.go_on(after, now, config))
    }

    fn on_write_failed(&mut self, now: Timestamp, config: &WatchConfig) -> Option<WatchEffect> {
        let Phase::Writing(after) = self.phase else { return self.ignore() };
        if matches!(after, After::Check(_)) && self.record.state == WatchState::Watching {
            // Only notes about the last check are lost, and the next write carries them.
            return Some(self.go_on(after, now, config));
        }
        self.phase = Phase::Stuck(after);
        Some(WatchEffect::Wait(config.store_retry))
    }

    fn go_on(&mut self, after: After, now: Timestamp, config: &WatchConfig) -> WatchEffect {
        match after {
            After::Check(pause) if self.pushed => {
                let wait = self.push_wait(now, config);
                self.rest(now, pause.min(wait))
            }
            After::Check(pause) => self.rest(now, pause),
            After::Register => {
                self.phase = Phase::Registering;
                WatchEffect::Register
            }
            After::Attend => {
                self.phase = Phase::Attended;
                WatchEffect::Attend
            }
            After::Deliver => {
                self.phase = Phase::Delivering;
                WatchEffect::Deliver
            }
            After::End if std::mem::take(&mut self.continued) => {
                // The message came while the tombstone was written.
                self.record.state = WatchState::Watching;
                self.begin_round(now, None);
                let pause = self.poll_pause(config);
                self.write(After::Check(pause))
            }
            After::End => {
                self.phase = Phase::Ended;
                WatchEffect::End
            }
        }
    }

    fn on_delivered(&mut self, now: Timestamp, config: &WatchConfig) -> WatchEffect {
        let label = self.record.claimed_label().unwrap_or_default().to_owned();
        self.record.text = None;
        self.flushed = false;
        if !self.record.goes_on && !self.continued {
            self.record.state = WatchState::Done;
            return self.write(After::End);
        }
        self.record.goes_on = false;
        self.record.state = WatchState::Watching;
        self.record.told.push(label);
        if std::mem::take(&mut self.continued) {
            self.begin_round(now, None);
        }
        let pause = self.poll_pause(config);
        self.write(After::Check(pause))
    }

    fn on_release(
        &mut self,
        push_token: Option<Secret>,
        hinted: bool,
        now: Timestamp,
        config: &WatchConfig,
    ) -> WatchEffect {
        let hinted = hinted || std::mem::take(&mut self.pushed);
        self.step = 0;
        let pause = if hinted { Duration::ZERO } else { self.pause(config, None) };
        if self.record.state == WatchState::Watching {
            return self.rest(now, pause);
        }
        self.let_go(push_token, Some(pause))
    }

    fn on_confirmed(
        &mut self,
        state: SettledState,
        push_token: Option<Secret>,
        now: Timestamp,
        config: &WatchConfig,
    ) -> WatchEffect {
        if state.label != AUTH_REQUIRED && !self.continued {
            self.record.state = WatchState::Done;
            return self.write(After::End);
        }
        self.note_outcome(state.mark);
        self.record.told.push(state.label);
        if std::mem::take(&mut self.continued) {
            self.begin_round(now, None);
        }
        self.step = 0;
        let pause = self.pause(config, None);
        self.let_go(push_token, Some(pause))
    }

    /// The registry follows the task from here on.
    fn let_go(&mut self, push_token: Option<Secret>, pause: Option<Duration>) -> WatchEffect {
        self.record.state = WatchState::Watching;
        match push_token {
            Some(token) if self.record.push_token.is_none() => {
                // Kept before the remote hears it, so that its first push finds it.
                self.record.push_token = Some(token);
                self.write(After::Register)
            }
            Some(_) | None => self.write(After::Check(pause.unwrap_or_default())),
        }
    }

    /// Remembers the outcome that is told last.
    fn note_outcome(&mut self, mark: String) {
        self.record.told.retain(|told| !settled::is_mark(told));
        self.record.told.push(mark);
    }

    /// A further message makes every state worth telling again, under keys of its own. If nobody waits for what comes of
    /// it, the outcome that was told last is no news: the message may have been a part of it already.
    fn begin_round(&mut self, now: Timestamp, continuation: Option<Continuation>) {
        let is_beside = continuation.is_none();
        self.record.round += 1;
        self.record
            .told
            .retain(|told| told == ORIGIN_MOVED || (is_beside && settled::is_mark(told)));
        self.record.started_at = now;
        self.step = 0;
        if let Some(continuation) = continuation {
            self.record.message_id = Some(continuation.message_id);
            self.record.hops = self.record.hops.max(continuation.hops);
            self.record.source_ref = continuation.source_ref.or(self.record.source_ref.take());
        }
    }

    fn read(&mut self, now: Timestamp) -> WatchEffect {
        if std::mem::take(&mut self.continued) {
            // This read comes after the message, so what it finds belongs to the new round.
            self.begin_round(now, None);
        }
        self.phase = Phase::Reading;
        self.record.next_check_at = None;
        WatchEffect::Read
    }

    fn write(&mut self, after: After) -> WatchEffect {
        self.phase = Phase::Writing(after);
        WatchEffect::Write
    }

    fn rest(&mut self, now: Timestamp, pause: Duration) -> WatchEffect {
        self.phase = Phase::Idle;
        self.record.next_check_at = now.saturating_add(pause).ok();
        WatchEffect::Wait(pause)
    }
}

#[cfg(test)]
mod tests;

//! One watch as a state machine: what happens next, without clock, I/O or tasks.
//!
//! The registry feeds events in and carries the one effect of each out. At most one call, write, registration or delivery
//! of a watch is under way at a time; its end is the next event. A held stream is no call: it only hints.

mod beginning;
mod check;
mod delivering;
mod event;
mod holding;
mod settled;
mod streaming;
mod writing;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub(crate) use event::{Continuation, Hint, ReadResult, WatchEffect, WatchEvent};
pub(crate) use settled::{Hashing, SettledState, answered, is_answer, is_answered, outlasts_round};

use crate::config::WatchConfig;
use crate::record::{WatchRecord, WatchSource, WatchState};
use streaming::Stream;

/// The label of the state that is told while the watch goes on.
pub(crate) const AUTH_REQUIRED: &str = "auth-required";
/// The label of the notice about an agent whose entry points elsewhere now.
pub(crate) const ORIGIN_MOVED: &str = "origin-moved";

/// What follows a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Check(Duration),
    /// The task is read where its agent was found.
    Locate,
    /// A stream is opened; without one, the check comes after the pause.
    Connect(Duration),
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
    /// A stream is being opened; without one, the next check comes after the pause.
    Connecting(Duration),
    Writing(After),
    /// A write failed and is tried again.
    Stuck(After),
    Registering,
    Delivering,
    /// A delivery failed and is tried again.
    Undelivered,
    /// The conversation is not known; only a flush, or somebody who tells it, goes on.
    Kept,
    Ended,
}

/// Why a watch has nothing left to do.
#[derive(Debug)]
enum Ending {
    /// The outcome was told by somebody who does not hold the watch any more.
    Told(SettledState),
    /// A send led to the task of this imported watch before it was known where that runs.
    Superseded,
}

/// What a caller may do with a watch now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It rests and can be held.
    Free,
    /// Its outcome waits for a conversation that is not known. It can be held by who tells the outcome.
    Kept,
    /// Somebody holds it.
    Held,
    /// It is busy for a moment.
    Busy,
    /// Its outcome is delivered and gone.
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
    /// The hint that waits for its read.
    hint: Option<Hint>,
    /// What the last read was for.
    read_for: Hint,
    /// The next read is the first one.
    begins: bool,
    last_push_read: Option<Timestamp>,
    stream: Stream,
    /// Streams that ended or failed in a row although the agent could be read.
    stream_failures: u32,
    /// A stream ended or failed; the next read tells whether the agent did as well.
    suspected: bool,
    /// When the next check was due before somebody took the watch.
    held_until: Option<Timestamp>,
    /// Why the watch has nothing left to do once it rests.
    ending: Option<Ending>,
    /// The conversation became known while a delivery was under way, which may have missed that.
    flushed: bool,
    /// How often in a row files of the outcome could not be saved.
    unsaved: u32,
    /// Events that came too late to mean anything.
    stale: u64,
}

impl Watch {
    /// What is known about the watch, or what [`WatchEffect::Write`] is to write.
    pub(crate) fn record(&self) -> &WatchRecord {
        &self.record
    }

    /// What the last read was for.
    pub(crate) fn read_for(&self) -> Hint {
        self.read_for
    }

    /// Whether a caller can hold the watch now.
    pub(crate) fn availability(&self) -> Availability {
        match self.phase {
            Phase::Idle => Availability::Free,
            Phase::Attended => Availability::Held,
            Phase::Kept => Availability::Kept,
            Phase::Reading
            | Phase::Connecting(_)
            | Phase::Writing(_)
            | Phase::Stuck(_)
            | Phase::Registering
            | Phase::Delivering
            | Phase::Undelivered => Availability::Busy,
            Phase::Ended => Availability::Over,
        }
    }

    /// Whether the timer is what the watch waits for, until [`WatchRecord::next_check_at`].
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// The call that the watch waits for, be it under way or in a queue.
    pub(crate) fn call(&self) -> Option<WatchEffect> {
        match self.phase {
            Phase::Reading => Some(WatchEffect::Read),
            Phase::Connecting(_) => Some(WatchEffect::Subscribe),
            Phase::Attended
            | Phase::Idle
            | Phase::Writing(_)
            | Phase::Stuck(_)
            | Phase::Registering
            | Phase::Delivering
            | Phase::Undelivered
            | Phase::Kept
            | Phase::Ended => None,
        }
    }

    /// Whether the watch would give up before anything else, were it checked now.
    pub(crate) fn is_overdue(&self, now: Timestamp, config: &WatchConfig) -> bool {
        self.time_left(now, config).is_zero()
    }

    /// The event that stands for a job that broke off without an end.
    pub(crate) fn broken_job(&self) -> Option<WatchEvent> {
        match self.phase {
            Phase::Reading => Some(WatchEvent::Read(ReadResult::Failed {
                reason: "the check broke off".to_owned(),
                retry_after: None,
            })),
            Phase::Connecting(_) => Some(WatchEvent::StreamFailed),
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

    /// Takes one event. No `now` lies before an earlier one.
    pub(crate) fn on_event(
        &mut self,
        event: WatchEvent,
        now: Timestamp,
        config: &WatchConfig,
    ) -> Option<WatchEffect> {
        self.correct_times(now);
        match event {
            WatchEvent::Due => self.on_due(now, config),
            WatchEvent::Hinted(hint) => self.on_hint(hint, now, config),
            WatchEvent::Read(result) if self.call().is_some() => {
                Some(self.on_read(result, now, config))
            }
            WatchEvent::Withdrawn if self.call().is_some() => self.on_withdrawn(now),
            WatchEvent::StreamOpened
            | WatchEvent::StreamFailed
            | WatchEvent::StreamEnded
            | WatchEvent::NoStreams
            | WatchEvent::NoPlace
            | WatchEvent::Place => self.on_stream_event(&event, now),
            WatchEvent::Written => self.on_written(now, config),
            WatchEvent::WriteFailed => self.on_write_failed(now, config),
            WatchEvent::Registered if self.phase == Phase::Registering => {
                Some(self.on_registered())
            }
            WatchEvent::NotRegistered if self.phase == Phase::Registering => {
                Some(self.on_not_registered(config))
            }
            WatchEvent::Delivered
            | WatchEvent::NotNow
            | WatchEvent::DeliverFailed
            | WatchEvent::Flush => self.on_delivery_event(&event, now, config),
            WatchEvent::Hold if matches!(self.phase, Phase::Idle | Phase::Kept) => {
                self.phase = Phase::Attended;
                self.held_until = self.record.next_check_at.take();
                None
            }
            WatchEvent::Release { push_token, hinted } if self.phase == Phase::Attended => {
                Some(self.on_release(push_token, hinted, now, config))
            }
            WatchEvent::Confirmed { state, push_token } => {
                self.on_told(state, push_token, now, config)
            }
            WatchEvent::Continued(continuation) if self.phase == Phase::Attended => {
                self.begin_round(now, Some(continuation));
                self.record.state = WatchState::Attended;
                Some(self.write(After::Attend))
            }
            WatchEvent::ContinuedBeside { continuations, answered } => {
                self.record.continuations = self.record.continuations.max(continuations);
                if let Some(answered) = answered {
                    self.record.note_told(answered);
                }
                None
            }
            WatchEvent::Superseded if self.record.origin.is_empty() => {
                self.ending = Some(Ending::Superseded);
                (self.phase == Phase::Idle).then(|| self.rest(now, Duration::ZERO))
            }
            WatchEvent::Read(_)
            | WatchEvent::Withdrawn
            | WatchEvent::Superseded
            | WatchEvent::Registered
            | WatchEvent::NotRegistered
            | WatchEvent::Hold
            | WatchEvent::Release { .. }
            | WatchEvent::Continued(_) => self.ignore(),
        }
    }

    fn ignore(&mut self) -> Option<WatchEffect> {
        self.stale += 1;
        None
    }

    /// Takes what was noted before the clock was set as noted now.
    fn correct_times(&mut self, now: Timestamp) {
        self.record.correct_times(now);
        for at in [&mut self.missing_since, &mut self.last_push_read] {
            *at = at.map(|at| noted(at, now));
        }
        if let Stream::Open { since } = &mut self.stream {
            *since = noted(*since, now);
        }
    }

    fn on_due(&mut self, now: Timestamp, config: &WatchConfig) -> Option<WatchEffect> {
        match self.phase {
            Phase::Idle => {
                match self.ending.take() {
                    Some(Ending::Told(state)) => {
                        return Some(self.on_confirmed(state, None, now, config));
                    }
                    Some(Ending::Superseded) => {
                        self.record.state = WatchState::Done;
                        return Some(self.write(After::End));
                    }
                    None => {}
                }
                let hint = self.hint.take();
                if hint.is_some() {
                    self.last_push_read = Some(now);
                } else if !self.is_overdue(now, config) && self.is_stream_due(now, config) {
                    return Some(self.connect(Duration::ZERO));
                }
                let hint = hint.unwrap_or_else(|| self.timer_hint());
                Some(self.read(now, hint))
            }
            Phase::Stuck(after) => Some(self.write(after)),
            Phase::Undelivered => {
                self.phase = Phase::Delivering;
                Some(WatchEffect::Deliver)
            }
            Phase::Attended
            | Phase::Reading
            | Phase::Connecting(_)
            | Phase::Writing(_)
            | Phase::Registering
            | Phase::Delivering
            | Phase::Kept
            | Phase::Ended => self.ignore(),
        }
    }

    /// What a read is for that no hint caused.
    fn timer_hint(&self) -> Hint {
        if self.begins {
            Hint::Begin
        } else if self.record.source == WatchSource::Push && self.record.failures == 0 {
            Hint::SafetyRead
        } else {
            Hint::Poll
        }
    }

    fn on_hint(&mut self, hint: Hint, now: Timestamp, config: &WatchConfig) -> Option<WatchEffect> {
        match self.phase {
            Phase::Idle => {
                let wait = self.push_wait(now, config);
                if wait.is_zero() {
                    self.last_push_read = Some(now);
                    return Some(self.read(now, hint));
                }
                self.keep_hint(hint);
                Some(self.rest(now, wait))
            }
            Phase::Attended
            | Phase::Reading
            | Phase::Connecting(_)
            | Phase::Writing(_)
            | Phase::Stuck(_)
            | Phase::Registering => {
                self.keep_hint(hint);
                None
            }
            Phase::Delivering | Phase::Undelivered | Phase::Kept | Phase::Ended => self.ignore(),
        }
    }

    /// Keeps a hint until the task can be read.
    fn keep_hint(&mut self, hint: Hint) {
        self.hint.get_or_insert(hint);
    }

    fn on_registered(&mut self) -> WatchEffect {
        self.record.source = WatchSource::Push;
        self.stream = Stream::Off;
        self.begins = true;
        // What changed before the remote knew of us was not pushed.
        self.write(After::Check(Duration::ZERO))
    }

    fn on_not_registered(&mut self, config: &WatchConfig) -> WatchEffect {
        self.record.source = WatchSource::Poll;
        self.record.push_token = None;
        self.step = 0;
        let pause = self.poll_pause(config);
        self.write_and_go_on(pause)
    }

    /// A call that waited for its turn is taken back, so that somebody can hold the watch.
    fn on_withdrawn(&mut self, now: Timestamp) -> Option<WatchEffect> {
        if self.phase == Phase::Reading {
            self.keep_hint(self.read_for);
        }
        self.phase = Phase::Idle;
        self.record.next_check_at = Some(now);
        None
    }

    fn read(&mut self, now: Timestamp, hint: Hint) -> WatchEffect {
        self.read_for = hint;
        self.begins = false;
        if self.record.is_behind() {
            // This read comes after the message, so what it finds belongs to the new round.
            self.begin_round(now, None);
        }
        self.phase = Phase::Reading;
        self.record.next_check_at = None;
        WatchEffect::Read
    }

    fn rest(&mut self, now: Timestamp, pause: Duration) -> WatchEffect {
        let pause = if self.ending.is_some() { Duration::ZERO } else { pause };
        self.phase = Phase::Idle;
        self.record.next_check_at = now.saturating_add(pause).ok();
        WatchEffect::Wait(pause)
    }
}

/// A clock that shows less was never set, as machines begin that forget the time.
const EARLIEST: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A moment that was noted, as it is taken `now`. If it is still to come, an earlier process had a wrong clock, and nothing is
/// to wait for as long as it was wrong by; unless it is this process whose clock is still to be set. A moment of a clock that
/// was not set yet says nothing once it is.
pub(crate) fn noted(at: Timestamp, now: Timestamp) -> Timestamp {
    match (was_set(at), was_set(now)) {
        (_, false) => at,
        (false, true) => now,
        (true, true) => at.min(now),
    }
}

/// Whether a clock that shows this was ever set.
pub(crate) fn was_set(shown: Timestamp) -> bool {
    shown >= EARLIEST
}

/// The time between two moments, zero when the first one is still to come.
pub(crate) fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    let passed = now.duration_since(noted(since, now));
    Duration::try_from(passed.max(SignedDuration::ZERO)).unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! The stream of a watch that subscribes. It only hints: after every connect the task is read, as a gap is never trusted.

use std::time::Duration;

use jiff::Timestamp;

use super::{Hint, Phase, Watch, WatchEffect, WatchEvent, elapsed};
use crate::config::WatchConfig;
use crate::record::WatchSource;

/// What a watch has of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// None, and one is to be opened when the next check is due.
    Wanted,
    /// One, opened then.
    Open {
        /// When it was opened.
        since: Timestamp,
    },
    /// None, as there are as many as there may be; one is opened when a place frees.
    NoPlace,
    /// None: the agent pushes, has no streams, or they failed too often.
    Off,
}

impl Watch {
    /// Whether the registry is to hold a stream for the watch.
    pub(crate) fn is_streaming(&self) -> bool {
        matches!(self.phase, Phase::Connecting(_)) || matches!(self.stream, Stream::Open { .. })
    }

    /// Whether the watch would take the place of a stream now.
    pub(crate) fn waits_for_place(&self) -> bool {
        self.phase == Phase::Idle && self.stream == Stream::NoPlace
    }

    pub(super) fn on_stream_event(
        &mut self,
        event: &WatchEvent,
        now: Timestamp,
    ) -> Option<WatchEffect> {
        match (event, self.phase) {
            (WatchEvent::StreamOpened, Phase::Connecting(_)) => {
                self.stream = Stream::Open { since: now };
                self.record.source = WatchSource::Subscribe;
                self.step = 0;
                Some(self.read(now, Hint::Gap))
            }
            (WatchEvent::StreamFailed, Phase::Connecting(_)) => {
                self.stream = Stream::Wanted;
                self.suspected = true;
                // An agent may refuse because the task has ended.
                Some(self.read(now, Hint::Gap))
            }
            (WatchEvent::NoStreams, Phase::Connecting(pause)) => {
                self.stream = Stream::Off;
                Some(self.without_stream(now, pause))
            }
            (WatchEvent::NoPlace, Phase::Connecting(pause)) => {
                self.stream = Stream::NoPlace;
                Some(self.without_stream(now, pause))
            }
            (WatchEvent::Place, Phase::Idle) if self.stream == Stream::NoPlace => {
                Some(self.connect(Duration::ZERO))
            }
            (WatchEvent::StreamEnded, phase) if matches!(self.stream, Stream::Open { .. }) => {
                self.stream = Stream::Wanted;
                self.suspected = true;
                if phase == Phase::Idle {
                    return Some(self.read(now, Hint::Gap));
                }
                if phase == Phase::Attended {
                    self.keep_hint(Hint::Gap);
                }
                None
            }
            _ => self.ignore(),
        }
    }

    fn without_stream(&mut self, now: Timestamp, pause: Duration) -> WatchEffect {
        self.record.source = WatchSource::Poll;
        if pause.is_zero() {
            return self.read(now, Hint::Poll);
        }
        // The pause stands for the first one.
        self.step = self.step.max(1);
        self.rest(now, pause)
    }

    /// Nothing is listened for while an outcome is told.
    pub(super) fn close_stream(&mut self) {
        if matches!(self.stream, Stream::Open { .. }) {
            self.stream = Stream::Wanted;
        }
    }

    /// Opens a stream in place of one that is held.
    pub(super) fn connect(&mut self, pause: Duration) -> WatchEffect {
        self.stream = Stream::Wanted;
        self.phase = Phase::Connecting(pause);
        self.record.next_check_at = None;
        WatchEffect::Subscribe
    }

    /// Whether what is due is a stream; one that was held as long as it may be was a good one.
    pub(super) fn is_stream_due(&mut self, now: Timestamp, config: &WatchConfig) -> bool {
        match self.stream {
            Stream::Wanted => true,
            Stream::Open { since } if elapsed(since, now) >= config.stream_hold => {
                self.stream_failures = 0;
                true
            }
            Stream::Open { .. } | Stream::NoPlace | Stream::Off => false,
        }
    }

    /// The agent was read after a stream ended or failed: it is the stream's fault.
    pub(super) fn blame_stream(&mut self, config: &WatchConfig) {
        if !std::mem::take(&mut self.suspected) {
            return;
        }
        self.stream_failures = self.stream_failures.saturating_add(1);
        if self.stream_failures >= config.stream_failures && self.stream == Stream::Wanted {
            self.stream = Stream::Off;
            self.record.source = WatchSource::Poll;
            self.step = 0;
        }
    }

    /// The pause before the stream is due; `None` without one.
    pub(super) fn stream_pause(&self, now: Timestamp, config: &WatchConfig) -> Option<Duration> {
        match self.stream {
            Stream::Open { since } => Some(config.stream_hold.saturating_sub(elapsed(since, now))),
            Stream::Wanted => {
                let pauses = &config.reopen_pauses;
                let failures = usize::try_from(self.stream_failures).unwrap_or(usize::MAX);
                let at = failures.checked_sub(1).map(|at| at.min(pauses.len().saturating_sub(1)));
                Some(at.and_then(|at| pauses.get(at)).copied().unwrap_or_default())
            }
            Stream::NoPlace | Stream::Off => None,
        }
    }
}

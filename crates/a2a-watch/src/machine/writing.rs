//! Writes of a watch's record: what follows them, and what a failed one leaves.

use std::time::Duration;

use jiff::Timestamp;

use super::{After, Phase, Stream, Watch, WatchEffect};
use crate::config::WatchConfig;
use crate::record::WatchState;

impl Watch {
    pub(super) fn on_written(
        &mut self,
        now: Timestamp,
        config: &WatchConfig,
    ) -> Option<WatchEffect> {
        let Phase::Writing(after) = self.phase else { return self.ignore() };
        self.record.epoch += 1;
        Some(self.go_on(after, now, config))
    }

    pub(super) fn on_write_failed(
        &mut self,
        now: Timestamp,
        config: &WatchConfig,
    ) -> Option<WatchEffect> {
        let Phase::Writing(after) = self.phase else { return self.ignore() };
        if after == After::Locate {
            // The conversation may follow the task by another watch that began meanwhile; the next look tells.
            self.record.origin.clear();
            return Some(self.rest(now, config.store_retry));
        }
        let is_check = matches!(after, After::Check(_) | After::Connect(_));
        if is_check && self.record.state == WatchState::Watching {
            // Only notes about the last check are lost, and the next write carries them.
            return Some(self.go_on(after, now, config));
        }
        self.phase = Phase::Stuck(after);
        Some(WatchEffect::Wait(config.store_retry))
    }

    pub(super) fn go_on(
        &mut self,
        after: After,
        now: Timestamp,
        config: &WatchConfig,
    ) -> WatchEffect {
        match after {
            After::Check(pause) | After::Connect(pause) if self.hint.is_some() => {
                let wait = self.push_wait(now, config);
                self.rest(now, pause.min(wait))
            }
            After::Check(pause) => self.rest(now, pause),
            After::Locate => self.rest(now, Duration::ZERO),
            After::Connect(pause) => self.connect(pause),
            After::Register => self.register(),
            After::Attend => {
                self.phase = Phase::Attended;
                WatchEffect::Attend
            }
            After::Deliver => {
                self.phase = Phase::Delivering;
                WatchEffect::Deliver
            }
            After::End if self.record.is_behind() => {
                // The message came while the tombstone was written.
                self.record.state = WatchState::Watching;
                self.begin_round(now, None);
                let pause = self.poll_pause(config);
                self.write_and_go_on(pause)
            }
            After::End => {
                self.phase = Phase::Ended;
                WatchEffect::End
            }
        }
    }

    pub(super) fn register(&mut self) -> WatchEffect {
        self.phase = Phase::Registering;
        WatchEffect::Register
    }

    pub(super) fn write(&mut self, after: After) -> WatchEffect {
        self.phase = Phase::Writing(after);
        WatchEffect::Write
    }

    /// Writes, and follows the task from here on by the best source there is; by reads, the next comes after `pause`.
    pub(super) fn write_and_go_on(&mut self, pause: Duration) -> WatchEffect {
        let after = self.following(pause);
        self.write(after)
    }

    /// What follows the task from here on.
    pub(super) fn following(&self, pause: Duration) -> After {
        match self.stream {
            Stream::Wanted => After::Connect(pause),
            Stream::Open { .. } | Stream::NoPlace | Stream::Off => After::Check(pause),
        }
    }
}

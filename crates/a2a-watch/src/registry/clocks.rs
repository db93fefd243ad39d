//! Wall clock against monotonic clock: what a sleep of the machine, or a clock that was set, does to timers.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::Registry;
use crate::machine::WatchEffect;

impl Registry {
    /// Sets the timers anew when the wall clock ran ahead of the monotonic one, as after a sleep of the machine: pauses are
    /// promised in real time. When it was set back, the moments that are due go back with it.
    pub(super) fn check_clocks(
        &mut self,
        (at, wall): (Instant, Timestamp),
    ) -> (Instant, Timestamp) {
        let (now_at, now) = (Instant::now(), self.now());
        let passed = SignedDuration::try_from(now_at - at).unwrap_or_default();
        let ahead = now.duration_since(wall) - passed;
        if ahead.unsigned_abs() > self.context.config.clock_drift {
            tracing::info!(ahead_ms = ahead.as_millis(), "the wall clock jumped");
            if ahead.is_negative() {
                self.clock_set_back(ahead.unsigned_abs());
            } else {
                self.clock_ran_ahead(now);
            }
        }
        self.origins.tidy(now);
        (now_at, now)
    }

    fn clock_ran_ahead(&mut self, now: Timestamp) {
        let idle: Vec<_> = self
            .watches
            .iter()
            .filter(|(_, followed)| followed.watch.is_idle())
            .map(|(id, followed)| (id.clone(), followed.watch.record().next_check_at))
            .collect();
        for (id, due_at) in idle {
            let left = due_at.map_or(SignedDuration::ZERO, |due_at| due_at.duration_since(now));
            let left = Duration::try_from(left).unwrap_or_default();
            self.carry_out(&id, Some(WatchEffect::Wait(left)));
        }
        if let Some((_, timer)) = self.origins_at.take() {
            self.timers.try_remove(&timer);
        }
        self.begin_calls();
    }

    fn clock_set_back(&mut self, by: Duration) {
        for followed in self.watches.values_mut() {
            followed.watch.clock_set_back(by);
        }
        self.origins.clock_set_back(by);
        if let Some((at, _)) = &mut self.origins_at {
            *at = at.saturating_sub(by).unwrap_or(*at);
        }
    }
}

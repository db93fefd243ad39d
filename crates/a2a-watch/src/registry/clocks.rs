//! The time that watches live by, and what a sleep of the machine does to timers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use volcanic_base::Clock;

use super::Registry;
use crate::machine::WatchEffect;

/// The time of a process: the monotonic clock's, and as much more as the wall clock was ever ahead of that.
///
/// So time that the machine slept counts, as the monotonic clock stands still then. A wall clock that is set back takes
/// nothing back, and when it is put right nothing counts a second time. What it is set ahead cannot be told from a sleep.
/// Moments of this clock never lie before earlier ones; beside the wall clock they are ahead by what that was set back.
#[derive(Debug)]
pub(super) struct WatchClock {
    wall: Arc<dyn Clock>,
    began: (Instant, Timestamp),
    /// How far the wall clock has been ahead of the monotonic one at most.
    lead: Mutex<SignedDuration>,
}

impl WatchClock {
    pub(super) fn new(wall: Arc<dyn Clock>) -> Self {
        let began = (Instant::now(), wall.now());
        Self { wall, began, lead: Mutex::default() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.look().0
    }

    /// How much was slept since the clock began.
    pub(super) fn lead(&self) -> SignedDuration {
        self.look().1
    }

    /// What the wall clock shows, or will show if nobody sets it, at a moment of this one.
    pub(super) fn on_the_wall(&self, at: Timestamp) -> Timestamp {
        let ahead = self.now().duration_since(self.wall.now());
        at.saturating_sub(ahead).unwrap_or(at)
    }

    fn look(&self) -> (Timestamp, SignedDuration) {
        let mut lead = self.lead.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order, so that a thread that has to wait in between is no sleep of the machine.
        let (wall, at) = (self.wall.now(), Instant::now());
        let passed = SignedDuration::try_from(at - self.began.0).unwrap_or(SignedDuration::MAX);
        let monotonic = self.began.1.saturating_add(passed).unwrap_or(Timestamp::MAX);
        *lead = (*lead).max(wall.duration_since(monotonic));
        (monotonic.saturating_add(*lead).unwrap_or(Timestamp::MAX), *lead)
    }
}

impl Registry {
    /// Sets the timers anew when more than a moment was slept since the lead was `last`: pauses are promised in real time.
    pub(super) fn check_clocks(&mut self, last: SignedDuration) -> SignedDuration {
        let lead = self.context.clock.lead();
        let now = self.now();
        self.origins.tidy(now);
        let slept = lead.saturating_sub(last);
        if slept.unsigned_abs() <= self.context.config.clock_drift {
            return last;
        }
        tracing::info!(ahead_ms = slept.as_millis(), "the wall clock jumped ahead");
        self.clock_ran_ahead(now);
        lead
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
}

#[cfg(test)]
mod tests {
    use volcanic_base::ManualClock;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn start() -> Timestamp {
        "2026-11-30T12:00:00Z".parse().unwrap()
    }

    /// Lets time pass on both clocks.
    async fn pass(wall: &ManualClock, by: Duration) {
        wall.advance(by);
        tokio::time::advance(by).await;
    }

    #[tokio::test(start_paused = true)]
    async fn time_asleep_counts_and_a_clock_that_is_set_back_and_put_right_does_not() {
        let wall = ManualClock::at(start());
        let clock = WatchClock::new(Arc::new(wall.clone()));
        pass(&wall, HOUR).await;
        assert_eq!(clock.now(), start() + HOUR);
        wall.set(start() - 23 * HOUR);
        pass(&wall, HOUR).await;
        assert_eq!((clock.now(), clock.lead()), (start() + 2 * HOUR, SignedDuration::ZERO));
        wall.advance(24 * HOUR);
        assert_eq!((clock.now(), clock.lead()), (start() + 2 * HOUR, SignedDuration::ZERO));
        wall.advance(HOUR);
        assert_eq!(
            (clock.now(), clock.lead()),
            (start() + 3 * HOUR, SignedDuration::from_hours(1))
        );
        assert_eq!(clock.now(), wall.now());
    }

    #[tokio::test(start_paused = true)]
    async fn moments_are_shown_as_the_wall_clock_will_show_them() {
        let wall = ManualClock::at(start());
        let clock = WatchClock::new(Arc::new(wall.clone()));
        pass(&wall, HOUR).await;
        wall.set(start());
        assert_eq!(clock.on_the_wall(clock.now() + HOUR), start() + HOUR);
    }
}

//! The time that watches live by, and what a sleep of the machine does to timers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use volcanic_base::Clock;

use super::Registry;
use crate::machine::{WatchEffect, was_set};
use crate::record::WatchRecord;

/// The time of a process: what the wall clock showed when it began, and what has passed since, awake or asleep.
///
/// Timers go by the monotonic clock, which stands still while the machine sleeps, so this one has a lead over that. A wall
/// clock that is set changes nothing, ahead or back, but for one that shows a time before which none can have been set:
/// the first time that it is set it is believed. Moments of this clock never lie before earlier ones; beside the wall clock
/// they are ahead by what that was set back, and behind by what it was set ahead. What is kept goes through
/// [`WatchClock::dated`] or [`WatchClock::kept`].
#[derive(Debug)]
pub(super) struct WatchClock {
    wall: Arc<dyn Clock>,
    began: (Instant, Timestamp, Duration),
    lead: Mutex<Lead>,
}

/// What is not of the monotonic clock.
#[derive(Debug, Default)]
struct Lead {
    asleep: SignedDuration,
    /// What the wall clock was wrong by before it was set for the first time.
    unset: SignedDuration,
}

impl WatchClock {
    pub(super) fn new(wall: Arc<dyn Clock>) -> Self {
        let began = (Instant::now(), wall.now(), wall.since_boot());
        Self { wall, began, lead: Mutex::default() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.look().0
    }

    /// How much the clock is ahead of what timers go by.
    pub(super) fn lead(&self) -> SignedDuration {
        self.look().1
    }

    /// What the wall clock shows, or will show if nobody sets it, at a moment of this one.
    pub(super) fn on_the_wall(&self, at: Timestamp) -> Timestamp {
        let ahead = self.now().duration_since(self.wall.now());
        at.saturating_sub(ahead).unwrap_or(at)
    }

    /// A moment of this clock as it is kept: the next process begins with what the wall clock shows then.
    ///
    /// Beside a wall clock that was set back it is kept as it is. That clock may be put right by then, and nothing is to end
    /// early; what is still to come counts from then on.
    pub(super) fn kept(&self, at: Timestamp) -> Timestamp {
        at.max(self.on_the_wall(at))
    }

    /// A record with its moments as they are kept.
    pub(super) fn dated(&self, record: WatchRecord) -> WatchRecord {
        WatchRecord {
            started_at: self.kept(record.started_at),
            not_found_since: record.not_found_since.map(|at| self.kept(at)),
            next_check_at: record.next_check_at.map(|at| self.on_the_wall(at)),
            ..record
        }
    }

    fn look(&self) -> (Timestamp, SignedDuration) {
        let mut lead = self.lead.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order, so that a thread that has to wait in between is no sleep of the machine.
        let (since_boot, at) = (self.wall.since_boot(), Instant::now());
        let signed = |passed| SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        let awake = signed(at - self.began.0);
        let passed = signed(since_boot.saturating_sub(self.began.2));
        lead.asleep = lead.asleep.max(passed.saturating_sub(awake));
        let moment = |lead: &Lead| {
            let ahead = lead.asleep.saturating_add(lead.unset);
            let passed = awake.saturating_add(ahead);
            (self.began.1.saturating_add(passed).unwrap_or(Timestamp::MAX), ahead)
        };
        let (now, ahead) = moment(&lead);
        let wall = self.wall.now();
        if was_set(now) || !was_set(wall) {
            return (now, ahead);
        }
        lead.unset = lead.unset.saturating_add(wall.duration_since(now));
        moment(&lead)
    }
}

impl Registry {
    /// Sets the timers anew when more than a moment was slept since the lead was `last`: pauses are promised in real time.
    /// So it is when the clock was set for the first time.
    pub(super) fn check_clocks(&mut self, last: SignedDuration) -> SignedDuration {
        let lead = self.context.clock.lead();
        let now = self.now();
        self.origins.tidy(now);
        let slept = lead.saturating_sub(last);
        if slept.unsigned_abs() <= self.context.config.clock_drift {
            return last;
        }
        tracing::info!(ahead_ms = slept.as_millis(), "the machine slept, or its clock was set");
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
    async fn time_asleep_counts_and_a_clock_that_is_set_does_not() {
        let wall = ManualClock::at(start());
        let clock = WatchClock::new(Arc::new(wall.clone()));
        pass(&wall, HOUR).await;
        assert_eq!((clock.now(), clock.lead()), (start() + HOUR, SignedDuration::ZERO));
        wall.set(start() - 23 * HOUR);
        pass(&wall, HOUR).await;
        assert_eq!((clock.now(), clock.lead()), (start() + 2 * HOUR, SignedDuration::ZERO));
        // It sleeps for less than the clock was set back by.
        wall.advance(HOUR);
        let slept = SignedDuration::from_hours(1);
        assert_eq!((clock.now(), clock.lead()), (start() + 3 * HOUR, slept));
        wall.set(start() + 48 * HOUR);
        pass(&wall, HOUR).await;
        assert_eq!((clock.now(), clock.lead()), (start() + 4 * HOUR, slept));
        wall.advance(HOUR);
        assert_eq!((clock.now(), clock.lead()), (start() + 5 * HOUR, slept + slept));
    }

    #[tokio::test(start_paused = true)]
    async fn clock_that_was_never_set_is_believed_once_it_is() {
        let wall = ManualClock::at(Timestamp::UNIX_EPOCH);
        let clock = WatchClock::new(Arc::new(wall.clone()));
        pass(&wall, HOUR).await;
        wall.advance(HOUR);
        assert_eq!(clock.now(), Timestamp::UNIX_EPOCH + 2 * HOUR);
        wall.set(start());
        assert_eq!(clock.now(), start());
        wall.set(start() + 24 * HOUR);
        pass(&wall, HOUR).await;
        assert_eq!(clock.now(), start() + HOUR);
        wall.set(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now(), start() + HOUR);
    }

    #[tokio::test(start_paused = true)]
    async fn moments_are_shown_as_the_wall_clock_will_show_them() {
        let wall = ManualClock::at(start());
        let clock = WatchClock::new(Arc::new(wall.clone()));
        pass(&wall, HOUR).await;
        wall.set(start());
        assert_eq!(clock.on_the_wall(clock.now() + HOUR), start() + HOUR);
    }

    #[tokio::test(start_paused = true)]
    async fn moments_are_kept_as_a_clock_that_was_set_ahead_shows_them_and_never_earlier() {
        let wall = ManualClock::at(start());
        let clock = WatchClock::new(Arc::new(wall.clone()));
        pass(&wall, HOUR).await;
        assert_eq!(clock.kept(start()), start());
        wall.set(start() + 49 * HOUR);
        assert_eq!((clock.now(), clock.kept(start())), (start() + HOUR, start() + 48 * HOUR));
        for set_back_to in [start(), Timestamp::UNIX_EPOCH] {
            wall.set(set_back_to);
            assert_eq!(clock.kept(start()), start());
        }
    }
}

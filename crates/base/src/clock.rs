//! Wall-clock time as a value that is passed in.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// A source of wall-clock time.
///
/// Timestamps that are stored or sent come from here. Deadlines and pauses do not: those use `tokio::time`.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present moment.
    fn now(&self) -> Timestamp;

    /// How long the machine has run, with the time that it slept. Nobody sets that.
    fn since_boot(&self) -> Duration;
}

/// The system's wall clock, the one place that reads it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the Clock that everything else is told to take"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn since_boot(&self) -> Duration {
        // It is no time before the boot.
        Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
    }
}

/// A clock that stands still until it is told to move; for tests of any crate.
///
/// Clones share one hand, so a test keeps one and gives another away.
#[derive(Debug, Clone)]
pub struct ManualClock {
    hand: Arc<Mutex<Hand>>,
}

#[derive(Debug)]
struct Hand {
    now: Timestamp,
    since_boot: Duration,
}

impl ManualClock {
    /// Creates a clock that shows `start`.
    pub fn at(start: Timestamp) -> Self {
        Self { hand: Arc::new(Mutex::new(Hand { now: start, since_boot: Duration::ZERO })) }
    }

    /// Lets time pass, awake or asleep; at the end of representable time the clock stays there.
    pub fn advance(&self, by: Duration) {
        let mut hand = self.hand();
        hand.now = hand.now.saturating_add(by).unwrap_or(Timestamp::MAX);
        hand.since_boot = hand.since_boot.saturating_add(by);
    }

    /// Sets the clock to `moment`, backwards too: that is what a corrected system clock does. No time passes by that.
    pub fn set(&self, moment: Timestamp) {
        self.hand().now = moment;
    }

    fn hand(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.hand().now
    }

    fn since_boot(&self) -> Duration {
        self.hand().since_boot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_only_when_told() {
        let start: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let clock = ManualClock::at(start);
        let other = clock.clone();
        assert_eq!(clock.now(), start);
        other.advance(Duration::from_millis(1500));
        assert_eq!(clock.now().to_string(), "2026-11-30T12:00:01.5Z");
        clock.set(start);
        assert_eq!((other.now(), other.since_boot()), (start, Duration::from_millis(1500)));
    }

    #[test]
    fn manual_clock_stops_at_the_end_of_time() {
        let clock = ManualClock::at(Timestamp::MAX);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now(), Timestamp::MAX);
    }

    #[test]
    fn system_clock_runs_in_this_millennium() {
        let early: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        assert!(SystemClock.now() > early);
    }

    #[test]
    fn system_clock_knows_how_long_the_machine_has_run() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let since_boot = SystemClock.since_boot();
        assert!((since_boot.as_secs_f64() - uptime).abs() < 10.0, "{since_boot:?}, {uptime} s");
    }
}

//! Wall-clock time as a value that is passed in.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;

/// A source of wall-clock time.
///
/// Timestamps that are stored or sent come from here. Deadlines and pauses do not: those use `tokio::time`.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The present moment.
    fn now(&self) -> Timestamp;
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
}

/// A clock that stands still until it is told to move; for tests of any crate.
///
/// Clones share one hand, so a test keeps one and gives another away.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<Mutex<Timestamp>>,
}

impl ManualClock {
    /// Creates a clock that shows `start`.
    pub fn at(start: Timestamp) -> Self {
        Self { now: Arc::new(Mutex::new(start)) }
    }

    /// Moves the clock forward; at the end of representable time it stays there.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by).unwrap_or(Timestamp::MAX);
    }

    /// Sets the clock to `moment`, backwards too: that is what a corrected system clock does.
    pub fn set(&self, moment: Timestamp) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = moment;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(other.now(), start);
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
}

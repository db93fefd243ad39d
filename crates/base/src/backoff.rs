//! Growing pauses between attempts.

use std::time::Duration;

use crate::Chance;

/// A schedule of pauses, each a little longer than written so that many waiters do not wake at once.
///
/// The last step repeats for as long as it takes. It only computes; whoever owns it does the waiting.
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    steps: Vec<Duration>,
    jitter: f64,
    taken: usize,
}

impl Backoff {
    /// Creates a schedule. `jitter` is the largest share of a step that is added to it (0.1 = up to 10 % longer);
    /// what lies outside 0 to 1 counts as the nearer end. A schedule without steps never pauses.
    pub fn new(steps: impl Into<Vec<Duration>>, jitter: f64) -> Self {
        let jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
        Self { steps: steps.into(), jitter, taken: 0 }
    }

    /// Takes the next pause.
    pub fn next(&mut self, chance: &Chance) -> Duration {
        let step = self.steps.get(self.taken).or(self.steps.last()).copied().unwrap_or_default();
        self.taken = self.taken.saturating_add(1);
        step.saturating_add(step.mul_f64(self.jitter * chance.fraction()))
    }

    /// How many pauses were taken since the start or the last reset.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Whether every step was taken at least once, so that the last one repeats from here on.
    pub fn is_exhausted(&self) -> bool {
        self.taken >= self.steps.len()
    }

    /// Starts the schedule again; call it once the thing waited for works.
    pub fn reset(&mut self) {
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

    #[test]
    fn last_step_repeats_until_reset() {
        let (mut backoff, chance) = (Backoff::new(STEPS, 0.0), Chance::seeded(1));
        let taken: Vec<u64> = (0..4).map(|_| backoff.next(&chance).as_secs()).collect();
        assert_eq!(taken, [1, 5, 5, 5]);
        assert!(backoff.is_exhausted());
        backoff.reset();
        assert_eq!((backoff.taken(), backoff.next(&chance)), (0, STEPS[0]));
        assert!(!backoff.is_exhausted());
    }

    #[test]
    fn jitter_only_lengthens_and_keeps_its_share() {
        let (mut backoff, chance) =
            (Backoff::new([Duration::from_secs(10)], 0.1), Chance::seeded(1));
        let pauses: Vec<Duration> = (0..200).map(|_| backoff.next(&chance)).collect();
        assert!(pauses.iter().all(|pause| (10.0..11.0).contains(&pause.as_secs_f64())));
        assert!(pauses.iter().any(|pause| pause.as_secs_f64() > 10.5));
    }

    #[test]
    fn schedule_without_steps_never_pauses() {
        assert_eq!(Backoff::new(Vec::new(), 0.5).next(&Chance::seeded(1)), Duration::ZERO);
    }

    #[test]
    fn odd_jitter_counts_as_the_nearer_end() {
        let chance = Chance::seeded(1);
        assert_eq!(Backoff::new(STEPS, -3.0).next(&chance), STEPS[0]);
        assert_eq!(Backoff::new(STEPS, f64::NAN).next(&chance), STEPS[0]);
        assert!(Backoff::new([Duration::MAX], 9.0).next(&chance) <= Duration::MAX);
    }
}

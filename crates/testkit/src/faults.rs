//! What tests of faults draw from: another seed with every run, said when a test fails, and given again on request.

use std::thread;

use volcanic_base::Chance;

/// Gives a seed again: a number, as a failed test says it.
const SEED: &str = "VOLCANIC_FAULTS_SEED";
/// Multiplies how often faults are tried; 1 without it.
const TIMES: &str = "VOLCANIC_FAULTS_TIMES";

/// Draws for one test of faults. When the test panics, it says how to draw the same again.
#[derive(Debug)]
pub struct FaultSeed {
    seed: u64,
    chance: Chance,
}

impl FaultSeed {
    /// Draws from a seed that is new with every run, or from the one in `VOLCANIC_FAULTS_SEED`.
    ///
    /// # Panics
    /// If the variable holds anything but a number.
    pub fn new() -> Self {
        let fresh = || Chance::from_os().uuid().as_u64_pair().1;
        let seed = number(SEED).unwrap_or_else(fresh);
        Self { seed, chance: Chance::seeded(seed) }
    }

    /// How often to try what CI tries `count` times.
    ///
    /// # Panics
    /// If `VOLCANIC_FAULTS_TIMES` holds anything but a number.
    pub fn times(count: usize) -> usize {
        let factor = number(TIMES).and_then(|factor| usize::try_from(factor).ok()).unwrap_or(1);
        count.saturating_mul(factor)
    }

    /// A source of its own for round `number`: what one round draws leaves the others as they are.
    pub fn round(&self, number: usize) -> Chance {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        Chance::seeded(self.seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// What is drawn from outside of rounds.
    pub fn chance(&self) -> &Chance {
        &self.chance
    }
}

impl Default for FaultSeed {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for FaultSeed {
    #[expect(clippy::print_stderr, reason = "whoever reads why a test failed needs the seed")]
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("draws the same again: {SEED}={}", self.seed);
        }
    }
}

/// A number below `bound`, evenly enough for tests; 0 if there is none.
pub fn drawn_below(chance: &Chance, bound: usize) -> usize {
    let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
    usize::try_from(chance.uuid().as_u64_pair().1 % bound).unwrap_or_default()
}

/// One of these.
///
/// # Panics
/// If there is none.
pub fn drawn_from<'a, T>(chance: &Chance, from: &'a [T]) -> &'a T {
    &from[drawn_below(chance, from.len())]
}

#[expect(clippy::disallowed_methods, reason = "tests have no other place to be told a seed")]
#[expect(clippy::panic, reason = "a seed that cannot be read must not be taken for another one")]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_draw_apart_and_the_same_again() {
        let seed = FaultSeed { seed: 7, chance: Chance::seeded(7) };
        let drawn = |round| drawn_below(&seed.round(round), 1 << 40);
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
        assert!((0..200).all(|round| drawn_below(&seed.round(round), 5) < 5));
        assert!((0..5).all(|wanted| (0..200).any(|r| drawn_below(&seed.round(r), 5) == wanted)));
    }
}

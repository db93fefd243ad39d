//! Randomness as a value that is passed in.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};
use uuid::Uuid;

/// A source of randomness for ids, tokens and jitter.
///
/// The generator is cryptographically secure and, made by [`Chance::from_os`], seeded by the operating system, so its
/// tokens cannot be guessed. Clones share one generator.
#[derive(Clone)]
pub struct Chance {
    generator: Arc<Mutex<StdRng>>,
}

impl Chance {
    /// Creates a source seeded by the operating system.
    ///
    /// # Panics
    ///
    /// If the operating system has no randomness to give, which leaves no way to go on safely.
    pub fn from_os() -> Self {
        Self::with(rand::make_rng())
    }

    /// Creates a source that gives the same sequence for the same seed. For tests and simulations: whoever knows the
    /// seed knows every token.
    pub fn seeded(seed: u64) -> Self {
        Self::with(StdRng::seed_from_u64(seed))
    }

    fn with(generator: StdRng) -> Self {
        Self { generator: Arc::new(Mutex::new(generator)) }
    }

    fn lock(&self) -> MutexGuard<'_, StdRng> {
        self.generator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws a version 4 UUID.
    pub fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.lock().fill_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// Draws a version 7 UUID, which begins with the time `at`: those of one moment lie side by side in an index.
    pub fn uuid_at(&self, at: Timestamp) -> Uuid {
        let mut bytes = [0; 10];
        self.lock().fill_bytes(&mut bytes);
        let milliseconds = u64::try_from(at.as_millisecond()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &bytes).into_uuid()
    }

    /// Draws 32 random bytes and writes them as 43 characters of unpadded base64url.
    pub fn token(&self) -> String {
        let mut bytes = [0; 32];
        self.lock().fill_bytes(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Draws a number from 0 (inclusive) to 1 (exclusive), evenly.
    pub fn fraction(&self) -> f64 {
        self.lock().random()
    }
}

/// Shows no state: the state foretells every token to come.
impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chance").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_gives_the_same_sequence() {
        let (one, other) = (Chance::seeded(7), Chance::seeded(7));
        assert_eq!((one.uuid(), one.token()), (other.uuid(), other.token()));
        assert_ne!(Chance::seeded(8).uuid(), Chance::seeded(7).uuid());
    }

    #[test]
    fn uuids_are_random_version_4() {
        let id = Chance::from_os().uuid();
        assert_eq!(id.get_version_num(), 4);
        assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
        assert_ne!(id, Chance::from_os().uuid());
    }

    #[test]
    fn uuids_of_a_time_lie_behind_those_of_an_earlier_one() {
        let (chance, at) = (Chance::from_os(), Timestamp::from_second(1_700_000_000).unwrap());
        let ids = [0, 1, 999_999].map(|later| {
            let later = std::time::Duration::from_millis(later);
            chance.uuid_at(at + later)
        });
        assert!(ids.is_sorted() && ids.iter().all(|id| id.get_version_num() == 7));
        assert_ne!(chance.uuid_at(at), chance.uuid_at(at));
    }

    #[test]
    fn tokens_are_32_bytes_of_base64url() {
        let token = Chance::from_os().token();
        assert_eq!(URL_SAFE_NO_PAD.decode(&token).unwrap().len(), 32);
    }

    #[test]
    fn fractions_stay_below_one() {
        let chance = Chance::seeded(1);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&chance.fraction())));
    }

    #[test]
    fn debug_shows_no_state() {
        assert_eq!(format!("{:?}", Chance::seeded(1)), "Chance { .. }");
    }
}

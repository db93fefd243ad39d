//! Limits of calls to a remote agent.

use std::time::Duration;

/// How long a call may take and how much of an answer is read. [`ClientConfig::new`] holds the contract's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// For one call, from connecting to the last byte. A stream has it until its answer begins.
    pub call_timeout: Duration,
    /// For the card, and again for the extended card.
    pub card_timeout: Duration,
    /// The largest card, in bytes.
    pub card_limit: usize,
    /// The largest answer of a call, and the largest event and line of a stream, in bytes.
    pub answer_limit: usize,
    /// How much a stream may bring in all, in bytes.
    pub stream_limit: usize,
    /// How long a run of comments in a stream may be, in bytes.
    pub comment_limit: usize,
    /// How long a stream may keep silent inside an event. Between events it may be silent for ever; who follows it
    /// decides when to look elsewhere.
    pub event_pause: Duration,
    /// Whether our secrets stay in what a remote says. Only for tests, which show so that a secret would have been seen.
    #[cfg(feature = "test-util")]
    pub shows_secrets: bool,
}

impl ClientConfig {
    /// The contract's values around two settings: how long a card may take, and how large a file may be (in bytes).
    /// An answer may be large enough for two such files in base64, and some text.
    pub fn new(card_timeout: Duration, max_file_bytes: u64) -> Self {
        let files = max_file_bytes.saturating_mul(8) / 3;
        Self {
            call_timeout: Duration::from_mins(1),
            card_timeout,
            card_limit: 1 << 20,
            answer_limit: usize::try_from(files.saturating_add(4 << 20)).unwrap_or(usize::MAX),
            stream_limit: 256 << 20,
            comment_limit: 64 << 10,
            event_pause: Duration::from_mins(1),
            #[cfg(feature = "test-util")]
            shows_secrets: false,
        }
    }
}

/// The values of a host that sets nothing: ten seconds for a card, files of ten megabytes.
impl Default for ClientConfig {
    fn default() -> Self {
        Self::new(Duration::from_secs(10), 10 * 1024 * 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_two_files_in_base64_and_four_mebibytes() {
        let config = ClientConfig::new(Duration::ZERO, 3000);
        assert_eq!(config.answer_limit, 8000 + 4 * 1024 * 1024);
        assert!(ClientConfig::new(Duration::ZERO, u64::MAX).answer_limit > 1 << 60);
    }
}

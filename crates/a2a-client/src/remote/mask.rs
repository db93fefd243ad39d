//! Takes our secrets out of what a host shows of its exchanges with an agent.

use std::fmt;

use volcanic_base::Secret;

use super::{line::secrets_of, scrub::Scrubber};
use crate::{AgentEntry, KeyResolver};

/// How many secrets are learned at most; the oldest are forgotten then.
const MAX_LEARNED: usize = 64;

/// Knows what is sent along to one agent, and masks it in text that is about to be shown.
pub struct KeyMask {
    scrubber: Scrubber,
}

impl KeyMask {
    /// Knows the key, the headers and the URL's query of an entry. What cannot be had is sent nowhere, so it need not be known.
    pub fn of(entry: &AgentEntry, keys: &KeyResolver) -> Self {
        let sources = entry.key.iter().chain(entry.headers.iter().map(|(_, source)| source));
        let secrets = sources.filter_map(|source| keys(source).ok()).chain(secrets_of(&entry.url));
        Self { scrubber: Scrubber::new(secrets.collect()).remembering(MAX_LEARNED) }
    }

    /// Knows another secret from now on.
    pub fn learn(&self, secret: &Secret) {
        drop(self.scrubber.learn([secret]));
    }

    /// The text without the secrets.
    pub fn text(&self, text: String) -> String {
        self.scrubber.text(text)
    }
}

/// Hides all of it.
impl fmt::Debug for KeyMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyMask").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::{AgentName, KeySource, plain_keys};

    #[test]
    fn key_headers_and_what_is_learned_are_masked() {
        let name = AgentName::new("a").unwrap();
        let mut entry =
            AgentEntry::new(name, Url::parse("http://a.example/?k=planted-query-4").unwrap());
        let plain = |secret: &str| KeySource::Plain(Secret::new(secret));
        entry.key = Some(plain("planted-key-1"));
        entry.add_header(http::HeaderName::from_static("x-gate"), plain("planted-gate-2")).unwrap();
        let mask = KeyMask::of(&entry, &plain_keys());
        mask.learn(&Secret::new("planted-hook-3"));
        let text = "planted-key-1 planted-gate-2 planted-hook-3 planted-query-4 stays".to_owned();
        let shown = mask.text(text);
        assert!(!shown.contains("planted") && shown.ends_with(" stays"), "{shown}");
    }
}

//! Takes our own secrets out of what a remote says, in case it repeats them.

use bytes::Bytes;
use memchr::memmem::Finder;

/// What stands in place of a secret.
const MASK: &[u8] = b"***";
/// Shorter values are too likely to be ordinary words, or names in the JSON itself.
const MIN_LENGTH: usize = 8;

/// Knows the secrets that are sent to one agent.
pub(super) struct Scrubber {
    finders: Vec<Finder<'static>>,
}

impl Scrubber {
    pub(super) fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut finders = Vec::new();
        for secret in secrets.into_iter().filter(|secret| secret.len() >= MIN_LENGTH) {
            finders.push(Finder::new(secret).into_owned());
            let quoted = serde_json::Value::from(secret).to_string();
            let escaped = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            // Some writers of JSON escape the slash too, and keys in base64 have one.
            for written in [escaped.to_owned(), escaped.replace('/', "\\/")] {
                if written != secret {
                    finders.push(Finder::new(&written).into_owned());
                }
            }
        }
        Self { finders }
    }

    /// The same text without the secrets; nothing is copied when there are none in it.
    pub(super) fn scrub(&self, mut text: Bytes) -> Bytes {
        for finder in &self.finders {
            if finder.find(&text).is_none() {
                continue;
            }
            let mut clean = Vec::with_capacity(text.len());
            let mut rest = 0;
            for found in finder.find_iter(&text) {
                clean.extend_from_slice(&text[rest..found]);
                clean.extend_from_slice(MASK);
                rest = found + finder.needle().len();
            }
            clean.extend_from_slice(&text[rest..]);
            text = clean.into();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(secret: &str, text: &'static str, expected: &str) {
        assert_eq!(Scrubber::new([secret]).scrub(Bytes::from_static(text.as_bytes())), expected);
    }

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        check(
            "k_planted",
            r#"{"a":"k_planted k_planted","k_planted":1}"#,
            r#"{"a":"*** ***","***":1}"#,
        );
        check("k\"planted\\", r#"{"a":"k\"planted\\"}"#, r#"{"a":"***"}"#);
        check("k/planted", r#"{"a":"k\/planted k/planted"}"#, r#"{"a":"*** ***"}"#);
        check("k_planted\"", r#"{"a":"k_planted\""}"#, r#"{"a":"***"}"#);
        check("k_planted", "k_plante d", "k_plante d");
    }

    #[test]
    fn short_values_are_left_alone() {
        check("kind", r#"{"kind":"kind"}"#, r#"{"kind":"kind"}"#);
    }
}

//! Where an agent's key comes from, and how it is sent.

use std::{fmt, path::PathBuf, sync::Arc};

use volcanic_base::Secret;

/// How the names of environment variables that may hold a key begin, so that a file in the workspace cannot ask for the
/// host's own secrets.
pub const KEY_VARIABLE_PREFIX: &str = "A2A_KEY_";

/// What stands in the file for a key or for the value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The value itself.
    Plain(Secret),
    /// The environment variable of this name (`env:NAME`).
    Env(String),
    /// The content of the file at this path (`file:PATH`).
    File(PathBuf),
}

impl KeySource {
    /// Reads what stands in the file.
    pub(crate) fn parse(text: &str) -> Result<Self, KeyFormError> {
        if let Some(name) = text.strip_prefix("env:") {
            let allowed =
                name.strip_prefix(KEY_VARIABLE_PREFIX).is_some_and(|rest| !rest.is_empty());
            return if allowed {
                Ok(Self::Env(name.to_owned()))
            } else {
                Err(KeyFormError::ForeignVariable)
            };
        }
        match text.strip_prefix("file:") {
            Some("") => Err(KeyFormError::NoPath),
            Some(path) => Ok(Self::File(PathBuf::from(path))),
            None => Ok(Self::Plain(Secret::new(text))),
        }
    }
}

/// What is wrong with the form of a key in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyFormError {
    /// It names an environment variable that may not hold a key.
    ForeignVariable,
    /// It names no file where it should.
    NoPath,
}

/// Gives the value behind a [`KeySource`]. The host owns it, since only hosts read the environment and know where secrets
/// may lie.
pub type KeyResolver = Arc<dyn Fn(&KeySource) -> Result<Secret, KeyError> + Send + Sync>;

/// A resolver that knows plain values only.
pub fn plain_keys() -> KeyResolver {
    Arc::new(|source| match source {
        KeySource::Plain(secret) => Ok(secret.clone()),
        KeySource::Env(_) | KeySource::File(_) => {
            Err(KeyError::new("only a key that stands in the file itself can be used here"))
        }
    })
}

/// Why a key cannot be had. The reason is shown to the owner and the model: it says where the key should have been, never
/// what it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct KeyError {
    reason: String,
}

impl KeyError {
    /// Wraps a reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_apart() {
        assert_eq!(KeySource::parse("k_1"), Ok(KeySource::Plain(Secret::new("k_1"))));
        assert_eq!(KeySource::parse("env:A2A_KEY_X"), Ok(KeySource::Env("A2A_KEY_X".to_owned())));
        assert_eq!(KeySource::parse("file:/s/x"), Ok(KeySource::File(PathBuf::from("/s/x"))));
        assert_eq!(KeySource::parse("file:"), Err(KeyFormError::NoPath));
    }

    #[test]
    fn only_variables_made_for_keys_can_be_named() {
        for text in ["env:TELEGRAM_BOT_TOKEN", "env:A2A_KEY_", "env:", "env:a2a_key_x"] {
            assert_eq!(KeySource::parse(text), Err(KeyFormError::ForeignVariable), "{text}");
        }
    }

    #[test]
    fn debug_hides_a_plain_key() {
        assert!(!format!("{:?}", KeySource::parse("planted")).contains("planted"));
    }
}

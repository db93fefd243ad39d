//! Strings that must not be seen.

use std::fmt;

/// A key, token or password. It has no `Display` and its `Debug` hides it; only [`Secret::expose`] gives it out, which
/// makes every such place easy to find.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps `value`.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The secret itself, for the one place that sends or compares it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self(value.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_secret_at_any_depth() {
        let shown =
            format!("{:?} {:#?}", Some(Secret::new("hunter2")), vec![Secret::from("hunter2")]);
        assert!(!shown.contains("hunter2") && shown.contains("Secret(***)"), "{shown}");
    }

    #[test]
    fn exposed_secret_is_the_value() {
        let secret = Secret::from("k".to_owned());
        assert_eq!((secret.expose(), secret.is_empty()), ("k", false));
        assert!(Secret::default().is_empty());
    }
}

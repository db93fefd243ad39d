//! What is wrong with a configuration.

use std::fmt;

/// One problem, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The variable or place in the file.
    pub name: String,
    /// What was read there; `None` for secrets and where there is nothing.
    pub read: Option<String>,
    /// What is wrong and what is allowed.
    pub text: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = as_written(&self.name);
        match &self.read {
            Some(read) => write!(f, "{name}: `{read}` cannot be used: {}", self.text),
            None => write!(f, "{name}: {}", self.text),
        }
    }
}

/// A name as it is written where it stands: in a file, sections are tables.
pub(super) fn as_written(name: &str) -> String {
    let place = name.split_once(" in ").and_then(|(name, file)| {
        let (section, key) = name.rsplit_once("__")?;
        Some(format!("[{}] {key} in {file}", section.replace("__", ".")))
    });
    place.unwrap_or_else(|| name.to_owned())
}

/// Everything that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The problems, never empty.
    pub problems: Vec<ConfigProblem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration cannot be used")?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

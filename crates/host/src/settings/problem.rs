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
        match &self.read {
            Some(read) => write!(f, "{}: `{read}` cannot be used: {}", self.name, self.text),
            None => write!(f, "{}: {}", self.name, self.text),
        }
    }
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

//! Secrets that a command is given: out of a file or a variable, never out of an argument.

use std::path::Path;

use anyhow::{Context as _, Result};
use http::HeaderName;
use volcanic_a2a_client::{KEY_VARIABLE_PREFIX, KeySource};
use volcanic_base::Secret;

use crate::exit::{OrUsage as _, UsageError};

/// Largest key file read.
const MAX_KEY_BYTES: u64 = 16 << 10;

/// Where a secret is, by the options for a file and for a variable.
pub(super) fn source(file: Option<&Path>, variable: Option<&str>) -> Result<Option<KeySource>> {
    match (file, variable) {
        (Some(file), _) => Ok(Some(KeySource::Plain(read(file)?))),
        (None, Some(variable)) => Ok(Some(of_variable(variable)?)),
        (None, None) => Ok(None),
    }
}

/// A header as it is said, `NAME: VALUE`.
pub(super) fn header(text: &str) -> Result<(HeaderName, KeySource)> {
    let wrong = |reason: &str| UsageError::new(format!("--header: {reason}"));
    let (name, value) =
        text.split_once(':').ok_or_else(|| wrong("a header is written `NAME: VALUE`"))?;
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| wrong("what stands before the colon is not the name of a header"))?;
    let value = value.trim();
    let source = if let Some(variable) = value.strip_prefix("env:") {
        of_variable(variable)?
    } else if let Some(path) = value.strip_prefix("file:") {
        KeySource::Plain(read(Path::new(path))?)
    } else if matches!(name.as_str(), "authorization" | "x-api-key") {
        return Err(wrong(&format!(
            "{name} holds a key, and keys are never given on the command line: write `{name}: env:{KEY_VARIABLE_PREFIX}…` or `{name}: file:PATH`"
        ))
        .into());
    } else {
        KeySource::Plain(Secret::new(value))
    };
    Ok((name, source))
}

fn of_variable(name: &str) -> Result<KeySource> {
    let is_ours = name.strip_prefix(KEY_VARIABLE_PREFIX).is_some_and(|rest| !rest.is_empty());
    if !is_ours {
        return Err(UsageError::new(format!(
            "the variable `{name}` cannot hold a key: the names of those that can begin with {KEY_VARIABLE_PREFIX}"
        ))
        .into());
    }
    Ok(KeySource::Env(name.to_owned()))
}

fn read(path: &Path) -> Result<Secret> {
    let shown = path.display();
    let unusable = || format!("the key file `{shown}` cannot be used");
    let metadata = std::fs::metadata(path).with_context(unusable).or_usage()?;
    if !metadata.is_file() {
        return Err(UsageError::new(format!("{}: it is no regular file", unusable())).into());
    }
    if metadata.len() > MAX_KEY_BYTES {
        let text = format!("{}: it is over {MAX_KEY_BYTES} bytes", unusable());
        return Err(UsageError::new(text).into());
    }
    let key = std::fs::read_to_string(path).with_context(unusable).or_usage()?;
    let key = key.trim();
    if key.is_empty() {
        return Err(UsageError::new(format!("{}: it is empty", unusable())).into());
    }
    Ok(Secret::new(key))
}

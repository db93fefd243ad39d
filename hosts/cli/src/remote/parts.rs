//! The parts of a message, read from where the command line says they are.

use std::{io::Read as _, path::Path};

use anyhow::{Context as _, Result};
use url::Url;
use volcanic_a2a_client::read_attachments;
use volcanic_a2a_types::{JsonText, Part, PartContent};
use volcanic_base::read_text_to_limit;

use super::Contact;
use crate::{
    args::{MessageParts, PartArg, PartValue},
    exit::{OrUsage as _, UsageError},
};

/// Reads the parts, in their order.
///
/// # Errors
/// For the first part that cannot be read, and for a message that says nothing.
pub(super) fn read(message: &MessageParts, contact: &Contact<'_>) -> Result<Vec<Part>> {
    // All files are read together, as they have one limit.
    let paths: Vec<String> = message.parts.iter().filter_map(path).collect();
    let files = read_attachments(&contact.workspace, &paths, contact.max_file_bytes).or_usage()?;
    let mut files = files.into_iter();
    let mut input = Input { is_read: false, limit: contact.max_file_bytes };
    let mut parts = Vec::with_capacity(message.parts.len());
    for PartArg { value, media_type } in &message.parts {
        let mut part = match value {
            PartValue::Text(text) if text == "-" => Part::text(input.read("the message")?),
            PartValue::Text(text) => Part::text(text.as_str()),
            PartValue::File(_) => files.next().context("a file was not read")?,
            PartValue::Data(json) => data(json, &mut input)?,
            PartValue::Url(url) => link(url)?,
        };
        if media_type.is_some() {
            part.media_type.clone_from(media_type);
        }
        parts.push(part);
    }
    let is_blank =
        |part: &Part| matches!(&part.content, PartContent::Text(text) if text.trim().is_empty());
    if parts.iter().all(is_blank) {
        return Err(UsageError::new("the message is empty: say something, or attach a file").into());
    }
    Ok(parts)
}

fn path(part: &PartArg) -> Option<String> {
    match &part.value {
        PartValue::File(path) => Some(path.clone()),
        PartValue::Text(_) | PartValue::Data(_) | PartValue::Url(_) => None,
    }
}

fn data(said: &str, input: &mut Input) -> Result<Part> {
    let (text, place) = match said.strip_prefix('@') {
        Some("-") => (input.read("--data")?, "standard input".to_owned()),
        Some(path) => {
            let unusable = || format!("--data: the file `{path}` cannot be read");
            let text = read_text_to_limit(Path::new(path), input.limit);
            (text.with_context(unusable).or_usage()?, format!("the file `{path}`"))
        }
        None if said == "-" => (input.read("--data")?, "standard input".to_owned()),
        None => (said.to_owned(), "what was given".to_owned()),
    };
    let json: JsonText = serde_json::from_str(&text).map_err(|error| {
        UsageError::new(format!("--data: {place} is no JSON: {error} (a file is named @FILE)"))
    })?;
    // As it was written: a tree would round its numbers and sort its members.
    Ok(Part::new(PartContent::Data(json)))
}

/// A link, with the last word of its path as the name of what is there.
fn link(said: &str) -> Result<Part> {
    let url = Url::parse(said).with_context(|| format!("--url: `{said}` is no URL")).or_usage()?;
    let name = url.path_segments().and_then(|mut path| path.next_back());
    let part = Part::url(said);
    Ok(match name.filter(|name| !name.is_empty()) {
        Some(name) => part.with_filename(name),
        None => part,
    })
}

/// Standard input, which can be read once.
struct Input {
    is_read: bool,
    limit: u64,
}

impl Input {
    fn read(&mut self, what: &str) -> Result<String> {
        if std::mem::replace(&mut self.is_read, true) {
            return Err(UsageError::new("standard input can be used for one part only").into());
        }
        let mut text = String::new();
        std::io::stdin()
            .take(self.limit.saturating_add(1))
            .read_to_string(&mut text)
            .with_context(|| format!("{what}: standard input cannot be read"))
            .or_usage()?;
        if text.len() as u64 > self.limit {
            let text = format!("{what}: standard input is larger than {} bytes", self.limit);
            return Err(UsageError::new(text).into());
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_goes_out_as_it_was_written() {
        let mut input = Input { is_read: true, limit: 0 };
        let part = data(r#"{"b": 12345678901234567890123, "a": 1.10}"#, &mut input).unwrap();
        let sent = serde_json::to_string(&part).unwrap();
        assert_eq!(sent, r#"{"data":{"b":12345678901234567890123,"a":1.10}}"#);
    }
}

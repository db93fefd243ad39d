//! What commands print: results on standard output, words about them on standard error. Nothing of it can steer a
//! terminal.

use std::{
    error::Error,
    fmt,
    io::{self, BufWriter, Write as _, stderr, stdout},
};

use anyhow::Result;
use serde::Serialize;
use serde_json::{
    Serializer,
    ser::{CompactFormatter, Formatter},
};

/// How results are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// To people.
    Text,
    /// To programs.
    Json,
}

/// Standard output takes no more.
#[derive(Debug)]
struct OutputError(io::Error);

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed to write the result")
    }
}

impl Error for OutputError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// Writes a value as one line of JSON in which no character can steer a terminal.
///
/// # Errors
/// When standard output takes no more; see [`is_gone`].
pub(crate) fn write_json<T: Serialize + ?Sized>(value: &T) -> Result<()> {
    let write = || {
        let mut out = BufWriter::new(stdout().lock());
        value.serialize(&mut Serializer::with_formatter(&mut out, Harmless))?;
        out.write_all(b"\n")?;
        out.flush()
    };
    Ok(write().map_err(OutputError)?)
}

/// Writes text and a line break. The text is fit to be seen.
///
/// # Errors
/// As [`write_json`].
pub(crate) fn write_line(text: impl fmt::Display) -> Result<()> {
    let write = || {
        let mut out = BufWriter::new(stdout().lock());
        writeln!(out, "{text}")?;
        out.flush()
    };
    Ok(write().map_err(OutputError)?)
}

/// Says something beside the result. With standard error gone there is nobody to tell.
pub(crate) fn note(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// Whether a command failed only because whoever read its output has had enough.
pub(crate) fn is_gone(error: &anyhow::Error) -> bool {
    let wrote = error.downcast_ref::<OutputError>();
    wrote.is_some_and(|OutputError(error)| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Plain JSON, with everything escaped that a terminal would act upon, that turns the direction of writing, or that some
/// displays break lines at.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        write_harmless(writer, fragment)
    }

    /// JSON that is at hand as text; what is harmful can only stand in its strings.
    fn write_raw_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        write_harmless(writer, fragment)
    }
}

fn write_harmless<W: ?Sized + io::Write>(writer: &mut W, text: &str) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = rest.find(is_harmful) {
        let (plain, from) = rest.split_at(at);
        CompactFormatter.write_string_fragment(writer, plain)?;
        let mut characters = from.chars();
        if let Some(harmful) = characters.next() {
            write!(writer, "\\u{:04x}", u32::from(harmful))?;
        }
        rest = characters.as_str();
    }
    CompactFormatter.write_string_fragment(writer, rest)
}

/// Whether a terminal would act upon it, or a display turn the direction of writing or break the line.
pub(crate) fn is_harmful(character: char) -> bool {
    matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_that_came_as_text_is_as_harmless() {
        let json = "{\"k\u{202e}\":[\"\u{9b}2J\u{7f}é\",\"\\n\u{2069}\"]}";
        let value: volcanic_a2a_types::JsonText = serde_json::from_str(json).unwrap();
        let mut text = Vec::new();
        value.serialize(&mut Serializer::with_formatter(&mut text, Harmless)).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.chars().any(|c| c.is_control() || is_harmful(c)), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value.to_value());
    }

    #[test]
    fn json_says_the_same_and_shows_nothing_that_steers() {
        let value =
            json!({ "k\u{202e}": ["a\u{1b}[2J\u{9b}\u{7f}é漢\u{2028}", "\u{2069}"], "n": 1.5 });
        let mut text = Vec::new();
        value.serialize(&mut Serializer::with_formatter(&mut text, Harmless)).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.chars().any(|c| c.is_control() || is_harmful(c)), "{text}");
        assert!(text.contains("é漢") && text.contains("\\u2028"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}

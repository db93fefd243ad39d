//! Exact replacements in a text whose line endings and byte order mark stay what they are.

use std::ops::Range;

use serde::Deserialize;

/// How many places of an ambiguous text an error names.
const PLACES_NAMED: usize = 5;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Replacement {
    pub(super) old_text: String,
    pub(super) new_text: String,
}

/// What replacing gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    /// The new text.
    pub(super) text: String,
    /// The line of the old text where each replacement began, from 1, in the order they were asked for.
    pub(super) lines: Vec<usize>,
}

/// A text in which line endings compare as equal.
pub(super) struct Document<'t> {
    raw: &'t str,
    /// The text with `\n` for every `\r\n`.
    text: String,
    /// Where in `text` the line breaks are that were `\r\n`, ascending.
    carriage_returns: Vec<usize>,
    /// Whether new lines are to end with `\r\n`.
    windows: bool,
}

impl<'t> Document<'t> {
    pub(super) fn new(raw: &'t str) -> Self {
        let mut text = String::with_capacity(raw.len());
        let mut carriage_returns = Vec::new();
        let mut rest = raw;
        while let Some(position) = rest.find("\r\n") {
            text.push_str(&rest[..position]);
            carriage_returns.push(text.len());
            text.push('\n');
            rest = &rest[position + 2..];
        }
        text.push_str(rest);
        let breaks = text.bytes().filter(|byte| *byte == b'\n').count();
        let windows = carriage_returns.len() * 2 > breaks;
        Self { raw, text, carriage_returns, windows }
    }

    /// Makes all replacements, each found in the text as it is now.
    ///
    /// # Errors
    ///
    /// Which replacement cannot be made and why; nothing is replaced then.
    pub(super) fn replace(&self, replacements: &[Replacement]) -> Result<Edited, String> {
        let mut found = Vec::with_capacity(replacements.len());
        for (index, replacement) in replacements.iter().enumerate() {
            let range = self.find(replacement).map_err(|reason| match replacements.len() {
                1 => reason,
                _ => format!("edit {}: {reason}; nothing was changed", index + 1),
            })?;
            found.push((index, range));
        }
        let lines = found.iter().map(|(_, range)| self.line(range.start)).collect();
        found.sort_by_key(|(_, range)| range.start);
        for pair in found.windows(2) {
            if let [(one, first), (other, second)] = pair
                && first.end > second.start
            {
                return Err(format!(
                    "edits {} and {} overlap; make one of them; nothing was changed",
                    one + 1,
                    other + 1
                ));
            }
        }
        let mut text = String::with_capacity(self.raw.len());
        let mut copied = 0;
        for (index, range) in found {
            text.push_str(&self.raw[copied..self.raw_position(range.start)]);
            text.push_str(&self.endings(&replacements[index].new_text));
            copied = self.raw_position(range.end);
        }
        text.push_str(&self.raw[copied..]);
        Ok(Edited { text, lines })
    }

    fn find(&self, replacement: &Replacement) -> Result<Range<usize>, String> {
        let old = unix(&replacement.old_text);
        // What `read` shows has no byte order mark, but a model may know of it.
        let old = old.strip_prefix('\u{feff}').unwrap_or(&old);
        if old.is_empty() {
            return Err("old_text is empty".to_owned());
        }
        if old == unix(&replacement.new_text) {
            return Err("old_text and new_text are the same".to_owned());
        }
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(position) = self.text[from..].find(old) {
            places.push(from + position);
            // Overlapping places count too: it would not be clear which one is meant.
            from += position + old.chars().next().map_or(1, char::len_utf8);
        }
        match places.as_slice() {
            [] => Err("old_text is not in the file; it has to match exactly, white space included"
                .to_owned()),
            [start] => Ok(*start..*start + old.len()),
            places => {
                let mut lines: Vec<String> = places
                    .iter()
                    .take(PLACES_NAMED)
                    .map(|start| self.line(*start).to_string())
                    .collect();
                if places.len() > PLACES_NAMED {
                    lines.push("…".to_owned());
                }
                Err(format!(
                    "old_text is in the file {} times (lines {}); add lines around it to make it unique",
                    places.len(),
                    lines.join(", ")
                ))
            }
        }
    }

    /// The line, from 1, at a position of `text`.
    fn line(&self, position: usize) -> usize {
        1 + self.text.bytes().take(position).filter(|byte| *byte == b'\n').count()
    }

    /// The position in `raw` of a position in `text`; at a `\r\n`, before both.
    fn raw_position(&self, position: usize) -> usize {
        position + self.carriage_returns.partition_point(|removed| *removed < position)
    }

    /// New text with the document's line endings.
    fn endings(&self, new: &str) -> String {
        let new = unix(new);
        if self.windows { new.replace('\n', "\r\n") } else { new }
    }
}

fn unix(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, edits: &[(&str, &str)], expected: Result<&str, &str>) {
        let replacements: Vec<Replacement> = edits
            .iter()
            .map(|(old, new)| Replacement {
                old_text: (*old).to_owned(),
                new_text: (*new).to_owned(),
            })
            .collect();
        let edited = Document::new(raw).replace(&replacements).map(|edited| edited.text);
        assert_eq!(edited.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn one_place_is_replaced() {
        check("a\nb\nc\n", &[("b", "B")], Ok("a\nB\nc\n"));
        check("a\nb\nc\n", &[("b\n", "")], Ok("a\nc\n"));
    }

    #[test]
    fn windows_line_endings_stay() {
        check("a\r\nb\r\nc\r\n", &[("a\nb", "1\n2\n3")], Ok("1\r\n2\r\n3\r\nc\r\n"));
        check("a\r\nb\r\nc\r\n", &[("a\r\nb\r\n", "x\r\n")], Ok("x\r\nc\r\n"));
        check("a\r\nb\r\nc", &[("b", "B")], Ok("a\r\nB\r\nc"));
    }

    #[test]
    fn lines_that_are_not_edited_keep_their_mixed_endings() {
        check("a\r\nb\nc\nd\n", &[("b\nc", "x\ny")], Ok("a\r\nx\ny\nd\n"));
        check("a\r\nb\r\nc\nd", &[("c", "C\nC")], Ok("a\r\nb\r\nC\r\nC\nd"));
    }

    #[test]
    fn byte_order_mark_stays() {
        check("\u{feff}a\nb\n", &[("a", "A")], Ok("\u{feff}A\nb\n"));
        check("\u{feff}a\nb\n", &[("\u{feff}a\n", "A\n")], Ok("\u{feff}A\nb\n"));
    }

    #[test]
    fn several_edits_are_found_in_the_old_text() {
        check("one two three", &[("three", "one"), ("one", "two"), ("two", "1")], Ok("two 1 one"));
    }

    #[test]
    fn neighbours_do_not_overlap() {
        check("abcd", &[("ab", "1"), ("cd", "2")], Ok("12"));
        check(
            "abcd",
            &[("bc", "1"), ("abc", "2")],
            Err("edits 2 and 1 overlap; make one of them; nothing was changed"),
        );
    }

    #[test]
    fn missing_ambiguous_and_useless_edits_are_named() {
        let missing = "old_text is not in the file; it has to match exactly, white space included";
        check("a", &[("b", "c")], Err(missing));
        check(
            "a",
            &[("a", "b"), ("c", "d")],
            Err(&format!("edit 2: {missing}; nothing was changed")),
        );
        let many =
            "old_text is in the file 2 times (lines 1, 3); add lines around it to make it unique";
        check("a\nb\na\n", &[("a", "c")], Err(many));
        let overlapping =
            "old_text is in the file 2 times (lines 1, 1); add lines around it to make it unique";
        check("aaa", &[("aa", "c")], Err(overlapping));
        check("a", &[("", "c")], Err("old_text is empty"));
        check("a\n", &[("a\r\n", "a\n")], Err("old_text and new_text are the same"));
    }

    #[test]
    fn replacements_say_the_line_they_began_at() {
        let edit = |old: &str| Replacement { old_text: old.to_owned(), new_text: "x".to_owned() };
        let edited = Document::new("a\r\nb\r\nc").replace(&[edit("c"), edit("a")]).unwrap();
        assert_eq!(edited, Edited { text: "x\r\nb\r\nx".to_owned(), lines: vec![3, 1] });
    }
}

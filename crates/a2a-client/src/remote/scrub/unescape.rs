//! Text with one layer of escapes taken off, and where each byte of it came from.

use std::ops::Range;

use memchr::{memchr, memchr2};

use super::forms::Form;

/// What stands in place of a quote that ends a string of JSON: no secret has it.
const BOUNDARY: u8 = 0;

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// As JSON.
    Json,
    /// As people see it: line breaks and what has no width do not count.
    Text,
}

impl Writing {
    /// Where something is written that hides what it means, from `from` on. In text that may be anywhere. Quotes and
    /// backslashes hide something only if a secret holds some (`has_quotes`): code and JSON in an answer are full of them.
    pub(super) fn next_escape(self, text: &[u8], from: usize, has_quotes: bool) -> Option<usize> {
        match self {
            Self::Json => {
                let hides = |at: &usize| match &text[*at..] {
                    // Only what is visible and ASCII stands in a secret.
                    [b'\\', b'u', b'0', b'0', b'2'..=b'7', ..]
                    | [b'%', b'2'..=b'7', ..]
                    | [b'\\', b'/', ..]
                    | [b'\\', b'\\', b'u' | b'/' | b'\\', ..] => true,
                    [b'\\', b'\\' | b'"', ..] => has_quotes,
                    _ => false,
                };
                find_mark(text, from, hides)
            }
            Self::Text => (from < text.len()).then_some(from),
        }
    }
}

/// The first backslash or percent sign from `from` on that is `wanted`. Text that has some has many: from the first one on
/// eight bytes are looked at a time, as a search that begins anew after each takes far longer.
fn find_mark(text: &[u8], from: usize, wanted: impl Fn(&usize) -> bool) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    // The highest bit of each byte that is the one looked for, and perhaps of one after it.
    let marks = |word: u64, byte: u8| {
        let word = word ^ (ONES * u64::from(byte));
        word.wrapping_sub(ONES) & !word & (ONES << 7)
    };
    let mut at = from + memchr2(b'\\', b'%', text.get(from..)?)?;
    let (words, end) = text[at..].as_chunks();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let mut found = marks(word, b'\\') | marks(word, b'%');
        while found != 0 {
            let mark = at + found.trailing_zeros() as usize / 8;
            if wanted(&mark) {
                return Some(mark);
            }
            found &= found - 1;
        }
        at += size_of::<u64>();
    }
    (at..at + end.len()).find(|mark| matches!(text[*mark], b'\\' | b'%') && wanted(mark))
}

/// A way to hide what is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// As strings of JSON do it.
    Json,
    /// As URLs do it.
    Percent,
}

/// Bytes, and the range that each has in the outermost text.
pub(super) struct Layer {
    bytes: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl Layer {
    pub(super) fn outermost(text: &[u8]) -> Self {
        Self { bytes: text.to_vec(), spans: (0..text.len()).map(|at| (at, at + 1)).collect() }
    }

    /// Where a form stands, in the outermost text.
    pub(super) fn find_all<'l>(
        &'l self,
        form: &'l Form,
    ) -> impl Iterator<Item = Range<usize>> + 'l {
        form.find_all(&self.bytes).map(|hit| self.spans[hit.start].0..self.spans[hit.end - 1].1)
    }

    /// The next layer; `None` if nothing is escaped in this one.
    pub(super) fn without(&self, escape: Escape, writing: Writing) -> Option<Self> {
        let mark = match escape {
            Escape::Json => b'\\',
            Escape::Percent => b'%',
        };
        let is_plain = writing == Writing::Text
            && memchr(mark, &self.bytes).is_none()
            && !self.bytes.iter().copied().any(is_maybe_invisible);
        if is_plain {
            return None;
        }
        let mut inner = Self {
            bytes: Vec::with_capacity(self.bytes.len()),
            spans: Vec::with_capacity(self.bytes.len()),
        };
        let mut is_changed = false;
        let mut at = 0;
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let (byte, length) = unit(rest, escape, writing);
            let last = at + length - 1;
            if let Some(byte) = byte {
                inner.bytes.push(byte);
                inner.spans.push((self.spans[at].0, self.spans[last].1));
            }
            is_changed |= length > 1 || byte != rest.first().copied();
            at += length;
        }
        is_changed.then_some(inner)
    }
}

/// The first byte behind its escape, or nothing if it has no width; and how many bytes it takes.
fn unit(rest: &[u8], escape: Escape, writing: Writing) -> (Option<u8>, usize) {
    let (is_json, is_percent) = (escape == Escape::Json, escape == Escape::Percent);
    match rest {
        [b'\\', b'u', digits @ ..] if is_json => match hex(digits, 4) {
            Some(code @ 0x20..=0x7e) => (u8::try_from(code).ok(), 6),
            Some(code) if is_invisible(code) => (None, 6),
            Some(_) | None => (Some(b'\\'), 1),
        },
        [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] if is_json => (Some(*escaped), 2),
        [b'\\', b'n' | b'r' | b't', ..] if is_json && writing == Writing::Text => (None, 2),
        [b'%', digits @ ..] if is_percent => match hex(digits, 2) {
            Some(code @ 0x20..=0x7e) => (u8::try_from(code).ok(), 3),
            Some(_) | None => (Some(b'%'), 1),
        },
        [b'"', ..] if writing == Writing::Json => (Some(BOUNDARY), 1),
        [b'\n' | b'\r' | b'\t', ..] if writing == Writing::Text => (None, 1),
        [first, ..] if is_maybe_invisible(*first) => match invisible_length(rest) {
            Some(length) => (None, length),
            None => (Some(*first), 1),
        },
        [first, ..] => (Some(*first), 1),
        [] => (None, 1),
    }
}

fn hex(digits: &[u8], count: usize) -> Option<u32> {
    let digits = digits.get(..count).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether a character has no width, or only breaks or turns lines.
fn is_invisible(code: u32) -> bool {
    matches!(
        code,
        0xad | 0x34f | 0x61c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfe00..=0xfe0f | 0xfeff
    )
}

/// Whether an invisible character may begin with this byte, in UTF-8 or as a line break.
fn is_maybe_invisible(first: u8) -> bool {
    matches!(first, 0xc2 | 0xcd | 0xd8 | 0xe1 | 0xe2 | 0xef | b'\n' | b'\r' | b'\t')
}

/// How many bytes the invisible character takes that the text begins with.
fn invisible_length(text: &[u8]) -> Option<usize> {
    let length = if text.first()? >= &0xe0 { 3 } else { 2 };
    let character = str::from_utf8(text.get(..length)?).ok()?.chars().next()?;
    is_invisible(u32::from(character)).then_some(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn first_mark_is_found_wherever_it_is(
            // Those beside the marks differ from them in the last bit alone.
            text in proptest::collection::vec(prop_oneof![Just(b'\\'), Just(b'%'), Just(b']'), Just(b'$'), any::<u8>()], 0..60),
            from in 0_usize..70,
            skipped in 0_usize..70,
        ) {
            let wanted = |at: &usize| matches!(text[*at], b'\\' | b'%') && *at != skipped;
            prop_assert_eq!(find_mark(&text, from, wanted), (from..text.len()).find(wanted));
        }
    }
}

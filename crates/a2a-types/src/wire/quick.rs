//! A parser for answers as they nearly always are.
//!
//! Most of what it takes to read an event is the parser, and most of that are positions and errors that nobody asks for, and
//! large values handed from one layer to the next. This parser knows objects, lists, strings and little else; its values
//! are filled where they lie ([`WireValue::fill`](super::WireValue::fill)). Values of other kinds it hands on to
//! `serde_json`, each by itself, and of anything it does not take it says no more than that. Whoever uses it reads the
//! document anew with `serde_json` then, which finds that it can be read after all, or says why not. So it must never take
//! what `serde_json` refuses, nor find something else in it.

use std::borrow::Cow;

use serde::{
    Deserialize as _,
    de::{self, IgnoredAny},
};
use serde_json::de::StrRead;

use super::{Reading, text::cut};

/// How deep values may be nested, as `serde_json` has it.
const MAX_DEPTH: usize = 127;
/// From this size on a string with escapes gets all the room that it may need at once, in bytes.
const LONG: usize = 64 << 10;
/// How many bytes are looked at a word at a time, before they are looked at in blocks.
const NEAR: usize = 32;
const BLOCK: usize = 64;
/// How many digits always fit.
const MAX_DIGITS: usize = 18;

/// A document on its way from one end to the other.
#[derive(Debug)]
pub(crate) struct Quick<'de> {
    text: &'de str,
    at: usize,
    depth: usize,
    /// Nothing was taken since a bracket opened.
    is_first: bool,
}

/// There is something that this parser does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("something unusual")]
pub(crate) struct Unusual;

/// For what is shared with the other parser.
impl de::Error for Unusual {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self
    }
}

pub(crate) type Result<T> = std::result::Result<T, Unusual>;

impl<'de> Quick<'de> {
    pub(crate) fn new(text: &'de str) -> Self {
        Self { text, at: 0, depth: 0, is_first: false }
    }

    /// Checks that nothing is left.
    pub(crate) fn end(mut self) -> Result<()> {
        self.peek();
        if self.at == self.text.len() { Ok(()) } else { Err(Unusual) }
    }

    /// The first byte of the next token; zero, which begins none, at the end.
    #[inline]
    fn peek(&mut self) -> u8 {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if *byte > b' ' => *byte,
            Some(_) | None => self.peek_after_space(),
        }
    }

    #[inline(never)]
    fn peek_after_space(&mut self) -> u8 {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                next => return next.copied().unwrap_or_default(),
            }
        }
    }

    /// Takes a token of one byte.
    #[inline]
    fn take(&mut self, byte: u8) -> Result<()> {
        // It is what comes next, mostly, and there is no space before it.
        if self.text.as_bytes().get(self.at) != Some(&byte) && self.peek_after_space() != byte {
            return Err(Unusual);
        }
        self.at += 1;
        Ok(())
    }

    /// Takes a word, if it comes next.
    fn word(&mut self, word: &str) -> bool {
        self.peek();
        let rest = self.text.as_bytes().get(self.at..);
        let is_there = rest.is_some_and(|rest| rest.starts_with(word.as_bytes()));
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    /// Takes a `null`, if it comes next.
    #[inline]
    pub(crate) fn null(&mut self) -> bool {
        self.peek() == b'n' && self.word("null")
    }

    /// Takes a boolean.
    pub(crate) fn boolean(&mut self) -> Result<bool> {
        let is_true = self.word("true");
        if is_true || self.word("false") { Ok(is_true) } else { Err(Unusual) }
    }

    /// Takes a whole number without a sign, of as many digits as always fit.
    pub(crate) fn number(&mut self) -> Result<u64> {
        self.peek();
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let has_zero = digits > 1 && rest.first() == Some(&b'0');
        let goes_on = matches!(rest.get(digits), Some(b'.' | b'e' | b'E'));
        if digits == 0 || digits > MAX_DIGITS || has_zero || goes_on {
            return Err(Unusual);
        }
        self.at += digits;
        Ok(rest[..digits].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }

    /// Goes into an object or a list.
    pub(crate) fn open(&mut self, bracket: u8) -> Result<()> {
        self.take(bracket)?;
        self.depth += 1;
        self.is_first = true;
        if self.depth > MAX_DEPTH { Err(Unusual) } else { Ok(()) }
    }

    /// Goes to the next member of an object and returns its name; leaves the object if there is none, and returns none then.
    /// No name, or one with escapes, is unusual.
    pub(crate) fn next_key(&mut self) -> Result<&'de str> {
        if !self.next(b'}')? {
            return Ok("");
        }
        let key = self.plain_string()?;
        self.take(b':')?;
        if key.is_empty() { Err(Unusual) } else { Ok(key) }
    }

    /// Goes to the next entry of a list; leaves the list if there is none.
    pub(crate) fn next_item(&mut self) -> Result<bool> {
        self.next(b']')
    }

    #[inline]
    fn next(&mut self, close: u8) -> Result<bool> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        let byte = self.peek();
        if byte == b',' && !is_first {
            self.at += 1;
            return Ok(true);
        }
        if byte == close {
            self.at += 1;
            self.depth -= 1;
            return Ok(false);
        }
        // Whatever else comes first, it is for who reads entries to tell whether it is one.
        if is_first { Ok(true) } else { Err(Unusual) }
    }

    /// Takes a string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'de, str>> {
        self.take(b'"')?;
        match self.near_string() {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => self.far_string(),
        }
    }

    /// Takes a string that has no escapes.
    #[inline]
    pub(crate) fn plain_string(&mut self) -> Result<&'de str> {
        self.take(b'"')?;
        match self.near_string() {
            Some(text) => Ok(text),
            None => self.far_plain_string(),
        }
    }

    /// Takes a string that is no content. One that is long and has escapes is unusual: only a part of it would be kept.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<Cow<'de, str>> {
        self.take(b'"')?;
        if let Some(text) = self.near_string() {
            return Ok(Cow::Borrowed(text));
        }
        let end = end_of_string(self.text.as_bytes(), self.at).ok_or(Unusual)?;
        if end - self.at < LONG {
            self.far_string()
        } else {
            self.far_plain_string().map(Cow::Borrowed)
        }
    }

    /// Does the same and keeps the text; of a long one the beginning.
    #[inline]
    pub(crate) fn short(&mut self, reading: &Reading) -> Result<String> {
        let text = self.name()?;
        if text.len() > reading.max_string() {
            return Ok(cut(&text, reading.max_string()).to_owned());
        }
        Ok(text.into_owned())
    }

    /// Takes the rest of a string, if that is short and has no escapes, as nearly all are.
    #[inline]
    fn near_string(&mut self) -> Option<&'de str> {
        let begin = self.at;
        let rest = self.text.as_bytes().get(begin..)?;
        let (words, _) = rest.get(..NEAR).unwrap_or(rest).as_chunks();
        for (index, word) in words.iter().enumerate() {
            let found = marks(u64::from_le_bytes(*word));
            if found != 0 {
                let length = index * size_of::<u64>() + found.trailing_zeros() as usize / 8;
                if rest.get(length) != Some(&b'"') {
                    return None;
                }
                self.at = begin + length + 1;
                return self.text.get(begin..begin + length);
            }
        }
        None
    }

    /// Takes the rest of a string that has no escapes.
    fn far_plain_string(&mut self) -> Result<&'de str> {
        let begin = self.at;
        let mark = find_mark(self.text.as_bytes(), begin).ok_or(Unusual)?;
        if self.text.as_bytes()[mark] != b'"' {
            return Err(Unusual);
        }
        self.at = mark + 1;
        Ok(&self.text[begin..mark])
    }

    /// Takes the rest of any string.
    fn far_string(&mut self) -> Result<Cow<'de, str>> {
        let begin = self.at;
        let mark = find_mark(self.text.as_bytes(), begin).ok_or(Unusual)?;
        if self.text.as_bytes()[mark] != b'"' {
            return self.unescaped(begin, mark).map(Cow::Owned);
        }
        self.at = mark + 1;
        Ok(Cow::Borrowed(&self.text[begin..mark]))
    }

    /// Takes a string that begins at `begin` and has its first mark, which is no quote, at `mark`.
    fn unescaped(&mut self, begin: usize, mark: usize) -> Result<String> {
        let bytes = self.text.as_bytes();
        let mut text = bytes[begin..mark].to_vec();
        let mut at = mark;
        loop {
            if text.capacity() - text.len() < BLOCK && text.len() >= LONG {
                // Growing by and by would move it again and again.
                text.reserve_exact(bytes.len() - at + BLOCK);
            }
            // What lies between two escapes is mostly no longer than a few words.
            let rest = bytes.get(at..).ok_or(Unusual)?;
            let length = if let Some(near) = rest.first_chunk::<NEAR>() {
                copy_near(near, &mut text)
            } else {
                let length = find_in_words(rest).ok_or(Unusual)?;
                text.extend_from_slice(&rest[..length]);
                length
            };
            at += length;
            match *bytes.get(at).ok_or(Unusual)? {
                b'"' => break,
                b'\\' => {
                    let (character, length) = escaped(&bytes[at + 1..]).ok_or(Unusual)?;
                    let mut buffer = [0; 4];
                    match character.encode_utf8(&mut buffer).as_bytes() {
                        [byte] => text.push(*byte),
                        bytes => text.extend_from_slice(bytes),
                    }
                    at += 1 + length;
                }
                byte if is_mark(byte) => return Err(Unusual),
                _ => {
                    let rest = &bytes[at..];
                    let length = BLOCK
                        * rest.as_chunks().0.iter().take_while(|block| is_plain(block)).count();
                    text.extend_from_slice(&rest[..length]);
                    at += length;
                }
            }
        }
        self.at = at + 1;
        if text.capacity() > LONG && text.capacity() / 2 > text.len() {
            text.shrink_to_fit();
        }
        String::from_utf8(text).map_err(|_| Unusual)
    }

    /// Takes the text of the next value. Whether it is one, only its brackets tell so far.
    fn value(&mut self) -> Result<&'de str> {
        self.peek();
        let (bytes, begin) = (self.text.as_bytes(), self.at);
        let (mut at, mut depth) = (begin, 0_usize);
        loop {
            match bytes.get(at).ok_or(Unusual)? {
                b'"' => at = end_of_string(bytes, at + 1).ok_or(Unusual)?,
                b'{' | b'[' => {
                    depth += 1;
                    if self.depth + depth > MAX_DEPTH {
                        return Err(Unusual);
                    }
                    at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(Unusual)?;
                    at += 1;
                }
                _ if depth > 0 => {
                    at += 1;
                    continue;
                }
                _ => {
                    let is_end = |byte: &u8| {
                        matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\t' | b'\r')
                    };
                    at = bytes[at..].iter().position(is_end).map_or(bytes.len(), |end| at + end);
                }
            }
            if depth == 0 {
                self.at = at;
                return self.text.get(begin..at).ok_or(Unusual);
            }
        }
    }

    /// Passes over the next value.
    pub(crate) fn skip(&mut self) -> Result<()> {
        self.hand_on(|parser| IgnoredAny::deserialize(parser)).map(drop)
    }

    /// Lets `serde_json` read the next value.
    pub(crate) fn hand_on<T>(
        &mut self,
        read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'de>>) -> serde_json::Result<T>,
    ) -> Result<T> {
        let mut parser = serde_json::Deserializer::from_str(self.value()?);
        let value = read(&mut parser).map_err(|_| Unusual)?;
        parser.end().map_err(|_| Unusual)?;
        Ok(value)
    }
}

/// Whether a string of JSON cannot go on with this byte as it is.
fn is_mark(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// The first such byte from `from` on, which may be far: blocks that the compiler makes vectors of, then words.
fn find_mark(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    let (near, far) = rest.split_at(rest.len().min(NEAR));
    if let Some(at) = find_in_words(near) {
        return Some(from + at);
    }
    let passed = BLOCK * far.as_chunks().0.iter().take_while(|block| is_plain(block)).count();
    find_in_words(&far[passed..]).map(|at| from + near.len() + passed + at)
}

/// Whether there is no such byte in a block.
fn is_plain(block: &[u8; BLOCK]) -> bool {
    !block.iter().fold(false, |any, byte| any | is_mark(*byte))
}

/// Copies what comes before the first such byte, or all, and says how much that is.
fn copy_near(near: &[u8; NEAR], text: &mut Vec<u8>) -> usize {
    let (words, _) = near.as_chunks::<{ size_of::<u64>() }>();
    for (index, word) in words.iter().enumerate() {
        // All eight bytes first, as that is one instruction.
        text.extend_from_slice(word);
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            let length = found.trailing_zeros() as usize / 8;
            text.truncate(text.len() - word.len() + length);
            return index * word.len() + length;
        }
    }
    NEAR
}

fn find_in_words(bytes: &[u8]) -> Option<usize> {
    let (words, end) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(index * size_of::<u64>() + found.trailing_zeros() as usize / 8);
        }
    }
    let at = end.iter().position(|byte| is_mark(*byte))?;
    Some(words.len() * size_of::<u64>() + at)
}

/// The highest bit of each byte that [is a mark](is_mark), and perhaps of some after the first one.
#[inline]
fn marks(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    // Turns the quote into a blank, and control characters into others.
    let low = word ^ (ONES * 2);
    let low = low.wrapping_sub(ONES * 0x21) & !low;
    let backslash = word ^ (ONES * u64::from(b'\\'));
    let backslash = backslash.wrapping_sub(ONES) & !backslash;
    (low | backslash) & (ONES << 7)
}

/// Where a string ends, after its quote, that begins before `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The character of an escape, and how many bytes it takes after the backslash.
fn escaped(after: &[u8]) -> Option<(char, usize)> {
    let character = match after.first()? {
        itself @ (b'"' | b'\\' | b'/') => char::from(*itself),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let first = unit(after.get(1..5)?)?;
            if !(0xd800..=0xdbff).contains(&first) {
                return Some((char::from_u32(first)?, 5));
            }
            let second = unit(after.get(5..11)?.strip_prefix(b"\\u")?)?;
            let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
            return Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)?, 11));
        }
        _ => return None,
    };
    Some((character, 1))
}

/// The number that hexadecimal digits stand for.
fn unit(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests;

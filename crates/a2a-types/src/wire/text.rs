//! Strings: short ones, and content that may be as long as the document.

use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, Visitor};
use serde_json::value::RawValue;

use super::Reading;

/// Reads a string that is no content; what is longer than such strings are is cut, or refused in a request.
pub(crate) fn read_short<'de, D: Deserializer<'de>>(
    deserializer: D,
    reading: &Reading,
) -> Result<String, D::Error> {
    struct ShortVisitor<'r>(&'r Reading);

    impl Visitor<'_> for ShortVisitor<'_> {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            let max = self.0.max_string();
            if text.len() > max && self.0.is_request() {
                return Err(E::custom(format_args!("longer than {max} bytes")));
            }
            Ok(cut(text, max).to_owned())
        }

        fn visit_string<E: de::Error>(self, text: String) -> Result<String, E> {
            if text.len() > self.0.max_string() { self.visit_str(&text) } else { Ok(text) }
        }
    }

    deserializer.deserialize_string(ShortVisitor(reading))
}

/// The beginning of a text, at most `max` bytes of it.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Reads text that is content; `None` for `null`.
pub(crate) struct TextSeed<'r>(pub(crate) &'r Reading);

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Option<String>, D::Error> {
        let text = if self.0.is_large() {
            let Some(raw) = read_quoted(deserializer)? else { return Ok(None) };
            // Of a text that a request may not have, no more is kept than tells so.
            let most = if self.0.is_request() { self.0.text_left() } else { usize::MAX };
            // Escapes never are shorter than what they stand for.
            let mut text = String::with_capacity(raw.len().min(most));
            let mut length = 0;
            let unescaped = unescape(raw, |piece| {
                length += piece.len();
                if length <= most {
                    text.push_str(piece);
                }
            });
            unescaped.map_err(de::Error::custom)?;
            if length > most {
                self.0.take_text(length)?;
            }
            text
        } else {
            let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
            text
        };
        self.0.take_text(text.len())?;
        Ok(Some(text))
    }
}

/// The inside of a string as it stands in the document, borrowed from it; `None` for `null`.
pub(crate) fn read_quoted<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de str>, D::Error> {
    let Some(raw) = Option::<&'de RawValue>::deserialize(deserializer)? else { return Ok(None) };
    let inside = raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inside.map(Some).ok_or_else(|| de::Error::custom("invalid type: expected a string"))
}

/// Adds text that is content to the end of another; `null` adds nothing.
pub(crate) struct AppendSeed<'s> {
    pub(crate) end: &'s mut String,
    pub(crate) reading: &'s Reading,
}

impl<'de> DeserializeSeed<'de> for AppendSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.reading.is_large() {
            return deserializer.deserialize_option(self);
        }
        let Some(inside) = read_quoted(deserializer)? else { return Ok(()) };
        make_room(self.end, inside.len(), self.reading);
        let before = self.end.len();
        unescape(inside, |piece| self.end.push_str(piece)).map_err(de::Error::custom)?;
        self.reading.take_text(self.end.len() - before)
    }
}

impl<'de> Visitor<'de> for AppendSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or null")
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        make_room(self.end, text.len(), self.reading);
        self.end.push_str(text);
        self.reading.take_text(text.len())
    }
}

/// Makes room for more at the end of a text. A long one gets all that may still come: growing by and by takes as much
/// again each time it is moved.
pub(crate) fn make_room(end: &mut String, more: usize, reading: &Reading) {
    const LONG: usize = 1 << 20;
    if end.capacity() - end.len() >= more {
        return;
    }
    if end.len() + more < LONG {
        end.reserve(more);
    } else {
        end.reserve_exact(more.max(reading.text_left()));
    }
}

/// Hands out what the inside of a string of JSON stands for, piece by piece. The parser has checked its grammar, but not
/// its surrogates.
pub(crate) fn unescape(inside: &str, mut piece: impl FnMut(&str)) -> Result<(), &'static str> {
    const LONE: &str = "lone surrogate in a string";
    // What is left, and from where on escapes are looked for in it.
    let (mut rest, mut from) = (inside, 0);
    while let Some(escape) = next_escape(rest.as_bytes(), from) {
        piece(&rest[..escape]);
        from = 0;
        let mut characters = rest[escape + 1..].chars();
        let character = match characters.next() {
            Some('n') => '\n',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let (first, after) =
                    unit(characters.as_str()).ok_or("invalid escape in a string")?;
                let (mut units, mut count) = ([first, 0], 1);
                characters = after.chars();
                if let (0xd800..=0xdbff, Some(after)) = (first, after.strip_prefix("\\u")) {
                    let (second, after) = unit(after).ok_or("invalid escape in a string")?;
                    (units[1], count) = (second, 2);
                    characters = after.chars();
                }
                let mut decoded = char::decode_utf16(units.into_iter().take(count));
                match (decoded.next(), decoded.next()) {
                    (Some(Ok(character)), None) => character,
                    _ => return Err(LONE),
                }
            }
            Some(itself) => {
                // It goes along with what follows it.
                (rest, from) = (&rest[escape + 1..], itself.len_utf8());
                continue;
            }
            None => return Err("invalid escape in a string"),
        };
        piece(character.encode_utf8(&mut [0; 4]));
        rest = characters.as_str();
    }
    piece(rest);
    Ok(())
}

/// Where the next backslash is, from `from` on. Escapes stand close to each other or not at all, so the nearest bytes are looked at here:
/// to search in all of the rest costs more to begin than that.
fn next_escape(text: &[u8], from: usize) -> Option<usize> {
    const NEAR: usize = 32;
    const ONES: u64 = u64::MAX / 255;
    const BACKSLASHES: u64 = ONES * b'\\' as u64;
    let text = text.get(from..)?;
    let (near, far) = text.split_at(text.len().min(NEAR));
    let (words, end) = near.as_chunks();
    for (index, word) in words.iter().enumerate() {
        // Zero where the backslashes are; subtracting one sets the highest bit of the first of them, and of none before.
        let word = u64::from_le_bytes(*word) ^ BACKSLASHES;
        let found = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if found != 0 {
            return Some(from + index * size_of::<u64>() + found.trailing_zeros() as usize / 8);
        }
    }
    let before = words.len() * size_of::<u64>();
    let at_end = || end.iter().position(|byte| *byte == b'\\').map(|at| before + at);
    let found = at_end().or_else(|| memchr::memchr(b'\\', far).map(|at| near.len() + at));
    Some(from + found?)
}

/// Four hexadecimal digits and what follows them.
fn unit(text: &str) -> Option<(u16, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u16::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn escapes_stand_for_what_the_parser_says() {
        for inside in
            ["", "plain é", r"\n\t\r\b\f\/\\\", r#"a\"b"#, r"\u00e9\ud83d\ude00x", r"\u0041\\n"]
        {
            let expected: Result<String, _> = serde_json::from_str(&format!("\"{inside}\""));
            let mut found = String::new();
            let read = unescape(inside, |piece| found.push_str(piece));
            match expected {
                Ok(expected) => assert_eq!((read, found), (Ok(()), expected), "{inside}"),
                Err(_) => assert!(read.is_err() || inside.ends_with('\\'), "{inside}"),
            }
        }
        for lone in [r"\ud83d", r"\ude00", r"\ud83dx", r"\ud83d\n", r"\ud83d\u0041"] {
            assert!(serde_json::from_str::<String>(&format!("\"{lone}\"")).is_err(), "{lone}");
            assert!(unescape(lone, |_| ()).is_err(), "{lone}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_comes_back_from_its_escapes(text in ".*", ascii in proptest::bool::ANY) {
            let mut quoted = serde_json::to_string(&text).unwrap();
            if ascii {
                quoted = quoted.chars().fold(String::new(), |mut all, character| {
                    if character.is_ascii() {
                        all.push(character);
                    } else {
                        for unit in character.encode_utf16(&mut [0; 2]) {
                            write!(all, "\\u{unit:04x}").unwrap();
                        }
                    }
                    all
                });
            }
            let mut found = String::new();
            unescape(&quoted[1..quoted.len() - 1], |piece| found.push_str(piece)).unwrap();
            proptest::prop_assert_eq!(found, text);
        }
    }
}

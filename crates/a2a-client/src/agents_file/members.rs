//! The members of an object as they stand in the file: in their order, with duplicates, and with their lines.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use volcanic_a2a_types::{nearest_name, raw_json_kind};

/// The text that values were cut out of.
pub(super) struct Source<'f> {
    pub(super) text: &'f str,
}

impl<'f> Source<'f> {
    pub(super) fn new(text: &'f str) -> Self {
        Self { text }
    }

    /// The line that a part of the text begins in, from 1.
    pub(super) fn line(&self, part: &str) -> usize {
        let offset = part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        place_after(self.text.get(..offset).unwrap_or_default()).0
    }
}

/// Line and column, both from 1, of what follows a text.
pub(super) fn place_after(text: &str) -> (usize, usize) {
    let line = text.matches('\n').count() + 1;
    let last = text.rfind('\n').map_or(text, |newline| &text[newline + 1..]);
    (line, last.chars().count() + 1)
}

/// An object's members.
pub(super) struct Members<'f>(pub(super) Vec<(String, &'f RawValue)>);

impl<'f> Members<'f> {
    /// Takes an object apart; the error says what else stands there.
    pub(super) fn of(value: &'f RawValue) -> Result<Self, &'static str> {
        if !value.get().starts_with('{') {
            return Err(raw_json_kind(value));
        }
        serde_json::from_str(value.get()).map_err(|_| "an object with a name that cannot be read")
    }

    /// The member of that name. The last of several counts, as for most readers of JSON.
    pub(super) fn get(&self, name: &str) -> Option<&'f RawValue> {
        self.0.iter().rev().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// The members that stand before another one of the same name.
    pub(super) fn repeated(&self) -> impl Iterator<Item = (&str, &'f RawValue)> {
        self.0.iter().enumerate().filter_map(|(place, (name, _))| {
            let later = self.0[place + 1..].iter().find(|(other, _)| other == name)?;
            Some((name.as_str(), later.1))
        })
    }
}

impl<'de: 'f, 'f> Deserialize<'de> for Members<'f> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(InOrder).map(Self)
    }
}

/// The name that was meant by a misspelt one, or by what others call the same thing.
pub(super) fn meant<'k>(
    given: &str,
    known: &[&'k str],
    also: &[(&str, &'k str)],
) -> Option<&'k str> {
    let plain = given.replace(['_', '-', ' '], "").to_lowercase();
    let other_word = also.iter().find(|(word, _)| *word == plain).map(|(_, meant)| *meant);
    other_word.or_else(|| nearest_name(given, known.iter().copied()))
}

//! How JSON and its names are spoken of where something is wrong with them.

use serde_json::{Value, value::RawValue};

/// How many changes of a letter make one name another that was meant.
const MAX_TYPOS: usize = 2;

/// What kind of value it is, in words.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The same of a value that is at hand as it was written.
pub fn raw_json_kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        Some(_) | None => "a number",
    }
}

/// The name that was meant by a misspelt one: it differs in case, in `_`, `-` and blanks, or in a letter or two.
pub fn nearest_name<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let given = plain_name(given);
    let length = given.chars().count();
    // In short names two letters make another word.
    let most = MAX_TYPOS.min(length / 3);
    known
        .into_iter()
        .map(|name| (plain_name(name), name))
        .filter(|(plain, _)| is_about_as_long(plain, length, most))
        .map(|(plain, name)| (strsim::osa_distance(&given, &plain), name))
        .filter(|(typos, _)| *typos <= most)
        .min_by_key(|(typos, _)| *typos)
        .map(|(_, name)| name)
}

/// Whether so few changes can make a name as long as another. What is far longer is not compared letter by letter, which takes
/// the product of both lengths.
fn is_about_as_long(plain: &str, length: usize, most: usize) -> bool {
    plain.chars().count().abs_diff(length) <= most
}

/// A name without what only spells it differently.
pub(crate) fn plain_name(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_meant_by_what_is_nearly_it() {
        let known = ["travel-bot", "key", "url"];
        for (given, meant) in [
            ("travelbot", Some("travel-bot")),
            ("Travel_Bot", Some("travel-bot")),
            ("travle-bto", Some("travel-bot")),
            ("kye", Some("key")),
            ("ke", None),
            ("hotel-bot", None),
            ("", None),
        ] {
            assert_eq!(nearest_name(given, known), meant, "{given}");
        }
    }

    #[test]
    fn only_names_that_are_about_as_long_are_compared() {
        for (plain, length, is_compared) in [
            ("key", 1 << 30, false),
            ("key", 5, true),
            ("key", 6, false),
            ("key", 1, true),
            ("", 3, false),
        ] {
            assert_eq!(is_about_as_long(plain, length, 2), is_compared, "{plain} {length}");
        }
        assert_eq!(nearest_name("T R A V E L _ B O T", ["travel-bot"]), Some("travel-bot"));
    }

    #[test]
    fn kinds_are_the_same_however_the_value_is_at_hand() {
        for json in ["null", "true", "false", "-1.5", "\"a\"", "[]", "{}"] {
            let value: Value = serde_json::from_str(json).unwrap();
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(json_kind(&value), raw_json_kind(raw), "{json}");
        }
    }
}

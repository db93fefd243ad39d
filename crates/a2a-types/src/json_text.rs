//! A value of any kind as its JSON.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, value::RawValue};

/// How deep a value may be nested, as the parser counts it.
const MAX_DEPTH: usize = 127;
/// Numbers up to this length without an exponent are in the range of any reader.
const MAX_PLAIN_NUMBER: usize = 300;

/// A value of any kind, kept as compact JSON: a tree of it would take many times the memory.
///
/// Order of members and spelling of numbers stay as they came, and two values are equal if they are written alike.
#[derive(Clone)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// The JSON.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value as a tree. Of a value from outside that may take a lot of memory.
    pub fn to_value(&self) -> Value {
        // Whatever is in here can be read, as `compact` has seen to.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }

    /// The value of the only member of an object, if that is its name; else the object again.
    pub(crate) fn into_only_member(self, name: &str) -> Result<Self, Self> {
        let member = |text: &str| {
            let value = text.strip_prefix("{\"")?.strip_prefix(name)?.strip_prefix("\":")?;
            let value = value.strip_suffix('}')?;
            // If there is another member, this is not one value.
            serde_json::from_str::<&RawValue>(value).ok()?;
            Some(text.len() - value.len() - 1)
        };
        let Some(begin) = member(self.as_str()) else { return Err(self) };
        let mut text = String::from(self);
        text.truncate(text.len() - 1);
        text.drain(..begin);
        Ok(RawValue::from_string(text).map_or_else(|_| Self::from(Value::Null), Self))
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        // The keys of a value are strings, and it holds no number that JSON lacks: writing it cannot fail.
        serde_json::value::to_raw_value(&value)
            .map_or_else(|_| Self(RawValue::NULL.to_owned()), Self)
    }
}

/// The JSON, without a copy.
impl From<JsonText> for String {
    fn from(json: JsonText) -> Self {
        Self::from(Box::<str>::from(json.0))
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if is_compact(raw.get()).map_err(de::Error::custom)? {
            return Ok(Self(raw));
        }
        let mut text = String::from(Box::<str>::from(raw));
        text.retain(token_characters());
        RawValue::from_string(text).map(Self).map_err(de::Error::custom)
    }
}

/// Adds JSON whose grammar has been checked to a text, without what is between its tokens.
pub(crate) fn append_compact(json: &str, end: &mut String) -> Result<(), &'static str> {
    if is_compact(json)? {
        end.push_str(json);
    } else {
        let mut keeps = token_characters();
        end.extend(json.chars().filter(|character| keeps(*character)));
    }
    Ok(())
}

/// How long JSON whose grammar has been checked is without what is between its tokens.
pub(crate) fn compact_length(json: &str) -> usize {
    let mut keeps = token_characters();
    json.chars().filter(|character| keeps(*character)).map(char::len_utf8).sum()
}

/// Tells of each character of a JSON in turn whether it belongs to a token.
fn token_characters() -> impl FnMut(char) -> bool {
    let (mut is_quoted, mut is_escaped) = (false, false);
    move |character| {
        let keeps = is_quoted || !is_space(character);
        is_quoted ^= character == '"' && !is_escaped;
        is_escaped = is_quoted && character == '\\' && !is_escaped;
        keeps
    }
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

/// Whether there is nothing between the tokens. The grammar of the text has been checked; what makes a reader of trees
/// fail beyond that is an error: depth, numbers out of range, halves of surrogate pairs.
fn is_compact(text: &str) -> Result<bool, &'static str> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut is_compact) = (0, 0_usize, true);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err("recursion limit exceeded");
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at += check_string(&text[at..])?,
            b'-' | b'0'..=b'9' => {
                let start = at - 1;
                let is_part =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at += bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                check_number(&text[start..at])?;
            }
            b' ' | b'\t' | b'\n' | b'\r' => is_compact = false,
            _ => {}
        }
    }
    Ok(is_compact)
}

/// Checks the inside of a string and says how far its end is from here.
fn check_string(text: &str) -> Result<usize, &'static str> {
    const LONE: &str = "lone surrogate in a string";
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let Some(next) = memchr::memchr2(b'"', b'\\', &bytes[at..]) else {
            return Err("a string has no end");
        };
        at += next + 1;
        if bytes[at - 1] == b'"' {
            return Ok(at);
        }
        let is_unit = bytes.get(at) == Some(&b'u');
        at += 1;
        if !is_unit {
            continue;
        }
        let unit = |at: usize| {
            let digits = text.get(at..at + 4)?;
            u16::from_str_radix(digits, 16).ok()
        };
        match unit(at).ok_or("invalid escape in a string")? {
            0xd800..=0xdbff => {
                let second = if text[at + 4..].starts_with("\\u") { unit(at + 6) } else { None };
                if !matches!(second, Some(0xdc00..=0xdfff)) {
                    return Err(LONE);
                }
                at += 10;
            }
            0xdc00..=0xdfff => return Err(LONE),
            _ => at += 4,
        }
    }
}

fn check_number(number: &str) -> Result<(), &'static str> {
    let is_plain = number.len() <= MAX_PLAIN_NUMBER && !number.contains(['e', 'E']);
    if is_plain || number.parse().is_ok_and(f64::is_finite) {
        Ok(())
    } else {
        Err("number out of range")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(json: &str, compact: &str) {
        let text: JsonText = serde_json::from_str(json).unwrap();
        assert_eq!(text.as_str(), compact);
        assert_eq!(text.to_value(), serde_json::from_str::<Value>(json).unwrap());
        assert_eq!(serde_json::to_string(&text).unwrap(), compact);
        assert_eq!(serde_json::to_value(&text).unwrap(), text.to_value());
    }

    #[test]
    fn values_lose_their_layout_and_nothing_else() {
        check("null", "null");
        check(" [ 1 , 2.50 , -0 , 1e5 ] ", "[1,2.50,-0,1e5]");
        check(
            "{\n\t\"a b\" : \" \\\" c \\\\\" , \"d\" : { } }",
            "{\"a b\":\" \\\" c \\\\\",\"d\":{}}",
        );
        check(
            r#"{"é":"\ud83d\ude00 \n","n":18446744073709551616}"#,
            r#"{"é":"\ud83d\ude00 \n","n":18446744073709551616}"#,
        );
        assert_eq!(JsonText::from(json!({"n": [1, null]})).as_str(), r#"{"n":[1,null]}"#);
    }

    #[test]
    fn what_no_tree_can_hold_is_refused() {
        for (json, error) in [
            ("1e999".to_owned(), "number out of range"),
            (format!("[{}]", "9".repeat(400)), "number out of range"),
            (r#"["\ud800"]"#.to_owned(), "lone surrogate"),
            (r#"["\ud800\u0041"]"#.to_owned(), "lone surrogate"),
            (r#"{"\udc00":1}"#.to_owned(), "lone surrogate"),
            (format!("{}{}", "[".repeat(128), "]".repeat(128)), "recursion limit exceeded"),
        ] {
            assert!(serde_json::from_str::<Value>(&json).is_err(), "{json}");
            let found = serde_json::from_str::<JsonText>(&json).unwrap_err().to_string();
            assert!(found.starts_with(error), "{found}");
        }
        let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
        assert!(serde_json::from_str::<Value>(&deep).is_ok());
        check(&deep, &deep);
    }

    #[test]
    fn only_member_is_found_by_its_name() {
        let only = |json| {
            JsonText::from(json).into_only_member("value").ok().map(|value| value.to_string())
        };
        assert_eq!(only(json!({"value": [1, {"a": 2}]})).as_deref(), Some("[1,{\"a\":2}]"));
        assert_eq!(only(json!({"value": 1, "z": 2})), None);
        assert_eq!(only(json!({"other": 1})), None);
        assert_eq!(only(json!([1])), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_that_is_taken_can_be_read_as_a_tree(text in "[\\[\\]{}:,\"\\\\ude8 0-9.\n-]{0,30}|\\PC*") {
            let read = serde_json::from_str::<JsonText>(&text);
            let tree = serde_json::from_str::<Value>(&text);
            proptest::prop_assert_eq!(read.is_ok(), tree.is_ok());
            if let (Ok(read), Ok(tree)) = (read, tree) {
                proptest::prop_assert_eq!(read.to_value(), tree);
                proptest::prop_assert!(is_compact(read.as_str()).unwrap());
            }
        }
    }
}

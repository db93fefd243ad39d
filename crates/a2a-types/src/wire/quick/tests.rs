use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{
    FromWire as _, Message, SendMessageResponse, StreamResponse, Task, WireLimits,
    wire::{Dialect, WireItem},
};

fn read<'de, T: WireItem<'de>>(json: &'de str) -> Result<T> {
    let mut quick = Quick::new(json);
    let mut place = None;
    T::fill_item(&mut place, &mut quick, &Reading::answer(json.len(), Dialect::V1))?;
    quick.end()?;
    place.ok_or(Unusual)
}

fn string(json: &str) -> Result<String> {
    let mut quick = Quick::new(json);
    let text = quick.string()?.into_owned();
    quick.end()?;
    Ok(text)
}

/// Walks through any value, as those do who fill objects.
fn walk(quick: &mut Quick<'_>) -> Result<Value> {
    match quick.peek() {
        b'{' => {
            quick.open(b'{')?;
            let mut members = serde_json::Map::new();
            loop {
                let key = quick.next_key()?;
                if key.is_empty() {
                    break;
                }
                let value = walk(quick)?;
                members.insert(key.to_owned(), value);
            }
            Ok(members.into())
        }
        b'[' => {
            quick.open(b'[')?;
            let mut items = Vec::new();
            while quick.next_item()? {
                items.push(walk(quick)?);
            }
            Ok(items.into())
        }
        b'"' => Ok(quick.string()?.into()),
        b't' | b'f' => Ok(quick.boolean()?.into()),
        _ if quick.null() => Ok(Value::Null),
        _ => quick.hand_on(|parser| Value::deserialize(parser)),
    }
}

fn value(json: &str) -> Result<Value> {
    let mut quick = Quick::new(json);
    let value = walk(&mut quick)?;
    quick.end()?;
    Ok(value)
}

fn handed_on(json: &str) -> Result<Value> {
    let mut quick = Quick::new(json);
    let value = quick.hand_on(|parser| Value::deserialize(parser))?;
    quick.end()?;
    Ok(value)
}

fn has_odd_names(json: &str) -> bool {
    json.contains("\"\"") || json.contains('\\')
}

#[track_caller]
fn check(json: &str) {
    let expected = serde_json::from_str::<Value>(json).ok();
    let walked = value(json).ok();
    // Names that are unusual are left to the parser.
    assert!(walked == expected || walked.is_none() && has_odd_names(json), "{json}: {walked:?}");
    assert_eq!(handed_on(json).ok(), expected, "{json}");
    assert_eq!(string(json).ok(), serde_json::from_str(json).ok(), "{json}");
}

#[test]
fn values_of_every_kind_are_taken() {
    for json in [
        "null",
        " true ",
        "\t[false]\r\n",
        "0",
        "[7,42 , 123456789012345678]",
        "[1234567890123456789,18446744073709551615,18446744073709551616]",
        "[-0,-1,1.5,-2.25e3,1E2]",
        r#"{"a":{"b":[[],{}]},"c":""}"#,
        r#"["plain","é🐢","\"\\\/\b\f\n\r\t","\u00e9\ud83d\udc22\u0000 x"]"#,
        r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\udc22\u0000 x""#,
        r#"[{"a":[1,2,{"b":"]}\"["}]}]"#,
        "\"more than thirty-two bytes that go on for longer than a block of sixty-four, and end with \\n\"",
    ] {
        check(json);
        assert!(value(json).is_ok(), "{json}");
    }
}

#[test]
fn what_is_no_json_is_not_taken() {
    for json in [
        "",
        "{",
        "[",
        "}",
        "]",
        "\"",
        "{]",
        "[}",
        "[1}",
        "{\"a\":1]",
        "nul",
        "nulll",
        "truefalse",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "0x1",
        "NaN",
        "[1,]",
        "[,1]",
        "[,]",
        "[1 2]",
        "{\"a\":1,}",
        "{,}",
        "{\"a\"}",
        "{\"a\",1}",
        "{1:2}",
        "{\"a\":}",
        "{null:1}",
        "'a'",
        "\"a",
        "\"\\",
        "\"\\q\"",
        "\"\\u12\"",
        "\"\\u+123\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\n\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800\\ud800\"",
        "\"\u{1}\"",
        "\"a\nb\"",
        "1 2",
        "{} {}",
        "[\"a\":1]",
        "\u{feff}1",
        "[1]]",
        "{\"a\":tru}",
        "\u{a0}1",
        "1\u{c}",
        "[\"a\"\"b\"]",
        "{\"a\":1\"b\":2}",
        "{\"a\"::1}",
        "[1,,2]",
    ] {
        check(json);
        assert!(value(json).is_err(), "{json}");
    }
}

#[test]
fn depth_is_bounded_as_elsewhere() {
    for depth in [1, MAX_DEPTH, MAX_DEPTH + 1, 100_000] {
        let json = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        check(&json);
        assert_eq!(value(&json).is_ok(), depth <= MAX_DEPTH);
        let inside = format!(r#"{{"id":"t","status":{{}},"x":{json}}}"#);
        assert_eq!(read::<Task>(&inside).is_ok(), depth < MAX_DEPTH);
    }
}

#[test]
fn long_text_is_read_wherever_its_escapes_are() {
    for length in [40, LONG - 1, LONG + 7, 3 * LONG] {
        for escape in ["", "\\n", "\\u00e9"] {
            let json =
                format!("\"{escape}{}{escape}{}\"", "x".repeat(length), "ż".repeat(length / 4));
            let text = string(&json).unwrap();
            assert!(text == serde_json::from_str::<String>(&json).unwrap(), "{length} {escape}");
            assert!(text.capacity() < 2 * text.len().max(100), "{length} {escape}");
        }
    }
}

const EVENT: &str = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"a\n\u00e9"},{"data":{"x":[1,-2.5]}},{"raw":"aGk=","filename":"f"},{"url":"u","mediaType":"a/b"}]},"timestamp":"2026-11-30T12:00:00Z"},"artifacts":[{"artifactId":"a","parts":[{"text":""}],"extensions":["e"]}],"metadata":{"k":[null,true,{"d":1e3}]},"new":7}}"#;
const UPDATE: &str = r#"{"artifactUpdate":{"taskId":"t","contextId":"c","append":true,"lastChunk":false,"artifact":{"artifactId":"a","name":"n","description":null,"parts":[{"text":"x","metadata":{"a":"\n"},"more":{}}],"extensions":[]},"metadata":{}}}"#;
const MESSAGE: &str = r#"{"messageId":"m","contextId":"c","taskId":"","role":"ROLE_USER","parts":[{"text":"a"}],"extensions":["e"],"referenceTaskIds":["t","" ],"x":null}"#;

#[test]
fn usual_documents_are_taken() {
    fn check<T: for<'de> WireItem<'de> + de::DeserializeOwned + PartialEq + std::fmt::Debug>(
        json: &str,
    ) {
        let spaced = serde_json::from_str::<Value>(json).unwrap();
        let spaced = serde_json::to_string_pretty(&spaced).unwrap();
        for json in [json, &spaced] {
            assert_eq!(read::<T>(json).unwrap(), serde_json::from_str(json).unwrap());
        }
    }
    check::<StreamResponse>(EVENT);
    check::<StreamResponse>(UPDATE);
    check::<StreamResponse>(
        r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{}},"more":[]}"#,
    );
    check::<Message>(MESSAGE);
    check::<SendMessageResponse>(&format!(r#"{{"message":{MESSAGE},"task":null}}"#));
    check::<Task>(
        r#"{"id":"t","status":{"timestamp":"","state":""},"artifacts":[{"artifactId":"a","parts":[]}],"history":null}"#,
    );
}

#[test]
fn unusual_documents_are_left_to_the_parser() {
    for json in [
        r#"{"id":"t","id":"t","status":{}}"#,
        r#"{"id":"","status":{}}"#,
        r#"{"status":{}}"#,
        r#"{"id":"t","status":null}"#,
        r#"{"id":"t","status":{"state":"working"}}"#,
        r#"{"id":"t","status":{"state":3}}"#,
        r#"{"id":"t","status":{},"artifacts":[{"artifactId":"a","parts":[{"text":"a","url":"b"}]}]}"#,
        r#"{"id":"t","status":{},"artifacts":[{"artifactId":"a","parts":[{"raw":"*"}]}]}"#,
        r#"{"id":"t","status":{},"artifacts":[{"artifactId":"a","parts":[{"raw":"a\/aa"}]}]}"#,
        r#"{"id":"t","status":{},"artifacts":[null]}"#,
        r#"{"id":7,"status":{}}"#,
        "[]",
        "null",
    ] {
        assert_eq!(read::<Task>(json).err(), Some(Unusual), "{json}");
        let read = Task::from_wire(json, WireLimits::Answer);
        assert_eq!(read.ok(), serde_json::from_str(json).ok(), "{json}");
    }
}

proptest! {
    #[test]
    fn marks_are_found_wherever_they_are(
        bytes in proptest::collection::vec(
            prop_oneof![
                8 => b' '..=b'!', 1 => Just(b'"'), 1 => Just(b'\\'), 1 => 0..b' ', 30 => b'#'..=b'[', 4 => 0x5d..=0xff_u8
            ],
            0..300,
        ),
        from in 0_usize..310,
    ) {
        let expected = (from..bytes.len()).find(|at| is_mark(bytes[*at]));
        prop_assert_eq!(find_mark(&bytes, from), expected);
        let clean: Vec<u8> =
            bytes.iter().map(|byte| if is_mark(*byte) { b'x' } else { *byte }).collect();
        prop_assert_eq!(find_mark(&clean, from), None);
    }

    #[test]
    fn any_bytes_are_values_to_both_parsers_or_to_none(
        json in "[\\[\\]{}:,\"\\\\uDd8aef0-9.tnl \n-]{0,24}|\\PC*",
    ) {
        check(&json);
    }

    #[test]
    fn any_text_comes_back(text in ".*") {
        let json = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(string(&json).unwrap(), text);
    }

    #[test]
    fn broken_documents_are_read_as_the_parser_reads_them(
        json in prop_oneof![Just(EVENT), Just(UPDATE)],
        at in any::<prop::sample::Index>(),
        put in "[\\[\\]{}:,\"\\\\u0-9a-z -]{0,3}",
        cut in 0_usize..4,
    ) {
        let mut json = json.to_owned();
        let at = at.index(json.len());
        json.replace_range(at..(at + cut).min(json.len()), &put);
        if let Ok(event) = read::<StreamResponse>(&json) {
            let long = serde_json::from_str::<StreamResponse>(&json);
            prop_assert_eq!(long.ok(), Some(event), "{}", json);
        }
    }
}

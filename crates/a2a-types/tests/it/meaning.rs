//! Whether two pieces of wire JSON mean the same.

use serde_json::{Map, Value};
use volcanic_a2a_types::{Role, TaskState, WireTimestamp};

/// Members whose value is free of A2A's rules, so that nothing in it may change.
const FREE: [&str; 4] = ["metadata", "data", "params", "header"];

/// Members whose presence counts, so that even an empty one may not vanish.
const PRESENT: [&str; 4] = ["text", "raw", "url", "data"];

/// Members that are `false`, 0 or `{}` when nobody says anything.
const DEFAULTED: [&str; 11] = [
    "append",
    "lastChunk",
    "returnImmediately",
    "required",
    "pkceRequired",
    "pageSize",
    "totalSize",
    "capabilities",
    "scopes",
    "schemes",
    "securitySchemes",
];

/// Compares by meaning and names the first difference. `forgotten` are members of the outermost object that may vanish.
pub(crate) fn compare(before: &Value, after: &Value, forgotten: &[&str]) -> Result<(), String> {
    let mut before = before.clone();
    if let Value::Object(members) = &mut before {
        members.retain(|name, _| !forgotten.contains(&name.as_str()));
    }
    compare_at("$", &before, after)
}

fn compare_at(place: &str, before: &Value, after: &Value) -> Result<(), String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let (before, after) = (said(before), said(after));
            for name in before.keys().chain(after.keys()) {
                let place = format!("{place}.{name}");
                match (before.get(name), after.get(name)) {
                    (Some(before), Some(after)) if FREE.contains(&name.as_str()) => {
                        compare_free(&place, before, after)?;
                    }
                    (Some(before), Some(after)) => compare_member(&place, name, before, after)?,
                    (before, after) => return Err(format!("{place}: {before:?} became {after:?}")),
                }
            }
            Ok(())
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            let mut pairs = before.iter().zip(after).enumerate();
            pairs.try_for_each(|(index, (before, after))| {
                compare_at(&format!("{place}[{index}]"), before, after)
            })
        }
        _ => compare_free(place, before, after),
    }
}

/// The members of an object that say something, under the names that we write.
fn said(members: &Map<String, Value>) -> Map<String, Value> {
    let says = |name: &str, value: &Value| match value {
        _ if PRESENT.contains(&name) && (name == "data" || !value.is_null()) => true,
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(value) => *value || !DEFAULTED.contains(&name),
        Value::Number(number) => number.as_f64() != Some(0.0) || !DEFAULTED.contains(&name),
        Value::Object(inner) => !inner.is_empty() || !DEFAULTED.contains(&name),
    };
    let named = members.iter().map(|(name, value)| (camel_case(name), value.clone()));
    named.filter(|(name, value)| says(name, value)).collect()
}

fn compare_member(place: &str, name: &str, before: &Value, after: &Value) -> Result<(), String> {
    let is_same = match (name, before, after) {
        ("timestamp" | "statusTimestampAfter", Value::String(before), Value::String(after)) => {
            let milliseconds =
                |text: &str| text.parse::<WireTimestamp>().unwrap().get().as_millisecond();
            milliseconds(before) == milliseconds(after)
        }
        ("raw", Value::String(before), Value::String(after)) => standard_base64(before) == *after,
        ("role", Value::Number(_), after) => {
            serde_json::from_value::<Role>(before.clone()).unwrap().as_str() == *after
        }
        ("state" | "status", Value::Number(_), after) => {
            serde_json::from_value::<TaskState>(before.clone()).unwrap().as_str() == *after
        }
        _ => return compare_at(place, before, after),
    };
    if is_same { Ok(()) } else { Err(format!("{place}: {before} became {after}")) }
}

/// Compares JSON as JSON; numbers by value, as peers keep them all as doubles.
fn compare_free(place: &str, before: &Value, after: &Value) -> Result<(), String> {
    let is_same = match (before, after) {
        (Value::Number(before), Value::Number(after)) => before.as_f64() == after.as_f64(),
        (Value::Object(before), Value::Object(after)) => {
            return if before.keys().eq(after.keys()) {
                before.iter().try_for_each(|(name, value)| {
                    compare_free(&format!("{place}.{name}"), value, &after[name])
                })
            } else {
                Err(format!("{place}: other members"))
            };
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            return before
                .iter()
                .zip(after)
                .try_for_each(|(before, after)| compare_free(place, before, after));
        }
        _ => before == after,
    };
    if is_same { Ok(()) } else { Err(format!("{place}: {before} became {after}")) }
}

fn standard_base64(text: &str) -> String {
    let mut text = text.replace('-', "+").replace('_', "/").trim_end_matches('=').to_owned();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut whole, word| {
        let (head, tail) = word.split_at(word.len().min(1));
        whole.push_str(&head.to_uppercase());
        whole.push_str(tail);
        whole
    })
}

#[test]
fn differences_are_seen() {
    let same = |before: &str, after: &str| {
        compare(&serde_json::from_str(before).unwrap(), &serde_json::from_str(after).unwrap(), &[])
    };
    for (before, after) in [
        (r#"{"text":""}"#, "{}"),
        (r#"{"data":null}"#, "{}"),
        (r#"{"metadata":{"a":null}}"#, r#"{"metadata":{}}"#),
        (r#"{"metadata":{"a":1}}"#, r#"{"metadata":{"a":2}}"#),
        (
            r#"{"timestamp":"2026-01-01T00:00:00.001Z"}"#,
            r#"{"timestamp":"2026-01-01T00:00:00.002Z"}"#,
        ),
        (r#"{"raw":"AAAA"}"#, r#"{"raw":"AAAB"}"#),
        (r#"{"streaming":false}"#, "{}"),
        (r#"{"parts":[{"text":"a"}]}"#, r#"{"parts":[]}"#),
        ("{}", r#"{"new":1}"#),
    ] {
        same(before, after).unwrap_err();
    }
    same(
        r#"{"context_id":"c","role":1,"append":false,"name":null}"#,
        r#"{"contextId":"c","role":"ROLE_USER"}"#,
    )
    .unwrap();
    same(r#"{"raw":"-_8"}"#, r#"{"raw":"+/8="}"#).unwrap();
    same(r#"{"data":{"n":1}}"#, r#"{"data":{"n":1.0}}"#).unwrap();
}

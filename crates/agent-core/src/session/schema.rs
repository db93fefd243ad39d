//! Checks a call's arguments against the tool's JSON Schema, as far as tools here use it.

use serde_json::{Map, Value};

use crate::content::ToolCall;

/// Longest piece of unreadable arguments that is quoted back to the model, in characters.
const QUOTE: usize = 200;

/// Takes the arguments out of a call, with what models commonly get wrong put right: nothing at all for no arguments,
/// and `null` for an optional one.
pub(super) fn arguments(schema: &Value, call: &ToolCall) -> Result<Value, String> {
    let mut arguments = match &call.arguments {
        Ok(Value::Null) => Map::new(),
        Ok(Value::Object(members)) => members.clone(),
        Ok(other) => {
            return Err(format!("The arguments must be a JSON object, not {}.", kind(other)));
        }
        Err(raw) if raw.trim().is_empty() => Map::new(),
        Err(raw) => {
            let quote: String = raw.chars().take(QUOTE).collect();
            return Err(format!("The arguments are not a JSON object: {quote}"));
        }
    };
    let required = names(schema, "required");
    arguments.retain(|name, value| !value.is_null() || required.contains(&name.as_str()));
    let arguments = Value::Object(arguments);
    check("", schema, &arguments)?;
    Ok(arguments)
}

/// Checks types, required and unknown members, enumerations and list items. What else a schema says is the tool's own
/// business.
fn check(path: &str, schema: &Value, value: &Value) -> Result<(), String> {
    let allowed = types(schema);
    if !allowed.is_empty() && !allowed.iter().any(|name| is_of(name, value)) {
        return Err(format!(
            "{} must be {}, not {}.",
            named(path),
            allowed.join(" or "),
            kind(value)
        ));
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return Err(format!("{} must be one of {}.", named(path), choices.join(", ")));
    }
    match value {
        Value::Object(members) => check_members(path, schema, members),
        Value::Array(items) => match schema.get("items") {
            Some(inner) => items
                .iter()
                .enumerate()
                .try_for_each(|(at, item)| check(&format!("{path}[{at}]"), inner, item)),
            None => Ok(()),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn check_members(path: &str, schema: &Value, members: &Map<String, Value>) -> Result<(), String> {
    let inside =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for name in names(schema, "required") {
        if !members.contains_key(name) {
            return Err(format!("{} is missing.", named(&inside(name))));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    for (name, value) in members {
        match known.and_then(|known| known.get(name)) {
            Some(inner) => check(&inside(name), inner, value)?,
            None if closed => {
                return Err(format!("{} is not an argument of this tool.", named(&inside(name))));
            }
            None => {}
        }
    }
    Ok(())
}

fn named(path: &str) -> String {
    if path.is_empty() { "The arguments".to_owned() } else { format!("`{path}`") }
}

fn names<'s>(schema: &'s Value, member: &str) -> Vec<&'s str> {
    schema
        .get(member)
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        _ => names(schema, "type"),
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        // A type this check does not know is the tool's own business.
        _ => true,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(arguments: Result<Value, &str>, expected: Result<Value, &str>) {
        let schema = json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["send", "status"]},
                "files": {"type": "array", "items": {"type": "string"}},
                "limit": {"type": ["integer", "null"]},
            },
            "required": ["action"],
            "additionalProperties": false,
        });
        let call = ToolCall {
            id: "1".to_owned(),
            name: "a2a".to_owned(),
            arguments: arguments.map_err(str::to_owned),
            replay: None,
        };
        assert_eq!(super::arguments(&schema, &call), expected.map_err(str::to_owned));
    }

    #[test]
    fn right_arguments_pass() {
        let whole = json!({"action": "send", "files": ["a", "b"], "limit": 3});
        check(Ok(whole.clone()), Ok(whole));
        check(
            Ok(json!({"action": "send", "limit": 3.0})),
            Ok(json!({"action": "send", "limit": 3.0})),
        );
    }

    #[test]
    fn null_stands_for_an_absent_optional_argument() {
        check(Ok(json!({"action": "send", "files": null})), Ok(json!({"action": "send"})));
        check(Ok(json!({"action": null})), Err("`action` must be string, not null."));
    }

    #[test]
    fn wrong_arguments_are_named() {
        check(Ok(Value::Null), Err("`action` is missing."));
        check(Err(""), Err("`action` is missing."));
        check(Ok(json!({"action": "go"})), Err(r#"`action` must be one of "send", "status"."#));
        check(
            Ok(json!({"action": "send", "files": "a"})),
            Err("`files` must be array, not string."),
        );
        check(
            Ok(json!({"action": "send", "files": ["a", 1]})),
            Err("`files[1]` must be string, not number."),
        );
        check(
            Ok(json!({"action": "send", "limit": 1.5})),
            Err("`limit` must be integer or null, not number."),
        );
        check(
            Ok(json!({"action": "send", "agnet": "x"})),
            Err("`agnet` is not an argument of this tool."),
        );
    }

    #[test]
    fn arguments_that_are_no_object_are_quoted() {
        check(Ok(json!(["send"])), Err("The arguments must be a JSON object, not array."));
        check(Err("{\"action\": "), Err("The arguments are not a JSON object: {\"action\": "));
    }
}

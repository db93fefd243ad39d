//! Whether every member is there, of its kind and spelt right.

use serde_json::{Map, Value};

use crate::naming::{json_kind, nearest_name, plain_name};

use super::{
    Findings,
    shape::{Kind, Member, Shape},
};

/// Which names are written how.
const SPELLING: &str = "5.5: members are named in camelCase";
/// What absent members look like.
const PRESENCE: &str = "5.7: what is not set is left out, and null reads as not set";

/// Members of 0.3 that 1.0 knows under another name, with that name. They may stand beside it for old callers.
const RENAMED: [(&str, &str, &str); 7] = [
    ("AgentCard", "url", "supportedInterfaces"),
    ("AgentCard", "security", "securityRequirements"),
    ("AgentCard", "supportsAuthenticatedExtendedCard", "capabilities.extendedAgentCard"),
    ("AgentInterface", "transport", "protocolBinding"),
    ("AgentSkill", "security", "securityRequirements"),
    ("APIKeySecurityScheme", "in", "location"),
    ("SecurityScheme", "type", "one member such as apiKeySecurityScheme"),
];

/// Checks an object and all that is in it.
pub(super) fn object(value: &Value, shape: &Shape, path: &str, found: &mut Findings) {
    let Some(members) = expect(value, Value::as_object, "an object", path, shape.rule, found)
    else {
        return;
    };
    for member in shape.members {
        let path = join(path, member.name);
        match members.get(member.name) {
            Some(Value::Null) if !member.is_required => {
                found.warning(path, "it is null: leave it out", PRESENCE);
            }
            Some(value) => checked(value, member, shape, &path, found),
            None => {}
        }
    }
    if shape.is_one_of {
        one_of(members, shape, path, found);
    } else {
        missing(members, shape, path, found);
    }
    unknown(members, shape, path, found);
}

fn checked(value: &Value, member: &Member, shape: &Shape, path: &str, found: &mut Findings) {
    let rule = shape.rule;
    match &member.kind {
        Kind::Text | Kind::Filled => {
            let text = expect(value, Value::as_str, "text", path, rule, found);
            if matches!(member.kind, Kind::Filled) && text == Some("") {
                found.error(path, "it is empty: callers cannot do without it", rule);
            } else if member.is_required && text.is_some_and(|text| text.trim().is_empty()) {
                found.warning(path, "it is empty: say something", rule);
            }
        }
        Kind::Flag => {
            expect(value, Value::as_bool, "true or false", path, rule, found);
        }
        Kind::Free => {
            expect(value, Value::as_object, "an object", path, rule, found);
        }
        Kind::Object(inner) => object(value, inner, path, found),
        Kind::Texts => {
            for (value, path) in items(value, member, path, rule, found) {
                expect(value, Value::as_str, "text", &path, rule, found);
            }
        }
        Kind::List(inner) => {
            for (value, path) in items(value, member, path, rule, found) {
                object(value, inner, &path, found);
            }
        }
        Kind::TextMap => {
            let map = expect(value, Value::as_object, "an object", path, rule, found);
            for (name, value) in map.into_iter().flatten() {
                expect(value, Value::as_str, "text", &join(path, name), rule, found);
            }
        }
        Kind::Map(inner) => {
            let map = expect(value, Value::as_object, "an object", path, rule, found);
            for (name, value) in map.into_iter().flatten() {
                object(value, inner, &join(path, name), found);
            }
        }
    }
}

/// The items of a list with their paths; none if it is no list.
fn items<'a>(
    value: &'a Value,
    member: &Member,
    path: &str,
    rule: &'static str,
    found: &mut Findings,
) -> Vec<(&'a Value, String)> {
    let list = expect(value, Value::as_array, "a list", path, rule, found);
    if member.is_required && list.is_some_and(Vec::is_empty) {
        found.error(path, "it is empty: name at least one", rule);
    }
    let items = list.into_iter().flatten().enumerate();
    items.map(|(index, value)| (value, format!("{path}[{index}]"))).collect()
}

fn missing(members: &Map<String, Value>, shape: &Shape, path: &str, found: &mut Findings) {
    for member in shape.members.iter().filter(|member| member.is_required) {
        if members.get(member.name).is_none() {
            found.error(join(path, member.name), "it is missing", shape.rule);
        }
    }
}

fn one_of(members: &Map<String, Value>, shape: &Shape, path: &str, found: &mut Findings) {
    let known: Vec<&str> = shape.members.iter().map(|member| member.name).collect();
    let is_set = |name: &&&str| members.get(**name).is_some_and(|value| !value.is_null());
    let set: Vec<&str> = known.iter().filter(is_set).copied().collect();
    match set.len() {
        1 => {}
        0 => {
            let problem = format!("it says no kind: give it one of {}", known.join(", "));
            found.error(path, problem, shape.rule);
        }
        _ => {
            let problem = format!("it has {}: leave one", set.join(" and "));
            found.error(path, problem, shape.rule);
        }
    }
}

/// Members that may have been meant to be others. All else unknown is allowed (5.7).
fn unknown(members: &Map<String, Value>, shape: &Shape, path: &str, found: &mut Findings) {
    for name in members.keys() {
        let is_known = |known: &str| shape.members.iter().any(|member| member.name == known);
        if is_known(name) {
            continue;
        }
        let renamed = RENAMED.iter().find(|(object, old, _)| *object == shape.name && old == name);
        if let Some((_, _, new)) = renamed {
            let first = new.split('.').next().unwrap_or(new);
            if !members.contains_key(first) {
                let problem = format!("it is a member of A2A 0.3: 1.0 has {new}");
                found.warning(join(path, name), problem, shape.rule);
            }
            continue;
        }
        let Some(near) = nearest_name(name, shape.members.iter().map(|member| member.name)) else {
            continue;
        };
        if plain_name(near) == plain_name(name) {
            found.error(join(path, name), format!("write {near}"), SPELLING);
        } else if near.len() > 3 {
            let problem = format!("nobody knows it: was {near} meant?");
            found.warning(join(path, name), problem, shape.rule);
        }
    }
}

/// The value as what it must be, or a finding.
fn expect<'a, T>(
    value: &'a Value,
    read: impl FnOnce(&'a Value) -> Option<T>,
    wanted: &str,
    path: &str,
    rule: &'static str,
    found: &mut Findings,
) -> Option<T> {
    let read = read(value);
    if read.is_none() {
        found.error(path, format!("it is {}, and must be {wanted}", json_kind(value)), rule);
    }
    read
}

/// The longest name or text of a card in a finding, in characters.
const LONGEST: usize = 100;

/// A member's path. A name that is not a plain word is quoted, as it could look like more of a path; a long one is cut, as
/// it stands in the path of everything below it.
pub(super) fn join(path: &str, name: &str) -> String {
    let is_plain = !name.is_empty()
        && name.len() <= LONGEST
        && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    match (path.is_empty(), is_plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{}]", quoted(name)),
    }
}

/// A text of the card in quotes, cut if it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

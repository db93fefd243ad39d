//! How a card says what callers need.

use serde_json::{Value, json};

use super::{rename, wrapped};
use crate::JsonObject;

/// The types of 0.3 and the wrappers of 1.0.
const TYPES: [(&str, &str); 5] = [
    ("apiKey", "apiKeySecurityScheme"),
    ("http", "httpAuthSecurityScheme"),
    ("oauth2", "oauth2SecurityScheme"),
    ("openIdConnect", "openIdConnectSecurityScheme"),
    ("mutualTLS", "mtlsSecurityScheme"),
];

/// 0.3 may offer several flows where 1.0 has one: those that need nobody's password first.
const FLOWS: [&str; 5] =
    ["authorizationCode", "clientCredentials", "deviceCode", "implicit", "password"];

/// A type that nobody knows stays as it is, and is kept as an unknown scheme.
pub(super) fn read_scheme(scheme: &mut Value) {
    let Value::Object(members) = scheme else { return };
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    let Some((kind, wrapper)) = TYPES.into_iter().find(|(name, _)| *name == kind) else { return };
    members.remove("type");
    if kind == "apiKey" {
        rename(members, "in", "location");
    }
    if kind == "oauth2"
        && let Some(Value::Object(flows)) = members.get_mut("flows")
        && let Some(name) = FLOWS.into_iter().find(|name| flows.contains_key(*name))
    {
        flows.retain(|found, _| found == name);
    }
    let inner = std::mem::take(members);
    *scheme = wrapped(wrapper, Value::Object(inner));
}

pub(super) fn write_scheme(scheme: &mut Value) {
    let Value::Object(members) = scheme else { return };
    let found =
        TYPES.into_iter().find_map(|(kind, wrapper)| Some((kind, members.remove(wrapper)?)));
    let Some((kind, Value::Object(mut inner))) = found else { return };
    if kind == "apiKey" {
        rename(&mut inner, "location", "in");
    }
    inner.insert("type".to_owned(), json!(kind));
    *scheme = Value::Object(inner);
}

/// `security: [{name: [scopes]}]` becomes `securityRequirements: [{schemes: {name: {list: [scopes]}}}]`.
pub(super) fn read_requirements(members: &mut JsonObject) {
    let Some(Value::Array(old)) = members.remove("security") else { return };
    let requirements = old.into_iter().filter_map(|requirement| {
        let Value::Object(schemes) = requirement else { return None };
        let scopes = schemes.into_iter().map(|(name, list)| (name, json!({ "list": list })));
        Some(json!({ "schemes": scopes.collect::<JsonObject>() }))
    });
    members.insert("securityRequirements".to_owned(), requirements.collect());
}

pub(super) fn write_requirements(members: &mut JsonObject) {
    let Some(Value::Array(new)) = members.remove("securityRequirements") else { return };
    let requirements = new.into_iter().filter_map(|mut requirement| {
        let Value::Object(schemes) = requirement.get_mut("schemes")?.take() else { return None };
        let scopes = schemes.into_iter().map(|(name, mut scopes)| {
            (name, scopes.get_mut("list").map_or(json!([]), Value::take))
        });
        Some(Value::Object(scopes.collect()))
    });
    members.insert("security".to_owned(), requirements.collect());
}

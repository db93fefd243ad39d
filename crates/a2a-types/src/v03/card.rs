//! Cards.

use serde_json::{Value, json};

use super::{each, rename, security};
use crate::{BINDING_JSONRPC, JsonObject, ProtocolVersion};

/// What a card of 0.3 speaks that does not say it.
const DEFAULT_VERSION: &str = "0.3.0";

/// Members of 0.3 that say where and how the agent is reached.
const REACHED: [&str; 4] = ["url", "preferredTransport", "additionalInterfaces", "protocolVersion"];

pub(super) fn read(card: &mut Value) {
    let Value::Object(members) = card else { return };
    let named = ["supportedInterfaces", "supported_interfaces"];
    let is_new = named.into_iter().any(
        |name| matches!(members.get(name), Some(Value::Array(interfaces)) if !interfaces.is_empty()),
    );
    let is_old = !is_new && members.get("url").is_some_and(Value::is_string);
    let interfaces = if is_old { interfaces(members) } else { Vec::new() };
    for name in REACHED {
        members.remove(name);
    }
    let extended = members.remove("supportsAuthenticatedExtendedCard");
    if !is_old {
        return;
    }
    for name in named {
        members.remove(name);
    }
    members.insert("supportedInterfaces".to_owned(), Value::Array(interfaces));
    if let Some(extended) = extended {
        let capabilities = members.entry("capabilities").or_insert_with(|| json!({}));
        if let Value::Object(capabilities) = capabilities {
            capabilities.entry("extendedAgentCard").or_insert(extended);
        }
    }
    if let Some(Value::Object(capabilities)) = members.get_mut("capabilities") {
        capabilities.remove("stateTransitionHistory");
    }
    security::read_requirements(members);
    each(members, "skills", |skill| {
        if let Value::Object(skill) = skill {
            security::read_requirements(skill);
        }
    });
    if let Some(Value::Object(schemes)) = members.get_mut("securitySchemes") {
        schemes.values_mut().for_each(security::read_scheme);
    }
}

/// The main address first, then the others; the main one is often among them again.
fn interfaces(members: &JsonObject) -> Vec<Value> {
    let text = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let version = members.get("protocolVersion").and_then(Value::as_str);
    let version = version.filter(|version| !version.is_empty()).unwrap_or(DEFAULT_VERSION);
    let preferred = members.get("preferredTransport").and_then(Value::as_str);
    let preferred = preferred.filter(|transport| !transport.is_empty()).unwrap_or(BINDING_JSONRPC);
    let main = members.get("url").and_then(Value::as_str).unwrap_or_default();
    let mut pairs = vec![(main.to_owned(), preferred.to_owned())];
    for other in members.get("additionalInterfaces").and_then(Value::as_array).into_iter().flatten()
    {
        let pair = text(other, "url").zip(text(other, "transport"));
        pairs.extend(pair.filter(|pair| !pairs.contains(pair)));
    }
    let interface = |(url, binding): (String, String)| json!({"url": url, "protocolBinding": binding, "protocolVersion": version});
    pairs.into_iter().map(interface).collect()
}

pub(super) fn write(card: &mut Value) {
    let Value::Object(members) = card else { return };
    write_interfaces(members);
    if let Some(Value::Object(capabilities)) = members.get_mut("capabilities")
        && let Some(extended) = capabilities.remove("extendedAgentCard")
    {
        members.insert("supportsAuthenticatedExtendedCard".to_owned(), extended);
    }
    security::write_requirements(members);
    each(members, "skills", |skill| {
        if let Value::Object(skill) = skill {
            security::write_requirements(skill);
        }
    });
    if let Some(Value::Object(schemes)) = members.get_mut("securitySchemes") {
        schemes.values_mut().for_each(security::write_scheme);
    }
}

fn write_interfaces(members: &mut JsonObject) {
    let Some(Value::Array(interfaces)) = members.remove("supportedInterfaces") else { return };
    let is_old = |interface: &&Value| {
        let version = interface.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        version.parse::<ProtocolVersion>().is_ok_and(|version| version < ProtocolVersion::V1_0)
    };
    let main = interfaces.iter().find(is_old).or(interfaces.first());
    let Some(main) = main.cloned() else { return };
    let others: Vec<Value> = interfaces
        .iter()
        .filter(|interface| is_old(interface) && **interface != main)
        .map(
            |interface| json!({"url": interface["url"], "transport": interface["protocolBinding"]}),
        )
        .collect();
    let version =
        if is_old(&&main) { main["protocolVersion"].clone() } else { json!(DEFAULT_VERSION) };
    members.insert("protocolVersion".to_owned(), version);
    if let Value::Object(mut main) = main {
        rename(&mut main, "protocolBinding", "preferredTransport");
        for name in ["url", "preferredTransport"] {
            members.extend(main.remove(name).map(|value| (name.to_owned(), value)));
        }
    }
    if !others.is_empty() {
        members.insert("additionalInterfaces".to_owned(), Value::Array(others));
    }
}

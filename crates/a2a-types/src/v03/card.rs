//! Cards.

use std::fmt;

use serde::de::{Deserializer as _, Error, MapAccess, Visitor};
use serde_json::{Value, json, value::RawValue};

use super::{each, rename, security};
use crate::{
    BINDING_JSONRPC, JsonObject, ProtocolVersion,
    wire::{Dialect, Key, KeySeed, Reading, not_text},
};

/// What a card of 0.3 speaks that does not say it.
const DEFAULT_VERSION: &str = "0.3.0";

/// Members of 0.3 that say where and how the agent is reached.
const REACHED: [&str; 4] = ["url", "preferredTransport", "additionalInterfaces", "protocolVersion"];

/// How 1.0 names the list of interfaces.
const INTERFACES: [&str; 2] = ["supportedInterfaces", "supported_interfaces"];

/// Whether the card names interfaces of 1.0, or none of 0.3: then nothing of it is to be rewritten.
pub(super) fn is_new(card: &str) -> serde_json::Result<bool> {
    struct CardVisitor;

    impl<'de> Visitor<'de> for CardVisitor {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the object AgentCard")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Err(not_text(text, &self))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let reading = Reading::answer(0, Dialect::V03);
            let (mut is_new, mut is_old) = (false, false);
            while let Some(Key(key)) = map.next_key_seed(KeySeed(&reading))? {
                let value: &'de RawValue = map.next_value()?;
                let inside = value.get().strip_prefix('[').map(str::trim_start);
                is_new |= INTERFACES.contains(&&*key)
                    && inside.is_some_and(|inside| !inside.starts_with(']'));
                is_old |= key == "url" && value.get().starts_with('"');
            }
            Ok(is_new || !is_old)
        }
    }

    serde_json::Deserializer::from_str(card).deserialize_any(CardVisitor)
}

/// Rewrites a card that is not new.
pub(super) fn read(card: &mut Value) {
    let Value::Object(members) = card else { return };
    let interfaces = interfaces(members);
    for name in REACHED.into_iter().chain(INTERFACES) {
        members.remove(name);
    }
    let extended = members.remove("supportsAuthenticatedExtendedCard");
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

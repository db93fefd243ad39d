//! Cards of A2A 0.3.

use std::collections::HashSet;

use serde_json::Value;

use super::{Findings, meaning, shape, walk};
use crate::{BINDING_GRPC, BINDING_HTTP_JSON, BINDING_JSONRPC};

/// Whether the card is one of 0.3 only.
pub(super) fn is_old(card: &Value) -> bool {
    let has = |name: &str| card.get(name).is_some_and(|value| !value.is_null());
    has("url") && !has("supportedInterfaces") && !has("supported_interfaces")
}

/// Checks a card of 0.3.
pub(super) fn check(card: &Value, found: &mut Findings) {
    walk::object(card, &shape::OLD_CARD, "", found);
    if let Some(url) = card["url"].as_str() {
        meaning::callable(url, "url", "0.3, 5.5: url is the absolute address of the agent", found);
    }
    let transports = card["preferredTransport"]
        .as_str()
        .map(|transport| (transport, "preferredTransport".to_owned()))
        .into_iter();
    let further = card["additionalInterfaces"].as_array().into_iter().flatten().enumerate();
    let further = further.filter_map(|(index, interface)| {
        let path = format!("additionalInterfaces[{index}].transport");
        interface["transport"].as_str().map(|transport| (transport, path))
    });
    let known = [BINDING_JSONRPC, BINDING_HTTP_JSON, BINDING_GRPC];
    for (transport, path) in transports.chain(further) {
        if !known.contains(&transport) {
            let problem =
                format!("it is {}: callers know {}", walk::quoted(transport), known.join(", "));
            found.warning(
                path,
                problem,
                "0.3, 5.5.5: transports are named JSONRPC, GRPC or HTTP+JSON",
            );
        }
    }
    if card["protocolVersion"].as_str().is_some_and(|version| !version.starts_with("0.3")) {
        let problem = "a card of 1.0 names supportedInterfaces, one of 0.3 has version 0.3.0";
        found.error("protocolVersion", problem, "0.3, 5.5: protocolVersion is that of A2A");
    }
    meaning::unique_skills(card, found);
    requirements(card, found);
    let rule = "8.3.1: a card of 1.0 names its interfaces in supportedInterfaces";
    found.warning("", "it is a card of A2A 0.3: callers that speak only 1.0 cannot use it", rule);
}

/// Requirements name schemes that there are.
fn requirements(card: &Value, found: &mut Findings) {
    let declared: HashSet<&str> = card["securitySchemes"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| &**name)
        .collect();
    let listed = card["security"].as_array().into_iter().flatten().enumerate();
    for (index, requirement) in listed {
        for (name, _) in requirement.as_object().into_iter().flatten() {
            if !declared.contains(&**name) {
                let path = walk::join(&format!("security[{index}]"), name);
                let problem = "securitySchemes declares no scheme of that name";
                found.error(path, problem, "0.3, 5.5.3: requirements name declared schemes");
            }
        }
    }
}

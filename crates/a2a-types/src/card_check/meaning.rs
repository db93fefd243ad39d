//! Whether what a card says makes sense together.

use std::collections::HashSet;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::{Map, Value};
use url::{Host, Url};

use super::{
    Findings,
    walk::{join, quoted},
};
use crate::{BINDING_GRPC, BINDING_HTTP_JSON, BINDING_JSONRPC, ProtocolVersion};

const INTERFACE_URL: &str =
    "4.4.6: url is the absolute address of the interface, https in production";
const BINDING: &str = "4.4.6 and 5.8: protocolBinding is JSONRPC, GRPC, HTTP+JSON, or a URI";
const VERSION: &str = "3.6 and 4.4.6: protocolVersion is Major.Minor, such as 1.0";
const INTERFACES: &str =
    "8.3.1: supportedInterfaces names each way to reach the agent, the preferred first";
const SKILL_ID: &str = "4.4.5: the id of a skill is unique in the card";
const MEDIA_TYPE: &str = "4.4.1: modes are media types, such as text/plain";
const DECLARED: &str = "4.5: a requirement names schemes of securitySchemes";
const OLD_REQUIREMENT: &str = "4.5: 1.0 writes {\"schemes\": {\"<name>\": {\"list\": [scopes]}}}";
const LOCATION: &str = "4.5.2: location is header, query or cookie";
const SECURE_URL: &str = "7.1: what authenticates callers is reached over https";
const SIGNED: &str = "8.4.2: protected is base64url of a JSON object with alg and kid";
const EXTENDED: &str = "3.1.11 and 13.3: the extended card is only for callers that authenticate";
const PAGE: &str = "4.4.1: addresses for people are absolute URLs";

/// Reads base64url with and without padding.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Checks a card of 1.0 whose members have been checked each by itself.
pub(super) fn check(card: &Value, found: &mut Findings) {
    interfaces(card, found);
    unique_skills(card, found);
    modes(card, "", ["defaultInputModes", "defaultOutputModes"], found);
    for (skill, path) in list(card, "skills", "") {
        modes(skill, &path, ["inputModes", "outputModes"], found);
    }
    schemes(card, found);
    requirements(card, found);
    signatures(card, found);
    pages(card, found);
}

/// The items of a list, if it is one, with their paths.
fn list<'a>(
    owner: &'a Value,
    name: &str,
    path: &str,
) -> impl Iterator<Item = (&'a Value, String)> + use<'a> {
    let path = join(path, name);
    let items = owner.get(name).and_then(Value::as_array).into_iter().flatten().enumerate();
    items.map(move |(index, item)| (item, format!("{path}[{index}]")))
}

fn members<'a>(owner: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    owner.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn interfaces(card: &Value, found: &mut Findings) {
    let mut seen = HashSet::new();
    let mut count = 0;
    let mut spoken = 0;
    for (interface, path) in list(card, "supportedInterfaces", "") {
        count += 1;
        let text = |name: &str| interface.get(name).and_then(Value::as_str).unwrap_or_default();
        let (url, binding, version) =
            (text("url"), text("protocolBinding"), text("protocolVersion"));
        if !seen.insert((url, binding, version, text("tenant"))) {
            found.warning(&*path, "it is listed before: leave one", INTERFACES);
        }
        named_binding(binding, &join(&path, "protocolBinding"), found);
        if !url.is_empty() && [BINDING_JSONRPC, BINDING_HTTP_JSON].contains(&binding) {
            callable(url, &join(&path, "url"), INTERFACE_URL, found);
        }
        let parsed = version.parse::<ProtocolVersion>();
        if !version.is_empty() && (parsed.is_err() || version.split('.').count() != 2) {
            let problem = format!("it is {}: write it as 1.0 or 0.3", quoted(version));
            found.warning(join(&path, "protocolVersion"), problem, VERSION);
        }
        let is_standard = [BINDING_JSONRPC, BINDING_HTTP_JSON, BINDING_GRPC].contains(&binding);
        spoken += usize::from(is_standard && parsed.is_ok());
    }
    if count > 0 && spoken == 0 {
        let problem = "no interface has a binding and version of the specification";
        found.warning("supportedInterfaces", problem, INTERFACES);
    }
}

fn named_binding(binding: &str, path: &str, found: &mut Findings) {
    let known = [BINDING_JSONRPC, BINDING_HTTP_JSON, BINDING_GRPC];
    if binding.is_empty() || known.contains(&binding) || Url::parse(binding).is_ok() {
        return;
    }
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).flat_map(char::to_lowercase).collect()
    };
    let meant = match &*plain(binding) {
        "rest" | "http" | "https" | "json" => Some(BINDING_HTTP_JSON),
        binding => known.into_iter().find(|known| plain(known) == binding),
    };
    if let Some(meant) = meant {
        found.error(path, format!("it is {}: write {meant}", quoted(binding)), BINDING);
    } else {
        let problem = format!("it is {}: name a binding of your own by a URI", quoted(binding));
        found.warning(path, problem, BINDING);
    }
}

/// Checks an address that callers send messages to.
pub(super) fn callable(url: &str, path: &str, rule: &'static str, found: &mut Findings) {
    let url = match Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
        Ok(url) => {
            let scheme = url.scheme();
            return found.error(
                path,
                format!("its scheme is {}: callers need https", quoted(scheme)),
                rule,
            );
        }
        Err(error) => {
            return found.error(path, format!("it is not an absolute URL: {error}"), rule);
        }
    };
    if !url.username().is_empty() || url.password().is_some() {
        found.error(path, "it carries a user name or password, for everybody to read", rule);
    }
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !is_here {
        let rule = "7.1: production agents are reached over https";
        found.warning(path, "it is http: anybody on the way can read and change messages", rule);
    }
    if url.fragment().is_some() {
        found.warning(path, "its part after # is never sent", rule);
    }
}

/// No two skills have one id.
pub(super) fn unique_skills(card: &Value, found: &mut Findings) {
    let mut seen = HashSet::new();
    for (skill, path) in list(card, "skills", "") {
        let id = skill.get("id").and_then(Value::as_str).unwrap_or_default();
        if !id.is_empty() && !seen.insert(id) {
            found.error(
                join(&path, "id"),
                format!("another skill is {} too", quoted(id)),
                SKILL_ID,
            );
        }
    }
}

fn modes(owner: &Value, path: &str, names: [&str; 2], found: &mut Findings) {
    for name in names {
        for (mode, path) in list(owner, name, path) {
            let Some(mode) = mode.as_str() else { continue };
            let halves = mode.split_once('/');
            let is_type = halves.is_some_and(|(kind, rest)| {
                !kind.is_empty() && !rest.is_empty() && !mode.contains(char::is_whitespace)
            });
            // Parameters may follow, with a space.
            if !is_type && !mode.contains(';') {
                let problem = format!("it is {}: write a media type", quoted(mode));
                found.warning(path, problem, MEDIA_TYPE);
            }
        }
    }
}

fn schemes(card: &Value, found: &mut Findings) {
    for (name, scheme) in members(card, "securitySchemes") {
        let path = join("securitySchemes", name);
        if let Some(key) = scheme.get("apiKeySecurityScheme") {
            let path = join(&path, "apiKeySecurityScheme");
            api_key(key, &path, found);
        }
        if let Some(url) = scheme.pointer("/openIdConnectSecurityScheme/openIdConnectUrl") {
            let path = join(&join(&path, "openIdConnectSecurityScheme"), "openIdConnectUrl");
            secure(url, &path, found);
        }
        if let Some(oauth) = scheme.get("oauth2SecurityScheme") {
            let path = join(&path, "oauth2SecurityScheme");
            if let Some(url) = oauth.get("oauth2MetadataUrl") {
                secure(url, &join(&path, "oauth2MetadataUrl"), found);
            }
            flows(oauth, &path, found);
        }
    }
}

fn api_key(key: &Value, path: &str, found: &mut Findings) {
    let text = |name: &str| key.get(name).and_then(Value::as_str).unwrap_or_default();
    let (location, name) = (text("location"), text("name"));
    if !location.is_empty() && !["header", "query", "cookie"].contains(&location) {
        found.error(join(path, "location"), format!("it is {}", quoted(location)), LOCATION);
    }
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if location == "header" && !name.is_empty() && !name.chars().all(is_token) {
        let rule = "4.5.2: name is that of the header (RFC 9110, 5.1)";
        found.error(join(path, "name"), format!("no header can be called {}", quoted(name)), rule);
    }
}

fn flows(oauth: &Value, path: &str, found: &mut Findings) {
    for (flow, said) in members(oauth, "flows") {
        let path = join(&join(path, "flows"), flow);
        if matches!(&**flow, "implicit" | "password") {
            let rule = "4.5.7: the implicit and password flows are deprecated";
            found.warning(&*path, "use authorizationCode, clientCredentials or deviceCode", rule);
        }
        for name in ["authorizationUrl", "tokenUrl", "refreshUrl", "deviceAuthorizationUrl"] {
            if let Some(url) = said.get(name) {
                secure(url, &join(&path, name), found);
            }
        }
    }
}

/// Checks an address that secrets are sent to.
fn secure(url: &Value, path: &str, found: &mut Findings) {
    let Some(url) = url.as_str().filter(|url| !url.is_empty()) else { return };
    match Url::parse(url) {
        Err(error) => found.error(path, format!("it is not an absolute URL: {error}"), SECURE_URL),
        Ok(url) if url.scheme() != "https" => {
            found.warning(
                path,
                format!("its scheme is {}: use https", quoted(url.scheme())),
                SECURE_URL,
            );
        }
        Ok(_) => {}
    }
}

fn requirements(card: &Value, found: &mut Findings) {
    let declared: HashSet<&str> =
        members(card, "securitySchemes").map(|(name, _)| &**name).collect();
    let skills = list(card, "skills", "")
        .flat_map(|(skill, path)| list(skill, "securityRequirements", &path));
    let mut count = 0;
    for (requirement, path) in list(card, "securityRequirements", "").chain(skills) {
        count += 1;
        let has_schemes = requirement.get("schemes").is_some();
        if !has_schemes && members_are_lists(requirement) {
            found.error(&*path, "it is written as in A2A 0.3", OLD_REQUIREMENT);
        }
        for (name, _) in members(requirement, "schemes") {
            if !declared.contains(&**name) {
                let path = join(&join(&path, "schemes"), name);
                found.error(path, "securitySchemes declares no scheme of that name", DECLARED);
            }
        }
    }
    let is_extended = card.pointer("/capabilities/extendedAgentCard") == Some(&Value::Bool(true));
    if is_extended && count == 0 && declared.is_empty() {
        let problem = "it is true, and the card names no way to authenticate";
        found.warning("capabilities.extendedAgentCard", problem, EXTENDED);
    }
}

fn members_are_lists(requirement: &Value) -> bool {
    requirement.as_object().is_some_and(|all| !all.is_empty() && all.values().all(Value::is_array))
}

fn signatures(card: &Value, found: &mut Findings) {
    for (signature, path) in list(card, "signatures", "") {
        let text = |name: &str| signature.get(name).and_then(Value::as_str);
        if let Some(protected) = text("protected").filter(|text| !text.is_empty()) {
            let path = join(&path, "protected");
            let decoded = BASE64URL.decode(protected).ok();
            let header = decoded.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
            match header.as_ref().and_then(Value::as_object) {
                None => found.error(path, "it is not base64url of a JSON object", SIGNED),
                Some(header) => {
                    for name in ["alg", "kid"] {
                        if !header.get(name).is_some_and(Value::is_string) {
                            found.error(&*path, format!("its header has no {name}"), SIGNED);
                        }
                    }
                }
            }
        }
        if text("signature").is_some_and(|text| BASE64URL.decode(text).is_err()) {
            found.error(
                join(&path, "signature"),
                "it is not base64url",
                "8.4.2: signature is base64url",
            );
        }
    }
}

fn pages(card: &Value, found: &mut Findings) {
    let provider = card.get("provider").and_then(|provider| provider.get("url"));
    let pages = [
        ("documentationUrl", card.get("documentationUrl")),
        ("iconUrl", card.get("iconUrl")),
        ("provider.url", provider),
    ];
    for (path, url) in pages {
        let url = url.and_then(Value::as_str).filter(|url| !url.is_empty());
        if let Some(Err(error)) = url.map(Url::parse) {
            found.warning(path, format!("it is not an absolute URL: {error}"), PAGE);
        }
    }
}

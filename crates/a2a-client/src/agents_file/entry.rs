//! One entry of the file.

use http::HeaderName;
use serde_json::{Map, Value};
use url::Url;

use super::{AgentBinding, AgentEntry, AgentName, AgentProtocol};
use crate::{KeySource, frame::sanitize_remote_line, key::KEY_VARIABLE_PREFIX, remote::auth};

/// How an entry without a usable name is called in reports.
pub(super) fn label(value: &Value, index: usize) -> String {
    match value.get("name").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => format!("\"{}\"", sanitize_remote_line(name, 60)),
        Some(_) | None => format!("entry {}", index + 1),
    }
}

/// Reads an entry, or says why it cannot be used. Reasons never hold the key.
pub(super) fn read(value: &Value) -> Result<AgentEntry, String> {
    let Value::Object(members) = value else { return Err("it is not an object".to_owned()) };
    let name = text(members, "name")?.ok_or("it has no name")?;
    let name = AgentName::new(name)
        .ok_or("a name is 1 to 40 characters of a to z, 0 to 9 and the hyphen")?;
    let url = read_url(text(members, "url")?.ok_or("it has no url")?)?;
    let mut entry = AgentEntry::new(name, url);
    entry.key = text(members, "key")?.map(|key| read_secret("key", key)).transpose()?;
    entry.description = text(members, "description")?.map(str::to_owned);
    entry.protocol = text(members, "protocol")?.map(read_protocol).transpose()?;
    entry.binding = text(members, "binding")?.map(read_binding).transpose()?;
    entry.headers = read_headers(members, entry.key.is_some())?;
    entry.trusted_origins = read_origins(members)?;
    Ok(entry)
}

/// A member that is text; null and empty text count as absent.
fn text<'v>(members: &'v Map<String, Value>, name: &str) -> Result<Option<&'v str>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("{name} is not text")),
    }
}

fn read_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("the url cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the url does not begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the url holds a user name or a password".to_owned());
    }
    if url.fragment().is_some() {
        return Err("the url has a fragment".to_owned());
    }
    Ok(url)
}

fn read_secret(name: &str, text: &str) -> Result<KeySource, String> {
    KeySource::parse(text).ok_or_else(|| {
        format!(
            "{name} names an environment variable that does not begin with {KEY_VARIABLE_PREFIX}"
        )
    })
}

fn read_protocol(text: &str) -> Result<AgentProtocol, String> {
    match text {
        "1.0" => Ok(AgentProtocol::V1),
        "0.3" => Ok(AgentProtocol::V03),
        _ => Err("protocol is neither \"1.0\" nor \"0.3\"".to_owned()),
    }
}

fn read_binding(text: &str) -> Result<AgentBinding, String> {
    if text.eq_ignore_ascii_case("JSONRPC") {
        Ok(AgentBinding::JsonRpc)
    } else if text.eq_ignore_ascii_case("HTTP+JSON") {
        Ok(AgentBinding::HttpJson)
    } else {
        Err("binding is neither \"JSONRPC\" nor \"HTTP+JSON\"".to_owned())
    }
}

fn read_headers(
    members: &Map<String, Value>,
    has_key: bool,
) -> Result<Vec<(HeaderName, KeySource)>, String> {
    let headers = match members.get("headers") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(headers)) => headers,
        Some(_) => return Err("headers is not an object".to_owned()),
    };
    let mut read = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let shown = sanitize_remote_line(name, 60);
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("\"{shown}\" is not the name of a header"))?;
        if auth::is_restricted(&name) || (has_key && auth::is_key_header(&name)) {
            return Err(format!("the header {shown} cannot be set here"));
        }
        let Value::String(value) = value else {
            return Err(format!("the header {shown} is not text"));
        };
        read.push((name, read_secret(&format!("the header {shown}"), value)?));
    }
    Ok(read)
}

fn read_origins(members: &Map<String, Value>) -> Result<Vec<String>, String> {
    const FORM: &str = "trustedOrigins is not a list of http(s) origins";
    let list = match members.get("trustedOrigins") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(FORM.to_owned()),
    };
    list.iter()
        .map(|origin| {
            let url = origin.as_str().and_then(|text| read_url(text).ok()).ok_or(FORM)?;
            Ok(url.origin().ascii_serialization())
        })
        .collect()
}

//! One entry of the file.

use std::collections::HashSet;

use http::HeaderName;
use serde_json::value::RawValue;
use url::Url;
use volcanic_a2a_types::raw_json_kind;

use super::{
    AgentBinding, AgentEntry, AgentName, AgentProtocol,
    members::{Members, Source, meant},
};
use crate::{
    KeySource,
    frame::sanitize_remote_line,
    key::{KEY_VARIABLE_PREFIX, KeyFormError},
    remote::auth,
};

/// How much of a text of the file is shown, in characters.
const MAX_SHOWN: usize = 60;

/// The members that an entry may have.
const MEMBERS: [&str; 9] = [
    "name",
    "url",
    "key",
    "description",
    "protocol",
    "binding",
    "tenant",
    "headers",
    "trustedOrigins",
];

/// What others call them, as [`meant`] compares it.
const OTHER_WORDS: [(&str, &str); 12] = [
    ("apikey", "key"),
    ("bearer", "key"),
    ("secret", "key"),
    ("token", "key"),
    ("address", "url"),
    ("baseurl", "url"),
    ("endpoint", "url"),
    ("href", "url"),
    ("uri", "url"),
    ("agent", "name"),
    ("transport", "binding"),
    ("version", "protocol"),
];

const NAME_FORM: &str = "1 to 40 characters of a to z, 0 to 9 and the hyphen";

/// Reads an entry and notes everything that is wrong with it. No fault holds a key, or what may be one.
pub(super) struct EntryReader<'f> {
    source: &'f Source<'f>,
    whole: &'f RawValue,
    members: Members<'f>,
    faults: Vec<String>,
    hints: Vec<String>,
    given_name: Option<String>,
    entry: Option<AgentEntry>,
}

impl<'f> EntryReader<'f> {
    pub(super) fn read(source: &'f Source<'f>, whole: &'f RawValue) -> Self {
        let (members, faults) = match Members::of(whole) {
            Ok(members) => (members, Vec::new()),
            Err(kind) => {
                let line = source.line(whole.get());
                let fault = format!("line {line}: it is {kind}, where an object must stand");
                (Members(Vec::new()), vec![fault])
            }
        };
        let mut reader = Self {
            source,
            whole,
            members,
            faults,
            hints: Vec::new(),
            given_name: None,
            entry: None,
        };
        if reader.faults.is_empty() {
            reader.read_members();
        }
        reader
    }

    /// The name as it is given, fit or not.
    pub(super) fn name(&self) -> Option<&str> {
        self.given_name.as_deref()
    }

    /// How the entry is called in reports.
    pub(super) fn label(&self, index: usize) -> String {
        match &self.given_name {
            Some(name) => format!("\"{}\"", sanitize_remote_line(name, MAX_SHOWN)),
            None => format!("entry {}", index + 1),
        }
    }

    /// The entry with what looks like a mistake in it, or everything that is wrong with it.
    pub(super) fn finish(mut self) -> Result<(AgentEntry, Vec<String>), Vec<String>> {
        match self.entry {
            Some(entry) if self.faults.is_empty() => Ok((entry, self.hints)),
            Some(_) | None => {
                self.faults.append(&mut self.hints);
                Err(self.faults)
            }
        }
    }

    fn read_members(&mut self) {
        self.look_at_names();
        let name = self.read_name();
        let url = self.read_url();
        let key = self.text("key").and_then(|(text, value)| self.read_secret("key", &text, value));
        let description = self.text("description").map(|(text, _)| text);
        let protocol = self.read_protocol();
        let binding = self.read_binding();
        let tenant = self.text("tenant").map(|(text, _)| text);
        let headers = self.read_headers();
        let trusted_origins = self.read_origins();
        self.entry = name.zip(url).map(|(name, url)| AgentEntry {
            key,
            description,
            protocol,
            binding,
            tenant,
            headers,
            trusted_origins,
            ..AgentEntry::new(name, url)
        });
    }

    /// Members that stand there twice, and those that look like others misspelt.
    fn look_at_names(&mut self) {
        let mut faults = Vec::new();
        for (name, value) in self.members.repeated().filter(|(name, _)| MEMBERS.contains(name)) {
            faults.push((value, format!("{name} stands here once more")));
        }
        for (value, fault) in faults {
            self.fault(value, &fault);
        }
        let unknown = self.members.0.iter().filter(|(name, _)| !MEMBERS.contains(&name.as_str()));
        for (name, value) in unknown {
            if let Some(meant) = meant(name, &MEMBERS, &OTHER_WORDS) {
                let (line, shown) =
                    (self.source.line(value.get()), sanitize_remote_line(name, MAX_SHOWN));
                self.hints.push(format!(
                    "line {line}: \"{shown}\" is not known and does nothing; did you mean \"{meant}\"?"
                ));
            }
        }
    }

    fn fault(&mut self, at: &RawValue, fault: &str) {
        let line = self.source.line(at.get());
        self.faults.push(format!("line {line}: {fault}"));
    }

    /// A member that is not null.
    fn member(&self, name: &str) -> Option<&'f RawValue> {
        self.members.get(name).filter(|value| value.get() != "null")
    }

    /// A member that is text. Empty text counts as absent.
    fn text(&mut self, name: &str) -> Option<(String, &'f RawValue)> {
        let value = self.member(name)?;
        let text = self.string(name, value).filter(|text| !text.is_empty())?;
        Some((text, value))
    }

    /// A value that must be text.
    fn string(&mut self, what: &str, value: &RawValue) -> Option<String> {
        if !value.get().starts_with('"') {
            self.fault(
                value,
                &format!("{what} is {}, where text must stand", raw_json_kind(value)),
            );
            return None;
        }
        let read = serde_json::from_str(value.get());
        if read.is_err() {
            self.fault(value, &format!("{what} holds half a character"));
        }
        read.ok()
    }

    /// A member without which an entry is none.
    fn needed(&mut self, name: &str, form: &str) -> Option<(String, &'f RawValue)> {
        let Some(value) = self.member(name) else {
            self.fault(self.whole, &format!("it has no {name}, which must be {form}"));
            return None;
        };
        match self.string(name, value) {
            Some(text) if text.is_empty() => {
                self.fault(value, &format!("{name} is empty; it must be {form}"));
                None
            }
            text => text.map(|text| (text, value)),
        }
    }

    fn read_name(&mut self) -> Option<AgentName> {
        let (text, value) = self.needed("name", NAME_FORM)?;
        self.given_name = Some(text.clone());
        let name = AgentName::new(&text);
        if name.is_none() {
            let fitting = text.trim().to_ascii_lowercase().replace(['_', ' ', '.'], "-");
            let hint = AgentName::new(&fitting)
                .map_or_else(String::new, |name| format!(", like \"{name}\""));
            self.fault(value, &format!("a name is {NAME_FORM}{hint}"));
        }
        name
    }

    fn read_url(&mut self) -> Option<Url> {
        let (text, value) = self.needed("url", "an http:// or https:// address")?;
        match url_of(&text) {
            Ok(url) => Some(url),
            Err(fault) => {
                self.fault(value, &format!("url {fault}"));
                None
            }
        }
    }

    fn read_secret(&mut self, what: &str, text: &str, value: &RawValue) -> Option<KeySource> {
        let fault = match KeySource::parse(text) {
            Ok(source) => return Some(source),
            Err(KeyFormError::ForeignVariable) => format!(
                "{what} names an environment variable that does not begin with {KEY_VARIABLE_PREFIX}"
            ),
            Err(KeyFormError::NoPath) => format!("{what} names no file after \"file:\""),
        };
        self.fault(value, &fault);
        None
    }

    fn read_protocol(&mut self) -> Option<AgentProtocol> {
        let (text, value) = self.text("protocol")?;
        match text.as_str() {
            "1.0" => Some(AgentProtocol::V1),
            "0.3" => Some(AgentProtocol::V03),
            _ => self.neither("protocol", &text, ["1.0", "0.3"], value),
        }
    }

    fn read_binding(&mut self) -> Option<AgentBinding> {
        let (text, value) = self.text("binding")?;
        if text.eq_ignore_ascii_case("JSONRPC") {
            Some(AgentBinding::JsonRpc)
        } else if text.eq_ignore_ascii_case("HTTP+JSON") {
            Some(AgentBinding::HttpJson)
        } else {
            self.neither("binding", &text, ["JSONRPC", "HTTP+JSON"], value)
        }
    }

    fn neither<T>(
        &mut self,
        name: &str,
        text: &str,
        [one, other]: [&str; 2],
        value: &RawValue,
    ) -> Option<T> {
        let shown = sanitize_remote_line(text, MAX_SHOWN);
        let fault = format!("{name} is \"{shown}\", which is neither \"{one}\" nor \"{other}\"");
        self.fault(value, &fault);
        None
    }

    fn read_headers(&mut self) -> Vec<(HeaderName, KeySource)> {
        let Some(value) = self.member("headers") else { return Vec::new() };
        let headers = match Members::of(value) {
            Ok(headers) => headers,
            Err(kind) => {
                self.fault(value, &format!("headers is {kind}, where an object must stand"));
                return Vec::new();
            }
        };
        let has_key = self.member("key").is_some_and(|key| key.get() != "\"\"");
        let mut names = HashSet::new();
        let mut read = Vec::with_capacity(headers.0.len());
        for (given, value) in headers.0 {
            let what = format!("the header {}", sanitize_remote_line(&given, MAX_SHOWN));
            let Ok(name) = HeaderName::from_bytes(given.as_bytes()) else {
                self.fault(value, &format!("{what} has a name that no header can have"));
                continue;
            };
            if auth::is_restricted(&name) {
                self.fault(value, &format!("{what} cannot be set here"));
            } else if has_key && auth::is_key_header(&name) {
                self.fault(value, &format!("{what} cannot be set beside key, which is sent in it"));
            }
            if !names.insert(name.clone()) {
                self.fault(value, &format!("{what} stands here once more"));
            }
            let text = self.string(&what, value);
            let source = text.and_then(|text| self.read_secret(&what, &text, value));
            read.extend(source.map(|source| (name, source)));
        }
        read
    }

    fn read_origins(&mut self) -> Vec<String> {
        let Some(value) = self.member("trustedOrigins") else { return Vec::new() };
        let Some(list) = serde_json::from_str::<Vec<&RawValue>>(value.get()).ok() else {
            let kind = raw_json_kind(value);
            self.fault(
                value,
                &format!("trustedOrigins is {kind}, where a list of origins must stand"),
            );
            return Vec::new();
        };
        let mut origins = Vec::with_capacity(list.len());
        for (number, item) in (1..).zip(list) {
            let what = format!("item {number} of trustedOrigins");
            let Some(text) = self.string(&what, item) else { continue };
            match url_of(&text) {
                Ok(url) => origins.push(url.origin().ascii_serialization()),
                Err(fault) => self.fault(item, &format!("{what} {fault}")),
            }
        }
        origins
    }
}

/// Reads an address, or says what is wrong with it. A key may have come to stand here by mistake, so only the parts of a
/// whole address that hold no secrets are shown.
fn url_of(text: &str) -> Result<Url, String> {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err("does not begin with http:// or https://".to_owned());
        }
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") {
        // What stands before the colon is a scheme only before two slashes: `localhost:80` has none.
        let scheme = if text.contains("://") { url.scheme() } else { "" };
        let found = sanitize_remote_line(scheme, MAX_SHOWN);
        let but = if found.is_empty() { found } else { format!(" but with {found}://") };
        return Err(format!("does not begin with http:// or https://{but}"));
    }
    let shown = sanitize_remote_line(&super::shown(&url), 200);
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("\"{shown}\" holds a user name or a password; a key stands in key"));
    }
    if url.fragment().is_some() {
        return Err(format!("\"{shown}\" has a fragment, which is never sent"));
    }
    Ok(url)
}

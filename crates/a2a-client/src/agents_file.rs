//! `<workspace>/.volcanic/a2a/agents.json`: the agents that may be called from a workspace.
//!
//! People and the assistant edit the file; it is read for every call and never written. A bad entry is left out and
//! reported with all its faults, the others still work. Members that nobody here knows are left alone, unless they look
//! like a misspelt one: those are reported too.

use std::{collections::HashMap, fmt, path::Path};

use http::HeaderName;
use serde_json::value::RawValue;
use url::Url;
use volcanic_a2a_types::raw_json_kind;
use volcanic_base::{ConfineError, ConfinedDir, with_causes};

use crate::KeySource;

mod entry;
mod members;

use entry::EntryReader;
use members::{Source, place_after};

/// Where the file lies in a workspace.
pub const AGENTS_FILE: &str = ".volcanic/a2a/agents.json";

/// Much more than people write, and little enough to read for every call.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The name of an agent: 1 to 40 of `a-z`, `0-9` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentName(String);

impl AgentName {
    /// Checks and wraps a name.
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=40).contains(&name.len())
            && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        fits.then(|| Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for AgentName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Which protocol version an entry insists on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentProtocol {
    /// A2A 1.0 (`"1.0"`).
    V1,
    /// A2A 0.3 (`"0.3"`).
    V03,
}

/// Which binding an entry insists on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentBinding {
    /// JSON-RPC over HTTP (`"JSONRPC"`).
    JsonRpc,
    /// HTTP and JSON (`"HTTP+JSON"`).
    HttpJson,
}

/// One agent of the file.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentEntry {
    /// What the assistant calls it.
    pub name: AgentName,
    /// Its base URL, or the URL of its card if that ends in `.json`. It may carry secrets in its query: show
    /// [`AgentEntry::shown_url`].
    pub url: Url,
    /// The key it is called with.
    pub key: Option<KeySource>,
    /// What it is for, in the owner's words; replaces the card's description in listings.
    pub description: Option<String>,
    /// The protocol version to use instead of the card's first fitting one.
    pub protocol: Option<AgentProtocol>,
    /// The binding to use instead of the card's first fitting one.
    pub binding: Option<AgentBinding>,
    /// The routing key to send when the interface that is used names none.
    pub tenant: Option<String>,
    /// Further headers for every request to the agent.
    pub headers: Vec<(HeaderName, KeySource)>,
    /// Origins beside that of `url` which may have the key and the headers, serialised (`https://a.example:8443`).
    pub trusted_origins: Vec<String>,
}

impl AgentEntry {
    /// An entry with nothing but a name and a URL, as for an agent given on a command line.
    pub fn new(name: AgentName, url: Url) -> Self {
        Self {
            name,
            url,
            key: None,
            description: None,
            protocol: None,
            binding: None,
            tenant: None,
            headers: Vec::new(),
            trusted_origins: Vec::new(),
        }
    }

    /// The origin that the key belongs to, serialised.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// The URL as it may be shown: scheme, host, port and path only.
    pub fn shown_url(&self) -> String {
        shown(&self.url)
    }
}

/// Hides what may be secret.
impl fmt::Debug for AgentEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentEntry")
            .field("name", &self.name.as_str())
            .field("url", &self.shown_url())
            .field("key", &self.key)
            .field("trusted_origins", &self.trusted_origins)
            .finish_non_exhaustive()
    }
}

/// Scheme, host, port and path of a URL: the parts without secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Both fail only for URLs that have no host, and those hold no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

/// What the file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentsFile {
    /// The usable entries, in the file's order.
    pub agents: Vec<AgentEntry>,
    /// Why each other entry was left out, with everything that is wrong with it, for people to read.
    pub skipped: Vec<String>,
    /// What looks like a mistake in entries that can be used, for people to read.
    pub warnings: Vec<String>,
    /// The names that skipped entries have, each with its place in `skipped`.
    skipped_names: Vec<(String, usize)>,
}

impl AgentsFile {
    /// The agent of that name.
    pub fn agent(&self, name: &str) -> Option<&AgentEntry> {
        self.agents.iter().find(|entry| entry.name.as_str() == name)
    }

    /// Why the agent of that name was left out, if it stands in the file and cannot be used.
    pub fn skipped_agent(&self, name: &str) -> Option<&str> {
        if self.agent(name).is_some() {
            return None;
        }
        let (_, place) = self.skipped_names.iter().find(|(skipped, _)| skipped == name)?;
        self.skipped.get(*place).map(String::as_str)
    }

    fn skip(&mut self, name: Option<String>, label: &str, faults: &[String]) {
        self.skipped_names.extend(name.map(|name| (name, self.skipped.len())));
        self.skipped.push(format!("{label} ({})", faults.join("; ")));
    }
}

/// Why the file as a whole cannot be used. Names the file and shows nothing of its content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsFileError {
    /// It cannot be read.
    #[error("could not read {AGENTS_FILE}: {}", with_causes(.source))]
    Unreadable {
        /// Why.
        #[source]
        source: ConfineError,
    },
    /// There is nothing in it; somebody may be writing it.
    #[error("{AGENTS_FILE} is empty; a list without agents is []")]
    Empty,
    /// It is not text as JSON must be.
    #[error("{AGENTS_FILE} is UTF-16 text; it must be saved as UTF-8")]
    Utf16,
    /// Some of it is not text at all.
    #[error("{AGENTS_FILE} is not UTF-8 text (line {line}, column {column})")]
    NotText {
        /// Where the first byte stands that is none of a text's, from 1.
        line: usize,
        /// Where in that line, from 1.
        column: usize,
    },
    /// It is not JSON; somebody may be editing it.
    #[error("{AGENTS_FILE} is not valid JSON: {reason} (line {line}, column {column})")]
    NotJson {
        /// What is wrong there.
        reason: String,
        /// Where reading stopped, from 1.
        line: usize,
        /// Where in that line, from 1; 0 at its beginning.
        column: usize,
    },
    /// It is JSON, but not a list.
    #[error(
        "{AGENTS_FILE} holds {found} where a list of agents must stand, like [{{\"name\": \"travel-bot\", \"url\": \
         \"https://travel.example/\"}}]"
    )]
    NotAList {
        /// What kind of value it holds.
        found: &'static str,
    },
}

/// Reads the file of a workspace. A missing file, or a missing workspace, means no agents. Blocks shortly.
///
/// # Errors
///
/// [`AgentsFileError`] if there is a file and it is not a list. A running watch takes that as passing.
pub fn read_agents(workspace: &Path) -> Result<AgentsFile, AgentsFileError> {
    let read = ConfinedDir::open(workspace)
        .and_then(|workspace| workspace.read_to_limit(AGENTS_FILE, MAX_FILE_BYTES));
    match read {
        Ok(bytes) => parse_agents(&bytes),
        Err(ConfineError::NotFound { path: _ }) => Ok(AgentsFile::default()),
        Err(source) => Err(AgentsFileError::Unreadable { source }),
    }
}

fn parse_agents(bytes: &[u8]) -> Result<AgentsFile, AgentsFileError> {
    let source = Source::new(text_of(bytes)?);
    let mut file = AgentsFile::default();
    let mut lines: HashMap<AgentName, usize> = HashMap::new();
    for (index, raw) in list_of(source.text)?.into_iter().enumerate() {
        let read = EntryReader::read(&source, raw);
        let (name, label) = (read.name().map(str::to_owned), read.label(index));
        let (entry, hints) = match read.finish() {
            Ok(read) => read,
            Err(faults) => {
                file.skip(name, &label, &faults);
                continue;
            }
        };
        if let Some(line) = lines.get(&entry.name) {
            file.skip(name, &label, &[format!("its name is taken by the entry in line {line}")]);
            continue;
        }
        if !hints.is_empty() {
            file.warnings.push(format!("{label} ({})", hints.join("; ")));
        }
        lines.insert(entry.name.clone(), source.line(raw.get()));
        file.agents.push(entry);
    }
    Ok(file)
}

/// The file's text, without the mark that some editors put before it.
fn text_of(bytes: &[u8]) -> Result<&str, AgentsFileError> {
    // Without a mark of its own, UTF-16 shows by the zero beside the first bracket.
    if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] = bytes {
        return Err(AgentsFileError::Utf16);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match str::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => Err(AgentsFileError::Empty),
        Ok(text) => Ok(text),
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let (line, column) = place_after(&before);
            Err(AgentsFileError::NotText { line, column })
        }
    }
}

/// The entries, not yet looked into.
fn list_of(text: &str) -> Result<Vec<&RawValue>, AgentsFileError> {
    let not_json = |error: serde_json::Error| {
        let said = error.to_string();
        // The place is told apart; what the parser says of the syntax holds nothing of the file.
        let reason = said.split(" at line ").next().unwrap_or_default().to_owned();
        AgentsFileError::NotJson { reason, line: error.line(), column: error.column() }
    };
    let whole: &RawValue = serde_json::from_str(text).map_err(not_json)?;
    if !whole.get().starts_with('[') {
        return Err(AgentsFileError::NotAList { found: raw_json_kind(whole) });
    }
    serde_json::from_str(whole.get()).map_err(not_json)
}

#[cfg(test)]
mod tests;

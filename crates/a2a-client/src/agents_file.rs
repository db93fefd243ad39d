//! `<workspace>/.volcanic/a2a/agents.json`: the agents that may be called from a workspace.
//!
//! People and the assistant edit the file; it is read for every call and never written. A bad entry is left out and
//! reported, the others still work.

use std::{fmt, path::Path};

use http::HeaderName;
use serde_json::Value;
use url::Url;
use volcanic_base::{ConfineError, ConfinedDir};

use crate::KeySource;

mod entry;

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
    /// Why each other entry was left out, for people to read.
    pub skipped: Vec<String>,
}

impl AgentsFile {
    /// The agent of that name.
    pub fn agent(&self, name: &str) -> Option<&AgentEntry> {
        self.agents.iter().find(|entry| entry.name.as_str() == name)
    }
}

/// Why the file as a whole cannot be used. Names the file and shows nothing of its content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentsFileError {
    /// It cannot be read.
    #[error("could not read {AGENTS_FILE}: {source}")]
    Unreadable {
        /// Why.
        #[source]
        source: ConfineError,
    },
    /// It is not JSON; somebody may be editing it.
    #[error("{AGENTS_FILE} is not valid JSON (line {line}, column {column})")]
    NotJson {
        /// Where reading stopped, from 1.
        line: usize,
        /// Where in that line, from 1.
        column: usize,
    },
    /// It is JSON, but not a list.
    #[error("{AGENTS_FILE} does not hold a list of agents")]
    NotAList,
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
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| AgentsFileError::NotJson { line: error.line(), column: error.column() })?;
    let Value::Array(list) = value else { return Err(AgentsFileError::NotAList) };
    let mut file = AgentsFile::default();
    for (index, value) in list.iter().enumerate() {
        match entry::read(value) {
            Ok(entry) if file.agent(entry.name.as_str()).is_some() => {
                file.skipped
                    .push(format!("{} (the name is taken by an earlier entry)", entry.name));
            }
            Ok(entry) => file.agents.push(entry),
            Err(reason) => file.skipped.push(format!("{} ({reason})", entry::label(value, index))),
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests;

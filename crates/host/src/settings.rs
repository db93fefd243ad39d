//! What a host is told: the variables of its process, below them its settings file, below that the defaults of the table.
//!
//! Everything is checked before anything starts, and every problem is reported at once.

mod file;
mod layers;
mod problem;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{Config, Map, Source as _, Value, ValueKind};
use url::Url;
use volcanic_base::{Secret, with_causes};
use volcanic_net::MAX_CERTIFICATE_FILE;

pub use problem::{ConfigError, ConfigProblem};

use crate::amounts::{parse_duration, parse_size};
use crate::client::{ClientSettings, TransportSetupError, agent_transport};
use crate::environment::{Variables, check_private_folder};
use crate::keys::{self, HOME, Key};
use crate::log::LogLevel;
use crate::model::OpenAiAccess;
use crate::server::ServerSettings;
use layers::Layers;
use problem::as_written;

/// The longest wait inside a call of the tool, in seconds. A tool call ends after 15 minutes.
const MAX_WAIT: u64 = 600;
/// The longest a card may take, in seconds: no call takes longer than a minute.
const MAX_CARD: u64 = 60;
/// The largest file, in bytes: twice it, in base64, is held in memory.
const MAX_FILE: u64 = 256 << 20;
/// The shortest and longest life of a watch.
const WATCH_LIFE: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(24 * 365));

/// The merged layers of the keys that a host reads, and what is wrong with them so far.
pub struct Settings {
    home: PathBuf,
    read: &'static [&'static Key],
    merged: Map<String, Value>,
    problems: Vec<ConfigProblem>,
}

/// One line of `--print-config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveSetting {
    /// The key, e.g. `A2AClient__WaitSeconds`.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// The value, masked when it is a secret; `None` when unset.
    pub value: Option<String>,
    /// The variable, file or default it comes from.
    pub source: Option<String>,
}

impl fmt::Display for EffectiveSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.value, &self.source) {
            (Some(value), Some(source)) => {
                write!(f, "{} = {value}  ({})", self.name, as_written(source))
            }
            (Some(value), None) => write!(f, "{} = {value}", self.name),
            (None, _) => write!(f, "{} is not set", self.name),
        }
    }
}

/// A value and the name it was found under.
struct Found {
    text: String,
    name: String,
}

impl Settings {
    /// Takes the keys that the host reads out of its variables and of `file`, else of `volcanic.toml` in the home folder
    /// if it is there. Keys that only another host reads are left alone, right or wrong.
    pub fn collect(
        variables: &Variables,
        file: Option<&Path>,
        read: &'static [&'static Key],
    ) -> Self {
        // Names and values of ours are text; whatever is not, is not ours.
        let environment: BTreeMap<String, String> = variables
            .iter()
            .filter_map(|(name, value)| {
                Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
            })
            .filter(|(_, value)| !value.trim().is_empty())
            .collect();
        let mut problems = Vec::new();
        let home = home_folder(&environment, &mut problems);
        let layers = Layers::collect(&environment, &home, file, read, &mut problems);
        // Asked for one key, the merged configuration forgets where its value came from; taken apart, it does not.
        let merged: Config = layers.merge();
        Self { home, read, merged: merged.collect().unwrap_or_default(), problems }
    }

    /// The folder of everything that lasts.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The configuration that was made of the values, if nothing was wrong with any.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem there is.
    pub fn finish<T>(self, config: Option<T>) -> Result<T, ConfigError> {
        match config {
            Some(config) if self.problems.is_empty() => Ok(config),
            _ => Err(ConfigError { problems: self.problems }),
        }
    }

    fn find(&self, key: &Key) -> Option<Found> {
        let id = key.id();
        let mut segments = id.split('.');
        let mut value = self.merged.get(segments.next()?)?;
        for segment in segments {
            let ValueKind::Table(table) = &value.kind else { return None };
            value = table.get(segment)?;
        }
        let name = value.origin().unwrap_or(key.name).to_owned();
        let text = value.clone().into_string().ok()?.trim().to_owned();
        (!text.is_empty()).then_some(Found { text, name })
    }

    /// Whether somebody said what it should be.
    pub fn is_said(&self, key: &Key) -> bool {
        self.find(key).is_some_and(|found| found.name != "default")
    }

    /// Whether something went wrong with the key before: then it is not missing, too.
    fn is_spoilt(&self, key: &Key) -> bool {
        let lower = key.name.to_ascii_lowercase();
        self.problems.iter().any(|problem| {
            let name = problem.name.split(" in ").next().unwrap_or_default();
            let name = name.strip_suffix("_FILE").or(name.strip_suffix("_file")).unwrap_or(name);
            name.eq_ignore_ascii_case(&lower) || key.flat == Some(name)
        })
    }

    fn refuse(&mut self, key: &Key, found: Option<Found>, text: impl Into<String>) {
        let (name, read) = match found {
            Some(found) if key.secret => (found.name, None),
            // A default never fails, so the origin is a variable or a place in the file.
            Some(found) => (found.name, Some(showable(&found.text))),
            None => (key.name.to_owned(), None),
        };
        self.problems.push(ConfigProblem { name, read, text: text.into() });
    }

    /// Says what is wrong with a key that is not set.
    pub fn miss(&mut self, key: &Key, text: impl Into<String>) {
        self.refuse(key, None, text);
    }

    /// Reads an optional key with `parse`, whose error says what is allowed.
    pub fn optional<T>(
        &mut self,
        key: &Key,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let found = self.find(key)?;
        match parse(&found.text) {
            Ok(value) => Some(value),
            Err(text) => {
                self.refuse(key, Some(found), text);
                None
            }
        }
    }

    /// Reads a key that has to be there.
    pub fn required<T>(
        &mut self,
        key: &Key,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        if self.find(key).is_none() {
            if !self.is_spoilt(key) {
                let flat = key.flat.map(|flat| format!(" (nor `{flat}`)")).unwrap_or_default();
                self.refuse(key, None, format!("not set{flat}: {}", key.doc));
            }
            return None;
        }
        self.optional(key, parse)
    }

    /// Where `openai:` models are; `None` when it cannot be said.
    pub fn openai(&mut self) -> Option<OpenAiAccess> {
        let key = self.optional(&keys::OPENAI_KEY, |text| Ok(Secret::new(text)));
        let is_own_server = self.is_said(&keys::OPENAI_URL);
        let base_url = self.required(&keys::OPENAI_URL, web_url)?;
        let access = OpenAiAccess { base_url, is_own_server, key };
        (!self.is_spoilt(&keys::OPENAI_KEY)).then_some(access)
    }

    /// The half that calls other agents; `None` when something is wrong with it.
    pub fn client(&mut self) -> Option<ClientSettings> {
        let wait = self.required(&keys::WAIT_SECONDS, |text| seconds(text, 0, MAX_WAIT));
        let card_timeout = self.required(&keys::CARD_TIMEOUT, |text| seconds(text, 1, MAX_CARD));
        let watch_timeout = self.required(&keys::WATCH_TIMEOUT, |text| {
            let length = parse_duration(text).map_err(|error| error.to_string())?;
            let (shortest, longest) = WATCH_LIFE;
            let fits = (shortest..=longest).contains(&length);
            if fits { Ok(length) } else { Err("allowed is from `1m` to `365d`".to_owned()) }
        });
        let max_file_bytes = self.required(&keys::MAX_FILE_BYTES, |text| {
            let size = parse_size(text).map_err(|error| error.to_string())?;
            if (1..=MAX_FILE).contains(&size) {
                Ok(size)
            } else {
                Err("allowed is from 1 byte to `256MB`".to_owned())
            }
        });
        Some(ClientSettings {
            wait: wait?,
            watch_timeout: watch_timeout?,
            card_timeout: card_timeout?,
            max_file_bytes: max_file_bytes?,
        })
    }

    /// The half that others call; `None` when something is wrong with it. Whether it is on is for the host to say.
    pub fn server(&mut self) -> Option<ServerSettings> {
        let public_url = self.optional(&keys::PUBLIC_URL, web_url);
        let listen = self.required(&keys::LISTEN, |text| {
            text.parse::<SocketAddr>()
                .map_err(|_| "allowed is an address with a port, like `0.0.0.0:8080`".to_owned())
        });
        Some(ServerSettings { public_url, listen: listen? })
    }

    /// How much is logged; `None` when it cannot be said.
    pub fn log_level(&mut self) -> Option<LogLevel> {
        self.required(&keys::LOG_LEVEL, LogLevel::parse)
    }

    /// Certificates that replace the system's roots in calls to agents. The TLS of models looks into the file on its own,
    /// to its end, so it is refused here if it may have none.
    pub fn ca_file(&mut self) -> Option<PathBuf> {
        self.optional(&keys::CA_FILE, |text| {
            let path = PathBuf::from(text);
            match std::fs::metadata(&path) {
                Ok(file) if !file.is_file() => Err("it is no regular file".to_owned()),
                Ok(file) if file.len() > MAX_CERTIFICATE_FILE => {
                    Err(format!("it is larger than {MAX_CERTIFICATE_FILE} bytes"))
                }
                // Whoever needs what is in it says that it is not there.
                Ok(_) | Err(_) => Ok(path),
            }
        })
    }

    /// The same, once the certificates in the file are seen to be usable.
    pub fn usable_ca_file(&mut self) -> Option<PathBuf> {
        self.optional(&keys::CA_FILE, |text| {
            let path = PathBuf::from(text);
            match agent_transport(Some(&path)) {
                Ok(_) => Ok(path),
                Err(TransportSetupError::Certificates { source, .. }) => Err(with_causes(&source)),
                Err(error) => Err(with_causes(&error)),
            }
        })
    }

    /// Finds out whether these folders in the home folder can be made and written into; makes none.
    pub fn check_folders(&mut self, names: &[&str]) {
        if !self.home.is_absolute() {
            // That is said already.
            return;
        }
        let wrong = names.iter().find_map(|name| {
            let error = check_private_folder(&self.home.join(name)).err()?;
            Some(format!("the folder `{name}` in it cannot be made or written into ({error})"))
        });
        if let Some(text) = wrong {
            let read = Some(self.home.display().to_string());
            self.problems.push(ConfigProblem { name: HOME.to_owned(), read, text });
        }
    }

    /// Every key as `--print-config` shows it.
    pub fn effective(&self) -> Vec<EffectiveSetting> {
        let shown = |key: &&'static Key| {
            let found = self.find(key);
            let value = found
                .as_ref()
                .map(|found| if key.secret { "***".to_owned() } else { showable(&found.text) });
            EffectiveSetting {
                name: key.name,
                doc: key.doc,
                value,
                source: found.map(|found| found.name),
            }
        };
        self.read.iter().map(shown).collect()
    }
}

/// A value as people may see it. A URL can carry a password in its user part or its query, so of such a one only the
/// scheme is shown.
fn showable(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest)) if rest.contains(['@', '?', '#']) => format!("{scheme}://***"),
        _ => text.to_owned(),
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values may be secrets.
        f.debug_struct("Settings").field("home", &self.home).finish_non_exhaustive()
    }
}

/// The home folder: `VOLCANIC_HOME`, else `.volcanic` in the user's own.
fn home_folder(
    environment: &BTreeMap<String, String>,
    problems: &mut Vec<ConfigProblem>,
) -> PathBuf {
    let home = match environment.get(HOME) {
        Some(home) => PathBuf::from(home),
        None => environment
            .get("HOME")
            .map(|home| PathBuf::from(home).join(".volcanic"))
            .unwrap_or_default(),
    };
    if !home.is_absolute() {
        let read = environment.get(HOME).cloned();
        let text =
            "allowed is an absolute path; unset, it is `.volcanic` in the folder that HOME names"
                .to_owned();
        problems.push(ConfigProblem { name: HOME.to_owned(), read, text });
    }
    home
}

fn seconds(text: &str, least: u64, most: u64) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(Duration::from_secs(value)),
        _ => Err(format!(
            "allowed is a whole number of seconds from {least} to {most}, without a unit"
        )),
    }
}

/// Reads an http(s) URL without user, query and fragment.
///
/// # Errors
/// With what is allowed.
pub fn web_url(text: &str) -> Result<Url, String> {
    let allowed = || "allowed is an http(s) URL without user, query and fragment".to_owned();
    let url = Url::parse(text).map_err(|_| allowed())?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    if plain && web { Ok(url) } else { Err(allowed()) }
}

//! What the bot is told: the environment, below it `volcanic.toml`, below that the defaults of one table of keys.
//!
//! Everything is checked before anything starts, and every problem is reported at once.

mod keys;
mod layers;
mod problem;
mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use url::Url;
use volcanic_base::Secret;

pub use problem::{ConfigError, ConfigProblem};

use layers::Layers;
use read::Reader;

/// Everything the bot is told.
#[derive(Debug, Clone)]
pub struct BotConfig {
    /// The folder of the state and the workspaces.
    pub home: PathBuf,
    /// The bot's token.
    pub token: Secret,
    /// The people who may talk to the bot, by their numeric ids; never empty.
    pub allowed_users: Vec<i64>,
    /// The model that answers.
    pub model: ModelChoice,
    /// Where the Bot API is.
    pub api_url: Url,
    /// The zone of timestamp headers.
    pub time_zone: TimeZone,
    /// The half that calls other agents, when it is on.
    pub client: Option<ClientSettings>,
    /// The half that others call, when it is on.
    pub server: Option<ServerSettings>,
    /// How the log looks.
    pub log: LogSettings,
    /// Certificates that replace the system's roots in calls to agents.
    pub ca_file: Option<PathBuf>,
}

/// A language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// Canned answers, from a rule file or the built-in rules.
    Scripted {
        /// The rule file.
        rules: Option<PathBuf>,
    },
    /// A model behind an OpenAI-compatible endpoint.
    OpenAi {
        /// Its name there.
        model: String,
        /// The base URL.
        base_url: Url,
        /// The key; servers at home need none.
        key: Option<Secret>,
    },
}

/// Settings of the A2A client half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// How long the tool waits for an outcome before a watch takes over.
    pub wait: Duration,
    /// When a watch gives up, counted from its start.
    pub watch_timeout: Duration,
    /// How long fetching a card may take.
    pub card_timeout: Duration,
    /// Bytes of the files of one send together, and of each received file.
    pub max_file_bytes: u64,
}

/// Settings of the A2A server half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// How others reach this bot.
    pub public_url: Option<Url>,
    /// Where it listens.
    pub listen: SocketAddr,
}

/// How the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogSettings {
    /// One line or one JSON object per event.
    pub format: LogFormat,
    /// What is left out.
    pub level: LogLevel,
}

/// The shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// The least important events that are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Someone must act.
    Error,
    /// Unexpected, handled.
    Warn,
    /// Lifecycle.
    Info,
    /// Decisions.
    Debug,
    /// Sizes and shapes.
    Trace,
}

impl LogLevel {
    /// The level as the log's filter writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The valid configuration and how it came about.
#[derive(Debug)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: BotConfig,
    /// Every key with its value (secrets masked) and its source.
    pub effective: Vec<EffectiveSetting>,
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
            (Some(value), Some(source)) => write!(f, "{} = {value}  ({source})", self.name),
            (Some(value), None) => write!(f, "{} = {value}", self.name),
            (None, _) => write!(f, "{} is not set", self.name),
        }
    }
}

/// Reads and checks the whole configuration.
///
/// `environment` is the process's, as names and values; `file` is the one named on the command line, else
/// `volcanic.toml` in the home folder counts if it is there.
///
/// # Errors
/// [`ConfigError`] with every problem there is.
pub fn load_config(
    environment: impl IntoIterator<Item = (String, String)>,
    file: Option<&Path>,
) -> Result<LoadedConfig, ConfigError> {
    let environment: BTreeMap<String, String> =
        environment.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect();
    let mut problems = Vec::new();
    let home = read::home_folder(&environment, &mut problems);
    let layers = Layers::collect(&environment, &home, file, &mut problems);
    let mut reader = Reader::new(&layers.merge(), problems);
    let config = read::bot_config(&mut reader, home);
    let effective = reader.effective();
    let problems = reader.into_problems();
    match config {
        Some(config) if problems.is_empty() => Ok(LoadedConfig { config, effective }),
        _ => Err(ConfigError { problems }),
    }
}

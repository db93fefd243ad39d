//! From texts to values: each key's own rules.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use config::{Config, Map, Source as _, Value, ValueKind};
use jiff::tz::TimeZone;
use url::Url;
use volcanic_base::{Secret, parse_duration, parse_size};

use super::keys::{self, HOME, Key};
use super::problem::ConfigProblem;
use super::{
    BotConfig, ClientSettings, EffectiveSetting, LogFormat, LogLevel, LogSettings, ModelChoice,
    ServerSettings,
};

/// The longest wait inside a call of the tool, in seconds. A tool call ends after 15 minutes.
const MAX_WAIT: u64 = 600;
/// The longest a card may take, in seconds: no call takes longer than a minute.
const MAX_CARD: u64 = 60;
/// The largest file, in bytes: twice it, in base64, is held in memory.
const MAX_FILE: u64 = 256 << 20;
/// The shortest and longest life of a watch.
const WATCH_LIFE: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(24 * 365));

/// Takes values out of the merged layers and collects what is wrong with them.
pub(super) struct Reader {
    merged: Map<String, Value>,
    problems: Vec<ConfigProblem>,
}

struct Found {
    text: String,
    name: String,
}

impl Reader {
    pub(super) fn new(merged: &Config, problems: Vec<ConfigProblem>) -> Self {
        // Asked for one key, the merged configuration forgets where its value came from; taken apart, it does not.
        Self { merged: merged.collect().unwrap_or_default(), problems }
    }

    pub(super) fn into_problems(self) -> Vec<ConfigProblem> {
        self.problems
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
            Some(found) => (found.name, Some(found.text)),
            None => (key.name.to_owned(), None),
        };
        self.problems.push(ConfigProblem { name, read, text: text.into() });
    }

    /// Reads an optional key with `parse`, whose error says what is allowed.
    fn optional<T>(
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
    fn required<T>(
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

    /// Every key as `--print-config` shows it.
    pub(super) fn effective(&self) -> Vec<EffectiveSetting> {
        let shown = |key: &'static Key| {
            let found = self.find(key);
            let value = found
                .as_ref()
                .map(|found| if key.secret { "***".to_owned() } else { found.text.clone() });
            EffectiveSetting {
                name: key.name,
                doc: key.doc,
                value,
                source: found.map(|found| found.name),
            }
        };
        keys::all().map(shown).collect()
    }
}

/// The home folder: `VOLCANIC_HOME`, else `.volcanic` in the user's own.
pub(super) fn home_folder(
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

/// Reads everything; `None` when something required is missing or wrong.
pub(super) fn bot_config(reader: &mut Reader, home: PathBuf) -> Option<BotConfig> {
    // All are read before the first `?`, so that all problems are found.
    let token = reader.required(&keys::BOT_TOKEN, token);
    let allowed_users = reader.required(&keys::ALLOWED_USERS, user_ids);
    let model = model(reader);
    let api_url = reader.required(&keys::API_URL, api_url);
    let time_zone = reader.required(&keys::TIME_ZONE, |text| {
        TimeZone::get(text)
            .map_err(|_| "allowed are names like `Europe/Berlin` or `UTC`".to_owned())
    });
    let client = client(reader);
    let server = server(reader);
    let log = log(reader);
    let ca_file = reader.optional(&keys::CA_FILE, |text| Ok(PathBuf::from(text)));
    Some(BotConfig {
        home,
        token: token?,
        allowed_users: allowed_users?,
        model: model?,
        api_url: api_url?,
        time_zone: time_zone?,
        client: client?,
        server: server?,
        log: log?,
        ca_file,
    })
}

/// The outer `None` is an error, the inner one a half that is off. Its other keys are checked all the same.
#[expect(
    clippy::option_option,
    reason = "the two levels mean two things and are taken apart at once"
)]
fn client(reader: &mut Reader) -> Option<Option<ClientSettings>> {
    let enabled = reader.required(&keys::CLIENT_ENABLED, flag);
    let wait = reader.required(&keys::WAIT_SECONDS, |text| seconds(text, 0, MAX_WAIT));
    let card_timeout = reader.required(&keys::CARD_TIMEOUT, |text| seconds(text, 1, MAX_CARD));
    let watch_timeout = reader.required(&keys::WATCH_TIMEOUT, |text| {
        let length = parse_duration(text).map_err(|error| error.to_string())?;
        let (shortest, longest) = WATCH_LIFE;
        let fits = (shortest..=longest).contains(&length);
        if fits { Ok(length) } else { Err("allowed is from `1m` to `365d`".to_owned()) }
    });
    let max_file_bytes = reader.required(&keys::MAX_FILE_BYTES, |text| {
        let size = parse_size(text).map_err(|error| error.to_string())?;
        if (1..=MAX_FILE).contains(&size) {
            Ok(size)
        } else {
            Err("allowed is from 1 byte to `256MB`".to_owned())
        }
    });
    let settings = ClientSettings {
        wait: wait?,
        watch_timeout: watch_timeout?,
        card_timeout: card_timeout?,
        max_file_bytes: max_file_bytes?,
    };
    Some(enabled?.then_some(settings))
}

#[expect(
    clippy::option_option,
    reason = "the two levels mean two things and are taken apart at once"
)]
fn server(reader: &mut Reader) -> Option<Option<ServerSettings>> {
    let enabled = reader.required(&keys::SERVER_ENABLED, flag);
    let before = reader.problems.len();
    let public_url = reader.optional(&keys::PUBLIC_URL, base_url);
    let listen = reader.required(&keys::LISTEN, |text| {
        text.parse::<SocketAddr>()
            .map_err(|_| "allowed is an address with a port, like `0.0.0.0:8080`".to_owned())
    });
    if reader.problems.len() > before {
        return None;
    }
    Some(enabled?.then_some(ServerSettings { public_url, listen: listen? }))
}

fn log(reader: &mut Reader) -> Option<LogSettings> {
    let format =
        reader.required(&keys::LOG_FORMAT, |text| match text.to_ascii_lowercase().as_str() {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err("allowed are `text` and `json`".to_owned()),
        });
    let level =
        reader.required(&keys::LOG_LEVEL, |text| match text.to_ascii_lowercase().as_str() {
            "error" => Ok(LogLevel::Error),
            "warn" => Ok(LogLevel::Warn),
            "info" => Ok(LogLevel::Info),
            "debug" => Ok(LogLevel::Debug),
            "trace" => Ok(LogLevel::Trace),
            _ => Err("allowed are `error`, `warn`, `info`, `debug` and `trace`".to_owned()),
        });
    Some(LogSettings { format: format?, level: level? })
}

fn model(reader: &mut Reader) -> Option<ModelChoice> {
    let key = reader.optional(&keys::OPENAI_KEY, |text| Ok(Secret::new(text)));
    let url = reader.required(&keys::OPENAI_URL, base_url);
    let own_url = reader.find(&keys::OPENAI_URL).is_some_and(|found| found.name != "default");
    let text = reader.required(&keys::MODEL, |text| Ok(text.to_owned()))?;
    let (provider, rest) = match text.split_once(':') {
        Some((provider, rest)) => (provider, Some(rest)),
        None => (text.as_str(), None),
    };
    match (provider, rest) {
        ("scripted", None) => Some(ModelChoice::Scripted { rules: None }),
        ("scripted", Some(rules)) if !rules.is_empty() => {
            Some(ModelChoice::Scripted { rules: Some(PathBuf::from(rules)) })
        }
        ("openai", Some(model)) if !model.is_empty() => {
            if key.is_none() && !own_url && !reader.is_spoilt(&keys::OPENAI_KEY) {
                reader.refuse(
                    &keys::OPENAI_KEY,
                    None,
                    "not set; `openai:` models need it unless OPENAI_BASE_URL names a server of your own",
                );
            }
            Some(ModelChoice::OpenAi { model: model.to_owned(), base_url: url?, key })
        }
        ("anthropic" | "gemini" | "ollama" | "openrouter", _) => {
            let found = reader.find(&keys::MODEL);
            reader.refuse(
                &keys::MODEL,
                found,
                format!(
                    "`{provider}` is not supported yet; use `openai:MODEL`, with OPENAI_BASE_URL for another server \
                     that speaks chat completions, or `scripted`"
                ),
            );
            None
        }
        _ => {
            let found = reader.find(&keys::MODEL);
            reader.refuse(
                &keys::MODEL,
                found,
                "allowed are `openai:MODEL`, `scripted` and `scripted:RULES.toml`",
            );
            None
        }
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("allowed are `true` and `false`".to_owned()),
    }
}

fn seconds(text: &str, least: u64, most: u64) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(Duration::from_secs(value)),
        _ => Err(format!(
            "allowed is a whole number of seconds from {least} to {most}, without a unit"
        )),
    }
}

fn token(text: &str) -> Result<Secret, String> {
    let fits = text.split_once(':').is_some_and(|(bot, secret)| {
        !bot.is_empty()
            && bot.bytes().all(|byte| byte.is_ascii_digit())
            && secret.len() >= 20
            && secret
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    });
    if fits {
        Ok(Secret::new(text))
    } else {
        Err("it is no bot token; BotFather gives one like `123456:ABC-DEF…`".to_owned())
    }
}

fn user_ids(text: &str) -> Result<Vec<i64>, String> {
    let allowed = || {
        "allowed are positive whole numbers with commas between them, like `111111111,222222222`"
            .to_owned()
    };
    let mut ids = Vec::new();
    for id in text.split(',').map(str::trim).filter(|id| !id.is_empty()) {
        match id.parse::<i64>() {
            Ok(id) if id > 0 && !ids.contains(&id) => ids.push(id),
            Ok(id) if id > 0 => {}
            Ok(_) | Err(_) => return Err(allowed()),
        }
    }
    if ids.is_empty() { Err(allowed()) } else { Ok(ids) }
}

fn base_url(text: &str) -> Result<Url, String> {
    let allowed = || "allowed is an http(s) URL without user, query and fragment".to_owned();
    let url = Url::parse(text).map_err(|_| allowed())?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    let web = matches!(url.scheme(), "http" | "https") && url.has_host();
    if plain && web { Ok(url) } else { Err(allowed()) }
}

fn api_url(text: &str) -> Result<Url, String> {
    let url = base_url(text)?;
    let names_bot = url
        .path_segments()
        .is_some_and(|mut segments| segments.any(|part| part.starts_with("bot")));
    if names_bot {
        return Err("it has to end before `/bot<token>`".to_owned());
    }
    Ok(url)
}

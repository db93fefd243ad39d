//! What the bot is told, checked: [`BotConfig`] out of the settings that all hosts share.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use url::Url;
use volcanic_base::{Secret, with_causes};
use volcanic_host::{
    BOT_STATE, BOT_WORKSPACES, ClientSettings, ConfigError, EffectiveSetting, LogLevel,
    ModelChoice, OpenAiAccess, ServerSettings, Settings, Variables, keys, web_url,
};

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
    /// Where it is, if it is an `openai:` model.
    pub openai: OpenAiAccess,
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

impl BotConfig {
    /// What works, but hardly as it was meant.
    pub fn warnings(&self) -> Vec<String> {
        let warning = match (&self.server, &self.client) {
            (Some(_), None) => {
                "A2A__Enabled is true and A2AClient__Enabled is not: nothing is served yet without it"
            }
            (Some(ServerSettings { public_url: None, .. }), Some(_)) => {
                "A2A__PublicUrl is not set: agents cannot push, they are asked instead"
            }
            (None, _) | (Some(_), Some(_)) => return Vec::new(),
        };
        vec![warning.to_owned()]
    }
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

/// The valid configuration and how it came about.
#[derive(Debug)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: BotConfig,
    /// Every key with its value (secrets masked) and its source.
    pub effective: Vec<EffectiveSetting>,
}

/// Reads and checks the whole configuration.
///
/// `variables` are the process's; `file` is the one named on the command line, else `volcanic.toml` in the home folder
/// counts if it is there. Files and folders that the settings name are looked at as well; nothing is made.
///
/// # Errors
/// [`ConfigError`] with every problem there is.
pub fn load_config(
    variables: &Variables,
    file: Option<&Path>,
) -> Result<LoadedConfig, ConfigError> {
    let mut settings = Settings::collect(variables, file, &keys::ALL);
    let config = bot_config(&mut settings);
    let effective = settings.effective();
    Ok(LoadedConfig { config: settings.finish(config)?, effective })
}

/// Reads everything; `None` when something required is missing or wrong.
fn bot_config(settings: &mut Settings) -> Option<BotConfig> {
    // All are read before the first `?`, so that all problems are found.
    let token = settings.required(&keys::BOT_TOKEN, token);
    let allowed_users = settings.required(&keys::ALLOWED_USERS, user_ids);
    let openai = settings.openai();
    let model = settings.required(&keys::MODEL, model);
    if matches!(model, Some(ModelChoice::OpenAi { .. }))
        && openai.as_ref().is_some_and(OpenAiAccess::lacks_key)
    {
        settings.miss(
            &keys::OPENAI_KEY,
            "not set; `openai:` models need it unless OPENAI_BASE_URL names a server of your own",
        );
    }
    let api_url = settings.required(&keys::API_URL, api_url);
    let time_zone = settings.required(&keys::TIME_ZONE, |text| {
        TimeZone::get(text)
            .map_err(|_| "allowed are names like `Europe/Berlin` or `UTC`".to_owned())
    });
    // The keys of a half that is off are checked all the same.
    let calls = settings.required(&keys::CLIENT_ENABLED, flag);
    let client = settings.client();
    let serves = settings.required(&keys::SERVER_ENABLED, flag);
    let server = settings.server();
    let format =
        settings.required(&keys::LOG_FORMAT, |text| match text.to_ascii_lowercase().as_str() {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err("allowed are `text` and `json`".to_owned()),
        });
    let level = settings.log_level();
    // A half that is off calls nobody, whatever the file is.
    let ca_file = if calls == Some(true) { settings.usable_ca_file() } else { settings.ca_file() };
    settings.check_folders(&[BOT_STATE, BOT_WORKSPACES]);
    Some(BotConfig {
        home: settings.home().to_owned(),
        token: token?,
        allowed_users: allowed_users?,
        model: model?,
        openai: openai?,
        api_url: api_url?,
        time_zone: time_zone?,
        client: calls?.then_some(client?),
        server: serves?.then_some(server?),
        log: LogSettings { format: format?, level: level? },
        ca_file,
    })
}

fn model(text: &str) -> Result<ModelChoice, String> {
    let choice = ModelChoice::parse(text).map_err(|error| error.to_string())?;
    choice.check_rules().map_err(|error| with_causes(&error))?;
    Ok(choice)
}

fn flag(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("allowed are `true` and `false`".to_owned()),
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

fn api_url(text: &str) -> Result<Url, String> {
    let url = web_url(text)?;
    let names_bot = url
        .path_segments()
        .is_some_and(|mut segments| segments.any(|part| part.starts_with("bot")));
    if names_bot {
        return Err("it has to end before `/bot<token>`".to_owned());
    }
    Ok(url)
}

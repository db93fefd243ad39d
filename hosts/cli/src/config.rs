//! What the command line is told, checked: [`CliConfig`] out of the settings that all hosts share.

use std::path::{Path, PathBuf};

use volcanic_host::{
    ClientSettings, ConfigError, EffectiveSetting, HostEnvironment, LogLevel, OpenAiAccess,
    ServerSettings, Settings, Variables, keys,
};

use crate::exit::UsageError;

/// The settings the command line honours. Both `Enabled` switches of the configuration are the bot's alone.
#[derive(Debug, Clone)]
pub struct CliConfig {
    /// Where state is kept: `VOLCANIC_HOME`, else `~/.volcanic`.
    pub home: PathBuf,
    /// Where `openai:` models are.
    pub openai: OpenAiAccess,
    /// How agents are called and followed.
    pub client: ClientSettings,
    /// Where agents push to, while others can reach it.
    pub server: ServerSettings,
    /// `SSL_CERT_FILE`: replaces the system's root certificates.
    pub ca_file: Option<PathBuf>,
    /// `Ops__Log__Level`, if somebody said it: a terminal is for the conversation, so the table's default does not count.
    pub log_level: Option<LogLevel>,
    /// What is handed on to agents' keys and to shell commands.
    pub environment: HostEnvironment,
    /// All of them as `volcanic settings` shows them.
    pub effective: Vec<EffectiveSetting>,
}

impl CliConfig {
    /// Reads the settings out of the process's variables and of `file`, else of `volcanic.toml` in the home folder if it
    /// is there.
    ///
    /// # Errors
    /// All faults at once, each naming its variable, what was read (never a secret) and what is allowed.
    pub fn load(variables: &Variables, file: Option<&Path>) -> anyhow::Result<Self> {
        let mut settings = Settings::collect(variables, file, &keys::COMMAND_LINE);
        // All are read before the first `?`, so that all problems are found.
        let (openai, client, server) = (settings.openai(), settings.client(), settings.server());
        let (level, ca_file) = (settings.log_level(), settings.ca_file());
        let log_level = level.filter(|_| settings.is_said(&keys::LOG_LEVEL));
        let home = settings.home().to_owned();
        let environment = HostEnvironment::pick(variables);
        let mut effective = settings.effective();
        for setting in effective.iter_mut().filter(|setting| setting.name == keys::LOG_LEVEL.name) {
            if log_level.is_none() {
                setting.value = Some(LogLevel::Error.as_str().to_owned());
            }
        }
        let config = openai.zip(client).zip(server).map(|((openai, client), server)| Self {
            home,
            openai,
            client,
            server,
            ca_file,
            log_level,
            environment,
            effective,
        });
        Ok(settings
            .finish(config)
            .map_err(|error: ConfigError| UsageError::new(error.to_string()))?)
    }
}

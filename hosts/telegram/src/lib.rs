//! The Telegram bot: a chat on one side, sessions and remote agents on the other.

mod config;
mod markdown;

pub use config::{
    BotConfig, ClientSettings, ConfigError, ConfigProblem, EffectiveSetting, LoadedConfig,
    LogFormat, LogLevel, LogSettings, ModelChoice, ServerSettings, load_config,
};
pub use markdown::{
    Entity, EntityKind, FormattedText, MAX_MESSAGE_UNITS, render_markdown, split_text,
};

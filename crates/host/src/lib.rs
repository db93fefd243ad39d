//! What every host of the assistant is told and wires alike.
//!
//! A host hands over the variables of its process and the path of its settings file ([`Settings`]); which keys there are
//! and what they mean stands in one table ([`keys`]), and each host names the ones it reads. From the values come the
//! model ([`build_model`]), the connections to agents ([`agent_transport`]), the keys that `agents.json` may name
//! ([`key_resolver`]), the configs of watches and tool ([`ClientSettings`]) and the way of pushes to watches
//! ([`ServerSettings`], [`WatchPushes`]). Nothing here reads the environment of the
//! process itself.

mod amounts;
mod client;
mod environment;
pub mod keys;
mod log;
mod memory;
mod model;
mod places;
mod secrets;
mod server;
mod settings;

pub use amounts::{SettingError, parse_duration, parse_size};
pub use client::{ClientSettings, TransportSetupError, agent_transport};
pub use environment::{HostEnvironment, Variables, check_private_folder, private_folder};
pub use log::{LogLevel, log_panics};
pub use memory::return_large_memory;
pub use model::{ModelChoice, ModelChoiceError, ModelSetupError, OpenAiAccess, build_model};
pub use places::{BOT_STATE, BOT_WORKSPACES, DATABASE};
pub use secrets::key_resolver;
pub use server::{ListenError, ServerSettings, WatchPushes, open_listener};
pub use settings::{ConfigError, ConfigProblem, EffectiveSetting, Settings, web_url};

//! The Telegram bot: a chat on one side, sessions and remote agents on the other.
//!
//! [`run_bot`] is the whole of it. Updates come in through a [`Receiver`], which keeps them before Telegram forgets them,
//! and become prompts or commands in the intake; each allowed person has a session, a workspace and an
//! [`OutboxSender`]; outcomes of watched tasks reach the sessions as prompts of their own.

mod api;
mod chats;
mod command;
mod config;
mod files;
mod held;
mod host;
mod incoming;
mod intake;
mod markdown;
mod outbox;
mod receive;

pub use api::{ApiError, BotClient, MenuCommand};
pub use config::{BotConfig, LoadedConfig, LogFormat, LogSettings, load_config};
pub use host::run_bot;
pub use markdown::{
    Entity, EntityKind, FormattedText, MAX_MESSAGE_UNITS, render_markdown, split_text,
};
pub use outbox::{ChatAnswers, OutboxSender, SenderPauses, answer_rows};
pub use receive::{ReceiveEnd, ReceivePauses, Receiver, UpdateHandler};

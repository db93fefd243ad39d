//! Doubles for tests: what stands outside Volcanic, strict and able to fail on command.
//!
//! A dev-dependency only. Use it from `tests/it`, never from in-file unit tests.

mod bot_api;

pub use bot_api::{BotApi, BotCall, BotFault, BotOutcome, NotSeen, SentMessage};

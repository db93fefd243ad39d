//! Doubles for tests: what stands outside Volcanic, strict and able to fail on command.
//!
//! A dev-dependency only. Use it from `tests/it`, never from in-file unit tests.

mod bot_api;
mod faults;
mod hostile;
mod process;
mod proxy;
mod results;

pub use bot_api::{BotApi, BotCall, BotFault, BotOutcome, NotSeen, SentMessage};
pub use faults::{FaultSeed, drawn_below, drawn_from};
pub use hostile::{
    CardFault, FORGED_TEXT, HostileAgent, HostileHeard, HostilePlace, HostileProtocol,
    HostileTrick, StreamFault, TaskFault, WireFault,
};
pub use process::{Measured, Process, ProcessError, Program};
pub use proxy::{Exchange, RecordingProxy};
pub use results::{HostileResult, HostileResults, hostile_results};

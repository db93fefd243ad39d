//! Language models behind the agent core's [`Model`](volcanic_agent_core::Model).
//!
//! [`openai_chat`] speaks chat completions, the dialect of OpenAI and of most servers that call themselves compatible
//! with it, at any base URL. Wire work is done by rig; its types appear neither in this crate's interface nor in anything
//! that is kept on disk.
//!
//! What rig logs: at trace level whole requests, and as a warning what a provider says in the middle of a stream. Hosts
//! that must not log what people write leave out the targets that begin with `rig`.

mod classify;
mod config;
mod model;
mod reply;
mod request;
mod transport;

pub use config::{OpenAiConfig, OpenAiConfigError};
pub use model::openai_chat;

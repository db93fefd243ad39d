//! State on disk: conversations, prompts, answers on their way, sends and watches, in one SQLite database.
//!
//! [`Store`] is the truth behind [`SessionStore`]. Writes go through one writer that puts everything
//! waiting into one commit; a method returns when its commit is on disk. Reads use connections of their own.
//!
//! [`SessionStore`]: volcanic_agent_core::SessionStore

mod conversation;
mod error;
mod inbound;
mod open;
mod outbox;
mod readers;
mod rows;
mod store;
mod telegram;
mod writer;

pub use open::StoreOpenError;
pub use store::{Store, StoreStats};
pub use telegram::ReceivedUpdate;

//! State on disk: conversations, prompts, answers on their way, sends and watches, in one SQLite database.
//!
//! [`Store`] is the truth behind [`SessionStore`] and [`WatchStore`]. Writes go through one writer that puts everything
//! waiting into one commit; a method returns when its commit is on disk. Reads use connections of their own.
//!
//! [`SessionStore`]: volcanic_agent_core::SessionStore
//! [`WatchStore`]: volcanic_a2a_watch::WatchStore

mod conversation;
mod error;
mod following;
mod inbound;
mod open;
mod outbox;
mod readers;
mod rows;
mod sends;
mod store;
mod telegram;
mod watches;
mod writer;

pub use following::StoreReader;
pub use open::StoreOpenError;
pub use store::{Store, StoreStats};
pub use telegram::ReceivedUpdate;

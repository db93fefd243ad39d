//! The serving half of A2A: other agents send work here.
//!
//! [`Operations`] is the core, the same for every binding: it begins turns, keeps tasks in a [`TaskStore`], fans events
//! out to streams and calls webhooks. The work itself is an [`Executor`]'s. [`router()`] puts JSON-RPC and the card around
//! the core, [`serve()`] puts connections around a router, and [`push_router`] is the inbound route for pushes that other
//! agents send to watches of ours.
//!
//! What holds: a status is durable before anybody hears of it; a client that goes away never cancels a task; a stranger's
//! task looks like one that does not exist; in one context of a caller one turn runs at a time.

mod caller;
mod card;
mod config;
mod error;
mod executor;
mod fanout;
mod http_routes;
mod operations;
mod push;
mod push_route;
mod rpc;
mod scripted;
mod serve;
mod store;
mod tasks;

pub use caller::{AuthError, Caller, CallerAuth, OpenAccess, StaticKeys};
pub use card::{CardProfile, CardSource};
pub use config::{PushConfig, ServerConfig};
pub use error::OperationError;
pub use executor::{Executor, SinkError, TaskSink, Turn};
pub use fanout::FanoutLimits;
pub use http_routes::{RPC_PATH, ServerDeps, router};
pub use operations::{EventStream, OperationDeps, Operations, StreamError};
pub use push_route::{PushReceiver, push_router};
pub use scripted::{
    Journal, JournalEntry, JournalFile, ScriptRules, ScriptRulesError, ScriptedAgent,
};
pub use serve::{ServeConfig, ServeEnd, serve, serve_with};
pub use store::{
    FileTasks, MemoryTasks, PendingPush, TaskRecord, TaskStore, TaskStoreError, TaskSummary,
};

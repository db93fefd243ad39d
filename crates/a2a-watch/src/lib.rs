//! Sends and watches: the part that never forgets a task it started.
//!
//! [`spawn`] starts the registry, one actor per process. It owns every send ([`WatchHandle::send`]) from the moment it is
//! on disk, before its first byte leaves, and follows the task it led to until the outcome is in the conversation,
//! exactly once, whatever is aborted or crashes meanwhile. What a host provides stands behind traits: [`WatchStore`]
//! keeps records, [`ResultDelivery`] puts outcomes into conversations.

mod config;
mod delivery;
mod machine;
#[cfg(feature = "test-util")]
mod memory;
mod notice;
mod order;
mod record;
mod registry;
mod store;

pub use config::WatchConfig;
pub use delivery::{Delivery, DeliveryEnd, DeliveryError, ResultDelivery};
#[cfg(feature = "test-util")]
pub use memory::MemoryWatchStore;
pub use order::{
    AgentError, AgentReport, AgentsError, AgentsReport, SendEnd, SendError, SendOrder,
    SettleTicket, TaskError, TaskQuery, TaskReport, WatchView,
};
pub use record::{
    MAX_ANSWERED, SendRecord, SendState, WatchId, WatchRecord, WatchSource, WatchState,
    WatchTarget, unknown_send_key,
};
pub use registry::{WatchDeps, WatchHandle, spawn};
pub use store::{WatchStore, WatchStoreError};

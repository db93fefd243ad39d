//! Sends and watches: the part that never forgets a task it started.

#[cfg(feature = "test-util")]
mod memory;
mod record;
mod store;

#[cfg(feature = "test-util")]
pub use memory::MemoryWatchStore;
pub use record::{
    SendRecord, SendState, WatchId, WatchRecord, WatchSource, WatchState, WatchTarget,
    unknown_send_key,
};
pub use store::{WatchStore, WatchStoreError};

//! Outbound HTTP: how a request of ours reaches another machine, and which machines it may reach.
//!
//! [`NetClient`] resolves, checks, connects and speaks TLS through its own connector, so that a [`GuardPolicy`] sees the
//! address that is really used. It follows no redirects, takes no proxy from the environment and undoes no compression:
//! a request reaches the host in its URL or fails. How long a whole call may take and how much of an answer is read is
//! the caller's to say; here only connecting has a limit, and bodies are read piece by piece ([`NetBody`]).
//!
//! Callers hold a [`Transport`], so tests put a router in its place (`InMemory`, feature `test-util`).

mod address;
mod body;
mod client;
mod connector;
mod error;
mod http1;
#[cfg(feature = "test-util")]
mod memory;
mod pool;
mod retry;
mod roots;
mod transport;

pub use address::GuardPolicy;
pub use body::NetBody;
pub use client::{NetClient, NetConfig};
pub use error::NetError;
#[cfg(feature = "test-util")]
pub use memory::InMemory;
pub use retry::{retry_after, retry_after_by_date};
pub use roots::{MAX_CERTIFICATE_FILE, RootCertificates};
pub use transport::{CallKind, Transport};

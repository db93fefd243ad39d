//! One remote agent, as the assistant sees it.
//!
//! Which agents there are stands in a file of the workspace ([`read_agents`]). [`RemoteAgent`] reads an agent's card,
//! chooses how to speak to it, and calls it; a key goes to the origin it is configured for and nowhere else. What came of
//! a task is taken apart ([`TaskOutcome`]), saved into the workspace ([`SavedOutcome`]) and told inside a frame that the
//! agent cannot fake ([`render_result`], [`render_delivery`]). Everything a remote says is checked against what was asked, bounded, and data.

mod agents_file;
mod attachments;
mod config;
mod error;
mod frame;
mod key;
mod outcome;
mod remote;

pub use agents_file::{
    AGENTS_FILE, AgentBinding, AgentEntry, AgentName, AgentProtocol, AgentsFile, AgentsFileError,
    read_agents,
};
pub use attachments::{AttachmentError, read_attachments};
pub use config::ClientConfig;
pub use error::{ClientError, KeyUse};
pub use frame::{
    NoticeKind, render_delivery, render_notice, render_result, sanitize_remote_line, write_result,
};
pub use key::{KEY_VARIABLE_PREFIX, KeyError, KeyResolver, KeySource, plain_keys};
pub use outcome::{INBOX, InlineFile, MAX_INLINE_BYTES, SavedOutcome, TaskOutcome, UnsavedFile};
pub use remote::{
    EventStream, HintStream, KeyMask, RemoteAgent, ServedCard, TaskHint, TaskPage, UnreadableListed,
};

//! The owner's tools: files, shell and sending files to the owner.
//!
//! [`owner_tools`] builds the set for one workspace. The file tools (`read`, `write`, `edit`, `ls`, `send`) resolve every
//! path beneath the workspace's directory descriptor, so no path, link or rename leads out of it, and they refuse
//! anything but regular files and directories. Everything in the workspace is the owner's to change,
//! `.volcanic/a2a/agents.json` included.
//!
//! **The `bash` tool is not sandboxed.** It runs as the process's own user and starts in the workspace, but can reach
//! whatever that user can. What keeps secrets from it is only that its environment holds nothing but the variables
//! in [`ToolConfig::shell_env`]. This set is therefore for the owner's own sessions, never for a stranger's.

mod bash;
mod config;
mod edit;
mod ls;
mod read;
mod send;
mod shell;
mod truncate;
mod workspace;
mod write;

pub use config::{ToolConfig, owner_tools};
pub use send::{FileSender, OutgoingFile};

//! The set of tools and what it can be told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use volcanic_agent_core::Tool;
use volcanic_base::ConfinedDir;

use crate::bash::BashTool;
use crate::edit::EditTool;
use crate::ls::LsTool;
use crate::read::ReadTool;
use crate::send::{FileSender, SendTool};
use crate::workspace::Workspace;
use crate::write::WriteTool;

/// What the owner's tools can be told.
#[derive(Debug, Clone)]
pub struct ToolConfig {
    /// The whole environment of shell commands. The process's own is never passed on, because it holds keys.
    pub shell_env: Vec<(OsString, OsString)>,
    /// The shell; it is called as `SHELL -c COMMAND`.
    pub shell: PathBuf,
    /// How long a command may run when the model names no limit.
    pub shell_timeout: Duration,
    /// The longest limit the model may name.
    pub shell_timeout_max: Duration,
    /// How long a command has between SIGTERM and SIGKILL. It has to fit into the grace a session gives to tools.
    pub shell_kill_grace: Duration,
    /// How long the output must be silent, after the shell has ended, to count as complete while a background process
    /// still holds it open.
    pub shell_output_idle: Duration,
    /// Where outputs too long to show are kept, the newest 16 of them. It is made when it is missing. One folder per
    /// workspace; not inside the workspace, where it would be in the owner's way.
    pub output_dir: PathBuf,
    /// How many bytes of one such output are kept, so that an endless one cannot fill the disk.
    pub output_file_max: u64,
    /// The largest file `send` takes, in bytes: what the host's channel can carry.
    pub send_max_bytes: u64,
}

impl ToolConfig {
    /// Every host's starting point: limits of 2 minutes (10 at most) for a command and 50 MB for a file to send, 64 MiB
    /// kept per output, bash if there is one, else sh.
    pub fn new(output_dir: impl Into<PathBuf>, shell_env: Vec<(OsString, OsString)>) -> Self {
        let bash = Path::new("/bin/bash");
        Self {
            shell_env,
            shell: if bash.exists() { bash.to_owned() } else { PathBuf::from("/bin/sh") },
            shell_timeout: Duration::from_mins(2),
            shell_timeout_max: Duration::from_mins(10),
            shell_kill_grace: Duration::from_millis(250),
            shell_output_idle: Duration::from_millis(250),
            output_dir: output_dir.into(),
            output_file_max: 64 * 1024 * 1024,
            send_max_bytes: 50_000_000,
        }
    }
}

/// The tools of an owner's session: `read`, `write`, `edit`, `ls`, `bash` and `send`.
///
/// Changes to files are made one after the other within one set, so make one set per workspace.
pub fn owner_tools(
    workspace: ConfinedDir,
    config: ToolConfig,
    sender: Arc<dyn FileSender>,
) -> Vec<Arc<dyn Tool>> {
    let workspace = Workspace::new(workspace);
    let config = Arc::new(config);
    vec![
        Arc::new(ReadTool::new(workspace.clone())),
        Arc::new(WriteTool::new(workspace.clone())),
        Arc::new(EditTool::new(workspace.clone())),
        Arc::new(LsTool::new(workspace.clone())),
        Arc::new(BashTool::new(workspace.clone(), Arc::clone(&config))),
        Arc::new(SendTool::new(workspace, &config, sender)),
    ]
}

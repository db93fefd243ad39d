//! The `send` tool: gives a file to the person at the other end.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use volcanic_agent_core::{TargetId, Tool, ToolContext, ToolOutput, ToolSpec};

use crate::config::ToolConfig;
use crate::workspace::{self, Failure, Workspace};

/// Gives files to the person of a conversation; hosts implement it.
#[async_trait]
pub trait FileSender: Send + Sync + fmt::Debug {
    /// Gives `file` to the person of `target`, with `caption` beside it if there is one.
    ///
    /// # Errors
    ///
    /// Why the file did not reach the person, in words that the model may read: no keys, no URLs.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the run is aborted; the file may have been sent by then.
    async fn send_file(
        &self,
        target: &TargetId,
        file: OutgoingFile,
        caption: Option<&str>,
    ) -> Result<(), String>;
}

/// A file on its way to a person.
#[derive(Debug)]
pub struct OutgoingFile {
    /// The name to show: the last part of the path.
    pub name: String,
    /// The path relative to the workspace, for messages and logs.
    pub path: PathBuf,
    /// The open regular file, at its beginning. Read from this, not from the path: the path may mean another file by now.
    pub file: File,
    /// Its size in bytes when it was opened; a file that grows may have more.
    pub size: u64,
}

/// Sends workspace files to the owner.
#[derive(Debug)]
pub(crate) struct SendTool {
    workspace: Workspace,
    max_bytes: u64,
    sender: Arc<dyn FileSender>,
}

impl SendTool {
    pub(crate) fn new(
        workspace: Workspace,
        config: &ToolConfig,
        sender: Arc<dyn FileSender>,
    ) -> Self {
        Self { workspace, max_bytes: config.send_max_bytes, sender }
    }

    async fn send(&self, arguments: Value, target: &TargetId) -> Result<String, Failure> {
        let Arguments { path, caption } = workspace::arguments(arguments)?;
        let max_bytes = self.max_bytes;
        let file = self.workspace.run(move |workspace| open(workspace, &path, max_bytes)).await?;
        let sent = format!("Sent {} ({} bytes) to the owner.", file.path.display(), file.size);
        let caption = caption.as_deref().filter(|caption| !caption.trim().is_empty());
        match self.sender.send_file(target, file, caption).await {
            Ok(()) => Ok(sent),
            Err(reason) => Err(Failure(format!("the file was not sent: {reason}"))),
        }
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    caption: Option<String>,
}

#[async_trait]
impl Tool for SendTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "send".into(),
            description:
                "Gives a file of the workspace to the owner, as an attachment in the chat.".into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "the file, relative to the workspace" },
                    "caption": { "type": "string", "description": "a short text to show with it" }
                },
                "required": ["path"]
            }),
        }
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> ToolOutput {
        workspace::output(self.send(arguments, &context.target).await)
    }
}

fn open(workspace: &Workspace, given: &str, max_bytes: u64) -> Result<OutgoingFile, Failure> {
    let path = workspace.relative(given)?;
    let file = workspace.directory().open_file(&path)?;
    let size = file
        .metadata()
        .map_err(|error| Failure(format!("failed to read `{}`: {error}", path.display())))?
        .len();
    if size == 0 {
        return Err(Failure(format!("`{}` is empty", path.display())));
    }
    if size > max_bytes {
        return Err(Failure(format!(
            "`{}` has {size} bytes; at most {max_bytes} can be sent",
            path.display()
        )));
    }
    let name =
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok(OutgoingFile { name, path, file, size })
}

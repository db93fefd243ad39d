//! The `write` tool.

use std::path::Path;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use volcanic_agent_core::{Tool, ToolContext, ToolOutput, ToolSpec};

use crate::workspace::{self, Failure, Workspace};

/// Writes whole files.
#[derive(Debug)]
pub(crate) struct WriteTool {
    workspace: Workspace,
}

impl WriteTool {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    content: String,
}

#[async_trait]
impl Tool for WriteTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write".into(),
            description: "Writes a file of the workspace, in place of the old content if there is one. Missing folders \
                          are made. To change a part of a file use edit."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "the file, relative to the workspace" },
                    "content": { "type": "string", "description": "the whole new content" }
                },
                "required": ["path", "content"]
            }),
        }
    }

    async fn call(&self, arguments: Value, _context: ToolContext) -> ToolOutput {
        let arguments = match workspace::arguments::<Arguments>(arguments) {
            Ok(arguments) => arguments,
            Err(Failure(text)) => return ToolOutput::error(text),
        };
        let write = move |workspace: &Workspace| write(workspace, &arguments);
        workspace::output(self.workspace.change(write).await)
    }
}

fn write(workspace: &Workspace, arguments: &Arguments) -> Result<String, Failure> {
    let destination = workspace.destination(&arguments.path)?;
    if let Some(parent) = destination.path.parent()
        && parent != Path::new("")
    {
        workspace.directory().create_dir_all(parent)?;
    }
    let bytes = arguments.content.as_bytes();
    workspace.directory().write_atomic(&destination.path, bytes, destination.mode())?;
    let verb = if destination.existing.is_some() { "Replaced" } else { "Created" };
    Ok(format!("{verb} {} ({} bytes).", arguments.path, bytes.len()))
}

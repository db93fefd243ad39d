//! The `ls` tool.

use std::fmt::Write as _;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use volcanic_agent_core::{Tool, ToolContext, ToolOutput, ToolSpec};
use volcanic_base::{ConfinedEntry, EntryKind};

use crate::truncate::{MAX_BYTES, MAX_LINES};
use crate::workspace::{self, Failure, Workspace};

/// Lists folders.
#[derive(Debug)]
pub(crate) struct LsTool {
    workspace: Workspace,
}

impl LsTool {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: Option<String>,
}

#[async_trait]
impl Tool for LsTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "ls".into(),
            description: "Lists a folder of the workspace, hidden files included. Folders end with /, links with @, \
                          special files with !."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "the folder, relative to the workspace; the workspace itself if left out" }
                }
            }),
        }
    }

    async fn call(&self, arguments: Value, _context: ToolContext) -> ToolOutput {
        let arguments = match workspace::arguments::<Arguments>(arguments) {
            Ok(arguments) => arguments,
            Err(Failure(text)) => return ToolOutput::error(text),
        };
        let list = move |workspace: &Workspace| {
            let path = workspace.relative(arguments.path.as_deref().unwrap_or("."))?;
            Ok(render(&workspace.directory().list(path)?))
        };
        workspace::output(self.workspace.run(list).await)
    }
}

fn render(entries: &[ConfinedEntry]) -> String {
    if entries.is_empty() {
        return "(the folder is empty)".to_owned();
    }
    let mut text = String::new();
    for (shown, entry) in entries.iter().enumerate() {
        let line = line(entry);
        if shown == MAX_LINES || text.len() + line.len() > MAX_BYTES {
            let _ = write!(text, "\n[{shown} of {} entries are shown.]", entries.len());
            break;
        }
        text.push_str(&line);
    }
    text.truncate(text.trim_end_matches('\n').len());
    text
}

/// The entry's line. Control characters of a name are escaped, or one name could look like two.
fn line(entry: &ConfinedEntry) -> String {
    let mut line = String::new();
    for character in entry.name.to_string_lossy().chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push_str(match entry.kind {
        EntryKind::File => "\n",
        EntryKind::Directory => "/\n",
        EntryKind::Link => "@\n",
        EntryKind::Other => "!\n",
    });
    line
}

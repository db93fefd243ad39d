//! The `edit` tool.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use volcanic_agent_core::{Tool, ToolContext, ToolOutput, ToolSpec};

use crate::workspace::{self, Failure, Workspace};

mod replace;

use replace::{Document, Replacement};

/// The largest file that can be edited.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Replaces parts of text files.
#[derive(Debug)]
pub(crate) struct EditTool {
    workspace: Workspace,
}

impl EditTool {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old_text: Option<String>,
    new_text: Option<String>,
    edits: Option<Vec<Replacement>>,
}

impl Arguments {
    /// One pair, a list, or both.
    fn replacements(&mut self) -> Result<Vec<Replacement>, Failure> {
        let mut replacements = self.edits.take().unwrap_or_default();
        match (self.old_text.take(), self.new_text.take()) {
            (Some(old_text), Some(new_text)) => {
                replacements.insert(0, Replacement { old_text, new_text });
            }
            (None, None) => {}
            (Some(_), None) | (None, Some(_)) => {
                return Err(Failure::new("old_text and new_text go together"));
            }
        }
        if replacements.is_empty() {
            return Err(Failure::new("give old_text and new_text, or a list of edits"));
        }
        Ok(replacements)
    }
}

#[async_trait]
impl Tool for EditTool {
    fn spec(&self) -> ToolSpec {
        let old_text = json!({
            "type": "string",
            "description": "the text to replace, exactly as in the file and only once in it"
        });
        let new_text = json!({ "type": "string", "description": "what to put there" });
        ToolSpec {
            name: "edit".into(),
            description: "Replaces parts of a text file of the workspace. Every old_text has to be in the file exactly \
                          once, white space included; add lines around it to make it unique. Several edits of one file \
                          go into one call: all are found in the file as it was, and either all are made or none."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "the file, relative to the workspace" },
                    "old_text": old_text,
                    "new_text": new_text,
                    "edits": {
                        "type": "array",
                        "description": "several replacements, instead of old_text and new_text",
                        "items": {
                            "type": "object",
                            "properties": { "old_text": old_text, "new_text": new_text },
                            "required": ["old_text", "new_text"]
                        }
                    }
                },
                "required": ["path"]
            }),
        }
    }

    async fn call(&self, arguments: Value, _context: ToolContext) -> ToolOutput {
        let prepared = workspace::arguments::<Arguments>(arguments).and_then(|mut arguments| {
            let replacements = arguments.replacements()?;
            Ok((arguments.path, replacements))
        });
        let (path, replacements) = match prepared {
            Ok(prepared) => prepared,
            Err(Failure(text)) => return ToolOutput::error(text),
        };
        let edit = move |workspace: &Workspace| edit(workspace, &path, &replacements);
        workspace::output(self.workspace.change(edit).await)
    }
}

fn edit(
    workspace: &Workspace,
    given: &str,
    replacements: &[Replacement],
) -> Result<String, Failure> {
    let destination = workspace.destination(given)?;
    let bytes = workspace.directory().read_to_limit(&destination.path, MAX_FILE_BYTES)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure(format!("`{given}` is not UTF-8 text; use bash to change it")))?;
    let edited = Document::new(&text).replace(replacements).map_err(Failure)?;
    workspace.directory().write_atomic(
        &destination.path,
        edited.text.as_bytes(),
        destination.mode(),
    )?;
    let lines = edited.lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Ok(match edited.lines.len() {
        1 => format!("Edited {given}: 1 replacement, at line {lines}."),
        count => format!("Edited {given}: {count} replacements, at lines {lines} of the old text."),
    })
}

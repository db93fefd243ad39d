//! The `read` tool.

use std::io::{self, BufRead, BufReader, Read as _};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{Tool, ToolContext, ToolOutput, ToolSpec};

use crate::truncate::{MAX_BYTES, MAX_LINES, keep_head};
use crate::workspace::{self, Failure, Workspace};

/// How much of a file's beginning decides whether it is text.
const PROBE_BYTES: usize = 8 * 1024;

/// Shows text files.
#[derive(Debug)]
pub(crate) struct ReadTool {
    workspace: Workspace,
}

impl ReadTool {
    pub(crate) fn new(workspace: Workspace) -> Self {
        Self { workspace }
    }
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

#[async_trait]
impl Tool for ReadTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read".into(),
            description: format!(
                "Reads a text file of the workspace. At most {MAX_LINES} lines or {} KiB are shown; use offset and \
                 limit to go on.",
                MAX_BYTES / 1024
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "the file, relative to the workspace" },
                    "offset": { "type": "integer", "minimum": 1, "description": "the first line to show, from 1" },
                    "limit": { "type": "integer", "minimum": 1, "description": "how many lines to show" }
                },
                "required": ["path"]
            }),
        }
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> ToolOutput {
        let arguments = match workspace::arguments::<Arguments>(arguments) {
            Ok(arguments) => arguments,
            Err(Failure(text)) => return ToolOutput::error(text),
        };
        let read = move |workspace: &Workspace| read(workspace, &arguments, &context.cancel);
        workspace::output(self.workspace.run(read).await)
    }
}

fn read(
    workspace: &Workspace,
    arguments: &Arguments,
    cancel: &CancellationToken,
) -> Result<String, Failure> {
    let path = workspace.relative(&arguments.path)?;
    let file = workspace.directory().open_file(&path)?;
    let failed =
        |error: io::Error| Failure(format!("failed to read `{}`: {error}", path.display()));
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let beginning = reader.fill_buf().map_err(failed)?;
    if beginning.is_empty() {
        return Ok("(the file is empty)".to_owned());
    }
    if beginning[..beginning.len().min(PROBE_BYTES)].contains(&0) {
        return Ok(format!(
            "(binary file of {size} bytes, not shown; use bash to look into it, or send to give it to the owner)"
        ));
    }
    let mark = if beginning.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
    reader.consume(mark);
    let offset = arguments.offset.unwrap_or(1).max(1);
    let lines = offset - 1;
    let skipped = skip_lines(&mut reader, lines, cancel).map_err(failed)?;
    if skipped < lines || reader.fill_buf().map_err(failed)?.is_empty() {
        return Err(Failure(format!(
            "line {offset} is beyond the end: the file has {skipped} lines"
        )));
    }
    let limit = arguments
        .limit
        .map_or(MAX_LINES, |limit| usize::try_from(limit).unwrap_or(MAX_LINES).clamp(1, MAX_LINES));
    let head = Head::read(&mut reader, limit).map_err(failed)?;
    Ok(head.render(offset, &arguments.path))
}

/// Skips up to `lines` lines and says how many there were; the last one may have no line break.
fn skip_lines(
    reader: &mut impl BufRead,
    lines: u64,
    cancel: &CancellationToken,
) -> io::Result<u64> {
    let mut skipped = 0;
    let mut inside = false;
    while skipped < lines {
        if cancel.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(skipped + u64::from(inside));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        skipped += u64::from(end.is_some());
        inside = end.is_none();
        let used = end.map_or(buffer.len(), |position| position + 1);
        reader.consume(used);
    }
    Ok(skipped)
}

/// The lines that are shown.
struct Head {
    bytes: Vec<u8>,
    lines: u64,
    /// More of the file follows.
    more: bool,
    /// The only line is longer than what can be shown.
    cut_line: bool,
}

impl Head {
    fn read(reader: &mut impl BufRead, limit: usize) -> io::Result<Self> {
        let mut head = Self { bytes: Vec::new(), lines: 0, more: false, cut_line: false };
        let mut line = Vec::new();
        for _ in 0..limit {
            line.clear();
            // One byte for the line break, and one more that shows that the line is too long.
            reader.take(MAX_BYTES as u64 + 2).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(head);
            }
            let content = line.strip_suffix(b"\n").unwrap_or(&line);
            let content = content.strip_suffix(b"\r").unwrap_or(content);
            if content.len() > MAX_BYTES && head.lines == 0 {
                head.bytes.extend_from_slice(&content[..MAX_BYTES]);
                head.lines = 1;
                head.cut_line = true;
                return Ok(head);
            }
            if head.bytes.len() + content.len() > MAX_BYTES {
                head.more = true;
                return Ok(head);
            }
            head.bytes.extend_from_slice(content);
            head.bytes.push(b'\n');
            head.lines += 1;
        }
        head.more = !reader.fill_buf()?.is_empty();
        Ok(head)
    }

    fn render(&self, first: u64, path: &str) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = keep_head(&text, MAX_BYTES);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let last = first + self.lines.saturating_sub(1);
        if self.cut_line {
            return format!(
                "{text}\n\n[Line {first} is longer than {} KiB; only its beginning is shown. Use bash for the rest, e.g. \
                 sed -n {first}p '{path}' | tail -c +{}]",
                MAX_BYTES / 1024,
                text.len() + 1
            );
        }
        if self.more {
            return format!(
                "{text}\n\n[Lines {first}-{last} are shown; the file goes on. Use offset={} to go on.]",
                last + 1
            );
        }
        text.to_owned()
    }
}

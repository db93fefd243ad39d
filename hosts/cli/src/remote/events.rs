//! What an agent reports about a task, as it comes: lines for people, or the events themselves as JSON.

use std::fmt::Write as _;

use anyhow::Result;
use volcanic_a2a_client::{ClientError, sanitize_remote_line};
use volcanic_a2a_types::{
    Artifact, Message, Part, PartContent, StreamResponse, Task, TaskStatus, TaskStatusUpdateEvent,
};

use super::Live;
use crate::{
    output::{Format, note, write_json, write_line},
    screen::visible,
};

/// The longest word of a remote on a line of ours, in characters.
const WORD: usize = 200;

/// How much of it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing: only the outcome counts.
    Nothing,
    /// To people the changes of status, to programs everything.
    Changes,
    /// Everything.
    Everything,
}

/// Tells what an agent reports.
pub(super) struct Reporter<'a> {
    live: &'a Live,
    format: Format,
    told: Told,
    /// The status that was told last.
    last: Option<TaskStatus>,
    /// The trouble that was told last, since anything went well.
    trouble: Option<String>,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(live: &'a Live, format: Format, told: Told) -> Self {
        Self { live, format, told, last: None, trouble: None }
    }

    /// Tells an event of a stream.
    pub(super) fn event(&mut self, event: &StreamResponse) -> Result<()> {
        self.trouble = None;
        let is_new = event.status().is_some_and(|status| self.is_new(status));
        match (self.told, self.format) {
            (Told::Nothing, _) => Ok(()),
            (Told::Changes, Format::Text) if !is_new => Ok(()),
            // A stream begins with the task as it stands, which is told already.
            (Told::Changes, Format::Json)
                if !is_new && matches!(event, StreamResponse::Task(_)) =>
            {
                Ok(())
            }
            (Told::Changes | Told::Everything, Format::Json) => self.print_json(event),
            (Told::Changes, Format::Text) => match event.status() {
                Some(status) => self.print(&status_lines(status)),
                None => Ok(()),
            },
            (Told::Everything, Format::Text) => self.print(&event_lines(event)),
        }
    }

    /// Tells how a task stands that was asked for, if that is news.
    pub(super) fn read(&mut self, task: &Task) -> Result<()> {
        self.trouble = None;
        if !self.is_new(&task.status) {
            return Ok(());
        }
        match (self.told, self.format) {
            (Told::Nothing, _) => Ok(()),
            (_, Format::Text) => self.print(&status_lines(&task.status)),
            (_, Format::Json) => {
                let context = task.context_id.clone().unwrap_or_else(|| "".into());
                let event =
                    TaskStatusUpdateEvent::new(task.id.clone(), context, task.status.clone());
                self.print_json(&event.into())
            }
        }
    }

    /// Says, once, that the agent cannot be asked just now.
    pub(super) fn trouble(&mut self, error: &ClientError) {
        let text = error.to_string();
        self.live.says(&text);
        if self.told != Told::Nothing && self.trouble.as_ref() != Some(&text) {
            self.live.clear();
            note(&format!("({text} It is tried again.)"));
        }
        self.trouble = Some(text);
    }

    /// Whether the status was not told yet; from now on it was.
    fn is_new(&mut self, status: &TaskStatus) -> bool {
        let same = |last: &TaskStatus| {
            let said = |status: &TaskStatus| status.message.as_ref().map(|said| said.parts.clone());
            last.state == status.state && said(last) == said(status)
        };
        if self.last.as_ref().is_some_and(same) {
            return false;
        }
        self.live.says(&on_one_line(status));
        self.last = Some(status.clone());
        true
    }

    fn print(&self, lines: &str) -> Result<()> {
        self.live.clear();
        write_line(lines.trim_end())
    }

    fn print_json(&self, event: &StreamResponse) -> Result<()> {
        self.live.clear();
        write_json(event)
    }
}

fn event_lines(event: &StreamResponse) -> String {
    match event {
        StreamResponse::Task(task) => {
            let context = task.context_id.as_ref().map_or_else(String::new, |context| {
                format!(" (context {})", sanitize_remote_line(context.as_str(), WORD))
            });
            let id = sanitize_remote_line(task.id.as_str(), WORD);
            let mut lines = format!("task {id}{context}\n{}", status_lines(&task.status));
            for artifact in &task.artifacts {
                lines.push_str(&artifact_lines(artifact, ""));
            }
            lines
        }
        StreamResponse::StatusUpdate(event) => status_lines(&event.status),
        StreamResponse::ArtifactUpdate(event) => {
            artifact_lines(&event.artifact, if event.append { ", more of it" } else { "" })
        }
        StreamResponse::Message(message) => format!("message:\n{}", message_lines(message)),
        // A kind of event that is not known yet.
        _ => String::new(),
    }
}

/// The state, with what the agent says about it.
fn status_lines(status: &TaskStatus) -> String {
    let state = sanitize_remote_line(&status.state.label(), WORD);
    let said = status.message.as_ref().map(message_lines).unwrap_or_default();
    match said.trim_end() {
        "" => format!("{state}\n"),
        line if !line.contains('\n') => format!("{state}: {}\n", line.trim_start()),
        _ => format!("{state}:\n{said}"),
    }
}

fn on_one_line(status: &TaskStatus) -> String {
    status_lines(status).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn artifact_lines(artifact: &Artifact, how: &str) -> String {
    let name = artifact.name.as_deref().unwrap_or_else(|| artifact.artifact_id.as_str());
    let mut lines = format!("artifact {}{how}:\n", sanitize_remote_line(name, WORD));
    for part in &artifact.parts {
        push_part(&mut lines, part);
    }
    lines
}

/// What is in a message, each part below the other and indented, so that it is not taken for lines of ours.
pub(super) fn message_lines(message: &Message) -> String {
    let mut lines = String::new();
    for part in &message.parts {
        push_part(&mut lines, part);
    }
    lines
}

fn push_part(lines: &mut String, part: &Part) {
    let name = part.filename.as_deref().unwrap_or("without a name");
    let text = match &part.content {
        PartContent::Text(text) => visible(text),
        PartContent::Data(value) => visible(&value.to_string()),
        PartContent::Raw(bytes) => {
            format!("(file {}, {} bytes)", sanitize_remote_line(name, WORD), bytes.len())
        }
        PartContent::Url(url) => format!("(link {})", sanitize_remote_line(url, 2000)),
        _ => "(a part that cannot be read)".to_owned(),
    };
    for line in text.lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "  {line}");
    }
}

#[cfg(test)]
mod tests {
    use volcanic_a2a_types::TaskState;

    use super::*;

    #[test]
    fn what_a_remote_says_is_indented_and_cannot_steer() {
        let said =
            Message::agent("m", vec![Part::text("one\u{1b}[2J\ncompleted"), Part::text("x")]);
        let status = TaskStatus::new(TaskState::Working).with_message(said);
        assert_eq!(status_lines(&status), "working:\n  one\\u{1b}[2J\n  completed\n  x\n");
        let said = Message::agent("m", vec![Part::text("soon")]);
        let status = TaskStatus::new(TaskState::InputRequired).with_message(said);
        assert_eq!(status_lines(&status), "input-required: soon\n");
        assert_eq!(status_lines(&TaskStatus::new(TaskState::Submitted)), "submitted\n");
    }

    #[test]
    fn files_and_links_are_named() {
        let artifact = Artifact::new(
            "a-1",
            vec![
                Part::raw(vec![1, 2, 3], "image/png", "a\u{202e}b.png"),
                Part::url("https://x.example/"),
                Part::data(serde_json::json!({ "n": 1 })),
            ],
        );
        let wanted = "artifact a-1, more of it:\n  (file a\\u{202e}b.png, 3 bytes)\n  (link https://x.example/)\n  {\"n\":1}\n";
        assert_eq!(artifact_lines(&artifact, ", more of it"), wanted);
    }
}

//! What an agent reports about a task, as it comes: lines for people, or the events themselves as JSON.

use std::{
    borrow::Cow,
    fmt,
    hash::{DefaultHasher, Hasher as _},
    io,
};

use anyhow::Result;
use volcanic_a2a_client::{ClientError, sanitize_remote_line};
use volcanic_a2a_types::{
    Artifact, Message, Part, PartContent, StreamResponse, Task, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};

use super::{Live, heard::Heard};
use crate::{
    output::{Format, note, write_json, write_line},
    screen::write_visible,
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
    /// The status that was told last: its state, and what was said, by its fingerprint.
    last: Option<(TaskState, Option<u64>)>,
    /// The trouble that was told last, since anything went well.
    trouble: Option<String>,
    /// What people have read of the task.
    heard: Heard,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(live: &'a Live, format: Format, told: Told) -> Self {
        Self { live, format, told, last: None, trouble: None, heard: Heard::default() }
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
                // Its words are the outcome, which is told by whoever wants to know it.
                Some(status) if status.state.is_settled() => Ok(()),
                Some(status) => self.print(shown(|out| write_status(out, status))),
                None => Ok(()),
            },
            // Each stream begins with the task as it stands, and a second one may bring nothing new.
            (Told::Everything, Format::Text)
                if !is_new
                    && matches!(event, StreamResponse::Task(task) if self.has_told(task)) =>
            {
                Ok(())
            }
            (Told::Everything, Format::Text) => {
                self.heard.event(event);
                self.print(shown(|out| write_event(out, event)))
            }
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
            (_, Format::Text) => self.print(shown(|out| write_status(out, &task.status))),
            (_, Format::Json) => {
                let context = task.context_id.clone().unwrap_or_else(|| "".into());
                let event =
                    TaskStatusUpdateEvent::new(task.id.clone(), context, task.status.clone());
                self.print_json(&event.into())
            }
        }
    }

    /// Whether people have read all that there is to read in the task.
    pub(super) fn has_told(&self, task: &Task) -> bool {
        self.heard.is_all_of(task)
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
        let now = (status.state.clone(), status.message.as_ref().map(fingerprint));
        if self.last.as_ref() == Some(&now) {
            return false;
        }
        self.live.says(&on_one_line(status));
        self.last = Some(now);
        true
    }

    fn print(&self, lines: impl fmt::Display) -> Result<()> {
        self.live.clear();
        write_line(lines)
    }

    fn print_json(&self, event: &StreamResponse) -> Result<()> {
        self.live.clear();
        write_json(event)
    }
}

/// Tells apart what is said, which may be too long to be kept.
fn fingerprint(message: &Message) -> u64 {
    struct Hashing(DefaultHasher);

    impl io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut hashing = Hashing(DefaultHasher::new());
    // Writing into a hash cannot fail, and what was JSON can be written as such.
    let _ = serde_json::to_writer(&mut hashing, &message.parts);
    hashing.0.finish()
}

/// Shows what `write` writes, piece by piece: it may be too long to be in memory twice.
fn shown(write: impl Fn(&mut dyn fmt::Write) -> fmt::Result) -> impl fmt::Display {
    fmt::from_fn(move |out| write(out))
}

fn write_event(out: &mut dyn fmt::Write, event: &StreamResponse) -> fmt::Result {
    match event {
        StreamResponse::Task(task) => {
            write!(out, "task {}", sanitize_remote_line(task.id.as_str(), WORD))?;
            if let Some(context) = &task.context_id {
                write!(out, " (context {})", sanitize_remote_line(context.as_str(), WORD))?;
            }
            out.write_char('\n')?;
            write_status(out, &task.status)?;
            task.artifacts.iter().try_for_each(|artifact| {
                out.write_char('\n')?;
                write_artifact(out, artifact, "")
            })
        }
        StreamResponse::StatusUpdate(event) => write_status(out, &event.status),
        StreamResponse::ArtifactUpdate(event) => {
            let how = if event.append { ", more of it" } else { "" };
            write_artifact(out, &event.artifact, how)
        }
        StreamResponse::Message(message) => {
            out.write_str("message:")?;
            write_parts(out, &message.parts)
        }
        // A kind of event that is not known yet.
        _ => Ok(()),
    }
}

/// The state, with what the agent says about it.
fn write_status(out: &mut dyn fmt::Write, status: &TaskStatus) -> fmt::Result {
    out.write_str(&sanitize_remote_line(&status.state.label(), WORD))?;
    let parts = status.message.as_ref().map_or(&[][..], |message| &message.parts);
    let lines: usize = parts.iter().map(|part| said(part).lines().count()).sum();
    if lines == 0 {
        return Ok(());
    }
    out.write_char(':')?;
    if lines > 1 {
        return write_parts(out, parts);
    }
    out.write_char(' ')?;
    parts.iter().try_for_each(|part| write_visible(out, said(part).trim()))
}

fn on_one_line(status: &TaskStatus) -> String {
    let state = status.state.label();
    match status.message.as_ref().map(|message| gist(message, WORD)) {
        Some(said) if !said.is_empty() => format!("{state}: {said}"),
        _ => state,
    }
}

/// How what is said begins, in about `max` characters on one line. Whoever shows it makes it harmless and cuts it.
pub(super) fn gist(message: &Message, max: usize) -> String {
    let mut gist = String::new();
    for part in &message.parts {
        for word in said(part).split_whitespace() {
            if gist.len() > 4 * max {
                return gist;
            }
            if !gist.is_empty() {
                gist.push(' ');
            }
            gist.push_str(&word[..word.floor_char_boundary(4 * max)]);
        }
    }
    gist
}

fn write_artifact(out: &mut dyn fmt::Write, artifact: &Artifact, how: &str) -> fmt::Result {
    let name = artifact.name.as_deref().unwrap_or_else(|| artifact.artifact_id.as_str());
    write!(out, "artifact {}{how}:", sanitize_remote_line(name, WORD))?;
    write_parts(out, &artifact.parts)
}

/// Each part below what is there and indented, so that it is not taken for lines of ours.
pub(super) fn write_parts(out: &mut dyn fmt::Write, parts: &[Part]) -> fmt::Result {
    for part in parts {
        for line in said(part).lines() {
            out.write_str("\n  ")?;
            write_visible(out, line)?;
        }
    }
    Ok(())
}

/// The text of a part, or what stands for it.
fn said(part: &Part) -> Cow<'_, str> {
    let name = part.filename.as_deref().unwrap_or("without a name");
    match &part.content {
        PartContent::Text(text) => text.trim_end().into(),
        PartContent::Data(value) => value.as_str().into(),
        PartContent::Raw(bytes) => {
            format!("(file {}, {} bytes)", sanitize_remote_line(name, WORD), bytes.len()).into()
        }
        PartContent::Url(url) => format!("(link {})", sanitize_remote_line(url, 2000)).into(),
        _ => "(a part that cannot be read)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_status(status: &TaskStatus, expected: &str) {
        assert_eq!(shown(|out| write_status(out, status)).to_string(), expected);
    }

    #[test]
    fn what_a_remote_says_is_indented_and_cannot_steer() {
        let said =
            Message::agent("m", vec![Part::text("one\u{1b}[2J\ncompleted\n\n"), Part::text("x")]);
        let status = TaskStatus::new(TaskState::Working).with_message(said);
        check_status(&status, "working:\n  one\\u{1b}[2J\n  completed\n  x");
        let said = Message::agent("m", vec![Part::text(""), Part::text(" soon\n")]);
        let status = TaskStatus::new(TaskState::InputRequired).with_message(said);
        check_status(&status, "input-required: soon");
        check_status(&TaskStatus::new(TaskState::Submitted), "submitted");
    }

    #[test]
    fn what_is_said_is_told_on_one_line_as_far_as_that_goes() {
        let long = format!("one\n two {}", "é".repeat(1000));
        let said = Message::agent("m", vec![Part::text(""), Part::text(long), Part::text("end")]);
        let shown = sanitize_remote_line(&gist(&said, 10), 10);
        assert_eq!(shown, "one two éé…");
        let millions = Message::agent("m", vec![Part::text("a ".repeat(1_000_000))]);
        assert!(gist(&millions, 10).len() < 100);
    }

    #[test]
    fn same_words_have_the_same_fingerprint_and_others_another() {
        let said = |text: &str| fingerprint(&Message::agent(text, vec![Part::text(text)]));
        assert_eq!(said("one"), said("one"));
        assert_ne!(said("one"), said("two"));
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
        let wanted = "artifact a-1, more of it:\n  (file a\\u{202e}b.png, 3 bytes)\n  (link https://x.example/)\n  {\"n\":1}";
        let lines = shown(|out| write_artifact(out, &artifact, ", more of it"));
        assert_eq!(lines.to_string(), wanted);
    }
}

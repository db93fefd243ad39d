//! How outcomes of remote tasks are told: as the result of a tool call, and as a prompt that is delivered.
//!
//! Everything a remote says is data here. It stands inside a frame that it cannot fake: lines that begin like ours are
//! marked, and control characters are shown.

use std::fmt::{self, Write as _};

use volcanic_a2a_types::{ContextId, TaskId, TaskState};

use crate::{SavedOutcome, UnsavedFile, outcome::MAX_FILES};

mod escape;

pub use escape::sanitize_remote_line;

use escape::write_remote_text;

/// How much of a remote's id is shown, in characters.
const MAX_ID: usize = 200;
/// How much of the reason why a file is not saved is shown, in characters.
const MAX_REASON: usize = 300;
/// How much of a link is shown, in characters.
const MAX_LINK: usize = 2000;
/// What is said for a settled task without a word in it.
const NO_TEXT: &str = "The agent gave no text.";

/// Why a watch ended without an outcome of its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// The watch cannot go on.
    Stopped,
    /// There was no outcome in time, or it cannot be read.
    NoResult,
    /// The task was canceled from here.
    Canceled,
}

impl NoticeKind {
    /// The word in the frame.
    pub fn label(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::NoResult => "no result",
            Self::Canceled => "canceled",
        }
    }
}

/// Tells an outcome, or where an unsettled task stands, as the result of a tool call. A reply without a task is told
/// as such.
pub fn render_result(agent: &str, outcome: &SavedOutcome) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write_result(&mut text, agent, outcome);
    text
}

/// As [`render_result`], piece by piece: the text of an outcome may be too long to have it in memory twice.
///
/// # Errors
///
/// What `out` fails with.
pub fn write_result(out: &mut dyn fmt::Write, agent: &str, outcome: &SavedOutcome) -> fmt::Result {
    let context = outcome
        .context_id
        .as_ref()
        .map_or(String::new(), |context| format!(" (context {})", id(context.as_str())));
    match &outcome.task_id {
        Some(task) => {
            let state = label(outcome.state.as_ref());
            write!(out, "Agent \"{agent}\": task {}{context} is {state}.", id(task.as_str()))?;
        }
        None => write!(out, "Agent \"{agent}\" replied{context}:")?,
    }
    write_body(out, agent, outcome)
}

/// Tells an outcome as a prompt that is delivered into the conversation.
pub fn render_delivery(agent: &str, outcome: &SavedOutcome) -> String {
    let kind = if outcome.question { "question" } else { "result" };
    let mut text = head(
        kind,
        agent,
        outcome.task_id.as_ref(),
        outcome.context_id.as_ref(),
        &label(outcome.state.as_ref()),
    );
    // Writing into a string cannot fail.
    let _ = write_body(&mut text, agent, outcome);
    text
}

/// Tells, in the same frame, that a watch ended without an outcome. `text` says why.
pub fn render_notice(
    agent: &str,
    task_id: &TaskId,
    context_id: Option<&ContextId>,
    kind: NoticeKind,
    text: &str,
) -> String {
    let mut notice = head("result", agent, Some(task_id), context_id, kind.label());
    let _ = write_lines(&mut notice, text);
    notice
}

fn head(
    kind: &str,
    agent: &str,
    task_id: Option<&TaskId>,
    context_id: Option<&ContextId>,
    state: &str,
) -> String {
    let mut head = format!("[A2A {kind} from \"{agent}\"");
    if let Some(task) = task_id {
        push(&mut head, format_args!(", task {}", id(task.as_str())));
    }
    push(&mut head, format_args!(" ({state})]"));
    if let Some(context) = context_id {
        push(&mut head, format_args!("\nContext: {}", id(context.as_str())));
    }
    head
}

/// Answer, hint, files and links: the same in both frames.
fn write_body(out: &mut dyn fmt::Write, agent: &str, outcome: &SavedOutcome) -> fmt::Result {
    let is_settled = outcome.state.as_ref().is_none_or(TaskState::is_settled);
    if !outcome.answer.trim().is_empty() {
        write_lines(out, &outcome.answer)?;
    } else if is_settled {
        write_lines(out, NO_TEXT)?;
    }
    match &outcome.answer_file {
        Some(file) => {
            write!(out, "\n(The text is longer than this. All of it is in {file}.)")?;
        }
        None if outcome.is_cut => out.write_str("\n(The text is longer than this.)")?,
        None => {}
    }
    if let (true, Some(task)) = (outcome.question, &outcome.task_id) {
        let task = id(task.as_str());
        write!(out, "\nAnswer with action=send, agent={agent} and taskId={task}.")?;
    }
    let files: Vec<&str> =
        outcome.answer_file.iter().chain(&outcome.saved).map(String::as_str).collect();
    if !files.is_empty() {
        write!(out, "\nFiles: {}", files.join(", "))?;
    }
    write_unsaved(out, &outcome.unsaved)?;
    if !outcome.skipped.is_empty() {
        let names = shown(&outcome.skipped, 0, MAX_ID);
        write!(out, "\nFiles skipped (over {} bytes): {names}", outcome.max_file_bytes)?;
    }
    if outcome.more_files > 0 {
        let more = outcome.more_files;
        write!(out, "\nFiles skipped ({more} more): only the first {MAX_FILES} are taken")?;
    }
    if outcome.unreadable > 0 {
        write!(out, "\nFiles skipped ({} unreadable)", outcome.unreadable)?;
    }
    if !outcome.links.is_empty() || outcome.more_links > 0 {
        write!(out, "\nLinks: {}", shown(&outcome.links, outcome.more_links, MAX_LINK))?;
    }
    Ok(())
}

/// Files that could not be saved, those with the same reason together.
fn write_unsaved(out: &mut dyn fmt::Write, unsaved: &[UnsavedFile]) -> fmt::Result {
    for files in unsaved.chunk_by(|one, other| one.reason == other.reason) {
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        let reason = files.first().map_or("", |file| file.reason.as_str());
        let reason = sanitize_remote_line(reason, MAX_REASON);
        write!(out, "\nFiles not saved: {} ({reason})", names.join(", "))?;
    }
    Ok(())
}

/// The first of a list, and how many there are beyond those; `more` of them are not in the list.
fn shown(list: &[String], more: usize, max: usize) -> String {
    let (first, rest) = list.split_at(list.len().min(MAX_FILES));
    let mut shown: Vec<String> = first.iter().map(|text| sanitize_remote_line(text, max)).collect();
    match rest.len() + more {
        0 => {}
        more if shown.is_empty() => shown.push(format!("{more} that are not listed")),
        more => shown.push(format!("and {more} more")),
    }
    shown.join(", ")
}

/// A remote's lines below what is there.
fn write_lines(out: &mut dyn fmt::Write, lines: &str) -> fmt::Result {
    out.write_char('\n')?;
    write_remote_text(out, lines)
}

fn push(text: &mut String, arguments: fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = text.write_fmt(arguments);
}

fn id(id: &str) -> String {
    sanitize_remote_line(id, MAX_ID)
}

fn label(state: Option<&TaskState>) -> String {
    state.map_or_else(|| "replied".to_owned(), |state| sanitize_remote_line(&state.label(), 40))
}

#[cfg(test)]
mod tests;

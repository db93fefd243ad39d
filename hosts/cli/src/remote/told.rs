//! How a task is told: the frame for people, or the task itself as JSON.

use std::{collections::BTreeMap, fmt, mem};

use anyhow::Result;
use volcanic_a2a_client::{
    RemoteAgent, SavedOutcome, TaskOutcome, sanitize_remote_line, write_result,
};
use volcanic_a2a_types::{Message, Task, TaskState};

use super::{Contact, events::write_parts};
use crate::{
    exit::Exit,
    output::{Format, note, write_json, write_line},
};

/// What stands for a text that people have just read.
const ABOVE: &str = "(The text is above.)";

/// Whether the text of a task is known to whoever is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    New,
    /// It was told as it came.
    Told,
}

impl Contact<'_> {
    /// Tells how a task stands; the files of a settled one are saved, unless JSON is wanted, which holds them. Of its history
    /// people see at most as many messages as they asked for: agents send their own words back to them unasked.
    pub(super) fn tell(&self, remote: &RemoteAgent, task: Task, history: u32) -> Result<Exit> {
        self.tell_rest(remote, task, history, Text::New)
    }

    /// The same where the text of the task may have been told already.
    pub(super) fn tell_rest(
        &self,
        remote: &RemoteAgent,
        mut task: Task,
        history: u32,
        text: Text,
    ) -> Result<Exit> {
        let (exit, is_settled) = (exit_of(&task.status.state), task.status.state.is_settled());
        if self.format == Format::Json {
            write_json(&BTreeMap::from([("task", task)]))?;
            return Ok(exit);
        }
        let id = sanitize_remote_line(task.id.as_str(), 200);
        let messages = mem::take(&mut task.history);
        let mut outcome = remote.outcome_of(task, self.max_file_bytes);
        if !is_settled {
            // Files of a task that goes on are not final.
            outcome.files.clear();
            outcome.skipped.clear();
            outcome.more_files = 0;
        }
        let (is_question, is_saved) = self.show(outcome, remote, text)?;
        let wanted = usize::try_from(history).unwrap_or(usize::MAX);
        show_history(&messages[messages.len().saturating_sub(wanted)..])?;
        if exit == Exit::TimedOut {
            let command = self.command("watch", &[&id]);
            note(&format!("The agent works on. To follow it: {command}"));
        }
        if is_question {
            let command = self.command("send", &["TEXT", "--task", &id]);
            note(&format!("To answer: {command}"));
        }
        Ok(if exit == Exit::Done && !is_saved { Exit::Failed } else { exit })
    }

    /// Tells that an agent has an answer to its question and has not gone on since.
    pub(super) fn tell_unheard(&self, remote: &RemoteAgent, task: &Task) -> Result<Exit> {
        if self.format == Format::Json {
            write_json(&BTreeMap::from([("task", task)]))?;
            return Ok(Exit::TimedOut);
        }
        let id = sanitize_remote_line(task.id.as_str(), 200);
        let agent = remote.name();
        write_line(format!(
            "Agent \"{agent}\": task {id} has the answer and has not gone on yet."
        ))?;
        note(&format!("To ask how it stands: {}", self.command("status", &[&id])));
        Ok(Exit::TimedOut)
    }

    /// Tells a reply that is no task.
    pub(super) fn tell_message(&self, remote: &RemoteAgent, message: Message) -> Result<Exit> {
        if self.format == Format::Json {
            write_json(&BTreeMap::from([("message", message)]))?;
            return Ok(Exit::Done);
        }
        let outcome = remote.outcome_of_reply(message, self.max_file_bytes);
        let (_, is_saved) = self.show(outcome, remote, Text::New)?;
        Ok(if is_saved { Exit::Done } else { Exit::Failed })
    }

    /// Shows an outcome, and returns whether it is a question and whether its files are saved.
    fn show(&self, outcome: TaskOutcome, remote: &RemoteAgent, text: Text) -> Result<(bool, bool)> {
        let agent = remote.name();
        let mut saved = outcome.save(&self.workspace, agent);
        let (is_question, is_saved) = (saved.question, saved.unsaved.is_empty());
        if text == Text::Told {
            ABOVE.clone_into(&mut saved.answer);
            saved.is_cut = false;
            let whole = saved.answer_file.take();
            saved.saved.splice(0..0, whole);
        } else if saved.answer_file.is_none() {
            // What no file holds is shown whole.
            saved.answer = outcome.answer;
            saved.is_cut = false;
        }
        // How a question is answered with the tool is of no use here.
        let saved = SavedOutcome { question: false, ..saved };
        write_line(fmt::from_fn(|out| write_result(out, agent, &saved)))?;
        Ok((is_question, is_saved))
    }
}

fn show_history(history: &[Message]) -> Result<()> {
    if history.is_empty() {
        return Ok(());
    }
    write_line("History:")?;
    for message in history {
        let role = message.role.as_str().trim_start_matches("ROLE_").to_lowercase();
        let role = sanitize_remote_line(&role, 40);
        write_line(fmt::from_fn(|out| {
            write!(out, "{role}:")?;
            write_parts(out, &message.parts)
        }))?;
    }
    Ok(())
}

/// How the program ends with a task in this state.
pub(super) fn exit_of(state: &TaskState) -> Exit {
    match state {
        TaskState::Completed => Exit::Done,
        TaskState::InputRequired | TaskState::AuthRequired => Exit::NeedsInput,
        state if state.is_terminal() => Exit::Failed,
        _ => Exit::TimedOut,
    }
}

//! `volcanic send`, `status` and `cancel`: one task of one agent.

use std::io::{Write as _, stderr, stdout};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use volcanic_a2a_client::{
    ClientError, RemoteAgent, SavedOutcome, read_attachments, render_result, sanitize_remote_line,
};
use volcanic_a2a_types::{
    HOPS_METADATA, Message, MessageId, Part, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, Task, TaskId, TaskState,
};
use volcanic_base::{Chance, ConfinedDir};

use super::{Caller, fail, find, waiting::wait, write_json};
use crate::{
    args::{AgentArgs, SendArgs, StatusArgs, TaskArgs},
    config::CliConfig,
    exit::{Exit, OrUsage as _, UsageError},
    workspace,
};

/// Sends a message and waits for the outcome.
///
/// # Errors
/// When the command line or a file of the user's is wrong; what the agent does is an [`Exit`].
pub(crate) async fn send(args: &SendArgs, config: &CliConfig) -> Result<Exit> {
    let workspace = workspace::open(&args.to.at.workspace)?;
    let caller = Caller::new(config, &args.to.at.workspace)?;
    let entry = find(&args.to)?;
    if args.text.trim().is_empty() && args.files.is_empty() {
        return Err(UsageError::new("the message is empty: say something, or attach a file").into());
    }
    let mut parts = vec![Part::text(args.text.clone())];
    parts.extend(read_attachments(&workspace, &args.files, caller.max_file_bytes).or_usage()?);
    let sent = async {
        let remote = caller.connect(&entry).await?;
        let request = request(args, parts, &remote).await?;
        let response = remote.send_message(request).await?;
        Ok::<_, ClientError>((remote, response))
    };
    let (remote, response) = match sent.await {
        Ok(sent) => sent,
        Err(error) => return fail(&error, args.json),
    };
    match response {
        SendMessageResponse::Message(message) => {
            if args.json {
                write_json(&json!({ "message": message }))?;
            } else {
                let outcome = remote.outcome_of_reply(&message, caller.max_file_bytes);
                show(outcome.save(&workspace, remote.name())?, remote.name())?;
            }
            Ok(Exit::Done)
        }
        SendMessageResponse::Task(task) => match wait(&remote, task, args.wait).await {
            Ok(task) => Told { caller: &caller, workspace: &workspace, to: &args.to }
                .tell(&remote, &task, args.json),
            Err(error) => fail(&error, args.json),
        },
        _ => bail!("agent \"{}\" answered with neither a task nor a message", remote.name()),
    }
}

async fn request(
    args: &SendArgs,
    parts: Vec<Part>,
    remote: &RemoteAgent,
) -> Result<SendMessageRequest, ClientError> {
    let mut message = Message::user(MessageId::from(Chance::from_os().uuid().to_string()), parts);
    message.context_id = args.context.clone().map(Into::into);
    if let Some(task) = &args.task {
        let task_id = TaskId::from(task.clone());
        if message.context_id.is_none() {
            // Some agents lose the context of a follow-up that names only its task.
            message.context_id = remote.get_task(&task_id, Some(0)).await?.context_id;
        }
        message.task_id = Some(task_id);
    }
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = true;
    let mut request = SendMessageRequest::new(message);
    request.configuration = Some(configuration);
    request.metadata.get_or_insert_default().insert(HOPS_METADATA.to_owned(), json!(1));
    Ok(request)
}

/// Asks about a task.
///
/// # Errors
/// As [`send`].
pub(crate) async fn status(args: &StatusArgs, config: &CliConfig) -> Result<Exit> {
    let TaskArgs { at, task, json } = &args.of;
    let workspace = workspace::open(&at.at.workspace)?;
    let caller = Caller::new(config, &at.at.workspace)?;
    let entry = find(at)?;
    let asked = async {
        let remote = caller.connect(&entry).await?;
        let task = remote.get_task(&TaskId::from(task.clone()), Some(0)).await?;
        let task = wait(&remote, task, args.wait.unwrap_or_default()).await?;
        Ok::<_, ClientError>((remote, task))
    };
    match asked.await {
        Ok((remote, task)) => {
            Told { caller: &caller, workspace: &workspace, to: at }.tell(&remote, &task, *json)
        }
        Err(error) => fail(&error, *json),
    }
}

/// Cancels a task.
///
/// # Errors
/// As [`send`].
pub(crate) async fn cancel(args: &TaskArgs, config: &CliConfig) -> Result<Exit> {
    let workspace = workspace::open(&args.at.at.workspace)?;
    let caller = Caller::new(config, &args.at.at.workspace)?;
    let entry = find(&args.at)?;
    let asked = async {
        let remote = caller.connect(&entry).await?;
        let task = remote.cancel_task(&TaskId::from(args.task.clone())).await?;
        Ok::<_, ClientError>((remote, task))
    };
    match asked.await {
        Ok((remote, task)) => {
            let told = Told { caller: &caller, workspace: &workspace, to: &args.at };
            let exit = told.tell(&remote, &task, args.json)?;
            // Here this is what was wanted.
            Ok(if task.status.state == TaskState::Canceled { Exit::Done } else { exit })
        }
        Err(error) => fail(&error, args.json),
    }
}

/// How a task is told.
struct Told<'a> {
    caller: &'a Caller,
    workspace: &'a ConfinedDir,
    to: &'a AgentArgs,
}

impl Told<'_> {
    /// Tells how a task stands; the files of a settled one are saved, unless JSON is wanted, which holds them.
    fn tell(&self, remote: &RemoteAgent, task: &Task, as_json: bool) -> Result<Exit> {
        let exit = match &task.status.state {
            TaskState::Completed => Exit::Done,
            TaskState::InputRequired | TaskState::AuthRequired => Exit::NeedsInput,
            state if state.is_terminal() => Exit::Failed,
            _ => Exit::TimedOut,
        };
        if as_json {
            write_json(&json!({ "task": task }))?;
            return Ok(exit);
        }
        let outcome = remote.outcome_of(task, self.caller.max_file_bytes);
        let is_question = show(outcome.save(self.workspace, remote.name())?, remote.name())?;
        let agent = as_argument(&self.to.agent);
        let task = as_argument(&sanitize_remote_line(task.id.as_str(), 200));
        if exit == Exit::TimedOut {
            writeln!(
                stderr(),
                "The agent works on. To wait for it: volcanic status {agent} {task} --wait 10m"
            )?;
        }
        if is_question {
            writeln!(stderr(), "To answer: volcanic send {agent} --task {task} 'TEXT'")?;
        }
        Ok(exit)
    }
}

/// Shows an outcome, and returns whether it is a question.
fn show(outcome: SavedOutcome, agent: &str) -> Result<bool> {
    // How a question is answered with the tool is of no use here.
    let told = SavedOutcome { question: false, ..outcome };
    writeln!(stdout(), "{}", render_result(agent, &told))
        .context("failed to write to the screen")?;
    Ok(outcome.question)
}

/// The text as a word of a command that people may copy: what a remote calls its task is one argument at most.
fn as_argument(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_remote_calls_a_task_is_one_word_of_a_command() {
        assert_eq!(as_argument("5c1e-b_2"), "5c1e-b_2");
        assert_eq!(as_argument("http://a.example:1/b"), "http://a.example:1/b");
        assert_eq!(as_argument("x; it's $(bad)"), r"'x; it'\''s $(bad)'");
        assert_eq!(as_argument(""), "''");
    }
}

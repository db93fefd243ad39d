//! `volcanic status`, `cancel` and `tasks`: what an agent says about its tasks.

use std::{collections::HashSet, fmt::Write as _};

use anyhow::Result;
use volcanic_a2a_client::{TaskPage, UnreadableListed, sanitize_remote_line};
use volcanic_a2a_types::{A2aErrorKind, ListTasksRequest, Task, TaskId, TaskState};

use super::{
    Contact,
    events::{Reporter, Told, gist},
    following::Following,
    waiting::after,
};
use crate::{
    args::{StatusArgs, TaskArgs, TasksArgs},
    config::CliConfig,
    exit::Exit,
    output::{Format, note, write_json, write_line},
};

/// The most pages that are read in one go.
const MAX_PAGES: usize = 100;

/// The longest word of a remote on a line of ours, in characters.
const WORD: usize = 200;

/// How much of what a task says is shown in a list, in characters.
const SAID: usize = 80;

/// Asks about a task.
///
/// # Errors
/// A failure to ask; when the command line is wrong, a usage error.
pub(crate) async fn status(args: &StatusArgs, config: &CliConfig, format: Format) -> Result<Exit> {
    let contact = Contact::open(&args.of.at, config, format)?;
    // No time at all is for how the task stands.
    let wait = args.wait.filter(|wait| !wait.is_zero());
    let deadline = wait.and_then(after);
    let id = TaskId::from(args.of.task.as_str());
    let (remote, task) = contact.read(&id, args.history, deadline).await?;
    let reporter = Reporter::new(&contact.live, format, Told::Nothing);
    let mut following = Following {
        remote: &remote,
        reporter,
        events: None,
        pause: args.poll_interval,
        history: args.history,
        task,
        answered: None,
    };
    if wait.is_some() {
        contact.follow(&mut following, deadline).await?;
    }
    contact.tell(&remote, following.task, args.history)
}

/// Cancels a task.
///
/// # Errors
/// As [`status`].
pub(crate) async fn cancel(args: &TaskArgs, config: &CliConfig, format: Format) -> Result<Exit> {
    let contact = Contact::open(&args.at, config, format)?;
    let id = TaskId::from(args.task.as_str());
    let asked = contact.ask(async |remote| {
        let task = match remote.cancel_task(&id).await {
            // Some agents refuse what is done already.
            Err(refusal) if refusal.rpc_kind() == Some(A2aErrorKind::TaskNotCancelable) => {
                let task = remote.get_task(&id, Some(0)).await.ok();
                task.filter(|task| task.status.state == TaskState::Canceled).ok_or(refusal)
            }
            canceled => canceled,
        };
        Ok((remote, task?))
    });
    let (remote, task) = asked.await?;
    let is_canceled = task.status.state == TaskState::Canceled;
    let exit = contact.tell(&remote, task, 0)?;
    // Here this is what was wanted, and a task that was done before is not.
    Ok(match exit {
        _ if is_canceled => Exit::Done,
        Exit::Done => Exit::Failed,
        exit => exit,
    })
}

/// Lists tasks, page by page.
///
/// # Errors
/// As [`status`].
pub(crate) async fn tasks(args: &TasksArgs, config: &CliConfig, format: Format) -> Result<Exit> {
    let contact = Contact::open(&args.of, config, format)?;
    let mut request = request(args);
    let remote = contact.bounded(contact.connect()).await?;
    let (mut listed, mut pages) = (0, HashSet::new());
    loop {
        let page = contact.bounded(remote.list_tasks(request.clone())).await?;
        listed += page.tasks.len();
        match format {
            Format::Json => write_json(&page)?,
            Format::Text => write_page(&page)?,
        }
        listed += page.unreadable.len();
        page.unreadable.iter().for_each(|task| note(&unread(task)));
        let token = page.next_page_token;
        let is_new = !token.is_empty() && pages.insert(token.clone());
        if args.all && is_new && pages.len() < MAX_PAGES {
            request.page_token = Some(token);
            continue;
        }
        if format == Format::Text {
            say_rest(&contact, args, listed, page.total_size, &token)?;
        }
        return Ok(Exit::Done);
    }
}

fn request(args: &TasksArgs) -> ListTasksRequest {
    let mut request = ListTasksRequest::default();
    request.context_id = args.context.clone().map(Into::into);
    request.status = args.status.map(Into::into);
    request.status_timestamp_after = args.since;
    request.page_size = args.page_size;
    request.page_token.clone_from(&args.page_token);
    request.history_length = Some(i32::try_from(args.history).unwrap_or(i32::MAX));
    request.include_artifacts = args.artifacts.then_some(true);
    request
}

fn write_page(page: &TaskPage) -> Result<()> {
    page.tasks.iter().try_for_each(|task| write_line(line(task)))
}

/// Says that a task of the page is not shown.
fn unread(task: &UnreadableListed) -> String {
    let id = task.task_id.as_ref().map_or("without an id", TaskId::as_str);
    let (id, reason) = (sanitize_remote_line(id, WORD), sanitize_remote_line(&task.reason, WORD));
    format!("(A task cannot be read: {id}: {reason})")
}

/// A task on a line: its id first, for programs that cut.
fn line(task: &Task) -> String {
    let word = |text: &str| sanitize_remote_line(text, WORD);
    let mut line = format!("{}  {}", word(task.id.as_str()), word(&task.status.state.label()));
    if let Some(at) = task.status.timestamp {
        // Writing to a string cannot fail.
        let _ = write!(line, "  {at}");
    }
    if let Some(context) = &task.context_id {
        let _ = write!(line, "  (context {})", word(context.as_str()));
    }
    let said = task.status.message.as_ref().map(|message| gist(message, SAID)).unwrap_or_default();
    if !said.is_empty() {
        let _ = write!(line, "  {}", sanitize_remote_line(&said, SAID));
    }
    line
}

/// Says what was not listed, and how it can be.
fn say_rest(
    contact: &Contact<'_>,
    args: &TasksArgs,
    listed: usize,
    total: i32,
    token: &str,
) -> Result<()> {
    if token.is_empty() {
        return if listed == 0 { write_line("No tasks.") } else { Ok(()) };
    }
    let mut rest = Vec::new();
    let mut option = |name: &str, value: &str| rest.extend([name.to_owned(), value.to_owned()]);
    if let Some(context) = &args.context {
        option("--context", context);
    }
    if let Some(status) = args.status {
        option("--status", &TaskState::from(status).label());
    }
    if let Some(since) = args.since {
        option("--since", &since.to_string());
    }
    if let Some(size) = args.page_size {
        option("--page-size", &size.to_string());
    }
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    // Not every agent counts.
    let of = usize::try_from(total).ok().filter(|total| *total > listed);
    let of = of.map_or_else(String::new, |total| format!(" of {total}"));
    note(&format!("({listed}{of} tasks. {})", contact.next_page("tasks", &rest, token)));
    Ok(())
}

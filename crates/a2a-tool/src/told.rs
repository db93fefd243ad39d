//! How ends and errors of the registry read to the model.

use volcanic_a2a_client::{AGENTS_FILE, render_result, sanitize_remote_line};
use volcanic_a2a_types::{ContextId, TaskId, nearest_name};
use volcanic_a2a_watch::{AgentError, SendEnd, SendError, SettleTicket, TaskError, TaskReport};
use volcanic_agent_core::{PromptKey, ToolOutput};

use crate::listing::file_error;

/// How much of an id is shown, in characters.
const MAX_ID: usize = 200;

/// A result that settles what `ticket` stands for.
fn settling(mut output: ToolOutput, ticket: Option<SettleTicket>) -> ToolOutput {
    if let Some(ticket) = ticket {
        output.delivery_key = Some(PromptKey::new(ticket.delivery_key()));
        output.on_committed = Some(Box::new(move || ticket.confirm()));
    }
    output
}

/// Tells how a send ended.
pub(crate) fn send(agent: &str, end: Result<SendEnd, SendError>) -> ToolOutput {
    match end {
        Ok(SendEnd::Settled { outcome, settle }) => {
            settling(ToolOutput::text(render_result(agent, &outcome)), settle)
        }
        Ok(SendEnd::Replied { reply, settle, .. }) => {
            settling(ToolOutput::text(render_result(agent, &reply)), Some(settle))
        }
        Ok(SendEnd::HandedOver { task_id, context_id, state }) => {
            ToolOutput::text(handed_over(agent, &task_id, context_id.as_ref(), &state))
        }
        Ok(SendEnd::Left) => ToolOutput::error(format!(
            "The run was stopped. The message to agent \"{agent}\" goes on its way, and what comes of it will be delivered \
             to this conversation."
        )),
        Err(SendError::Unknown { agent, reason, settle }) => settling(
            ToolOutput::error(format!(
                "{}. Agent \"{agent}\" may or may not have received the message; it is not sent again by itself, and \
                 no task of it is followed.",
                reason.trim_end_matches('.')
            )),
            Some(settle),
        ),
        Err(SendError::ContextBusy { agent, task_id }) => ToolOutput::error(format!(
            "Agent \"{agent}\" is still busy with task {} in that context. Its result will be delivered to this \
             conversation by itself; send again after that.",
            id(task_id.as_str())
        )),
        Err(SendError::Unattended { limit }) => ToolOutput::error(format!(
            "Nothing was sent: {limit} messages to agents went out since the user wrote last. Tell the user where things \
             stand and let them decide."
        )),
        Err(SendError::TaskBusy { task_id }) => ToolOutput::error(busy(&task_id)),
        Err(SendError::Agent(error)) => ToolOutput::error(agent_error(&error)),
        Err(error @ (SendError::Store(_) | SendError::Stopped)) => {
            ToolOutput::error(format!("The message was not sent: {error}."))
        }
        Err(error) => ToolOutput::error(error.to_string()),
    }
}

/// Tells where a task stands.
pub(crate) fn report(agent: &str, report: Result<TaskReport, TaskError>) -> ToolOutput {
    let report = match report {
        Ok(report) => report,
        Err(error) => return ToolOutput::error(task_error(&error)),
    };
    let mut text = String::new();
    if let Some(refused) = &report.refused {
        text.push_str("It was not canceled. ");
        text.push_str(refused);
        text.push('\n');
    }
    text.push_str(&render_result(agent, &report.outcome));
    if report.watched && !report.settled {
        text.push_str("\nIts result will be delivered to this conversation when it is ready.");
    }
    settling(ToolOutput::text(text), report.settle)
}

fn handed_over(
    agent: &str,
    task_id: &TaskId,
    context_id: Option<&ContextId>,
    state: &str,
) -> String {
    let context = context_id
        .map_or_else(String::new, |context| format!(" (context {})", id(context.as_str())));
    let rest = match state {
        "submitted" | "working" => "It is still running: the result",
        _ => "Its result",
    };
    format!(
        "Agent \"{agent}\": task {}{context} is {}.\n{rest} will be delivered to this conversation when it is ready.",
        id(task_id.as_str()),
        id(state)
    )
}

fn task_error(error: &TaskError) -> String {
    match error {
        TaskError::Agent { source, watched } => {
            let mut text = agent_error(source);
            if *watched {
                // Errors of libraries and words of agents end as they like.
                let ends = text.ends_with(['.', '!', '?']);
                text.push_str(if ends { " " } else { ". " });
                text.push_str("The task is still watched.");
            }
            text
        }
        TaskError::Busy { task_id } => busy(task_id),
        TaskError::Stopped => format!("The task was not asked for: {error}."),
        _ => error.to_string(),
    }
}

fn agent_error(error: &AgentError) -> String {
    match error {
        AgentError::Unknown { agent, known } if known.is_empty() => {
            format!("Unknown agent \"{}\". No agents are configured.", id(agent))
        }
        AgentError::Unknown { agent, known } => {
            let meant = nearest_name(agent, known.iter().map(String::as_str));
            let meant =
                meant.map_or_else(String::new, |meant| format!(" Did you mean \"{meant}\"?"));
            format!(
                "Unknown agent \"{}\". Configured agents: {}.{meant}",
                id(agent),
                known.join(", ")
            )
        }
        AgentError::Skipped { agent, reason } => format!(
            "Agent \"{}\" cannot be used until its entry in {AGENTS_FILE} is mended: {reason}.",
            id(agent)
        ),
        AgentError::Moved { agent, origin } => format!(
            "The entry of agent \"{}\" in {AGENTS_FILE} points to another server than {}, where the task runs, so nothing \
             was asked there.",
            id(agent),
            id(origin)
        ),
        AgentError::File(error) => file_error(error),
        AgentError::Client(error) => error.to_string(),
        _ => error.to_string(),
    }
}

fn busy(task_id: &TaskId) -> String {
    format!(
        "Another call is dealing with task {} just now; wait for its result.",
        id(task_id.as_str())
    )
}

fn id(id: &str) -> String {
    sanitize_remote_line(id, MAX_ID)
}

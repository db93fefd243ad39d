//! The jobs behind `agents`, `status` and `cancel`.

use std::path::Path;

use futures::StreamExt as _;

use volcanic_a2a_client::{ClientError, RemoteAgent, SavedOutcome};
use volcanic_a2a_types::{A2aErrorKind, Task};
use volcanic_base::Secret;

use super::context::Context;
use super::context::stays_at;
use super::reading::save_outcome;
use crate::machine::{SettledState, is_answered};
use crate::order::{AgentError, AgentReport, AgentsError, AgentsReport, TaskError, TaskQuery};
use crate::record::WatchRecord;

/// Cards fetched at once for one listing.
const CARDS_AT_ONCE: usize = 16;

/// What a caller wants with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Status,
    Cancel,
}

/// What was found.
pub(super) struct Asked {
    /// The state, as it is told when it is settled.
    pub(super) state: SettledState,
    /// Whether the task is settled.
    pub(super) settled: bool,
    /// The task, its files saved when it is settled.
    pub(super) outcome: Box<SavedOutcome>,
    /// How the agent refused to cancel.
    pub(super) refused: Option<String>,
}

/// Asks for a task, or asks to cancel it, where it is `watched`, if it is. `tokens` are what the agent may repeat.
pub(super) async fn ask(
    context: &Context,
    query: &TaskQuery,
    ask: Ask,
    watched: Option<&WatchRecord>,
    tokens: &[Secret],
) -> Result<Asked, TaskError> {
    // Whether it is watched then is left for the caller of this to fill in.
    let agent = |source| TaskError::Agent { source, watched: false };
    let entry = context.entry(&query.workspace, &query.agent).await.map_err(agent)?;
    if let Some(watched) = watched.filter(|watched| !watched.origin.is_empty()) {
        stays_at(&entry, &watched.origin).map_err(agent)?;
    }
    let remote = context.connect(&query.workspace, &entry).await;
    let remote = remote.map_err(|error| agent(AgentError::Client(error)))?;
    let remote = remote.concealing(tokens);
    let mut refused = None;
    let task = match ask {
        Ask::Status => remote.get_task(&query.task_id, Some(0)).await,
        Ask::Cancel => match remote.cancel_task(&query.task_id).await {
            // Whatever else it says to a cancel, the task is there to be read.
            Err(error @ ClientError::Refused { .. })
                if error.rpc_kind() != Some(A2aErrorKind::TaskNotFound) =>
            {
                refused = Some(error.to_string());
                remote.get_task(&query.task_id, Some(0)).await
            }
            canceled => canceled,
        },
    };
    let task = task.map_err(|error| {
        context.forget(&query.workspace, &query.agent);
        agent(AgentError::Client(error))
    })?;
    let is_old = watched.is_some_and(|watched| is_answered(&watched.told, &task.status));
    let is_settled = task.status.state.is_settled() && !is_old;
    Ok(report(context, query, &remote, task, is_settled, refused).await)
}

async fn report(
    context: &Context,
    query: &TaskQuery,
    remote: &RemoteAgent,
    task: Task,
    is_settled: bool,
    refused: Option<String>,
) -> Asked {
    let state = SettledState::of(&task);
    let mut outcome = remote.outcome_of(task, context.config.max_file_bytes);
    outcome.inline_bytes = context.config.inline_bytes;
    if !is_settled {
        // Files of a task that goes on are not final.
        outcome.files.clear();
        outcome.skipped.clear();
        outcome.more_files = 0;
        // Nor is one that was answered a question.
        outcome.question = false;
    }
    let outcome = save_outcome(&query.workspace, &query.agent, outcome).await;
    Asked { state, settled: is_settled, outcome: Box::new(outcome), refused }
}

/// Asks every agent of a workspace for a fresh card.
pub(super) async fn agents(
    context: &Context,
    workspace: &Path,
) -> Result<AgentsReport, AgentsError> {
    let file = context.file(workspace).await.map_err(AgentsError::File)?;
    let asked = file.agents.into_iter().map(|entry| async {
        context.forget(workspace, entry.name.as_str());
        let remote = context.connect(workspace, &entry).await;
        AgentReport { entry, remote }
    });
    let agents = futures::stream::iter(asked).buffered(CARDS_AT_ONCE).collect().await;
    Ok(AgentsReport { agents, skipped: file.skipped, warnings: file.warnings })
}

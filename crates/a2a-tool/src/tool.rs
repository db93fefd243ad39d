//! The tool: reads a call, asks the registry, tells the end.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use volcanic_a2a_client::read_attachments;
use volcanic_a2a_types::{ContextId, Part, TaskId};
use volcanic_a2a_watch::{SendOrder, TaskQuery, WatchHandle, WatchTarget};
use volcanic_agent_core::{Origin, SourceRef, Tool, ToolContext, ToolOutput, ToolSpec};
use volcanic_base::ConfinedDir;

use crate::arguments::{Call, spec};
use crate::listing::list;
use crate::told;

/// What the tool is told about its conversation and its limits.
#[derive(Debug, Clone)]
pub struct A2aToolConfig {
    /// The conversation's workspace, absolute.
    pub workspace: PathBuf,
    /// How long `send` waits before it hands over; zero hands over at once.
    pub wait: Duration,
    /// The most bytes of files that one message takes along.
    pub max_file_bytes: u64,
}

impl A2aToolConfig {
    /// The contract's values for a workspace.
    pub fn new(workspace: PathBuf) -> Self {
        Self { workspace, wait: Duration::from_mins(1), max_file_bytes: 10 * 1024 * 1024 }
    }
}

/// The `a2a` tool of one conversation.
pub struct A2aTool {
    config: A2aToolConfig,
    watches: WatchHandle,
}

impl A2aTool {
    /// The tool of one conversation.
    pub fn new(config: A2aToolConfig, watches: WatchHandle) -> Self {
        Self { config, watches }
    }

    async fn attachments(&self, files: Vec<String>) -> Result<Vec<Part>, String> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let (workspace, limit) = (self.config.workspace.clone(), self.config.max_file_bytes);
        let read = tokio::task::spawn_blocking(move || {
            let workspace = ConfinedDir::open(workspace).map_err(|error| format!("{error}."))?;
            read_attachments(&workspace, &files, limit).map_err(|error| error.to_string())
        });
        // The text of a panic may hold whatever was at hand, so it is shown nowhere.
        read.await.unwrap_or_else(|_| Err("The files could not be read.".to_owned()))
    }

    async fn send(
        &self,
        agent: String,
        text: String,
        (context_id, task_id): (Option<ContextId>, Option<TaskId>),
        files: Vec<String>,
        context: ToolContext,
    ) -> ToolOutput {
        let parts = match self.attachments(files).await {
            Ok(parts) => parts,
            Err(reason) => return ToolOutput::error(reason),
        };
        let order = SendOrder {
            target: target(&context),
            workspace: self.config.workspace.clone(),
            agent: agent.clone(),
            text,
            parts,
            context_id,
            task_id,
            hops: context.hops,
            source_ref: context
                .source
                .as_ref()
                .map(|source: &SourceRef| source.as_str().to_owned()),
            unattended: unattended(&context),
        };
        told::send(&agent, self.watches.send(order, self.config.wait, context.cancel).await)
    }

    fn query(&self, agent: &str, task_id: TaskId, context: &ToolContext) -> TaskQuery {
        TaskQuery {
            target: target(context),
            workspace: self.config.workspace.clone(),
            agent: agent.to_owned(),
            task_id,
        }
    }
}

/// What bounds two agents that answer each other: sends of runs that deliveries started count until the owner writes.
fn unattended(context: &ToolContext) -> Option<String> {
    (context.origin != Origin::Owner).then(|| context.owner_word.as_str().to_owned())
}

fn target(context: &ToolContext) -> WatchTarget {
    WatchTarget::new(context.target.as_str())
}

impl std::fmt::Debug for A2aTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("A2aTool").field("config", &self.config).finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for A2aTool {
    fn spec(&self) -> ToolSpec {
        spec()
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> ToolOutput {
        match Call::read(arguments) {
            Err(reason) => ToolOutput::error(reason),
            Ok(Call::Agents) => match list(&self.config.workspace, &self.watches).await {
                Ok(text) => ToolOutput::text(text),
                Err(reason) => ToolOutput::error(reason),
            },
            Ok(Call::Send { agent, message, context_id, task_id, files }) => {
                self.send(agent, message, (context_id, task_id), files, context).await
            }
            Ok(Call::Status { agent, task_id }) => {
                let query = self.query(&agent, task_id, &context);
                told::report(&agent, self.watches.status(query).await)
            }
            Ok(Call::Cancel { agent, task_id }) => {
                let query = self.query(&agent, task_id, &context);
                told::report(&agent, self.watches.cancel(query).await)
            }
        }
    }
}

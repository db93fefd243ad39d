//! The `bash` tool.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use volcanic_agent_core::{Tool, ToolContext, ToolOutput, ToolSpec};

use crate::config::ToolConfig;
use crate::shell::{self, Report};
use crate::workspace::{self, Failure, Workspace};

/// Runs shell commands, not sandboxed: as the process's own user, with an environment of its own.
#[derive(Debug)]
pub(crate) struct BashTool {
    workspace: Workspace,
    config: Arc<ToolConfig>,
}

impl BashTool {
    pub(crate) fn new(workspace: Workspace, config: Arc<ToolConfig>) -> Self {
        Self { workspace, config }
    }

    async fn run(&self, arguments: Value, context: &ToolContext) -> Result<Report, Failure> {
        let Arguments { command, timeout } = workspace::arguments(arguments)?;
        let limit = self.limit(timeout)?;
        let begun = Instant::now();
        let directory = self.workspace.directory().path();
        let ran = shell::run(&command, directory, &self.config, limit, &context.cancel)
            .await
            .map_err(|error| Failure(format!("failed to run the shell: {error}")))?;
        tracing::debug!(
            tool.name = "bash",
            end = ?ran.end,
            bytes = ran.output.bytes(),
            elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "command ended"
        );
        Ok(Report::new(ran, limit).await)
    }

    fn limit(&self, seconds: Option<f64>) -> Result<Duration, Failure> {
        let Some(seconds) = seconds else { return Ok(self.config.shell_timeout) };
        match Duration::try_from_secs_f64(seconds) {
            Ok(limit) if !limit.is_zero() => Ok(limit.min(self.config.shell_timeout_max)),
            Ok(_) | Err(_) => Err(Failure::new("timeout has to be a number of seconds above 0")),
        }
    }
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

#[async_trait]
impl Tool for BashTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "bash".into(),
            description: format!(
                "Runs a shell command in the workspace and gives its output, standard output and error together; of a \
                 long one the end, and a file with the whole. There is no input to read. A command and all it started \
                 are stopped after {} s, or after timeout, at most {} s. Start what should go on running in the \
                 background with its output in a file: CMD >log 2>&1 &",
                self.config.shell_timeout.as_secs(),
                self.config.shell_timeout_max.as_secs()
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "the command" },
                    "timeout": { "type": "number", "description": "how many seconds it may take" }
                },
                "required": ["command"]
            }),
        }
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> ToolOutput {
        match self.run(arguments, &context).await {
            Ok(Report { text, is_error: false }) => ToolOutput::text(text),
            Ok(Report { text, is_error: true }) | Err(Failure(text)) => ToolOutput::error(text),
        }
    }
}

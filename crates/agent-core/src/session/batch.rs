//! Runs the tool calls of one reply.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::Instrument as _;

use super::{
    config::SessionLimits,
    notice, schema,
    stop::{RunStop, StopCause},
};
use crate::{
    content::{ToolCall, ToolReply},
    prompt::PromptKey,
    store::{EntryBody, NewEntry},
    tool::{Tool, ToolContext, ToolOutput},
};

/// The result of one call, ready to be committed.
#[derive(Debug)]
pub(super) struct CallResult {
    call_id: String,
    name: String,
    output: ToolOutput,
}

impl CallResult {
    pub(super) fn error(call: &ToolCall, text: impl Into<String>) -> Self {
        Self { call_id: call.id.clone(), name: call.name.clone(), output: ToolOutput::error(text) }
    }

    /// The entry that records it.
    pub(super) fn entry(&self) -> NewEntry {
        let reply = ToolReply {
            call_id: self.call_id.clone(),
            name: self.name.clone(),
            text: self.output.text.clone(),
            is_error: self.output.is_error,
            settles: self.output.delivery_key.is_some(),
        };
        NewEntry { body: EntryBody::Tool(reply), delivery_key: self.output.delivery_key.clone() }
    }

    pub(super) fn settles(&self, key: &str) -> bool {
        self.output.delivery_key.as_ref().map(PromptKey::as_str) == Some(key)
    }

    /// Gives way to the delivery that took its key first.
    pub(super) fn yield_to_delivery(&mut self) {
        self.output = ToolOutput::text(notice::ALREADY_DELIVERED);
    }

    /// Tells the tool that its result is on disk.
    pub(super) fn committed(self) -> (String, bool) {
        if let Some(on_committed) = self.output.on_committed {
            on_committed();
        }
        (self.name, self.output.is_error)
    }
}

/// A batch of calls and what runs them.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    pub(super) tools: &'a [Arc<dyn Tool>],
    pub(super) limits: &'a SessionLimits,
    pub(super) stop: &'a RunStop,
    /// What every call is told; its own id and token are put in.
    pub(super) context: ToolContext,
}

/// A call that passed the checks.
struct Ready {
    at: usize,
    tool: Arc<dyn Tool>,
    arguments: Value,
    context: ToolContext,
}

/// Calls that run, and which ones they are.
#[derive(Default)]
struct Running {
    tasks: JoinSet<ToolOutput>,
    places: HashMap<Id, usize>,
}

impl Batch<'_> {
    /// Runs the calls, all at once or, if one of their tools wants that, one after the other. Every call has a result in
    /// the end, in the order of the calls. `on_start` hears of each call that begins, with its arguments.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the calls.
    pub(super) async fn run(
        self,
        calls: &[ToolCall],
        mut on_start: impl FnMut(&ToolCall) + Send,
    ) -> Vec<CallResult> {
        let mut outputs: Vec<Option<ToolOutput>> = Vec::new();
        let mut waiting = VecDeque::new();
        for (at, call) in calls.iter().enumerate() {
            let checked = self.check(at, call);
            outputs.push(None);
            match checked {
                Ok(ready) => waiting.push_back(ready),
                Err(reason) => {
                    on_start(call);
                    outputs[at] = Some(ToolOutput::error(reason));
                }
            }
        }
        let at_once = if waiting.iter().any(|ready: &Ready| ready.tool.is_sequential()) {
            1
        } else {
            waiting.len()
        };
        let mut running = Running::default();
        let mut grace_over = pin!(self.stop.grace_over(self.limits.stop_grace));
        loop {
            while running.tasks.len() < at_once
                && self.stop.cause().is_none()
                && let Some(ready) = waiting.pop_front()
            {
                on_start(&calls[ready.at]);
                running.start(ready, self.limits);
            }
            let ended = tokio::select! {
                biased;
                () = &mut grace_over => break,
                ended = running.tasks.join_next_with_id() => ended,
            };
            let Some(ended) = ended else { break };
            let (at, output) = running.take(ended);
            if let Some(at) = at {
                outputs[at] = Some(output);
            }
        }
        running.tasks.shutdown().await;
        let unfinished = match self.stop.cause() {
            Some(StopCause::Shutdown) => notice::INTERRUPTED,
            Some(StopCause::Aborted) | None => notice::ABORTED,
        };
        calls
            .iter()
            .zip(outputs)
            .map(|(call, output)| CallResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                output: output.unwrap_or_else(|| ToolOutput::error(unfinished)),
            })
            .collect()
    }

    fn check(&self, at: usize, call: &ToolCall) -> Result<Ready, String> {
        if at >= self.limits.calls_per_reply {
            return Err(format!(
                "This call was not run: one reply may hold {} calls.",
                self.limits.calls_per_reply
            ));
        }
        let Some((tool, spec)) = self
            .tools
            .iter()
            .map(|tool| (tool, tool.spec()))
            .find(|(_, spec)| spec.name == call.name)
        else {
            return Err(format!("There is no tool `{}`.", call.name));
        };
        let arguments = schema::arguments(&spec.parameters, call)?;
        let mut context = self.context.clone();
        context.call_id.clone_from(&call.id);
        context.cancel = self.stop.token().child_token();
        Ok(Ready { at, tool: Arc::clone(tool), arguments, context })
    }
}

impl Running {
    fn start(&mut self, ready: Ready, limits: &SessionLimits) {
        let (limit, grace) = (limits.tool_time, limits.stop_grace);
        let name = ready.tool.spec().name;
        let span = tracing::info_span!("tool", tool.name = name);
        let Ready { at, tool, arguments, context } = ready;
        let call = async move { call_within(limit, grace, &*tool, arguments, context).await };
        let task = self.tasks.spawn(call.instrument(span));
        self.places.insert(task.id(), at);
    }

    /// Which call ended, and with what.
    fn take(&mut self, ended: Result<(Id, ToolOutput), JoinError>) -> (Option<usize>, ToolOutput) {
        match ended {
            Ok((id, output)) => (self.places.remove(&id), output),
            Err(error) => {
                // Its text may hold whatever was at hand, so it is shown nowhere; the process's hook tells where it was.
                tracing::error!("tool panicked");
                let output = ToolOutput::error(
                    "The tool failed unexpectedly; whether it had an effect is unknown.",
                );
                (self.places.remove(&error.id()), output)
            }
        }
    }
}

/// Runs one call. Past its time it is cancelled, given the grace to tidy up, and dropped.
async fn call_within(
    limit: Duration,
    grace: Duration,
    tool: &dyn Tool,
    arguments: Value,
    context: ToolContext,
) -> ToolOutput {
    let cancel = context.cancel.clone();
    let mut call = pin!(tool.call(arguments, context));
    if let Ok(output) = tokio::time::timeout(limit, &mut call).await {
        return output;
    }
    cancel.cancel();
    match tokio::time::timeout(grace, call).await {
        // A result with a delivery key stands for an outcome that has to be recorded.
        Ok(output) if output.delivery_key.is_some() => output,
        Ok(_) | Err(_) => ToolOutput::error(format!(
            "The call was ended after {} s without a result; whether it had an effect is unknown.",
            limit.as_secs()
        )),
    }
}

/// Longest summary of a call's arguments, in characters.
const SUMMARY: usize = 120;

/// A call's arguments in one short line, for people.
pub(super) fn summary(call: &ToolCall) -> String {
    let line = match &call.arguments {
        Ok(Value::Object(members)) => members
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            })
            .collect::<Vec<_>>()
            .join(" "),
        Ok(other) => other.to_string(),
        Err(raw) => raw.clone(),
    };
    let mut short: String = line
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(SUMMARY)
        .collect();
    if line.chars().nth(SUMMARY).is_some() {
        short.push('…');
    }
    short
}

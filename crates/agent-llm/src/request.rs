//! The core's conversation as a request of rig's.

use rig_core::completion::{CompletionRequest, ToolDefinition};
use rig_core::message::{
    AssistantContent, AssistantMessage, EmptyToolName, Message as RigMessage, Origin, Reasoning,
    Text, ToolCall as RigToolCall, ToolFunction, ToolName, ToolResult, ToolResultContent,
    UserContent,
};
use volcanic_agent_core::{Block, Message, ModelRequest, Replay, ToolCall, ToolReply};

/// Who the other end is, as stamped on what it wants to see again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The dialect.
    pub(crate) api: &'static str,
    /// The endpoint's host.
    pub(crate) provider: String,
    /// The model.
    pub(crate) model: String,
}

impl Stamp {
    /// The value of a replay that is meant for this model.
    fn accept<'r>(&self, replay: Option<&'r Replay>) -> Option<&'r serde_json::Value> {
        replay
            .filter(|replay| {
                replay.api == self.api
                    && replay.provider == self.provider
                    && replay.model == self.model
            })
            .map(|replay| &replay.value)
    }

    /// A value for this model to see again.
    pub(crate) fn replay(&self, value: serde_json::Value) -> Replay {
        Replay {
            api: self.api.to_owned(),
            provider: self.provider.clone(),
            model: self.model.clone(),
            value,
        }
    }
}

/// Builds the request. `origin` is what rig takes for "this very model".
pub(crate) fn build(
    request: &ModelRequest,
    stamp: &Stamp,
    origin: &Origin,
) -> Result<CompletionRequest, EmptyToolName> {
    let mut history = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        history.push(RigMessage::system(&request.system));
    }
    for message in &request.messages {
        match message {
            Message::User { text } => history.push(RigMessage::user(text)),
            Message::Assistant { blocks } => history.extend(assistant(blocks, stamp, origin)?),
            Message::Tool(reply) => history.push(tool_result(reply)?),
        }
    }
    let mut built = CompletionRequest::new("");
    built.chat_history = history;
    for tool in &request.tools {
        let name = ToolName::new(&tool.name)?;
        built.tools.push(ToolDefinition::new(name, &tool.description, tool.parameters.clone()));
    }
    Ok(built)
}

/// A reply. Reasoning goes back only to the model that asks for it; from another one it is left out, because rig would
/// make text of it. A reply with nothing else is left out too.
fn assistant(
    blocks: &[Block],
    stamp: &Stamp,
    origin: &Origin,
) -> Result<Option<RigMessage>, EmptyToolName> {
    let mut content = Vec::with_capacity(blocks.len());
    let mut same_model = false;
    for block in blocks {
        match block {
            Block::Text { text } => content.push(AssistantContent::Text(Text::new(text))),
            Block::Thinking { text, replay } => {
                if let Some(value) = stamp.accept(replay.as_ref()) {
                    same_model = true;
                    let reasoning = AssistantContent::Reasoning(Reasoning::new(text));
                    content.push(reasoning.with_native(value.clone()));
                }
            }
            Block::ToolCall(call) => {
                let value = stamp.accept(call.replay.as_ref());
                same_model |= value.is_some();
                let call = AssistantContent::ToolCall(tool_call(call)?);
                content.push(match value {
                    Some(value) => call.with_native(value.clone()),
                    None => call,
                });
            }
        }
    }
    if content.is_empty() {
        return Ok(None);
    }
    let message = AssistantMessage::new(content).with_origin(same_model.then(|| origin.clone()));
    Ok(Some(RigMessage::Assistant(message)))
}

/// A call. What its arguments really were, when they were no object, is in the result that says so.
fn tool_call(call: &ToolCall) -> Result<RigToolCall, EmptyToolName> {
    let name = ToolName::new(&call.name)?;
    let function = match &call.arguments {
        Ok(arguments) => ToolFunction::new(name, arguments.clone()),
        Err(raw) => ToolFunction::parse(name, raw),
    };
    Ok(RigToolCall::from_wire(&call.id, function))
}

fn tool_result(reply: &ToolReply) -> Result<RigMessage, EmptyToolName> {
    // The name is not sent in this dialect; the id of the call is what counts.
    let call = RigToolCall::from_wire(
        &reply.call_id,
        ToolFunction::new(ToolName::new(&reply.name)?, serde_json::Value::Null),
    );
    let content = vec![ToolResultContent::text(&reply.text)];
    let result: ToolResult =
        if reply.is_error { call.error_result(content) } else { call.result(content) };
    Ok(RigMessage::User { content: vec![UserContent::ToolResult(result)] })
}

//! Rig's reply as the core's events and blocks.

use rig_core::completion::{CompletionResponse, FinishReason, Usage as RigUsage};
use rig_core::message::AssistantContent;
use rig_core::streaming::{Item, PartKind, StreamEvent};
use serde_json::{Map, Value};
use volcanic_agent_core::{
    Block, ModelErrorKind, ModelEvent, PartialReply, StopReason, ToolCall, Usage,
};

use crate::request::Stamp;

/// The event for an item of the stream; none for what the core has no word for.
pub(crate) fn event(item: Item<StreamEvent>, stamp: &Stamp) -> Option<ModelEvent> {
    let Item::Event(event) = item else { return None };
    let block = u32::try_from(event.part().index()).ok()?;
    match event {
        StreamEvent::Start { kind: PartKind::ToolCall, name: Some(name), .. } => {
            Some(ModelEvent::ToolCallStart { block, name: name.as_str().to_owned() })
        }
        StreamEvent::Start { .. } => None,
        StreamEvent::Text { text, .. } => Some(ModelEvent::TextDelta { block, text }),
        StreamEvent::Reasoning { text, .. } => Some(ModelEvent::ThinkingDelta { block, text }),
        StreamEvent::Arguments { json, .. } => Some(ModelEvent::ToolArgsDelta { block, json }),
        StreamEvent::End { content, .. } => {
            self::block(content, stamp).map(|content| ModelEvent::BlockEnd { block, content })
        }
    }
}

/// What arrived of a reply that did not complete.
pub(crate) fn partial(reply: CompletionResponse, stamp: &Stamp) -> PartialReply {
    let usage = usage(&reply.usage);
    let blocks = reply.choice.into_iter().filter_map(|content| block(content, stamp)).collect();
    PartialReply { blocks, usage }
}

/// How a complete reply ended: why it stopped, or that it failed after all.
pub(crate) fn stop(reply: &CompletionResponse) -> Result<StopReason, (ModelErrorKind, String)> {
    let has_calls =
        reply.choice.iter().any(|content| matches!(content, AssistantContent::ToolCall(_)));
    match reply.finish_reason() {
        Some(FinishReason::Stop | FinishReason::ToolCalls) if has_calls => Ok(StopReason::ToolUse),
        // Also when tool use is announced and no call came: there is nothing to run.
        Some(FinishReason::Stop | FinishReason::ToolCalls) => Ok(StopReason::Stop),
        Some(FinishReason::Length) => Ok(StopReason::Length),
        Some(FinishReason::ContentFilter) => Ok(StopReason::Refusal),
        // What gateways say when the model behind them broke off.
        Some(FinishReason::Other(reason)) if reason == "error" => Err((
            ModelErrorKind::Overloaded,
            "the provider broke the answer off with an error".to_owned(),
        )),
        Some(reason) => Err((
            ModelErrorKind::BadRequest,
            format!(
                "the provider ended the answer for a reason that is not known here: {reason:?}"
            ),
        )),
        None => Err((ModelErrorKind::Truncated, "the answer broke off before its end".to_owned())),
    }
}

pub(crate) fn usage(usage: &RigUsage) -> Usage {
    Usage {
        input: usage.input_tokens.unwrap_or_default(),
        output: usage.output_tokens.unwrap_or_default(),
    }
}

/// A finished block; none for images and provider items without a meaning of their own.
fn block(content: AssistantContent, stamp: &Stamp) -> Option<Block> {
    match content {
        AssistantContent::Text(text) => Some(Block::Text { text: text.text }),
        AssistantContent::Reasoning(_) => {
            let replay = content.native_item().map(reasoning_item).map(|item| stamp.replay(item));
            let AssistantContent::Reasoning(reasoning) = content else { return None };
            Some(Block::Thinking { text: reasoning.text, replay })
        }
        AssistantContent::ToolCall(_) => {
            let replay = content.native_item().and_then(call_item).map(|item| stamp.replay(item));
            let AssistantContent::ToolCall(call) = content else { return None };
            let arguments = match call.function.invalid_arguments {
                None => Ok(Value::Object(call.function.arguments)),
                Some(raw) => Err(raw),
            };
            Some(Block::ToolCall(ToolCall {
                id: call.id.wire().into_owned(),
                name: call.function.name.as_str().to_owned(),
                arguments,
                replay,
            }))
        }
        _ => None,
    }
}

/// A reasoning item without the text that the block has anyway: the name of the field it came in, and sealed details.
fn reasoning_item(item: &Value) -> Value {
    let Value::Object(fields) = item else { return item.clone() };
    if fields.contains_key("type") {
        return item.clone();
    }
    let field = |(name, value): (&String, &Value)| {
        let value = if value.is_string() { Value::from("") } else { value.clone() };
        (name.clone(), value)
    };
    Value::Object(fields.iter().map(field).collect())
}

/// A call's item, when it says more than the call itself, e.g. a signature.
fn call_item(item: &Value) -> Option<Value> {
    let known = |fields: &Map<String, Value>, names: &[&str]| {
        fields.keys().all(|name| names.contains(&name.as_str()))
    };
    let fields = item.as_object()?;
    let plain = known(fields, &["id", "type", "function"])
        && fields
            .get("function")
            .and_then(Value::as_object)
            .is_some_and(|function| known(function, &["name", "arguments"]));
    (!plain).then(|| item.clone())
}

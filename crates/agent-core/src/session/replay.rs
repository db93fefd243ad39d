//! The conversation as the model reads it, repaired so that every provider accepts it.

use crate::{
    content::{Block, Message, ToolReply},
    store::EntryBody,
};

use super::{log::calls, notice};

/// Builds the model's input: failed replies are left out, each call's result comes right after its reply, and a call
/// without a result gets one that says so.
pub(super) fn messages(entries: &[EntryBody]) -> Vec<Message> {
    let mut messages = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        match entry {
            EntryBody::User { text, .. } => messages.push(Message::User { text: text.clone() }),
            EntryBody::Assistant { blocks, .. } => {
                let blocks: Vec<Block> =
                    blocks.iter().filter(|block| says_something(block)).cloned().collect();
                if blocks.is_empty() {
                    continue;
                }
                let results = results(&blocks, &entries[at + 1..]);
                messages.push(Message::Assistant { blocks });
                messages.extend(results);
            }
            // Results went in with their calls; a stray one has no place in any dialect.
            EntryBody::Tool(_)
            | EntryBody::Failed { .. }
            | EntryBody::Resumed
            | EntryBody::Reset => {}
        }
    }
    messages
}

/// The results of a reply's calls in the order of the calls, wherever they stand before the next reply.
fn results(blocks: &[Block], after: &[EntryBody]) -> Vec<Message> {
    let until = after
        .iter()
        .position(|entry| matches!(entry, EntryBody::Assistant { .. }))
        .unwrap_or(after.len());
    calls(blocks)
        .map(|call| {
            let found = after[..until].iter().find_map(|entry| match entry {
                EntryBody::Tool(reply) if reply.call_id == call.id => Some(reply.clone()),
                EntryBody::Tool(_)
                | EntryBody::User { .. }
                | EntryBody::Assistant { .. }
                | EntryBody::Failed { .. }
                | EntryBody::Resumed
                | EntryBody::Reset => None,
            });
            Message::Tool(found.unwrap_or_else(|| ToolReply {
                call_id: call.id.clone(),
                name: call.name.clone(),
                text: notice::NO_RESULT.to_owned(),
                is_error: true,
                settles: false,
            }))
        })
        .collect()
}

/// Empty text and unsigned empty reasoning are refused by some providers and tell nobody anything.
fn says_something(block: &Block) -> bool {
    match block {
        Block::Text { text } => !text.is_empty(),
        Block::Thinking { text, replay } => !text.is_empty() || replay.is_some(),
        Block::ToolCall(_) => true,
    }
}

#[cfg(test)]
mod tests;

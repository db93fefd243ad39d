//! Collects one reply of the model from its stream.

use std::{collections::BTreeMap, pin::pin};

use futures::StreamExt as _;

use super::{config::SessionLimits, stop::RunStop};
use crate::{
    content::Block,
    model::{Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, StopReason, Usage},
};

/// A complete reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub(super) blocks: Vec<Block>,
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReplyEnd {
    /// With a whole reply.
    Complete(Reply),
    /// With an error, after these blocks.
    Failed { error: ModelError, blocks: Vec<Block> },
    /// With a stop, after these blocks.
    Stopped { blocks: Vec<Block> },
}

/// Asks the model and follows its reply to the end, to a limit, or to a stop and its grace.
pub(super) async fn follow(
    model: &dyn Model,
    request: ModelRequest,
    limits: &SessionLimits,
    stop: &RunStop,
    mut on_text: impl FnMut(&str) + Send,
) -> ReplyEnd {
    // Cancelled on every way out, so that an adapter notices even when its stream is merely dropped.
    let cancel = stop.token().child_token();
    let _cancel_at_end = cancel.clone().drop_guard();
    let mut builder = ReplyBuilder::new(limits.reply_bytes);
    let mut grace_over = pin!(stop.grace_over(limits.stop_grace));
    let mut too_long = pin!(tokio::time::sleep(limits.reply_time));
    let mut events = tokio::select! {
        biased;
        () = &mut grace_over => return ReplyEnd::Stopped { blocks: Vec::new() },
        events = model.stream(request, cancel) => events,
        () = tokio::time::sleep(limits.reply_idle) => return builder.fail(silence(limits)),
    };
    let end = loop {
        let event = tokio::select! {
            biased;
            () = &mut grace_over => break ReplyEnd::Stopped { blocks: builder.into_blocks() },
            () = &mut too_long => break builder.fail(endless(limits)),
            event = events.next() => event,
            () = tokio::time::sleep(limits.reply_idle) => break builder.fail(silence(limits)),
        };
        let Some(event) = event else {
            let cut = error(ModelErrorKind::Truncated, "the reply broke off");
            break builder.fail(cut);
        };
        if let ModelEvent::TextDelta { text, .. } = &event {
            on_text(text);
        }
        if let Some(end) = builder.add(event) {
            break end;
        }
    };
    match end {
        ReplyEnd::Failed { blocks, .. } if stop.cause().is_some() => ReplyEnd::Stopped { blocks },
        end => end,
    }
}

fn silence(limits: &SessionLimits) -> ModelError {
    let seconds = limits.reply_idle.as_secs();
    error(ModelErrorKind::Transport, format!("the model was silent for {seconds} s"))
}

fn endless(limits: &SessionLimits) -> ModelError {
    let seconds = limits.reply_time.as_secs();
    // Not worth another attempt: that would take as long.
    error(ModelErrorKind::BadRequest, format!("the reply had no end after {seconds} s"))
}

fn error(kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
    ModelError { kind, status: None, retry_after: None, message: message.into() }
}

/// The blocks of a reply as they come.
#[derive(Debug)]
struct ReplyBuilder {
    whole: BTreeMap<u32, Block>,
    /// Text whose block has not ended.
    begun: BTreeMap<u32, String>,
    bytes: usize,
    limit: usize,
}

impl ReplyBuilder {
    fn new(limit: usize) -> Self {
        Self { whole: BTreeMap::new(), begun: BTreeMap::new(), bytes: 0, limit }
    }

    /// Takes the next event; says how the reply ended if it did.
    fn add(&mut self, event: ModelEvent) -> Option<ReplyEnd> {
        match event {
            ModelEvent::Start { .. } | ModelEvent::ToolCallStart { .. } => None,
            ModelEvent::TextDelta { block, text } => {
                self.bytes = self.bytes.saturating_add(text.len());
                self.begun.entry(block).or_default().push_str(&text);
                self.check_size()
            }
            ModelEvent::ThinkingDelta { text: piece, .. }
            | ModelEvent::ToolArgsDelta { json: piece, .. } => {
                self.bytes = self.bytes.saturating_add(piece.len());
                self.check_size()
            }
            ModelEvent::BlockEnd { block, content } => {
                self.begun.remove(&block);
                self.whole.insert(block, content);
                None
            }
            ModelEvent::Done { stop, usage } => {
                Some(ReplyEnd::Complete(Reply { blocks: self.take_blocks(), stop, usage }))
            }
            ModelEvent::Failed { error, partial } => {
                let seen = self.take_blocks();
                let blocks = if partial.blocks.is_empty() { seen } else { partial.blocks };
                Some(ReplyEnd::Failed { error, blocks })
            }
        }
    }

    fn check_size(&mut self) -> Option<ReplyEnd> {
        (self.bytes > self.limit).then(|| ReplyEnd::Failed {
            error: error(
                ModelErrorKind::BadRequest,
                format!("the reply is larger than {} bytes", self.limit),
            ),
            // Kept out of the conversation: it would be read back at every start.
            blocks: Vec::new(),
        })
    }

    fn fail(mut self, error: ModelError) -> ReplyEnd {
        ReplyEnd::Failed { error, blocks: self.take_blocks() }
    }

    fn into_blocks(mut self) -> Vec<Block> {
        self.take_blocks()
    }

    fn take_blocks(&mut self) -> Vec<Block> {
        let mut blocks = std::mem::take(&mut self.whole);
        for (at, text) in std::mem::take(&mut self.begun) {
            blocks.entry(at).or_insert(Block::Text { text });
        }
        blocks.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Block {
        Block::Text { text: text.to_owned() }
    }

    fn delta(block: u32, text: &str) -> ModelEvent {
        ModelEvent::TextDelta { block, text: text.to_owned() }
    }

    #[test]
    fn blocks_stand_in_their_places_whatever_ends_first() {
        let mut builder = ReplyBuilder::new(100);
        for event in [
            delta(0, "a"),
            delta(2, "c"),
            ModelEvent::BlockEnd { block: 2, content: text("C") },
            ModelEvent::BlockEnd { block: 1, content: text("B") },
            delta(0, "A"),
        ] {
            assert_eq!(builder.add(event), None);
        }
        let end = builder.add(ModelEvent::Done { stop: StopReason::Stop, usage: Usage::default() });
        let blocks = vec![text("aA"), text("B"), text("C")];
        let reply = Reply { blocks, stop: StopReason::Stop, usage: Usage::default() };
        assert_eq!(end, Some(ReplyEnd::Complete(reply)));
    }

    #[test]
    fn reply_beyond_the_limit_fails() {
        let mut builder = ReplyBuilder::new(3);
        assert_eq!(builder.add(delta(0, "abc")), None);
        let Some(ReplyEnd::Failed { error, blocks }) = builder.add(delta(1, "d")) else {
            panic!("the reply did not fail")
        };
        assert_eq!((error.kind, blocks), (ModelErrorKind::BadRequest, Vec::new()));
    }
}

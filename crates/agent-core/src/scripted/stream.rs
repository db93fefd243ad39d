//! Plays a scripted reply as a model's stream.

use std::{collections::VecDeque, time::Duration};

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio_util::sync::CancellationToken;

use super::reply::{ReplyClose, ScriptedReply};
use crate::{
    content::{Block, Message},
    model::{ModelError, ModelErrorKind, ModelEvent, PartialReply, StopReason, Usage},
};

/// The most pieces one text comes in: words, but a long text must not take minutes.
const PIECES: usize = 100;

/// Bytes per token, as everywhere in this project.
const BYTES_PER_TOKEN: usize = 4;

/// Turns a reply into its events. `place` makes the ids of its calls differ from those of other replies in the
/// conversation; `asked` is the size of the request in bytes.
pub(super) fn play(
    reply: ScriptedReply,
    place: usize,
    asked: usize,
    delay: Duration,
    cancel: CancellationToken,
) -> BoxStream<'static, ModelEvent> {
    let mut blocks = reply.blocks;
    for (at, block) in blocks.iter_mut().enumerate() {
        if let Block::ToolCall(call) = block
            && call.id.is_empty()
        {
            call.id = format!("call_{place}_{at}");
        }
    }
    let usage = Usage { input: tokens(asked), output: tokens(blocks.iter().map(block_size).sum()) };
    let mut events = VecDeque::from([ModelEvent::Start { response_id: None }]);
    for (at, block) in (0_u32..).zip(&blocks) {
        events.extend(block_events(at, block));
    }
    let last = match reply.end {
        ReplyClose::Natural => Some(ModelEvent::Done { stop: natural_stop(&blocks), usage }),
        ReplyClose::Stop(stop) => Some(ModelEvent::Done { stop, usage }),
        ReplyClose::Fail(error) => {
            Some(ModelEvent::Failed { error, partial: PartialReply { blocks, usage } })
        }
        ReplyClose::Hang => None,
    };
    events.extend(last);
    let player = Player { events, delay, cancel, said: PartialReply::default(), ended: false };
    stream::unfold(player, Player::next).boxed()
}

/// The size of a message in bytes, for the made-up usage.
pub(super) fn size(message: &Message) -> usize {
    match message {
        Message::User { text } => text.len(),
        Message::Assistant { blocks } => blocks.iter().map(block_size).sum(),
        Message::Tool(reply) => reply.text.len(),
    }
}

struct Player {
    events: VecDeque<ModelEvent>,
    delay: Duration,
    cancel: CancellationToken,
    said: PartialReply,
    ended: bool,
}

impl Player {
    async fn next(mut self) -> Option<(ModelEvent, Self)> {
        if self.ended {
            return None;
        }
        let pause = match self.events.front() {
            Some(ModelEvent::TextDelta { .. }) => self.delay,
            Some(_) => Duration::ZERO,
            None => Duration::MAX,
        };
        if !pause.is_zero() {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        let event = match self.events.pop_front() {
            Some(event) if !self.cancel.is_cancelled() => event,
            Some(_) | None => ModelEvent::Failed {
                error: ModelError {
                    kind: ModelErrorKind::Aborted,
                    status: None,
                    retry_after: None,
                    message: "the reply was cancelled".to_owned(),
                },
                partial: std::mem::take(&mut self.said),
            },
        };
        self.note(&event);
        Some((event, self))
    }

    fn note(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::TextDelta { text, .. } => match self.said.blocks.last_mut() {
                Some(Block::Text { text: said }) => said.push_str(text),
                Some(_) | None => self.said.blocks.push(Block::Text { text: text.clone() }),
            },
            ModelEvent::BlockEnd { content, .. } => {
                if matches!(content, Block::Text { .. }) {
                    self.said.blocks.pop();
                }
                self.said.blocks.push(content.clone());
            }
            ModelEvent::Done { .. } | ModelEvent::Failed { .. } => self.ended = true,
            ModelEvent::Start { .. }
            | ModelEvent::ThinkingDelta { .. }
            | ModelEvent::ToolCallStart { .. }
            | ModelEvent::ToolArgsDelta { .. } => {}
        }
    }
}

fn block_events(block: u32, content: &Block) -> Vec<ModelEvent> {
    let mut events = match content {
        Block::Text { text } => {
            pieces(text).map(|text| ModelEvent::TextDelta { block, text }).collect()
        }
        Block::Thinking { text, .. } => {
            vec![ModelEvent::ThinkingDelta { block, text: text.clone() }]
        }
        Block::ToolCall(call) => {
            let json = match &call.arguments {
                Ok(arguments) => arguments.to_string(),
                Err(raw) => raw.clone(),
            };
            vec![
                ModelEvent::ToolCallStart { block, name: call.name.clone() },
                ModelEvent::ToolArgsDelta { block, json },
            ]
        }
    };
    events.push(ModelEvent::BlockEnd { block, content: content.clone() });
    events
}

/// A text in pieces of whole words.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let per_piece = words.len().div_ceil(PIECES).max(1);
    let pieces: Vec<String> = words.chunks(per_piece).map(<[&str]>::concat).collect();
    pieces.into_iter()
}

fn natural_stop(blocks: &[Block]) -> StopReason {
    if blocks.iter().any(|block| matches!(block, Block::ToolCall(_))) {
        StopReason::ToolUse
    } else {
        StopReason::Stop
    }
}

fn block_size(block: &Block) -> usize {
    match block {
        Block::Text { text } | Block::Thinking { text, .. } => text.len(),
        Block::ToolCall(call) => match &call.arguments {
            Ok(arguments) => arguments.to_string().len(),
            Err(raw) => raw.len(),
        },
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_in_words_and_adds_up() {
        let text = "One two\nthree  four";
        let pieces: Vec<String> = pieces(text).collect();
        assert_eq!(pieces, ["One ", "two\n", "three ", " ", "four"]);
        assert_eq!(pieces.concat(), text);
    }

    #[test]
    fn long_text_comes_in_few_pieces() {
        let text = "word ".repeat(20_000);
        let pieces: Vec<String> = pieces(&text).collect();
        assert_eq!(pieces.len(), PIECES);
        assert_eq!(pieces.concat(), text);
    }
}

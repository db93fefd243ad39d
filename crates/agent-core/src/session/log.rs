//! The conversation as the session reads it: which run is open, and what it needs next.

use crate::{
    content::{Block, ToolCall},
    header::without_header,
    model::StopReason,
    prompt::{Hops, Origin, PromptKey, SourceRef},
    store::{Entry, EntryBody},
};

/// The entries since the last reset.
#[derive(Debug, Default)]
pub(super) struct ConversationLog {
    entries: Vec<EntryBody>,
    /// The place of the first of them; 0 when there is none.
    first_seq: u64,
    /// The place of the last of them; 0 when there is none.
    last_seq: u64,
}

/// The prompt of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunPrompt {
    pub(super) key: PromptKey,
    pub(super) origin: Origin,
    pub(super) hops: Hops,
    pub(super) source: Option<SourceRef>,
    /// The text without the timestamp header.
    pub(super) text: String,
}

/// What an open run needs next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RunStep {
    /// A reply of the model.
    Ask {
        /// Whether the run used up its turns, so that the reply has to be the last one.
        wrap_up: bool,
    },
    /// Results of these calls.
    Call(Vec<ToolCall>),
    /// Results of these calls that say they were not run, for the reply did not end as it should.
    Refuse(Vec<ToolCall>),
    /// Nothing: the run is over.
    Over,
}

impl ConversationLog {
    /// Takes over what the store has.
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        let mut log = Self::default();
        log.append(entries);
        log
    }

    /// Adds what was committed.
    pub(super) fn append(&mut self, entries: impl IntoIterator<Item = Entry>) {
        for Entry { seq, at: _, body } in entries {
            if matches!(body, EntryBody::Reset) {
                *self = Self::default();
            } else {
                if self.entries.is_empty() {
                    self.first_seq = seq;
                }
                self.entries.push(body);
                self.last_seq = seq;
            }
        }
    }

    /// Of what the store has, the entries that the log does not know.
    pub(super) fn unknown_of(&self, mut stored: Vec<Entry>) -> Vec<Entry> {
        stored.retain(|entry| entry.seq > self.last_seq);
        stored
    }

    /// All entries, oldest first.
    pub(super) fn entries(&self) -> &[EntryBody] {
        &self.entries
    }

    /// The entries of the open run; empty between runs.
    fn open(&self) -> &[EntryBody] {
        let start = self.entries.iter().rposition(EntryBody::ends_run).map_or(0, |last| last + 1);
        &self.entries[start..]
    }

    /// The prompt of the open run.
    pub(super) fn open_run(&self) -> Option<RunPrompt> {
        self.open().iter().find_map(|entry| match entry {
            EntryBody::User { text, origin, key, hops, source } => Some(RunPrompt {
                key: key.clone(),
                origin: *origin,
                hops: *hops,
                source: source.clone(),
                text: without_header(text).to_owned(),
            }),
            EntryBody::Assistant { .. }
            | EntryBody::Tool(_)
            | EntryBody::Failed { .. }
            | EntryBody::Resumed
            | EntryBody::Reset => None,
        })
    }

    /// The outcomes that the open run took as results of its calls, oldest first. Nobody but the model has seen them.
    pub(super) fn outcomes(&self) -> Vec<&str> {
        self.open()
            .iter()
            .filter_map(|entry| match entry {
                EntryBody::Tool(reply) if reply.settles => Some(reply.text.as_str()),
                EntryBody::Tool(_)
                | EntryBody::User { .. }
                | EntryBody::Assistant { .. }
                | EntryBody::Failed { .. }
                | EntryBody::Resumed
                | EntryBody::Reset => None,
            })
            .collect()
    }

    /// The key of the owner's latest prompt. As long as there is none, a key that names the beginning of the conversation,
    /// as nobody but the owner begins one anew.
    pub(super) fn latest_of_owner(&self) -> PromptKey {
        let latest = self.entries.iter().rev().find_map(|entry| match entry {
            EntryBody::User { origin: Origin::Owner, key, .. } => Some(key.clone()),
            _ => None,
        });
        latest.unwrap_or_else(|| PromptKey::new(format!("begun:{}", self.first_seq)))
    }

    /// Decides what the open run needs next, when it may take `max_turns` replies.
    pub(super) fn next_step(&self, max_turns: u32) -> RunStep {
        let open = self.open();
        if open.is_empty() {
            return RunStep::Over;
        }
        let missing = self.missing_calls();
        if !missing.is_empty() {
            return if self.calls_are_whole() {
                RunStep::Call(missing)
            } else {
                RunStep::Refuse(missing)
            };
        }
        let turns = count(open, |entry| matches!(entry, EntryBody::Assistant { .. }));
        RunStep::Ask { wrap_up: turns >= max_turns }
    }

    /// The calls of the open run's last reply that have no result.
    pub(super) fn missing_calls(&self) -> Vec<ToolCall> {
        let open = self.open();
        let Some((at, blocks)) = last_reply(open) else { return Vec::new() };
        calls(blocks)
            .filter(|call| {
                !open[at..].iter().any(
                    |entry| matches!(entry, EntryBody::Tool(reply) if reply.call_id == call.id),
                )
            })
            .cloned()
            .collect()
    }

    /// How often in a row the request that comes next has failed.
    pub(super) fn failed_attempts(&self) -> u32 {
        let failed = self
            .open()
            .iter()
            .rev()
            .take_while(|entry| matches!(entry, EntryBody::Failed { last: false, .. }))
            .count();
        u32::try_from(failed).unwrap_or(u32::MAX)
    }

    /// How often the open run was taken up again.
    pub(super) fn resumes(&self) -> u32 {
        count(self.open(), |entry| matches!(entry, EntryBody::Resumed))
    }

    /// Whether the last reply came to its own end. Some servers say `stop` for a reply with calls; a cut or refused one
    /// may hold half of what the model meant.
    fn calls_are_whole(&self) -> bool {
        !self.open().iter().rfind(|entry| matches!(entry, EntryBody::Assistant { .. })).is_some_and(
            |reply| {
                matches!(
                    reply,
                    EntryBody::Assistant { stop: StopReason::Length | StopReason::Refusal, .. }
                )
            },
        )
    }
}

/// The calls among a reply's blocks.
pub(super) fn calls(blocks: &[Block]) -> impl Iterator<Item = &ToolCall> {
    blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        Block::Text { .. } | Block::Thinking { .. } => None,
    })
}

/// The text of a reply.
pub(super) fn text_of(blocks: &[Block]) -> String {
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Thinking { .. } | Block::ToolCall(_) => None,
        })
        .collect()
}

fn last_reply(entries: &[EntryBody]) -> Option<(usize, &[Block])> {
    entries.iter().enumerate().rev().find_map(|(at, entry)| match entry {
        EntryBody::Assistant { blocks, .. } => Some((at, blocks.as_slice())),
        EntryBody::User { .. }
        | EntryBody::Tool(_)
        | EntryBody::Failed { .. }
        | EntryBody::Resumed
        | EntryBody::Reset => None,
    })
}

fn count(entries: &[EntryBody], which: impl Fn(&EntryBody) -> bool) -> u32 {
    u32::try_from(entries.iter().filter(|entry| which(entry)).count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

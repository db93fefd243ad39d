//! What is kept about a send and about a watch.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use volcanic_a2a_types::{ContextId, MessageId, TaskId};
use volcanic_base::{Chance, Secret};

use crate::machine::{SettledState, is_answer, noted, outlasts_round};

/// How many answered questions a watch knows of.
pub const MAX_ANSWERED: usize = 32;

/// Names the conversation that a send or watch belongs to; the host decides what it means. Clones share the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchTarget(Arc<str>);

impl WatchTarget {
    /// Wraps a name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WatchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names a watch: 128 random bits as 32 hex digits. It stands in the push URL, so it must not be guessable. Clones
/// share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(Arc<str>);

impl WatchId {
    /// Wraps an id that was kept.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// Makes a new id. Those of one time lie side by side in an index, so a commit of many has few pages.
    pub fn random(chance: &Chance, at: Timestamp) -> Self {
        Self(chance.uuid_at(at).simple().to_string().into())
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a send stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendState {
    /// It may have reached the remote; nobody knows, unless there is a reason why it did not.
    Sending,
    /// The remote answered with a task or a message.
    Known,
    /// It ended without an answer that counts.
    Ended,
}

impl SendState {
    /// The name it is kept under.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Known => "known",
            Self::Ended => "ended",
        }
    }

    /// The state kept under a name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Sending, Self::Known, Self::Ended].into_iter().find(|state| state.as_str() == name)
    }
}

/// A message on its way to a remote agent. On disk before its first byte leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendRecord {
    /// The message's own id, chosen here; the record's key.
    pub message_id: MessageId,
    /// The conversation it was sent from.
    pub target: WatchTarget,
    /// The conversation's workspace, absolute.
    pub workspace: PathBuf,
    /// The agent's name in that workspace.
    pub agent: String,
    /// ASCII origin of the agent's configured URL when it was sent; empty when the message did not get so far.
    pub origin: String,
    /// The context it continues.
    pub context_id: Option<ContextId>,
    /// The task it continues.
    pub task_id: Option<TaskId>,
    /// Hops of the run that sent it (the message itself carries one more).
    pub hops: u32,
    /// The host's handle of the message that started the run.
    pub source_ref: Option<String>,
    /// When it was begun.
    pub started_at: Timestamp,
    /// Where it stands.
    pub state: SendState,
    /// Why it ended. With [`SendState::Sending`] it is known that the message did not leave, and why; who sent it may not
    /// have been told yet.
    pub end_reason: Option<String>,
    /// With a message of a run that a delivery started: the key of what the owner wrote last. It counts against the bound
    /// of such messages, unless it did not leave.
    pub unattended: Option<String>,
    /// Since when its end is looked for, when an earlier process left it open.
    pub sought_since: Option<Timestamp>,
    /// How the question stood that it answers, as it is kept in [`WatchRecord::told`], if it answers one.
    pub answered: Option<String>,
}

/// How a watch learns that its task may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchSource {
    /// The remote calls us; a slow read runs beside it.
    Push,
    /// A held stream.
    Subscribe,
    /// Reads with growing pauses.
    Poll,
}

impl WatchSource {
    /// The name it is kept and shown under.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Subscribe => "subscribe",
            Self::Poll => "poll",
        }
    }

    /// The source kept under a name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Push, Self::Subscribe, Self::Poll].into_iter().find(|source| source.as_str() == name)
    }
}

/// Where a watch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchState {
    /// A `send` of this process waits for the task, or its caller has the outcome and has not confirmed it.
    Attended,
    /// The registry follows the task.
    Watching,
    /// The task settled; the text is kept here and on its way into the conversation.
    Claimed,
    /// Over. Kept as a tombstone.
    Done,
}

impl WatchState {
    /// The name it is kept and shown under.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attended => "attended",
            Self::Watching => "watching",
            Self::Claimed => "claimed",
            Self::Done => "done",
        }
    }

    /// The state kept under a name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Attended, Self::Watching, Self::Claimed, Self::Done]
            .into_iter()
            .find(|state| state.as_str() == name)
    }
}

/// One remote task that is followed for one conversation.
///
/// A conversation follows a task at most once: (`target`, `agent`, `origin`, `task_id`) is unique among the records that
/// are not [`WatchState::Done`].
#[derive(Debug, Clone, PartialEq)]
pub struct WatchRecord {
    /// Its id.
    pub id: WatchId,
    /// The conversation the outcome goes to.
    pub target: WatchTarget,
    /// The conversation's workspace, absolute.
    pub workspace: PathBuf,
    /// The agent's name in that workspace.
    pub agent: String,
    /// ASCII origin the task lives at; the watch asks nobody else.
    pub origin: String,
    /// The followed task.
    pub task_id: TaskId,
    /// The task's context, once known.
    pub context_id: Option<ContextId>,
    /// What a push must carry; `None` until a push config was tried.
    pub push_token: Option<Secret>,
    /// How it learns about changes.
    pub source: WatchSource,
    /// When the watch began; its timeout counts from here.
    pub started_at: Timestamp,
    /// Where it stands.
    pub state: WatchState,
    /// Grows by one with every write; writes are conditional on it.
    pub epoch: u64,
    /// How often a continuation re-armed the watch; part of the delivery keys from 1 on, as a state can be told once per
    /// round.
    pub round: u32,
    /// What the owner was told while the watch goes on, e.g. `auth-required`, and the mark of the outcome that was told
    /// last: its label, `#`, and a digest. Besides, how the questions stood that were answered.
    pub told: Vec<String>,
    /// The framed text on its way; only with [`WatchState::Claimed`].
    pub text: Option<String>,
    /// The key `text` is delivered under, `a2a:<id>:<what is told>`; empty before the first claim.
    pub delivery_key: String,
    /// Whether the watch goes on once `text` is delivered, instead of ending.
    pub goes_on: bool,
    /// Failed checks in a row.
    pub failures: u32,
    /// How often in a row the remote said that it does not know the task.
    pub not_found: u32,
    /// When it said so first.
    pub not_found_since: Option<Timestamp>,
    /// When the next check is due; for display, timers are set anew at start.
    pub next_check_at: Option<Timestamp>,
    /// The state label of the last read, or why the last read failed.
    pub last_seen: Option<String>,
    /// Hops of the run that sent the task's message.
    pub hops: u32,
    /// The host's handle of the message that started that run.
    pub source_ref: Option<String>,
    /// The message that began or last continued the task; `None` for an imported watch.
    pub message_id: Option<MessageId>,
    /// How many messages led to the task beside the watch. Counted by the store with the commit that marks each as known.
    pub continuations: u32,
    /// How many of them the rounds cover; the rest makes a round.
    pub followed: u32,
}

impl WatchRecord {
    /// A watch of `task_id` at `agent`, which has its origin at `origin`, that begins at `started_at` and has not read
    /// anything.
    pub(crate) fn begun(
        id: WatchId,
        target: WatchTarget,
        workspace: PathBuf,
        (agent, origin): (String, String),
        task_id: TaskId,
        started_at: Timestamp,
    ) -> Self {
        Self {
            id,
            target,
            workspace,
            agent,
            origin,
            task_id,
            context_id: None,
            push_token: None,
            source: WatchSource::Poll,
            started_at,
            state: WatchState::Watching,
            epoch: 0,
            round: 0,
            told: Vec::new(),
            text: None,
            delivery_key: String::new(),
            goes_on: false,
            failures: 0,
            not_found: 0,
            not_found_since: None,
            next_check_at: None,
            last_seen: None,
            hops: 0,
            source_ref: None,
            message_id: None,
            continuations: 0,
            followed: 0,
        }
    }

    /// Takes the moments that were noted as they are to be taken `now`, since clocks may have been wrong.
    pub(crate) fn correct_times(&mut self, now: Timestamp) {
        self.started_at = noted(self.started_at, now);
        self.not_found_since = self.not_found_since.map(|at| noted(at, now));
    }

    /// Adds to what was told, unless it is known. Of the questions that were answered the last [`MAX_ANSWERED`] are noted: an
    /// agent shows the last one until it has said something else, and one that shows an older one again is told once more.
    pub fn note_told(&mut self, told: String) {
        if !self.told.contains(&told) {
            self.told.push(told);
        }
        let answered = || self.told.iter().filter(|told| is_answer(told));
        let mut surplus = answered().count().saturating_sub(MAX_ANSWERED);
        self.told.retain(|told| {
            let is_old = surplus > 0 && is_answer(told);
            surplus -= usize::from(is_old);
            !is_old
        });
    }

    /// Takes over from `over`, a watch of the same task that is over, what is no news to the conversation: the outcome that was
    /// told last, and the questions that were answered. `send` led to this watch.
    ///
    /// Nothing is taken over if what comes of the task is an answer to the message whatever was told before: the message went
    /// to the task that it names, or the agent showed the task as settled when it took it. Of a message that was lost, and
    /// found in the task, nobody knows that.
    pub fn know_what_was_told(&mut self, send: &SendRecord, over: &Self) {
        let was_settled = self.last_seen.as_deref().is_some_and(SettledState::is_label);
        if send.sought_since.is_none() && (send.task_id.is_some() || was_settled) {
            return;
        }
        for told in over.told.iter().filter(|told| outlasts_round(told)) {
            self.note_told(told.clone());
        }
    }

    /// Whether a message led to the task that no round covers.
    pub fn is_behind(&self) -> bool {
        self.continuations > self.followed
    }

    /// The key under which `label` (a state label, or what a notice is about) enters the conversation at most once.
    pub fn key_for(&self, label: &str) -> String {
        match self.round {
            0 => format!("a2a:{}:{label}", self.id),
            round => format!("a2a:{}:{label}:{round}", self.id),
        }
    }

    /// What the key of this record's claim is about.
    pub fn claimed_label(&self) -> Option<&str> {
        self.delivery_key.strip_prefix("a2a:")?.split(':').nth(1)
    }
}

/// The key under which it is told that a message did not leave after its caller had.
pub(crate) fn not_sent_key(message_id: &MessageId) -> String {
    format!("a2a-send:{message_id}:not-sent")
}

/// The key under which a send without a known outcome is announced.
pub fn unknown_send_key(message_id: &MessageId) -> String {
    format!("a2a-send:{message_id}:unknown")
}

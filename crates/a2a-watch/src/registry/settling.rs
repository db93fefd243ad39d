//! The registry's side of `send`: which watch follows the task it led to, and who hears what.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;
use volcanic_a2a_client::{RemoteAgent, SavedOutcome, render_delivery};
use volcanic_a2a_types::{A2aErrorKind, ContextId, MessageId};

use super::attending::{Progress, Waited, attend};
use super::claiming::{Claim, WhoTells};
use super::closing::{count, mark_known};
use super::handle::{Command, SendCommand};
use super::jobs::{JobEnd, Owner};
use super::sending::{Sent, record, send};
use super::{Followed, Registry};
use crate::machine::{Availability, Continuation, Watch, WatchEvent};
use crate::notice;
use crate::order::{AgentError, SendEnd, SendError, SendOrder};
use crate::record::{WatchId, WatchRecord, WatchState};

/// A send between its answer and the end of its wait.
pub(super) struct Waiting {
    command: Box<SendCommand>,
    remote: RemoteAgent,
    /// The label of the state that the agent answered with.
    state: String,
    hinted: bool,
    /// How the question stood that the message answered, if it answered one.
    answered: Option<String>,
}

impl Registry {
    pub(super) fn begin_send(&mut self, mut command: Box<SendCommand>) {
        let order = &command.order;
        let held = match &order.task_id {
            None => None,
            Some(task_id) => {
                match self.claim(&order.target, &order.agent, task_id, WhoTells::Registry) {
                    Claim::Nothing => None,
                    Claim::Held(id) => Some(id),
                    Claim::Taken => {
                        let task_id = task_id.clone();
                        return answer_send(*command, Err(SendError::TaskBusy { task_id }));
                    }
                    Claim::Wait(id) => return self.wait_for(&id, Command::Send(command)),
                }
            }
        };
        let watched = held
            .as_ref()
            .and_then(|id| self.watches.get(id))
            .map(|followed| followed.watch.record().clone());
        let message_id = self.context.new_message_id();
        self.open_sends.insert(message_id.clone());
        let context = Arc::clone(&self.context);
        let span =
            tracing::info_span!("send", agent.name = command.order.agent, message.id = %message_id);
        let lost = record(&context, &command.order, &message_id, String::new());
        let tokens = self.tokens_near(&lost, watched.as_ref());
        let owner = Owner::Send(Box::new(lost), held.clone());
        let job = self.jobs.set.spawn(
            async move {
                let held_for = watched.as_ref();
                let sent = send(&context, &mut command, &message_id, held_for, &tokens).await;
                JobEnd::Sent { command, message_id, held, sent }
            }
            .instrument(span),
        );
        self.jobs.own(&job, owner);
    }

    pub(super) fn on_sent(
        &mut self,
        command: Box<SendCommand>,
        message_id: MessageId,
        held: Option<WatchId>,
        sent: Sent,
    ) {
        match sent {
            Sent::Task { record, new, remote, state, hinted, answered } => {
                self.origins.answered(&record.origin);
                self.begin_calls();
                let is_held = held.as_ref() == Some(&record.id);
                if let Some(other) = held.filter(|_| !is_held) {
                    // The agent made a new task instead of continuing the one it was asked to.
                    self.release(&other, true);
                }
                let waiting = Waiting { command, remote, state, hinted, answered };
                if new {
                    self.follow_new(&message_id, *record, waiting);
                } else {
                    self.follow_known(message_id, *record, is_held, waiting);
                }
            }
            Sent::Replied { context_id, reply } => {
                self.release_held(held);
                self.answer_replied(*command, message_id, context_id, *reply);
            }
            Sent::Unknown { reason } => {
                self.release_held(held);
                let text = notice::unknown_send(
                    &command.order.agent,
                    command.order.context_id.as_ref(),
                    &reason,
                );
                let settle =
                    self.open_ticket(&command.order, message_id, text, Some(reason.clone()));
                let agent = command.order.agent.clone();
                answer_send(*command, Err(SendError::Unknown { agent, reason, settle }));
            }
            Sent::Failed { error, kept } => {
                self.release_held(held);
                let error = self.explain(&command.order, error);
                self.answer_failed(*command, &message_id, error, kept);
            }
            Sent::Stopped => {}
        }
    }

    /// Tells what an agent answered without a task: the caller, or the conversation if it does not.
    pub(super) fn answer_replied(
        &mut self,
        command: SendCommand,
        message_id: MessageId,
        context_id: Option<ContextId>,
        reply: SavedOutcome,
    ) {
        let text = render_delivery(&command.order.agent, &reply);
        let settle = self.open_ticket(&command.order, message_id, text, None);
        answer_send(command, Ok(SendEnd::Replied { context_id, reply, settle }));
    }

    fn follow_new(&mut self, message_id: &MessageId, record: WatchRecord, waiting: Waiting) {
        let id = record.id.clone();
        self.open_sends.remove(message_id);
        self.views.changed(&record.workspace);
        for imported in self.imported_twins(&record) {
            self.feed(&imported, WatchEvent::Superseded);
        }
        if record.state == WatchState::Attended {
            self.watches.insert(id.clone(), Followed::new(Watch::attended(record)));
            self.arm_view();
            return self.start_wait(&id, waiting);
        }
        let Waiting { command, state, hinted, .. } = waiting;
        let end = handed_over(&record, state);
        let (watch, effect) = Watch::begun(record, hinted, self.now(), &self.context.config);
        self.watches.insert(id.clone(), Followed::new(watch));
        self.carry_out(&id, Some(effect));
        answer_send(*command, Ok(end));
    }

    /// Imported watches of the same task, as far as nobody knows where theirs runs.
    fn imported_twins(&self, record: &WatchRecord) -> Vec<WatchId> {
        let is_twin =
            |kept: &WatchRecord| (&kept.agent, &kept.task_id) == (&record.agent, &record.task_id);
        let unplaced = self.watches.unplaced(&record.target);
        let twins = unplaced.filter(|(_, followed)| is_twin(followed.watch.record()));
        twins.map(|(id, _)| id.clone()).collect()
    }

    /// A send led to a task that was followed before; `is_held` says that it is, or was, held for this very send.
    pub(super) fn follow_known(
        &mut self,
        message_id: MessageId,
        record: WatchRecord,
        is_held: bool,
        waiting: Waiting,
    ) {
        let (id, continuations) = (record.id.clone(), record.continuations);
        let order = &waiting.command.order;
        let answered = waiting.answered.clone();
        let continuation = Continuation {
            message_id,
            hops: order.hops,
            source_ref: order.source_ref.clone(),
            answered: answered.clone(),
        };
        if !self.watches.contains_key(&id) {
            // Kept by an earlier process, and not restored yet.
            self.adopt(record, Duration::ZERO);
        }
        self.feed(&id, WatchEvent::ContinuedBeside { continuations, answered });
        self.withdraw_call(&id);
        let Some(followed) = self.watches.get(&id) else { return };
        match followed.watch.availability() {
            Availability::Free => self.hold(&id),
            Availability::Held if is_held => {}
            // Whoever else holds it tells its outcome: two who wait would both tell it.
            Availability::Held | Availability::Busy | Availability::Kept | Availability::Over => {
                let record = followed.watch.record().clone();
                let end = handed_over(&record, waiting.state);
                if is_held {
                    self.spawn_count(continuation, record);
                } else {
                    // It was counted with the commit that marked it, so a crash does not lose its round.
                    self.open_sends.remove(&continuation.message_id);
                }
                return answer_send(*waiting.command, Ok(end));
            }
        }
        if let Some(followed) = self.watches.get_mut(&id) {
            followed.continuing = Some(waiting);
        }
        self.feed(&id, WatchEvent::Continued(continuation));
    }

    /// The continuation of a held watch is on disk.
    pub(super) fn begin_wait(&mut self, id: &WatchId) {
        let Some(followed) = self.watches.get_mut(id) else { return };
        let waiting = followed.continuing.take();
        let Some(message_id) = followed.watch.record().message_id.clone() else {
            return self.release(id, true);
        };
        let (context, id) = (Arc::clone(&self.context), id.clone());
        let owner = Owner::Watch(id.clone());
        let job = self.jobs.set.spawn(async move {
            if mark_known(&context, &message_id).await {
                JobEnd::Marked { id, message_id, waiting }
            } else {
                JobEnd::Done
            }
        });
        self.jobs.own(&job, owner);
    }

    /// Marks a send as known that a watch covers, if it is still open.
    pub(super) fn spawn_mark(&mut self, message_id: MessageId) {
        if !self.open_sends.contains(&message_id) {
            return;
        }
        let context = Arc::clone(&self.context);
        self.jobs.set.spawn(async move {
            if mark_known(&context, &message_id).await {
                JobEnd::SendClosed { message_id }
            } else {
                JobEnd::Done
            }
        });
    }

    /// Nothing is left of the send but its task, which a held watch covers.
    pub(super) fn on_marked(
        &mut self,
        id: &WatchId,
        message_id: &MessageId,
        waiting: Option<Waiting>,
    ) {
        self.open_sends.remove(message_id);
        match waiting {
            Some(waiting) => self.start_wait(id, waiting),
            // An earlier process waited.
            None => self.release(id, true),
        }
    }

    /// Counts a message that was to continue the watch it held, and lost it.
    fn spawn_count(&mut self, continuation: Continuation, record: WatchRecord) {
        let context = Arc::clone(&self.context);
        let Continuation { message_id, answered, .. } = continuation;
        self.jobs.set.spawn(async move {
            match count(&context, &message_id, &record).await {
                Some(record) => JobEnd::Counted { message_id, record: Box::new(record), answered },
                None => JobEnd::Done,
            }
        });
    }

    pub(super) fn on_counted(
        &mut self,
        message_id: &MessageId,
        record: WatchRecord,
        answered: Option<String>,
    ) {
        self.open_sends.remove(message_id);
        if self.watches.contains_key(&record.id) {
            let continuations = record.continuations;
            self.feed(&record.id, WatchEvent::ContinuedBeside { continuations, answered });
        } else {
            self.adopt(record, Duration::ZERO);
        }
    }

    fn start_wait(&mut self, id: &WatchId, waiting: Waiting) {
        let Some(followed) = self.watches.get(id) else { return };
        let record = followed.watch.record().clone();
        let (context, id) = (Arc::clone(&self.context), id.clone());
        let span =
            tracing::info_span!("wait", agent.name = record.agent, task.id = %record.task_id);
        let owner = Owner::Watch(id.clone());
        let job = self.jobs.set.spawn(
            async move {
                let Waiting { mut command, remote, state, hinted, answered: _ } = waiting;
                let progress = Progress { hinted, state, put_off: None };
                let (wait, left) = (command.wait, command.left.clone());
                let gone = async {
                    tokio::select! {
                        () = left.cancelled() => {}
                        () = command.reply.closed() => {}
                    }
                };
                let waited = attend(&context, &record, &remote, progress, wait, gone).await;
                JobEnd::Waited { id, command, waited }
            }
            .instrument(span),
        );
        self.jobs.own(&job, owner);
    }

    pub(super) fn on_waited(&mut self, id: &WatchId, command: SendCommand, waited: Waited) {
        let Some(followed) = self.watches.get(id) else { return };
        let record = followed.watch.record();
        match waited {
            Waited::Settled { state, outcome } => {
                let settle = self.ticket(id, state);
                answer_send(command, Ok(SendEnd::Settled { outcome: *outcome, settle }));
            }
            Waited::Unsettled(Progress { hinted, state, put_off }) => {
                if let Some(pause) = put_off {
                    let (now, cap) = (self.now(), self.context.config.retry_after_cap);
                    self.origins.put_off(&record.origin, pause, now, cap);
                }
                let end = handed_over(record, state);
                self.release(id, hinted);
                answer_send(command, Ok(end));
            }
        }
    }

    /// Names the watched task when a refusal means that the context is busy with it.
    pub(super) fn explain(&self, order: &SendOrder, error: SendError) -> SendError {
        let (SendError::Agent(AgentError::Client(source)), Some(context_id)) =
            (&error, &order.context_id)
        else {
            return error;
        };
        if source.rpc_kind() != Some(A2aErrorKind::UnsupportedOperation) {
            return error;
        }
        let of_target = self.watches.of_target(&order.target);
        let busy = of_target.map(|(_, followed)| followed.watch.record()).find(|record| {
            record.agent == order.agent && record.context_id.as_ref() == Some(context_id)
        });
        match busy {
            Some(record) => SendError::ContextBusy {
                agent: order.agent.clone(),
                task_id: record.task_id.clone(),
            },
            None => error,
        }
    }
}

fn handed_over(record: &WatchRecord, state: String) -> SendEnd {
    SendEnd::HandedOver {
        task_id: record.task_id.clone(),
        context_id: record.context_id.clone(),
        state,
    }
}

fn answer_send(command: SendCommand, end: Result<SendEnd, SendError>) {
    // A caller that is gone drops its ticket, and the outcome is delivered.
    let _ = command.reply.send(end);
}

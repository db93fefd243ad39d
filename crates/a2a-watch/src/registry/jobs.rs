//! Jobs that run beside the actor, and what their ends mean.

use std::path::PathBuf;
use std::sync::Arc;

use tracing::Instrument as _;
use volcanic_a2a_client::HintStream;
use volcanic_a2a_types::MessageId;

use super::asking::Asked;
use super::attending::Waited;
use super::calls::Called;
use super::closing::OpenSend;
use super::handle::{AskCommand, SendCommand};
use super::origins::Turn;
use super::recovering::Recovered;
use super::restoring::Restored;
use super::sending::Sent;
use super::{Followed, Registry, reading};
use crate::delivery::{DeliveryEnd, DeliveryError};
use crate::machine::{ReadResult, WatchEffect, WatchEvent};
use crate::order::TaskError;
use crate::record::{SendRecord, WatchId, WatchRecord, WatchState};
use crate::store::WatchStoreError;

use super::settling::Waiting;
use super::streaming::Opened;
use super::tickets::TicketOf;

/// The end of a job.
pub(super) enum JobEnd {
    Read {
        turn: Turn,
        called: Box<Called<ReadResult>>,
    },
    Opened {
        turn: Turn,
        called: Box<Called<Opened>>,
    },
    Hinted {
        id: WatchId,
        number: u64,
        stream: Box<HintStream>,
    },
    StreamEnded {
        id: WatchId,
        number: u64,
    },
    Wrote {
        id: WatchId,
        result: Result<bool, WatchStoreError>,
    },
    Reloaded {
        id: WatchId,
        record: Option<Box<WatchRecord>>,
    },
    Registered {
        id: WatchId,
        registered: bool,
    },
    Delivered {
        id: WatchId,
        result: Result<DeliveryEnd, DeliveryError>,
    },
    Sent {
        command: Box<SendCommand>,
        message_id: MessageId,
        held: Option<WatchId>,
        sent: Sent,
    },
    Waited {
        id: WatchId,
        command: Box<SendCommand>,
        waited: Waited,
    },
    Asked {
        command: Box<AskCommand>,
        held: Option<WatchId>,
        asked: Result<Asked, TaskError>,
    },
    Ticket {
        of: TicketOf,
        confirmed: bool,
    },
    SendClosed {
        message_id: MessageId,
    },
    /// The outcome of a send waits for its conversation.
    SendKept {
        open: Box<OpenSend>,
        /// The flushes when it was refused.
        flushes: u64,
    },
    /// What the store has of a send whose job broke off.
    Lost {
        send: Box<SendRecord>,
        held: Option<WatchId>,
        is_kept: bool,
    },
    Restored {
        restored: Box<Restored>,
    },
    Recovered {
        send: Box<SendRecord>,
        held: Option<WatchId>,
        recovered: Recovered,
    },
    /// The send that continued a held watch's task is marked as known.
    Marked {
        id: WatchId,
        message_id: MessageId,
        waiting: Option<Waiting>,
    },
    /// A message that led to a followed task beside its watch is marked as known.
    Counted {
        message_id: MessageId,
        record: Box<WatchRecord>,
        /// How the question stood that it answers, if it answers one.
        answered: Option<String>,
    },
    Viewed {
        failed: Vec<PathBuf>,
    },
    /// Nothing hangs on it.
    Done,
}

/// What hangs on a job.
pub(super) enum Owner {
    /// A watch that waits for its end.
    Watch(WatchId),
    /// A watch's call.
    Call(Turn),
    /// A watch's stream.
    Stream(WatchId, u64),
    /// A message that was being sent, and the watch held for it.
    Send(Box<SendRecord>, Option<WatchId>),
    /// The search for a message's end, and the watch held for it.
    Recover(Box<SendRecord>, Option<WatchId>),
    /// The end of a message that is being told.
    Close(Box<OpenSend>),
    /// The reading of what earlier processes left.
    Restore,
    /// Views that are being written.
    Views(Vec<PathBuf>),
}

impl Registry {
    /// Runs a job of a watch; the watch waits for its end.
    pub(super) fn spawn_watch_job(&mut self, id: &WatchId, effect: &WatchEffect) {
        let Some(Followed { watch, .. }) = self.watches.get(id) else { return };
        let record = watch.record().clone();
        let span =
            tracing::info_span!("watch", task.id = %record.task_id, agent.name = record.agent);
        let (context, id) = (Arc::clone(&self.context), id.clone());
        let owner = id.clone();
        let job = match effect {
            WatchEffect::Write => self.jobs.set.spawn(
                async move {
                    let record = context.clock.dated(record);
                    let result = context.deps.store.update(record.epoch, &record).await;
                    JobEnd::Wrote { id, result }
                }
                .instrument(span),
            ),
            WatchEffect::Register => self.jobs.set.spawn(
                async move {
                    let registered = reading::register(&context, &record).await;
                    JobEnd::Registered { id, registered }
                }
                .instrument(span),
            ),
            WatchEffect::Deliver => self.jobs.set.spawn(
                async move {
                    let result = reading::deliver(&context, &record).await;
                    JobEnd::Delivered { id, result }
                }
                .instrument(span),
            ),
            WatchEffect::Attend => return self.begin_wait(&id),
            WatchEffect::Read
            | WatchEffect::Subscribe
            | WatchEffect::Wait(_)
            | WatchEffect::End => return,
        };
        self.jobs.own(&job, Owner::Watch(owner));
    }

    pub(super) fn spawn_unregister(&mut self, record: &WatchRecord) {
        if record.push_token.is_none() {
            return;
        }
        let (context, record) = (Arc::clone(&self.context), record.clone());
        self.jobs.set.spawn(async move {
            tokio::select! {
                () = reading::unregister(&context, &record) => {}
                () = context.stop.cancelled() => {}
            }
            JobEnd::Done
        });
    }

    pub(super) fn on_job(&mut self, end: JobEnd) {
        match end {
            JobEnd::Read { turn, called } => {
                let result = self.on_called(&turn, *called);
                let result = self.in_view_of_others(&turn.id, result);
                self.feed(&turn.id, WatchEvent::Read(result));
                self.begin_calls();
            }
            JobEnd::Opened { turn, called } => self.on_opened(&turn, *called),
            JobEnd::Hinted { id, number, stream } => self.on_hinted(&id, number, *stream),
            JobEnd::StreamEnded { id, number } => self.on_stream_ended(&id, number),
            JobEnd::Wrote { id, result } => self.on_wrote(id, result),
            JobEnd::Reloaded { id, record } => self.on_reloaded(&id, record),
            JobEnd::Registered { id, registered: true } => self.feed(&id, WatchEvent::Registered),
            JobEnd::Registered { id, registered: false } => {
                self.feed(&id, WatchEvent::NotRegistered);
            }
            JobEnd::Delivered { id, result } => self.on_delivered(&id, result),
            JobEnd::Sent { command, message_id, held, sent } => {
                self.on_sent(command, message_id, held, sent);
            }
            JobEnd::Waited { id, command, waited } => self.on_waited(&id, *command, waited),
            JobEnd::Asked { command, held, asked } => self.on_asked(*command, held, asked),
            JobEnd::Ticket { of, confirmed } => self.on_ticket(of, confirmed),
            JobEnd::SendClosed { message_id } => {
                self.open_sends.remove(&message_id);
            }
            JobEnd::SendKept { open, flushes } => self.on_send_kept(*open, flushes),
            JobEnd::Lost { send, held, is_kept } => self.on_lost(*send, held, is_kept),
            JobEnd::Restored { restored } => self.on_restored(*restored),
            JobEnd::Recovered { send, held, recovered } => {
                self.on_recovered(&send, held, recovered);
            }
            JobEnd::Marked { id, message_id, waiting } => self.on_marked(&id, &message_id, waiting),
            JobEnd::Counted { message_id, record, answered } => {
                self.on_counted(&message_id, *record, answered);
            }
            JobEnd::Viewed { failed } => self.on_viewed(failed),
            JobEnd::Done => {}
        }
    }

    fn on_wrote(&mut self, id: WatchId, result: Result<bool, WatchStoreError>) {
        match result {
            Ok(true) => {
                self.log_claim(&id);
                self.feed(&id, WatchEvent::Written);
            }
            Ok(false) => {
                // Somebody else wrote the record. What is kept is right, so start from it.
                tracing::error!("a watch was written by somebody else and is read again");
                let context = Arc::clone(&self.context);
                self.jobs.set.spawn(async move {
                    let record = loop {
                        match context.deps.store.watch(&id).await {
                            Ok(record) => break record.map(Box::new),
                            Err(error) => {
                                tracing::error!(error = %error, "a watch cannot be read again");
                            }
                        }
                        if !context.may_retry().await {
                            return JobEnd::Done;
                        }
                    };
                    JobEnd::Reloaded { id, record }
                });
            }
            Err(error) => {
                tracing::error!(error = %error, "a watch could not be written and is tried again");
                self.feed(&id, WatchEvent::WriteFailed);
            }
        }
    }

    /// Says what made the registry look when there was something to tell; once per claim.
    fn log_claim(&self, id: &WatchId) {
        let Some(Followed { watch, .. }) = self.watches.get(id) else { return };
        let record = watch.record();
        if record.state == WatchState::Claimed {
            tracing::info!(
                agent.name = record.agent,
                task.id = %record.task_id,
                source = record.source.as_str(),
                told = record.claimed_label(),
                found_by = watch.read_for().as_str(),
                "there is something to tell of a task"
            );
        }
    }

    pub(super) fn on_delivered(
        &mut self,
        id: &WatchId,
        result: Result<DeliveryEnd, DeliveryError>,
    ) {
        let event = match result {
            Ok(DeliveryEnd::Delivered) => WatchEvent::Delivered,
            Ok(DeliveryEnd::NotNow) => WatchEvent::NotNow,
            Err(error) => {
                tracing::error!(error = %error, "a result could not be delivered and is tried again");
                WatchEvent::DeliverFailed
            }
        };
        self.feed(id, event);
    }

    /// A job panicked: what hangs on it goes on as after a failure that passes.
    pub(super) fn on_broken_job(&mut self, owner: Option<Owner>) {
        match owner {
            Some(Owner::Watch(id)) => self.on_broken_job_of(&id),
            Some(Owner::Call(turn)) => {
                self.on_called(&turn, Called::without_call(()));
                self.on_broken_job_of(&turn.id);
                self.begin_calls();
            }
            Some(Owner::Stream(id, number)) => self.on_stream_ended(&id, number),
            Some(Owner::Send(send, held)) => self.look_for_lost(send, held),
            Some(Owner::Recover(send, held)) => {
                self.on_recovered(&send, held, Recovered::Unknown);
            }
            Some(Owner::Close(open)) => self.kept_sends.push(*open),
            Some(Owner::Restore) => self.restore_later(),
            Some(Owner::Views(workspaces)) => self.on_viewed(workspaces),
            None => {}
        }
    }

    fn on_broken_job_of(&mut self, id: &WatchId) {
        if let Some(event) = self.watches.get(id).and_then(|followed| followed.watch.broken_job()) {
            self.feed(id, event);
        }
    }
}

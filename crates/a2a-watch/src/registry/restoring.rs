//! What happens once at start: watches are re-armed, kept texts go out, open sends are looked for.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::closing::OpenSend;
use super::context::Context;
use super::importing::import_all;
use super::jobs::JobEnd;
use super::sending::{Recovered, recover};
use super::{Followed, Registry};
use crate::delivery::Delivery;
use crate::machine::{Continuation, Watch, WatchEvent};
use crate::notice;
use crate::record::{SendRecord, WatchId, WatchRecord, WatchSource, WatchState, unknown_send_key};
use crate::store::WatchStoreError;

/// What the store holds at start.
pub(super) struct Restored {
    watches: Vec<WatchRecord>,
    sends: Vec<SendRecord>,
    /// Workspaces whose view may be stale.
    views: Vec<PathBuf>,
}

impl Registry {
    pub(super) fn begin_restore(&mut self, reply: oneshot::Sender<()>) {
        let context = Arc::clone(&self.context);
        self.restoring = true;
        self.jobs.set.spawn(async move {
            loop {
                match load(&context).await {
                    Ok(restored) => return JobEnd::Restored { restored: Box::new(restored), reply },
                    Err(error) => {
                        tracing::error!(error = %error, "the watches could not be read and are tried again");
                    }
                }
                tokio::select! {
                    () = tokio::time::sleep(context.config.store_retry) => {}
                    () = context.stop.cancelled() => return JobEnd::Done,
                }
            }
        });
    }

    pub(super) fn on_restored(&mut self, restored: Restored, reply: oneshot::Sender<()>) {
        self.restoring = false;
        let stagger = self.context.config.restore_stagger;
        let Restored { watches, sends, views } = restored;
        tracing::info!(watches = watches.len(), sends = sends.len(), "watches restored");
        let mut lost = Vec::new();
        for send in sends {
            if !self.open_sends.insert(send.message_id.clone()) {
                continue;
            }
            if send.end_reason.is_some() {
                self.spawn_close(OpenSend::unsent(&send), true);
            } else {
                lost.push((send, None));
            }
        }
        for (place, record) in (0_u32..).zip(watches) {
            match lost.iter_mut().find(|(send, _)| continues(send, &record)) {
                Some((_, held)) if held.is_none() && !self.watches.contains_key(&record.id) => {
                    *held = Some(record.clone());
                    self.adopt_held(record);
                }
                Some(_) | None => self.adopt(record, stagger.saturating_mul(place)),
            }
        }
        for workspace in &views {
            self.views.changed(workspace);
        }
        self.arm_view();
        for (send, held) in lost {
            let (context, send) = (Arc::clone(&self.context), Box::new(send));
            self.jobs.set.spawn(async move {
                let recovered = recover(&context, &send, held.as_ref()).await;
                let held = held.map(|record| record.id);
                JobEnd::Recovered { send, held, recovered }
            });
        }
        // Nobody has to wait for it.
        let _ = reply.send(());
    }

    pub(super) fn adopt(&mut self, record: WatchRecord, first_check: std::time::Duration) {
        let id = record.id.clone();
        if self.watches.contains_key(&id) {
            return;
        }
        let (watch, effect) = Watch::restored(record, self.now(), first_check, self.push_token());
        self.watches.insert(id.clone(), Followed::new(watch));
        self.carry_out(&id, effect);
    }

    /// Takes a watch up whose task an open send may have continued. What it would read and tell before that is known
    /// could be told a second time as the outcome of the send.
    fn adopt_held(&mut self, mut record: WatchRecord) {
        if self.context.config.push_base.is_none() {
            record.source = WatchSource::Poll;
        }
        self.views.changed(&record.workspace);
        self.watches.insert(record.id.clone(), Followed::new(Watch::attended(record)));
    }

    pub(super) fn on_recovered(
        &mut self,
        send: &SendRecord,
        held: Option<WatchId>,
        recovered: Recovered,
    ) {
        match (recovered, held) {
            (Recovered::Task(record), held) => {
                self.open_sends.remove(&send.message_id);
                if let Some(id) = held {
                    self.release(&id, true);
                }
                if self.watches.contains_key(&record.id) {
                    self.feed(&record.id, WatchEvent::ContinuedBeside);
                } else {
                    self.adopt(*record, std::time::Duration::ZERO);
                }
            }
            (Recovered::Continued, Some(id)) => {
                let continuation = Continuation {
                    message_id: send.message_id.clone(),
                    hops: send.hops,
                    source_ref: send.source_ref.clone(),
                };
                self.feed(&id, WatchEvent::Continued(continuation));
            }
            (Recovered::Unknown, held) => {
                if let Some(id) = held {
                    self.release(&id, true);
                }
                let reason = "the assistant was stopped while the message was on its way";
                let delivery = Delivery {
                    target: send.target.clone(),
                    key: unknown_send_key(&send.message_id),
                    text: notice::unknown_send(&send.agent, send.context_id.as_ref(), reason),
                    hops: send.hops,
                    source_ref: send.source_ref.clone(),
                };
                let (message_id, end_reason) = (send.message_id.clone(), Some(reason.to_owned()));
                self.spawn_close(OpenSend { message_id, delivery, end_reason }, true);
            }
            (Recovered::Continued, None) | (Recovered::Stopped, _) => {}
        }
    }

    /// A watch was written by somebody else: what the store has now replaces it.
    pub(super) fn on_reloaded(&mut self, id: &WatchId, record: Option<Box<WatchRecord>>) {
        let waiting = self.watches.remove(id).map(|followed| {
            if let Some(timer) = &followed.timer {
                self.timers.try_remove(timer);
            }
            followed.waiting
        });
        if let Some(record) = record {
            self.adopt(*record, self.context.config.store_retry);
        }
        for command in waiting.into_iter().flatten() {
            self.on_command(command);
        }
    }
}

async fn load(context: &Context) -> Result<Restored, WatchStoreError> {
    let views = import_all(context).await?;
    let store = &context.deps.store;
    let (watches, mut sends) = (store.live().await?, store.open_sends().await?);
    for record in &watches {
        // The watch noted the message, which is more than the send knows.
        let noted = |send: &SendRecord| record.message_id.as_ref() == Some(&send.message_id);
        for send in sends.extract_if(.., |send| noted(send)) {
            store.send_known(&send.message_id, None).await?;
        }
    }
    Ok(Restored { watches, sends, views })
}

/// Whether a send goes on with the task that a watch follows. A claimed text was there before the send.
fn continues(send: &SendRecord, watch: &WatchRecord) -> bool {
    send.task_id.as_ref() == Some(&watch.task_id)
        && (&send.target, &send.agent, &send.origin) == (&watch.target, &watch.agent, &watch.origin)
        && watch.state != WatchState::Claimed
}

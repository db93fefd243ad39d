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
use crate::machine::Watch;
use crate::notice;
use crate::record::{SendRecord, WatchId, WatchRecord, unknown_send_key};
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
        let stagger = self.context.config.restore_stagger;
        let Restored { watches, sends, views } = restored;
        tracing::info!(watches = watches.len(), sends = sends.len(), "watches restored");
        for (place, record) in (0_u32..).zip(watches) {
            self.adopt(record, stagger.saturating_mul(place));
        }
        for workspace in &views {
            self.views.changed(workspace);
        }
        self.arm_view();
        for send in sends {
            if !self.open_sends.insert(send.message_id.clone()) {
                continue;
            }
            let (context, send) = (Arc::clone(&self.context), Box::new(send));
            self.jobs.set.spawn(async move {
                let recovered = recover(&context, &send).await;
                JobEnd::Recovered { send, recovered }
            });
        }
        // Nobody has to wait for it.
        let _ = reply.send(());
    }

    fn adopt(&mut self, record: WatchRecord, first_check: std::time::Duration) {
        let id = record.id.clone();
        if self.watches.contains_key(&id) {
            return;
        }
        let (watch, effect) = Watch::restored(record, self.now(), first_check, self.push_token());
        self.watches.insert(id.clone(), Followed::new(watch));
        self.carry_out(&id, effect);
    }

    pub(super) fn on_recovered(&mut self, send: &SendRecord, recovered: Recovered) {
        match recovered {
            Recovered::Task(record) => {
                self.open_sends.remove(&send.message_id);
                self.adopt(*record, std::time::Duration::ZERO);
            }
            Recovered::Unknown => {
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
            Recovered::Stopped => {}
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
    Ok(Restored { watches: store.live().await?, sends: store.open_sends().await?, views })
}

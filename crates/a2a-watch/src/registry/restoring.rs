//! What happens once at start: watches are re-armed, kept texts go out, open sends are looked for.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, future, stream};
use tokio::sync::oneshot;

use super::closing::OpenSend;
use super::context::{Context, blocking};
use super::importing::{Lists, import_all};
use super::jobs::{JobEnd, Owner};
use super::{Followed, Registry, Timer};
use crate::machine::{SettledState, Watch, outlasts_round};
use crate::record::{SendRecord, WatchId, WatchRecord, WatchSource, WatchState, WatchTarget};
use crate::store::WatchStoreError;

/// How many watches are written at once when a state was moved; a store commits them together.
const MOVES: usize = 64;

/// What the store holds at start.
pub(super) struct Restored {
    watches: Vec<WatchRecord>,
    sends: Vec<SendRecord>,
    /// Watches whose outcome their conversation has already.
    told: HashSet<WatchId>,
    lists: Lists,
}

impl Registry {
    pub(super) fn begin_restore(&mut self, reply: oneshot::Sender<()>) {
        self.restoring.get_or_insert_default().push(reply);
        self.spawn_restore();
    }

    pub(super) fn spawn_restore(&mut self) {
        let context = Arc::clone(&self.context);
        let job = self.jobs.set.spawn(async move {
            loop {
                match load(&context).await {
                    Ok(restored) => return JobEnd::Restored { restored: Box::new(restored) },
                    Err(error) => {
                        tracing::error!(error = %error, "the watches could not be read and are tried again");
                    }
                }
                if !context.may_retry().await {
                    return JobEnd::Done;
                }
            }
        });
        self.jobs.own(&job, Owner::Restore);
    }

    /// The reading broke off. Nobody may act on the watches' tasks without them, so it is tried again.
    pub(super) fn restore_later(&mut self) {
        self.timers.insert(Timer::Restore, self.context.config.store_retry);
    }

    pub(super) fn on_restored(&mut self, restored: Restored) {
        let replies = self.restoring.take();
        let config = &self.context.config;
        let stagger = config.restore_stagger;
        let latest = config.poll_pauses.last().copied().unwrap_or_default();
        let Restored { watches, sends, told, lists } = restored;
        tracing::info!(watches = watches.len(), sends = sends.len(), "watches restored");
        self.views.keep(lists.kept);
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
                None if told.contains(&record.id) => self.adopt_told(record),
                Some(_) | None => self.adopt(record, stagger.saturating_mul(place).min(latest)),
            }
        }
        for workspace in &lists.stale {
            self.views.changed(workspace);
        }
        self.arm_view();
        for (send, held) in lost {
            self.spawn_recover(send, held);
        }
        for reply in replies.into_iter().flatten() {
            // Nobody has to wait for it.
            let _ = reply.send(());
        }
    }

    pub(super) fn adopt(&mut self, mut record: WatchRecord, first_check: std::time::Duration) {
        let id = record.id.clone();
        if self.watches.contains_key(&id) {
            return;
        }
        self.views.changed(&record.workspace);
        let now = self.now();
        record.correct_times(now);
        let (watch, effect) = Watch::restored(record, now, first_check, self.context.push_token());
        self.watches.insert(id.clone(), Followed::new(watch));
        self.carry_out(&id, effect);
    }

    /// Takes up a watch whose outcome was told by a process that was killed before it could note so here.
    fn adopt_told(&mut self, record: WatchRecord) {
        let id = record.id.clone();
        if self.watches.contains_key(&id) {
            return;
        }
        self.views.changed(&record.workspace);
        let (watch, effect) = Watch::told(record);
        self.watches.insert(id.clone(), Followed::new(watch));
        self.carry_out(&id, Some(effect));
    }

    /// Takes a watch up whose task an open send may have continued. What it would read and tell before that is known
    /// could be told a second time as the outcome of the send.
    fn adopt_held(&mut self, mut record: WatchRecord) {
        if self.context.config.push_base.is_none() {
            record.source = WatchSource::Poll;
        }
        record.correct_times(self.now());
        self.views.changed(&record.workspace);
        self.watches.insert(record.id.clone(), Followed::new(Watch::attended(record)));
    }

    /// A watch was written by somebody else: what the store has now replaces it.
    pub(super) fn on_reloaded(&mut self, id: &WatchId, record: Option<Box<WatchRecord>>) {
        let Some(followed) = self.watches.remove(id) else { return };
        self.views.changed(&followed.watch.record().workspace);
        if let Some(timer) = &followed.timer {
            self.timers.try_remove(timer);
        }
        if let Some(held) = followed.stream {
            self.drop_stream(held);
        }
        if let Some(mut record) = record {
            // What is kept is for the next process, so it may be ahead of this one's clock.
            let last = followed.watch.record();
            record.started_at = record.started_at.min(last.started_at);
            // A message may have been counted since it was read.
            record.continuations = record.continuations.max(last.continuations);
            if last.state != WatchState::Claimed {
                // What was told here may be kept by the very write that was refused.
                last.told
                    .iter()
                    .filter(|told| outlasts_round(told))
                    .cloned()
                    .for_each(|told| record.note_told(told));
            }
            let continuing = followed.continuing.zip(last.message_id.clone());
            let again = record.clone();
            if last.state == WatchState::Done
                && record.state != WatchState::Claimed
                && !record.is_behind()
            {
                // There was nothing left but to say so.
                self.adopt_told(*record);
            } else {
                self.adopt(*record, self.context.config.store_retry);
            }
            if let Some((waiting, message_id)) = continuing {
                // Its message is in the agent's hands, whatever was written here meanwhile.
                self.follow_known(message_id, *again, true, waiting);
            } else if let Some(message_id) = again.message_id {
                self.spawn_mark(message_id);
            }
        }
        for command in followed.waiting {
            self.serve(command);
        }
    }
}

async fn load(context: &Context) -> Result<Restored, WatchStoreError> {
    let store = &context.deps.store;
    let (mut sends, mut watches) = (store.open_sends().await?, store.live().await?);
    let are_moved = move_along(context, &watches, &mut sends).await?;
    let lists = import_all(context).await?;
    if are_moved || lists.are_taken_up {
        watches = store.live().await?;
    }
    for record in &watches {
        // The watch noted the message, which is more than the send knows.
        let noted = |send: &SendRecord| record.message_id.as_ref() == Some(&send.message_id);
        for send in sends.extract_if(.., |send| noted(send)) {
            store.send_known(&send.message_id, None).await?;
        }
    }
    let told = told(context, &watches).await?;
    Ok(Restored { watches, sends, told, lists })
}

/// Lets watches and sends whose workspace is gone go on in that of their conversation: the state stands elsewhere than the
/// process that wrote it had it, with everything that belongs to it. That is kept before anything is imported, so that what
/// their list says is not taken for news. Returns whether watches were moved.
async fn move_along(
    context: &Context,
    watches: &[WatchRecord],
    sends: &mut [SendRecord],
) -> Result<bool, WatchStoreError> {
    let named = watches.iter().map(|record| &record.workspace);
    let named: HashSet<_> =
        named.chain(sends.iter().map(|send| &send.workspace)).cloned().collect();
    let is_gone = |path: &PathBuf| path.try_exists().is_ok_and(|exists| !exists);
    let gone: HashSet<_> = blocking(move || named.into_iter().filter(is_gone).collect()).await;
    let place = |target: &WatchTarget, workspace: &PathBuf| {
        let place = context.deps.delivery.workspace_for(target)?;
        (gone.contains(workspace) && place != *workspace).then_some(place)
    };
    for send in sends {
        if let Some(place) = place(&send.target, &send.workspace) {
            send.workspace = place;
        }
    }
    let moved: Vec<_> = watches
        .iter()
        .filter_map(|record| {
            let workspace = place(&record.target, &record.workspace)?;
            Some(WatchRecord { workspace, ..record.clone() })
        })
        .collect();
    let store = &context.deps.store;
    let kept = stream::iter(moved)
        .map(|record| async move { store.update(record.epoch, &record).await })
        .buffer_unordered(MOVES);
    let moved = kept.try_fold(0_usize, |sum, _| future::ready(Ok(sum + 1))).await?;
    if moved > 0 {
        tracing::info!(
            watches = moved,
            "watches go on in the workspace that their conversation has now"
        );
    }
    Ok(moved > 0)
}

/// The watches that nothing is left of but to say that they are over: a caller put the outcome into the conversation, and
/// the process was killed before the tombstone. To ask the agent again would tell nothing new, and an agent that is gone by
/// now would lead to a notice about an outcome that was told.
async fn told(
    context: &Context,
    watches: &[WatchRecord],
) -> Result<HashSet<WatchId>, WatchStoreError> {
    let mut keys = HashMap::<_, HashMap<String, WatchId>>::new();
    for record in watches.iter().filter(|record| may_be_told(record)) {
        let of_target = keys.entry(record.target.clone()).or_default();
        let labels = SettledState::last_labels();
        of_target.extend(labels.map(|label| (record.key_for(&label), record.id.clone())));
    }
    let mut told = HashSet::new();
    for (target, mut keys) in keys {
        let taken = context.deps.delivery.told(&target, keys.keys().cloned().collect()).await;
        let taken = taken
            .map_err(|error| WatchStoreError::new("look up which outcomes were told", error))?;
        told.extend(taken.iter().filter_map(|key| keys.remove(key)));
    }
    Ok(told)
}

/// Whether somebody may have told a watch's outcome who had it in hand. A claimed one is delivered under the very key, and
/// a message that no round covers makes a new outcome: that it may say the same again is better than that it is not told.
fn may_be_told(record: &WatchRecord) -> bool {
    match record.state {
        WatchState::Attended | WatchState::Watching => !record.is_behind(),
        WatchState::Claimed | WatchState::Done => false,
    }
}

/// Whether a send goes on with the task that a watch follows. A claimed text was there before the send.
fn continues(send: &SendRecord, watch: &WatchRecord) -> bool {
    send.task_id.as_ref() == Some(&watch.task_id)
        && (&send.target, &send.agent, &send.origin) == (&watch.target, &watch.agent, &watch.origin)
        && watch.state != WatchState::Claimed
}

//! Streams of watches: opened in turn, listened to by a job each, dropped when the watch has no use for them.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::task::AbortHandle;
use volcanic_a2a_client::{HintStream, TaskHint};
use volcanic_a2a_types::StreamResponse;

use super::Registry;
use super::calls::Called;
use super::context::Context;
use super::jobs::{JobEnd, Owner};
use super::origins::Turn;
use super::reading::{entry_of, reached};
use crate::machine::{Hint, ReadResult, WatchEvent};
use crate::record::{WatchId, WatchRecord};

/// A place among the streams, and who listens.
pub(super) struct HeldStream {
    origin: String,
    /// Tells the listener from an earlier one.
    number: u64,
    listener: Option<AbortHandle>,
}

/// How the opening of a stream ended.
pub(super) enum Opened {
    Stream(HintStream),
    /// The agent has none.
    None,
    /// It cannot be had now.
    Failed,
    /// The agent's entry does not let it be called.
    NotCalled(ReadResult),
}

/// Opens a stream of a watch's task.
pub(super) async fn open(context: &Context, record: &WatchRecord) -> Called<Opened> {
    let entry = match entry_of(context, record).await {
        Ok(entry) => entry,
        Err(result) => return Called::without_call(Opened::NotCalled(result)),
    };
    let remote = match context.connect_for_watch(&record.workspace, &entry).await {
        Ok(remote) => remote.concealing(record.push_token.as_ref()),
        Err(error) => return reached(&error).map(|()| Opened::Failed),
    };
    if !remote.streams() {
        // The card may have been read long ago.
        return Called::without_call(Opened::None);
    }
    match remote.subscribe_for_hints(&record.task_id).await {
        Ok(stream) => Called::answered(Opened::Stream(stream)),
        Err(error) => {
            tracing::debug!(task.id = %record.task_id, error = %error, "a stream could not be opened");
            // The read that follows tells how the agent is: streams alone may be what is missing.
            let put_off = error.retry_after();
            Called { put_off, ..Called::without_call(Opened::Failed) }
        }
    }
}

/// Whether the task may have settled.
pub(super) fn may_have_settled(hint: &TaskHint) -> bool {
    match hint {
        TaskHint::Event(StreamResponse::Task(task)) => task.status.state.is_settled(),
        TaskHint::Event(StreamResponse::StatusUpdate(update)) => update.status.state.is_settled(),
        TaskHint::Event(StreamResponse::Message(_)) | TaskHint::Large => true,
        // More of an artifact settles nothing, and neither does what we do not know.
        TaskHint::Event(_) => false,
    }
}

impl Registry {
    /// Notes that a watch has a place among the streams; whoever listened to an earlier stream stops.
    pub(super) fn hold_place(&mut self, id: &WatchId) {
        self.last_stream += 1;
        let number = self.last_stream;
        if let Some(followed) = self.watches.get_mut(id) {
            let origin = followed.watch.record().origin.clone();
            let earlier = followed.stream.replace(HeldStream { origin, number, listener: None });
            if let Some(listener) = earlier.and_then(|earlier| earlier.listener) {
                listener.abort();
            }
        }
    }

    pub(super) fn on_opened(&mut self, turn: &Turn, called: Called<Opened>) {
        let id = &turn.id;
        match self.on_called(turn, called) {
            Opened::Stream(stream) => {
                self.feed(id, WatchEvent::StreamOpened);
                self.listen(id, stream, Duration::ZERO);
            }
            Opened::None => self.feed(id, WatchEvent::NoStreams),
            Opened::Failed => self.feed(id, WatchEvent::StreamFailed),
            Opened::NotCalled(result) => {
                let result = self.in_view_of_others(id, result);
                self.feed(id, WatchEvent::Read(result));
            }
        }
        self.begin_calls();
    }

    /// Waits for the stream's next hint or its end, after a `pause`.
    fn listen(&mut self, id: &WatchId, mut stream: HintStream, pause: Duration) {
        let Some(held) = self.watches.get_mut(id).and_then(|followed| followed.stream.as_mut())
        else {
            return;
        };
        let (number, context) = (held.number, Arc::clone(&self.context));
        let (owner, id) = (Owner::Stream(id.clone(), number), id.clone());
        let job = self.jobs.set.spawn(async move {
            let hinted = async {
                tokio::time::sleep(pause).await;
                while let Some(hint) = stream.next().await {
                    match hint {
                        Ok(hint) if may_have_settled(&hint) => return true,
                        Ok(_) => {}
                        Err(error) => {
                            tracing::debug!(error = %error, "a stream broke");
                            return false;
                        }
                    }
                }
                false
            };
            tokio::select! {
                hinted = hinted => if hinted {
                    JobEnd::Hinted { id, number, stream: Box::new(stream) }
                } else {
                    JobEnd::StreamEnded { id, number }
                },
                () = context.stop.cancelled() => JobEnd::Done,
            }
        });
        held.listener = Some(job.clone());
        self.jobs.own(&job, owner);
    }

    pub(super) fn on_hinted(&mut self, id: &WatchId, number: u64, stream: HintStream) {
        if self.is_listened_to(id, number) {
            self.feed(id, WatchEvent::Hinted(Hint::Stream));
            if self.is_listened_to(id, number) {
                // There is no read before that, so an agent that hints without end keeps nobody busy.
                self.listen(id, stream, self.context.config.push_gap);
            }
        }
    }

    pub(super) fn on_stream_ended(&mut self, id: &WatchId, number: u64) {
        if self.is_listened_to(id, number) {
            self.feed(id, WatchEvent::StreamEnded);
        }
    }

    fn is_listened_to(&self, id: &WatchId, number: u64) -> bool {
        let held = self.watches.get(id).and_then(|followed| followed.stream.as_ref());
        held.is_some_and(|held| held.number == number)
    }

    /// Drops the stream of a watch that has no use for it any more.
    pub(super) fn drop_unused_stream(&mut self, id: &WatchId) {
        let Some(followed) = self.watches.get_mut(id) else { return };
        if !followed.watch.is_streaming()
            && let Some(held) = followed.stream.take()
        {
            self.drop_stream(held);
        }
    }

    /// Stops listening and gives the place to the next watch that waits for one.
    pub(super) fn drop_stream(&mut self, held: HeldStream) {
        if let Some(listener) = held.listener {
            listener.abort();
        }
        self.origins.free_place(&held.origin);
        while let Some(id) = self.origins.next_wanting(&held.origin, &self.context.config) {
            // One that is busy now asks again when it rests.
            if self.watches.get(&id).is_some_and(|followed| followed.watch.waits_for_place()) {
                return self.feed(&id, WatchEvent::Place);
            }
        }
    }

    /// Whether a watch that is about to rest could have a stream now.
    pub(super) fn could_stream(&self, id: &WatchId) -> bool {
        self.watches.get(id).is_some_and(|followed| {
            followed.watch.waits_for_place()
                && self.origins.has_place(&followed.watch.record().origin, &self.context.config)
        })
    }
}

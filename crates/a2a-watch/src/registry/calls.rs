//! Calls of watches: each waits for its origin's turn, runs as a job, and tells how the origin is.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument as _;

use super::jobs::{JobEnd, Owner};
use super::origins::{Reach, Turn};
use super::streaming::open;
use super::{Followed, Registry, Timer, reading};
use crate::machine::{ReadResult, WatchEffect, WatchEvent};
use crate::record::WatchId;

/// What a call led to, and what it told about the origin.
pub(super) struct Called<T> {
    pub(super) result: T,
    pub(super) reach: Reach,
    /// How long the origin asks to be left alone.
    pub(super) put_off: Option<Duration>,
}

impl<T> Called<T> {
    /// What was found out without a call.
    pub(super) fn without_call(result: T) -> Self {
        Self { result, reach: Reach::Nothing, put_off: None }
    }

    /// What the agent said.
    pub(super) fn answered(result: T) -> Self {
        Self { result, reach: Reach::Answered, put_off: None }
    }

    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> Called<U> {
        Called { result: map(self.result), reach: self.reach, put_off: self.put_off }
    }
}

impl Registry {
    /// Lets a watch wait for its turn to call its agent.
    pub(super) fn wait_for_turn(&mut self, id: &WatchId) {
        let Some(followed) = self.watches.get(id) else { return };
        self.origins.wait(&followed.watch.record().origin, id.clone());
        self.begin_calls();
    }

    /// Takes a watch's call back if it has not begun; whether it had not.
    pub(super) fn withdraw_call(&mut self, id: &WatchId) -> bool {
        let Some(followed) = self.watches.get(id) else { return false };
        let origin = &followed.watch.record().origin;
        let withdrawn = followed.watch.call().is_some() && self.origins.withdraw(origin, id);
        if withdrawn {
            self.feed(id, WatchEvent::Withdrawn);
        }
        withdrawn
    }

    /// Begins every call whose turn has come.
    pub(super) fn begin_calls(&mut self) {
        if std::mem::replace(&mut self.is_beginning, true) {
            // A watch that found no place for its stream has another call instead, and who begins calls comes to it. Begun
            // from here, thousands of them would stand on one stack.
            return;
        }
        let now = self.now();
        while let Some(turn) = self.origins.next(now, &self.context.config) {
            match self.watches.get(&turn.id).and_then(|followed| followed.watch.call()) {
                Some(WatchEffect::Read) => self.spawn_read(turn),
                Some(WatchEffect::Subscribe) => self.spawn_open(turn),
                Some(_) | None => {
                    self.origins.ended(&turn, Reach::Nothing, now, &self.context.config);
                }
            }
        }
        if let Some(at) = self.origins.next_opening(now) {
            self.arm_origins(at);
        }
        self.is_beginning = false;
    }

    fn arm_origins(&mut self, at: jiff::Timestamp) {
        if self.origins_at.as_ref().is_some_and(|(armed, _)| *armed <= at) {
            return;
        }
        if let Some((_, timer)) = self.origins_at.take() {
            self.timers.try_remove(&timer);
        }
        let pause = Duration::try_from(at.duration_since(self.now())).unwrap_or_default();
        let jitter =
            pause.mul_f64(self.context.config.jitter * self.context.deps.chance.fraction());
        self.origins_at = Some((at, self.timers.insert(Timer::Origins, pause + jitter)));
    }

    pub(super) fn on_origins_open(&mut self) {
        self.origins_at = None;
        self.begin_calls();
    }

    fn spawn_read(&mut self, turn: Turn) {
        let Some(Followed { watch, .. }) = self.watches.get(&turn.id) else { return };
        let (record, tokens) = (watch.record().clone(), self.tokens_beside(watch.record()));
        let span =
            tracing::info_span!("watch", task.id = %record.task_id, agent.name = record.agent);
        let (context, owner) = (Arc::clone(&self.context), Owner::Call(turn.clone()));
        let job = self.jobs.set.spawn(
            async move {
                let called = tokio::select! {
                    called = reading::read(&context, &record, &tokens) => called,
                    () = context.stop.cancelled() => return JobEnd::Done,
                };
                JobEnd::Read { turn, called: Box::new(called) }
            }
            .instrument(span),
        );
        self.jobs.own(&job, owner);
    }

    fn spawn_open(&mut self, turn: Turn) {
        let (now, config) = (self.now(), &self.context.config);
        let Some(followed) = self.watches.get_mut(&turn.id) else { return };
        let has_place = followed.stream.is_some() || self.origins.take_place(&turn.origin, config);
        if !has_place {
            self.origins.ended(&turn, Reach::Nothing, now, config);
            self.origins.want_place(&turn.origin, turn.id.clone());
            return self.feed(&turn.id, WatchEvent::NoPlace);
        }
        let record = followed.watch.record().clone();
        let span =
            tracing::info_span!("stream", task.id = %record.task_id, agent.name = record.agent);
        let (context, owner) = (Arc::clone(&self.context), Owner::Call(turn.clone()));
        let id = turn.id.clone();
        let job = self.jobs.set.spawn(
            async move {
                let called = tokio::select! {
                    called = open(&context, &record) => called,
                    () = context.stop.cancelled() => return JobEnd::Done,
                };
                JobEnd::Opened { turn, called: Box::new(called) }
            }
            .instrument(span),
        );
        self.jobs.own(&job, owner);
        self.hold_place(&id);
    }

    /// A call ended, for better or worse.
    pub(super) fn on_called<T>(&mut self, turn: &Turn, called: Called<T>) -> T {
        let (now, config) = (self.now(), &self.context.config);
        if let Some(pause) = called.put_off {
            self.origins.put_off(&turn.origin, pause, now, config.retry_after_cap);
        }
        let is_down = self.origins.ended(turn, called.reach, now, config);
        if is_down {
            tracing::info!(origin = turn.origin, "an origin is out of reach, its watches wait");
            self.give_overdue_up(&turn.origin);
        }
        called.result
    }

    /// What a read of a watch means in view of the others.
    pub(super) fn in_view_of_others(&self, id: &WatchId, result: ReadResult) -> ReadResult {
        let ReadResult::OriginKnown { origin } = &result else { return result };
        let Some(followed) = self.watches.get(id) else { return result };
        let record = followed.watch.record();
        let is_twin = |(other, followed): (&WatchId, &Followed)| {
            let kept = followed.watch.record();
            other != id
                && (&kept.agent, &kept.task_id, &kept.origin)
                    == (&record.agent, &record.task_id, origin)
        };
        if self.watches.of_target(&record.target).any(is_twin) {
            ReadResult::FollowedElsewhere
        } else {
            result
        }
    }

    /// Watches whose time is over do not wait for an origin that is out of reach: the call that failed stands for theirs.
    fn give_overdue_up(&mut self, origin: &str) {
        let (now, config) = (self.now(), &self.context.config);
        let is_overdue = |id: &&WatchId| {
            self.watches.get(id).is_some_and(|followed| followed.watch.is_overdue(now, config))
        };
        let overdue: Vec<_> = self.origins.waiting(origin).filter(is_overdue).cloned().collect();
        for id in overdue {
            self.origins.withdraw(origin, &id);
            let reason = "the agent is out of reach".to_owned();
            self.feed(&id, WatchEvent::Read(ReadResult::Failed { reason, retry_after: None }));
        }
    }
}

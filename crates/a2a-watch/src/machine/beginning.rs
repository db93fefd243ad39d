//! How a watch begins: with a send that waits for its task, or with what an earlier process left.

use std::time::Duration;

use jiff::Timestamp;
use volcanic_base::Secret;

use super::{After, Hint, Phase, Stream, Watch, WatchEffect};
use crate::config::WatchConfig;
use crate::record::{WatchRecord, WatchSource, WatchState};

impl Watch {
    /// A watch whose record was just written as [`WatchState::Attended`]; the caller waits for the task.
    pub(crate) fn attended(record: WatchRecord) -> Self {
        let mut watch = Self::with(record, Phase::Attended);
        if watch.record.source == WatchSource::Push {
            watch.stream = Stream::Off;
        }
        watch
    }

    /// A watch whose record was just written as [`WatchState::Watching`]: nobody waits for the task, which was `hinted` to be
    /// settled or not.
    pub(crate) fn begun(
        record: WatchRecord,
        hinted: bool,
        now: Timestamp,
        config: &WatchConfig,
    ) -> (Self, WatchEffect) {
        let mut watch = Self::with(record, Phase::Attended);
        if hinted {
            watch.keep_hint(Hint::Begin);
        }
        let pause = watch.pause_after_hold(now, config);
        let after = if watch.record.push_token.is_some() {
            After::Register
        } else {
            watch.following(pause)
        };
        let effect = watch.go_on(after, now, config);
        (watch, effect)
    }

    /// A watch that an earlier process left. The first check comes after `first_check`; `push_token` is set when somebody
    /// listens for pushes.
    pub(crate) fn restored(
        record: WatchRecord,
        now: Timestamp,
        first_check: Duration,
        push_token: Option<Secret>,
    ) -> (Self, Option<WatchEffect>) {
        let mut watch = Self { begins: true, ..Self::with(record, Phase::Attended) };
        let was_pushed = watch.record.source == WatchSource::Push;
        let is_pushed =
            was_pushed && push_token.is_some() && watch.record.state != WatchState::Done;
        if is_pushed {
            watch.stream = Stream::Off;
        } else if was_pushed {
            watch.record.source = WatchSource::Poll;
        }
        let effect = match watch.record.state {
            WatchState::Attended => Some(watch.let_go(push_token, first_check)),
            // What was pushed meanwhile was lost.
            WatchState::Watching if is_pushed => Some(watch.rest(now, Duration::ZERO)),
            WatchState::Watching if was_pushed => Some(watch.write(After::Check(first_check))),
            WatchState::Watching if watch.is_unregistered(push_token.as_ref()) => {
                Some(watch.register())
            }
            WatchState::Watching => Some(watch.rest(now, first_check)),
            WatchState::Claimed => {
                watch.phase = Phase::Delivering;
                Some(WatchEffect::Deliver)
            }
            WatchState::Done if watch.record.is_behind() => {
                watch.record.state = WatchState::Watching;
                watch.begin_round(now, None);
                // The push config may have been taken back, or never been sent.
                let is_owed = watch.is_unregistered(push_token.as_ref());
                let after = if is_owed { After::Register } else { After::Check(first_check) };
                Some(watch.write(after))
            }
            WatchState::Done => {
                watch.phase = Phase::Ended;
                Some(WatchEffect::End)
            }
        };
        (watch, effect)
    }

    /// A watch that an earlier process left with its outcome told: only the tombstone is missing.
    pub(crate) fn told(mut record: WatchRecord) -> (Self, WatchEffect) {
        record.state = WatchState::Done;
        let mut watch = Self::with(record, Phase::Attended);
        let effect = watch.write(After::End);
        (watch, effect)
    }

    fn with(record: WatchRecord, phase: Phase) -> Self {
        Self {
            record,
            phase,
            step: 0,
            missing_since: None,
            hint: None,
            read_for: Hint::Begin,
            begins: false,
            last_push_read: None,
            stream: Stream::Wanted,
            stream_failures: 0,
            suspected: false,
            held_until: None,
            ending: None,
            flushed: false,
            unsaved: 0,
            stale: 0,
        }
    }
}

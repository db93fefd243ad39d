//! What a read of the task means for its watch.

use std::time::Duration;

use jiff::Timestamp;

use super::{After, ORIGIN_MOVED, ReadResult, SettledState, Watch, WatchEffect, elapsed};
use crate::config::WatchConfig;
use crate::notice;
use crate::record::{WatchRecord, WatchSource, WatchState};

/// How often files are tried again before the outcome is told without them.
const SAVES_AGAIN: u32 = 3;

/// The part of a record that is worth a write of its own after a read.
type Notes = (u32, u32, Option<Timestamp>, Option<String>, bool, WatchSource);

fn notes(record: &WatchRecord) -> Notes {
    (
        record.failures,
        record.not_found,
        record.not_found_since,
        record.last_seen.clone(),
        record.context_id.is_some(),
        record.source,
    )
}

impl Watch {
    pub(super) fn on_read(
        &mut self,
        result: ReadResult,
        now: Timestamp,
        config: &WatchConfig,
    ) -> WatchEffect {
        let before = notes(&self.record);
        if result.is_of_the_agent() {
            self.blame_stream(config);
        }
        self.count_anew_but(&result);
        let pause = match result {
            ReadResult::Settled { state, text, context_id } => {
                self.seen(&state.label, context_id);
                return self.tell(state, text);
            }
            ReadResult::Unsaved { state, text, context_id, reason } => {
                self.unsaved += 1;
                if self.unsaved > SAVES_AGAIN || self.time_left(now, config).is_zero() {
                    self.seen(&state.label, context_id);
                    return self.tell(state, text);
                }
                self.failed(reason);
                self.pause(now, config, None)
            }
            ReadResult::ToldBefore { state, context_id } => {
                self.seen(&state.label, context_id);
                // A task that can still go on may yet do so with the message that was sent.
                if state.is_final && !self.record.is_behind() {
                    self.record.state = WatchState::Done;
                    return self.write(After::End);
                }
                self.pause(now, config, None)
            }
            ReadResult::Unsettled { label, context_id } => {
                self.seen(&label, context_id);
                self.pause(now, config, None)
            }
            ReadResult::Failed { reason, retry_after } => {
                self.failed(reason);
                self.pause(now, config, retry_after)
            }
            ReadResult::NotFound => {
                if self.count_not_found(now, config) {
                    return self.claim("not-found", notice::not_found(&self.record), false);
                }
                self.pause(now, config, None)
            }
            ReadResult::AgentMissing => match self.missing_wait(now, config) {
                Some(wait) => wait,
                None => return self.claim("stopped", notice::agent_removed(&self.record), false),
            },
            ReadResult::AgentsFileBad { reason } => {
                // A file that is being edited never ends a watch, however long it takes.
                self.failed(reason);
                let pause = self.pause(now, config, None);
                return self.note_and_rest(&before, now, pause);
            }
            ReadResult::OriginKnown { origin } if self.ending.is_none() => {
                self.record.origin = origin;
                return self.write(After::Locate);
            }
            ReadResult::OriginKnown { .. } | ReadResult::FollowedElsewhere => {
                self.record.state = WatchState::Done;
                return self.write(After::End);
            }
            ReadResult::OriginMoved => match self.moved_wait(config) {
                Some(wait) => wait,
                None => return self.claim(ORIGIN_MOVED, notice::origin_moved(&self.record), true),
            },
        };
        let left = self.time_left(now, config);
        if left.is_zero() {
            return self.claim(
                "no-result",
                notice::no_result(&self.record, config.watch_timeout),
                false,
            );
        }
        self.note_and_rest(&before, now, pause.min(left))
    }

    /// What has to come several times in a row begins again, but for what came now.
    fn count_anew_but(&mut self, result: &ReadResult) {
        if *result != ReadResult::AgentMissing {
            self.missing_since = None;
        }
        if *result != ReadResult::NotFound {
            self.record.not_found = 0;
            self.record.not_found_since = None;
        }
        if matches!(result, ReadResult::Unsettled { .. } | ReadResult::ToldBefore { .. }) {
            self.unsaved = 0;
        }
    }

    fn note_and_rest(&mut self, before: &Notes, now: Timestamp, pause: Duration) -> WatchEffect {
        if *before == notes(&self.record) && self.hint.is_none() {
            self.rest(now, pause)
        } else {
            // For those who read the record; the timer is set once it is written.
            self.record.next_check_at = now.saturating_add(pause).ok();
            self.write(After::Check(pause))
        }
    }

    fn seen(&mut self, label: &str, context_id: Option<volcanic_a2a_types::ContextId>) {
        self.record.failures = 0;
        self.record.last_seen = Some(label.to_owned());
        if context_id.is_some() {
            self.record.context_id = context_id;
        }
    }

    fn failed(&mut self, reason: String) {
        self.record.failures = self.record.failures.saturating_add(1);
        self.record.last_seen = Some(reason);
    }

    fn count_not_found(&mut self, now: Timestamp, config: &WatchConfig) -> bool {
        self.failed("the agent does not know the task".to_owned());
        self.record.not_found = self.record.not_found.saturating_add(1);
        let since = *self.record.not_found_since.get_or_insert(now);
        self.record.not_found >= config.not_found_limit
            && elapsed(since, now) >= config.not_found_span
    }

    /// How long until the agent's absence counts; `None` when it does.
    fn missing_wait(&mut self, now: Timestamp, config: &WatchConfig) -> Option<Duration> {
        self.failed("agents.json has no such agent".to_owned());
        let since = *self.missing_since.get_or_insert(now);
        let wait = config.missing_gap.saturating_sub(elapsed(since, now));
        (since == now || !wait.is_zero()).then_some(wait)
    }

    /// How long until the agent's entry is looked at again; `None` when the owner does not know that it moved.
    fn moved_wait(&mut self, config: &WatchConfig) -> Option<Duration> {
        self.close_stream();
        self.failed("its entry points to another origin now".to_owned());
        let is_told = self.record.told.iter().any(|told| told == ORIGIN_MOVED);
        is_told.then(|| config.poll_pauses.last().copied().unwrap_or_default())
    }

    fn tell(&mut self, state: SettledState, text: String) -> WatchEffect {
        self.unsaved = 0;
        self.note_outcome(state.mark);
        self.claim(&state.label, text, state.label == super::AUTH_REQUIRED)
    }

    fn claim(&mut self, label: &str, text: String, goes_on: bool) -> WatchEffect {
        self.record.state = WatchState::Claimed;
        self.record.delivery_key = self.record.key_for(label);
        self.record.text = Some(text);
        self.record.goes_on = goes_on;
        self.close_stream();
        self.write(After::Deliver)
    }

    /// The pause before the next read.
    pub(super) fn pause(
        &mut self,
        now: Timestamp,
        config: &WatchConfig,
        retry_after: Option<Duration>,
    ) -> Duration {
        let undisturbed = self.record.failures == 0;
        let own = match self.stream_pause(now, config) {
            Some(pause) if undisturbed => pause,
            None if undisturbed && self.record.source == WatchSource::Push => config.safety_read,
            Some(_) | None => self.poll_pause(config),
        };
        own.max(retry_after.unwrap_or_default().min(config.retry_after_cap))
    }

    pub(super) fn poll_pause(&mut self, config: &WatchConfig) -> Duration {
        let last = config.poll_pauses.len().saturating_sub(1);
        let pause = config.poll_pauses.get(self.step.min(last)).copied().unwrap_or_default();
        self.step = self.step.saturating_add(1);
        pause
    }

    /// How long a push must wait for its read.
    pub(super) fn push_wait(&self, now: Timestamp, config: &WatchConfig) -> Duration {
        self.last_push_read
            .map_or(Duration::ZERO, |last| config.push_gap.saturating_sub(elapsed(last, now)))
    }

    pub(super) fn time_left(&self, now: Timestamp, config: &WatchConfig) -> Duration {
        config.watch_timeout.saturating_sub(elapsed(self.record.started_at, now))
    }
}

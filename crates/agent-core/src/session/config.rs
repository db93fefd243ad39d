//! What a session is told by its host.

use std::{sync::Arc, time::Duration};

use jiff::tz::TimeZone;
use volcanic_base::{Chance, Clock};

use super::answer::AnswerFormat;
use crate::{
    model::{Model, ModelError},
    store::SessionStore,
    tool::Tool,
};

/// How a session behaves.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// The system prompt; empty for none.
    pub system_prompt: String,
    /// The zone of the timestamp header before each prompt.
    pub time_zone: TimeZone,
    /// Replies that one run may take before the model is asked to sum up without tools. Bounds what a model that only
    /// ever calls tools can cost.
    pub max_turns: u32,
    /// How often a failed request is tried again.
    pub retry: RetryConfig,
    /// How often one run is taken up again after a restart before it counts as failed, so that a run that brings the
    /// process down cannot do so for ever.
    pub resume_limit: u32,
    /// Turns answers into what the host shows.
    pub answers: Arc<dyn AnswerFormat>,
    /// Limits that rarely differ between hosts.
    pub limits: SessionLimits,
}

impl SessionConfig {
    /// A configuration with the usual limits: 50 turns, three retries, three resumptions.
    pub fn new(
        system_prompt: impl Into<String>,
        time_zone: TimeZone,
        answers: Arc<dyn AnswerFormat>,
    ) -> Self {
        Self {
            system_prompt: system_prompt.into(),
            time_zone,
            max_turns: 50,
            retry: RetryConfig::default(),
            resume_limit: 3,
            answers,
            limits: SessionLimits::default(),
        }
    }
}

/// When a failed request is tried again; see [`crate::ModelErrorKind::is_transient`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryConfig {
    /// Further attempts after the first (3).
    pub retries: u32,
    /// The pause before the first of them (2 s); each later one is twice as long.
    pub base: Duration,
    /// The longest pause (60 s). A provider that asks for more fails the run visibly instead of hanging it.
    pub cap: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { retries: 3, base: Duration::from_secs(2), cap: Duration::from_mins(1) }
    }
}

impl RetryConfig {
    /// Decides how long to wait before the next attempt, or why there is none. `failed_before` counts the attempts
    /// that failed before this one.
    pub(super) fn pause(&self, error: &ModelError, failed_before: u32) -> Result<Duration, String> {
        if !error.kind.is_transient() {
            return Err(error.message.clone());
        }
        if failed_before >= self.retries {
            return Err(format!("{} (tried {} times)", error.message, failed_before + 1));
        }
        let asked = error.retry_after.unwrap_or_default();
        if asked > self.cap {
            return Err(format!(
                "{} (the provider asks to wait {} s)",
                error.message,
                asked.as_secs()
            ));
        }
        let growing = self.base.saturating_mul(2_u32.saturating_pow(failed_before));
        Ok(growing.min(self.cap).max(asked))
    }
}

/// Limits of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLimits {
    /// The longest silence within a reply (5 min). Adapters have tighter ones.
    pub reply_idle: Duration,
    /// The longest a reply may take (1 h). Small machines are slow, but what only keeps the line open must end too.
    pub reply_time: Duration,
    /// The largest reply in bytes (4 MiB), so that a model that never stops cannot fill the memory.
    pub reply_bytes: usize,
    /// The longest a tool call may take (15 min).
    pub tool_time: Duration,
    /// The most calls of one reply that are run (32); the rest fail with a result that says so.
    pub calls_per_reply: usize,
    /// How long the model and the tools may take to end after a stop (2 s) before they are dropped.
    pub stop_grace: Duration,
    /// The pauses between attempts at a store that fails (0.1 s, 1 s, 5 s); after the last the run stops.
    pub store_pauses: Vec<Duration>,
    /// How long after a run stopped over the store it is looked at again by itself (1 min).
    pub store_recheck: Duration,
    /// Events kept for a slow reader (1024): a long reply has a few hundred deltas. A slower one loses the oldest.
    pub event_capacity: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            reply_idle: Duration::from_mins(5),
            reply_time: Duration::from_hours(1),
            reply_bytes: 4 << 20,
            tool_time: Duration::from_mins(15),
            calls_per_reply: 32,
            stop_grace: Duration::from_secs(2),
            store_pauses: [100, 1000, 5000].map(Duration::from_millis).to_vec(),
            store_recheck: Duration::from_mins(1),
            event_capacity: 1024,
        }
    }
}

/// What a session works with.
#[derive(Debug, Clone)]
pub struct SessionDeps {
    /// The model that answers.
    pub model: Arc<dyn Model>,
    /// The tools it may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Where the conversation is kept.
    pub store: Arc<dyn SessionStore>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Ids for calls that came without one.
    pub chance: Arc<Chance>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelErrorKind;

    fn error(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        ModelError {
            kind,
            status: None,
            retry_after: retry_after.map(Duration::from_secs),
            message: "it failed".to_owned(),
        }
    }

    #[test]
    fn pauses_double_up_to_the_cap() {
        let retry = RetryConfig { retries: 9, ..RetryConfig::default() };
        let overloaded = error(ModelErrorKind::Overloaded, None);
        let pauses: Vec<u64> =
            (0..7).map(|failed| retry.pause(&overloaded, failed).unwrap().as_secs()).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn attempts_run_out() {
        let retry = RetryConfig::default();
        let cut = error(ModelErrorKind::Truncated, None);
        assert!(retry.pause(&cut, 2).is_ok());
        assert_eq!(retry.pause(&cut, 3), Err("it failed (tried 4 times)".to_owned()));
    }

    #[test]
    fn provider_may_lengthen_a_pause_but_not_beyond_the_cap() {
        let retry = RetryConfig::default();
        let pause = |after| retry.pause(&error(ModelErrorKind::RateLimited, Some(after)), 1);
        assert_eq!(pause(1), Ok(Duration::from_secs(4)));
        assert_eq!(pause(60), Ok(Duration::from_mins(1)));
        assert_eq!(pause(61), Err("it failed (the provider asks to wait 61 s)".to_owned()));
    }

    #[test]
    fn permanent_failures_are_not_tried_again() {
        for kind in [ModelErrorKind::Auth, ModelErrorKind::Quota, ModelErrorKind::ContextOverflow] {
            assert_eq!(
                RetryConfig::default().pause(&error(kind, None), 0),
                Err("it failed".to_owned())
            );
        }
    }
}

//! What an agent may repeat in what it says: what pushes carry of the tasks that this may be about.

use volcanic_a2a_types::ContextId;
use volcanic_base::Secret;

use super::Registry;
use crate::record::{SendRecord, WatchRecord, WatchTarget};

/// How many tokens are taken out of an answer at most: each is looked for in several forms.
const MAX_TOKENS: usize = 32;

impl Registry {
    /// The token of the watch that is `held` for a message, and those of the conversation's newest watches in the same
    /// context. A message that names a task alone may be of any context; one that names nothing begins another.
    pub(super) fn tokens_near(&self, send: &SendRecord, held: Option<&WatchRecord>) -> Vec<Secret> {
        let context = send.context_id.as_ref().or(held.and_then(|held| held.context_id.as_ref()));
        if context.is_none() && send.task_id.is_none() {
            return Vec::new();
        }
        self.tokens(&send.target, &send.agent, context, held)
    }

    /// The token of a watch, and those of the conversation's newest watches in the same context.
    pub(super) fn tokens_beside(&self, record: &WatchRecord) -> Vec<Secret> {
        let WatchRecord { target, agent, context_id, .. } = record;
        self.tokens(target, agent, context_id.as_ref(), Some(record))
    }

    /// The tokens of the conversation's newest watches of an agent, for a task that may be of any context.
    pub(super) fn tokens_of(&self, target: &WatchTarget, agent: &str) -> Vec<Secret> {
        self.tokens(target, agent, None, None)
    }

    fn tokens(
        &self,
        target: &WatchTarget,
        agent: &str,
        context: Option<&ContextId>,
        first: Option<&WatchRecord>,
    ) -> Vec<Secret> {
        let records = self.watches.of_target(target).map(|(_, followed)| followed.watch.record());
        let mut near: Vec<_> = records
            .filter(|record| {
                let its = record.context_id.as_ref();
                let is_elsewhere = its.zip(context).is_some_and(|(its, asked)| its != asked);
                record.agent == agent && record.push_token.is_some() && !is_elsewhere
            })
            .collect();
        near.sort_unstable_by_key(|record| std::cmp::Reverse(record.started_at));
        let others = near.into_iter().filter(|near| first.is_none_or(|first| first.id != near.id));
        let all = first.into_iter().chain(others);
        all.filter_map(|record| record.push_token.clone()).take(MAX_TOKENS).collect()
    }
}

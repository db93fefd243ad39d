//! What an agent may repeat in its answer to a message: what pushes carry of the tasks that the message may be about.

use volcanic_base::Secret;

use super::Registry;
use crate::record::{SendRecord, WatchRecord};

/// How many tokens are taken out of an answer at most: each is looked for in several forms.
const MAX_TOKENS: usize = 32;

impl Registry {
    /// The token of the watch that is `held` for a message, and those of the conversation's newest watches in the same
    /// context. A message that names a task alone may be of any context; one that names nothing begins another.
    pub(super) fn tokens_near(&self, send: &SendRecord, held: Option<&WatchRecord>) -> Vec<Secret> {
        let context = send.context_id.as_ref().or(held.and_then(|held| held.context_id.as_ref()));
        let mut near = Vec::new();
        if context.is_some() || send.task_id.is_some() {
            let of_target = self.watches.of_target(&send.target);
            let records = of_target.map(|(_, followed)| followed.watch.record());
            near.extend(records.filter(|record| {
                let is_elsewhere =
                    record.context_id.as_ref().zip(context).is_some_and(|(a, b)| a != b);
                record.agent == send.agent && record.push_token.is_some() && !is_elsewhere
            }));
        }
        near.sort_unstable_by_key(|record| std::cmp::Reverse(record.started_at));
        let others = near.into_iter().filter(|near| held.is_none_or(|held| held.id != near.id));
        let tokens = held.into_iter().chain(others).filter_map(|record| record.push_token.clone());
        tokens.take(MAX_TOKENS).collect()
    }
}

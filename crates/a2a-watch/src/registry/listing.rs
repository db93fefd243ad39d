//! The watches as people see them.

use std::time::Duration;

use jiff::Timestamp;

use super::{Followed, Registry};
use crate::order::WatchView;
use crate::record::WatchTarget;

impl Registry {
    pub(super) fn list(&self, target: Option<&WatchTarget>) -> Vec<WatchView> {
        let mut listed: Vec<_> = match target {
            Some(target) => self.watches.of_target(target).map(|(_, followed)| followed).collect(),
            None => self.watches.values().collect(),
        };
        listed.sort_by_key(|followed| {
            let record = followed.watch.record();
            (record.started_at, &record.id)
        });
        listed.into_iter().map(|followed| self.view(followed)).collect()
    }

    fn view(&self, followed: &Followed) -> WatchView {
        let (now, record) = (self.now(), followed.watch.record());
        let is_waiting = followed.watch.call().is_some();
        let next_check_at = match record.next_check_at {
            // Its turn has not come, as its agent is out of reach or asked for time.
            None if is_waiting => self.origins.opens_at(&record.origin, now),
            due_at => due_at,
        };
        let left = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
        WatchView {
            target: record.target.clone(),
            agent: record.agent.clone(),
            task_id: record.task_id.clone(),
            context_id: record.context_id.clone(),
            source: record.source,
            state: record.state,
            age: Duration::try_from(now.duration_since(record.started_at)).unwrap_or_default(),
            next_check_at: next_check_at.map(|at| self.context.clock.on_the_wall(at)),
            next_check_in: next_check_at.map(left),
            last_seen: record.last_seen.clone(),
            failures: record.failures,
        }
    }
}

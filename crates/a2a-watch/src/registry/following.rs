//! The watches of a process, found by their id, by their conversation and by their workspace.

use std::collections::{HashMap, HashSet, hash_map};
use std::hash::Hash;
use std::path::{Path, PathBuf};

use volcanic_a2a_types::TaskId;

use super::Followed;
use crate::record::{WatchId, WatchRecord, WatchTarget};

/// All watches. Of thousands, most questions are about the few of one conversation or one workspace, which a watch keeps as
/// long as it is in here.
#[derive(Default)]
pub(super) struct Watches {
    /// Boxed, since the table has room for twice as many.
    all: HashMap<WatchId, Box<Followed>>,
    of_target: HashMap<WatchTarget, HashSet<WatchId>>,
    of_workspace: HashMap<PathBuf, HashSet<WatchId>>,
    /// Those that were to tell something and may wait for their conversation: every message asks for them, so nobody looks
    /// through all the others.
    telling: HashMap<WatchTarget, HashSet<WatchId>>,
    /// Those that came without the origin of their task, for the same reason. It may have been found since.
    unplaced: HashMap<WatchTarget, HashSet<WatchId>>,
}

impl Watches {
    /// Takes a watch in, in place of an earlier one with its id.
    pub(super) fn insert(&mut self, id: WatchId, followed: Followed) {
        self.remove(&id);
        let WatchRecord { target, workspace, .. } = followed.watch.record();
        add(&mut self.of_target, target, &id);
        add(&mut self.of_workspace, workspace, &id);
        if followed.watch.record().origin.is_empty() {
            add(&mut self.unplaced, target, &id);
        }
        self.all.insert(id, Box::new(followed));
    }

    pub(super) fn remove(&mut self, id: &WatchId) -> Option<Followed> {
        let followed = self.all.remove(id)?;
        let WatchRecord { target, workspace, .. } = followed.watch.record();
        take(&mut self.of_target, target, id);
        take(&mut self.of_workspace, workspace, id);
        take(&mut self.telling, target, id);
        take(&mut self.unplaced, target, id);
        Some(*followed)
    }

    pub(super) fn get(&self, id: &WatchId) -> Option<&Followed> {
        self.all.get(id).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, id: &WatchId) -> Option<&mut Followed> {
        self.all.get_mut(id).map(Box::as_mut)
    }

    pub(super) fn contains_key(&self, id: &WatchId) -> bool {
        self.all.contains_key(id)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&WatchId, &Followed)> {
        self.all.iter().map(|(id, followed)| (id, followed.as_ref()))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Followed> {
        self.all.values().map(Box::as_ref)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Followed> {
        self.all.values_mut().map(Box::as_mut)
    }

    /// The watches of a conversation.
    pub(super) fn of_target(
        &self,
        target: &WatchTarget,
    ) -> impl Iterator<Item = (&WatchId, &Followed)> {
        self.found(self.of_target.get(target))
    }

    /// Notes that a watch has something to tell.
    pub(super) fn tells(&mut self, id: &WatchId) {
        if let Some(followed) = self.all.get(id) {
            add(&mut self.telling, &followed.watch.record().target, id);
        }
    }

    /// The watches of a conversation that have something to tell, but for one task's. What was told is forgotten.
    pub(super) fn telling(&mut self, target: &WatchTarget, but: Option<&TaskId>) -> Vec<WatchId> {
        let hash_map::Entry::Occupied(mut ids) = self.telling.entry(target.clone()) else {
            return Vec::new();
        };
        let all = &self.all;
        ids.get_mut().retain(|id| all.get(id).is_some_and(|kept| kept.watch.is_telling()));
        let is_asked = |id: &&WatchId| {
            let followed = self.all.get(*id);
            followed.is_some_and(|followed| but != Some(&followed.watch.record().task_id))
        };
        let asked = ids.get().iter().filter(is_asked).cloned().collect();
        if ids.get().is_empty() {
            ids.remove();
        }
        asked
    }

    /// The watches of a conversation of which nobody knows where their task runs.
    pub(super) fn unplaced(
        &self,
        target: &WatchTarget,
    ) -> impl Iterator<Item = (&WatchId, &Followed)> {
        let found = self.found(self.unplaced.get(target));
        found.filter(|(_, followed)| followed.watch.record().origin.is_empty())
    }

    /// The watches of a workspace.
    pub(super) fn of_workspace(
        &self,
        workspace: &Path,
    ) -> impl Iterator<Item = (&WatchId, &Followed)> {
        self.found(self.of_workspace.get(workspace))
    }

    fn found<'w>(
        &'w self,
        ids: Option<&'w HashSet<WatchId>>,
    ) -> impl Iterator<Item = (&'w WatchId, &'w Followed)> {
        ids.into_iter().flatten().filter_map(|id| Some((id, self.get(id)?)))
    }
}

fn add<K: Hash + Eq + Clone>(index: &mut HashMap<K, HashSet<WatchId>>, key: &K, id: &WatchId) {
    match index.get_mut(key) {
        Some(ids) => {
            ids.insert(id.clone());
        }
        None => {
            index.insert(key.clone(), HashSet::from([id.clone()]));
        }
    }
}

fn take<K: Hash + Eq + Clone>(index: &mut HashMap<K, HashSet<WatchId>>, key: &K, id: &WatchId) {
    if let hash_map::Entry::Occupied(mut ids) = index.entry(key.clone()) {
        ids.get_mut().remove(id);
        if ids.get().is_empty() {
            ids.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Watch;

    fn watch(id: &str, target: &str, workspace: &str) -> (WatchId, Followed) {
        let (id, target) = (WatchId::new(id), WatchTarget::new(target));
        let at = jiff::Timestamp::UNIX_EPOCH;
        let agent = ("a".to_owned(), "http://a".to_owned());
        let record =
            WatchRecord::begun(id.clone(), target, PathBuf::from(workspace), agent, "t".into(), at);
        (id, Followed::new(Watch::attended(record)))
    }

    fn ids<'w>(found: impl Iterator<Item = (&'w WatchId, &'w Followed)>) -> Vec<&'w str> {
        let mut ids: Vec<_> = found.map(|(id, _)| id.as_str()).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn watches_are_found_by_conversation_and_workspace_until_they_are_gone() {
        let mut watches = Watches::default();
        for (id, followed) in
            [watch("1", "one", "/a"), watch("2", "two", "/a"), watch("3", "one", "/b")]
        {
            watches.insert(id, followed);
        }
        let (one, two) = (WatchTarget::new("one"), WatchTarget::new("two"));
        assert_eq!(ids(watches.of_target(&one)), ["1", "3"]);
        assert_eq!(ids(watches.of_workspace(Path::new("/a"))), ["1", "2"]);
        assert!(watches.remove(&WatchId::new("1")).is_some());
        assert_eq!(ids(watches.of_target(&one)), ["3"]);
        assert_eq!(ids(watches.of_workspace(Path::new("/a"))), ["2"]);
        assert!(watches.remove(&WatchId::new("2")).is_some());
        assert!(!watches.of_target.contains_key(&two) && watches.of_workspace.len() == 1);
        assert!(watches.remove(&WatchId::new("2")).is_none());
    }

    #[test]
    fn watches_that_tell_are_found_without_the_others_until_they_have_told() {
        let config =
            crate::config::WatchConfig::new(volcanic_a2a_client::ClientConfig::default(), 0);
        let (now, target) = (jiff::Timestamp::UNIX_EPOCH, WatchTarget::new("one"));
        let mut watches = Watches::default();
        for id in ["1", "2"] {
            let (id, mut followed) = watch(id, "one", "/a");
            let mut record = followed.watch.record().clone();
            record.state = crate::record::WatchState::Claimed;
            (followed.watch, _) = Watch::restored(record, now, std::time::Duration::ZERO, None);
            watches.insert(id.clone(), followed);
            assert!(!watches.telling(&target, None).contains(&id));
            watches.tells(&id);
        }
        let (id, followed) = watch("3", "one", "/a");
        watches.insert(id, followed);
        assert_eq!(watches.telling(&target, None).len(), 2);
        assert_eq!(watches.telling(&target, Some(&"t".into())), []);
        assert_eq!(watches.telling(&WatchTarget::new("two"), None), []);
        let first = WatchId::new("1");
        let told = crate::machine::WatchEvent::Delivered;
        watches.get_mut(&first).unwrap().watch.on_event(told, now, &config);
        assert_eq!(watches.telling(&target, None), [WatchId::new("2")]);
        assert!(watches.remove(&WatchId::new("2")).is_some());
        assert!(watches.telling(&target, None).is_empty() && watches.telling.is_empty());
    }

    #[test]
    fn watches_without_an_origin_are_found_without_the_others() {
        let mut watches = Watches::default();
        let (id, followed) = watch("1", "one", "/a");
        watches.insert(id, followed);
        let at = jiff::Timestamp::UNIX_EPOCH;
        let (id, agent) = (WatchId::new("2"), ("a".to_owned(), String::new()));
        let target = WatchTarget::new("one");
        let record =
            WatchRecord::begun(id.clone(), target.clone(), "/a".into(), agent, "t".into(), at);
        watches.insert(id.clone(), Followed::new(Watch::attended(record)));
        assert_eq!(ids(watches.unplaced(&target)), ["2"]);
        watches.remove(&id);
        assert!(watches.unplaced.is_empty());
    }

    #[test]
    fn watch_that_comes_back_elsewhere_is_found_there_alone() {
        let mut watches = Watches::default();
        for (id, followed) in [watch("1", "one", "/a"), watch("1", "two", "/b")] {
            watches.insert(id, followed);
        }
        assert_eq!(ids(watches.of_target(&WatchTarget::new("one"))), [""; 0]);
        assert_eq!(ids(watches.of_target(&WatchTarget::new("two"))), ["1"]);
        assert_eq!(watches.len(), 1);
    }
}

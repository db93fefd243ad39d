//! Whose turn it is: how many calls and streams of watches each origin has, and which origins are left alone for now.
//!
//! Synchronous, without clock or I/O. An origin that is out of reach is probed once per pause; its watches wait as a group.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::config::WatchConfig;
use crate::record::WatchId;

/// How many calls in a row may go unanswered, with none answered in between, before the origin counts as out of reach.
const UNANSWERED_LIMIT: u32 = 3;

/// An origin out of reach that nobody tried for so long is of no watch any more: each would have tried.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// What a call told about its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It answered, whatever it said.
    Answered,
    /// It took the call, and no whole answer came in time.
    Unanswered,
    /// It could not be reached, or what stands before it says so.
    Unreached,
    /// Nothing: there was no call.
    Nothing,
}

/// A call whose turn has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) origin: String,
    pub(super) id: WatchId,
    /// Whether it is to find out if the origin is back.
    is_probe: bool,
}

#[derive(Debug, Default)]
struct Origin {
    waiting: VecDeque<WatchId>,
    running: usize,
    streams: usize,
    /// Watches that would have a stream if there were a place, in order…
    wanting: VecDeque<WatchId>,
    /// …and each of them once.
    is_wanting: HashSet<WatchId>,
    down: Option<Down>,
    unanswered: u32,
    put_off: Option<Timestamp>,
}

#[derive(Debug)]
struct Down {
    failures: usize,
    probe_at: Timestamp,
    is_probed: bool,
}

impl Origin {
    /// From when on a call may begin; `None` if that depends on one that runs.
    fn opens_at(&self) -> Option<Timestamp> {
        let put_off = self.put_off.unwrap_or(Timestamp::MIN);
        match &self.down {
            Some(down) if down.is_probed => None,
            Some(down) => Some(put_off.max(down.probe_at)),
            None => Some(put_off),
        }
    }

    fn is_idle(&self, now: Timestamp) -> bool {
        let is_over = |at: Timestamp| now.duration_since(at) > FORGOTTEN_AFTER;
        self.waiting.is_empty()
            && self.wanting.is_empty()
            && self.running == 0
            && self.streams == 0
            && self.put_off.is_none_or(|at| at <= now)
            && self.down.as_ref().is_none_or(|down| is_over(down.probe_at))
    }
}

/// All origins that watches have something to do with.
#[derive(Debug, Default)]
pub(super) struct Origins {
    all: HashMap<String, Origin>,
    /// Origins that somebody waits for, the next one first.
    turns: VecDeque<String>,
    running: usize,
    streams: usize,
    /// Watches that would have a stream if there were a place.
    wanting: usize,
}

impl Origins {
    /// Lets a watch wait for its turn.
    pub(super) fn wait(&mut self, origin: &str, id: WatchId) {
        let known = self.all.entry(origin.to_owned()).or_default();
        if known.waiting.is_empty() {
            self.turns.push_back(origin.to_owned());
        }
        known.waiting.push_back(id);
    }

    /// Takes a watch out of the queue; whether it was in there.
    pub(super) fn withdraw(&mut self, origin: &str, id: &WatchId) -> bool {
        let Some(known) = self.all.get_mut(origin) else { return false };
        let before = known.waiting.len();
        known.waiting.retain(|waiting| waiting != id);
        if known.waiting.is_empty() && before > 0 {
            self.turns.retain(|turn| turn != origin);
        }
        known.waiting.len() < before
    }

    /// The next call that may begin, one origin after the other.
    pub(super) fn next(&mut self, now: Timestamp, config: &WatchConfig) -> Option<Turn> {
        if self.running >= config.max_calls {
            return None;
        }
        for _ in 0..self.turns.len() {
            let origin = self.turns.pop_front()?;
            let Some(known) = self.all.get_mut(&origin) else { continue };
            let is_open = known.opens_at().is_some_and(|at| at <= now)
                && known.running < config.calls_per_origin;
            let id = if is_open { known.waiting.pop_front() } else { None };
            if !known.waiting.is_empty() {
                self.turns.push_back(origin.clone());
            }
            let Some(id) = id else { continue };
            known.running += 1;
            self.running += 1;
            let is_probe = known.down.as_mut().map(|down| down.is_probed = true).is_some();
            return Some(Turn { origin, id, is_probe });
        }
        None
    }

    /// A call ended. Returns whether the origin is found out of reach by it.
    pub(super) fn ended(
        &mut self,
        turn: &Turn,
        reach: Reach,
        now: Timestamp,
        config: &WatchConfig,
    ) -> bool {
        let Some(known) = self.all.get_mut(&turn.origin) else { return false };
        known.running = known.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        known.unanswered = match reach {
            Reach::Unanswered => known.unanswered.saturating_add(1),
            Reach::Answered => 0,
            Reach::Unreached | Reach::Nothing => known.unanswered,
        };
        // A probe is to find out whether somebody is there.
        let is_unanswered = turn.is_probe && reach == Reach::Unanswered;
        let is_unreached =
            reach == Reach::Unreached || is_unanswered || known.unanswered >= UNANSWERED_LIMIT;
        if let Some(down) = known.down.as_mut().filter(|_| turn.is_probe) {
            down.is_probed = false;
        }
        match &mut known.down {
            down if reach == Reach::Answered => {
                *down = None;
                false
            }
            // Calls that began together and failed together are one failure.
            Some(_) if !turn.is_probe => false,
            down if is_unreached => {
                let failures = down.as_ref().map_or(0, |down| down.failures);
                let last = config.poll_pauses.len().saturating_sub(1);
                let pause = config.poll_pauses.get(failures.min(last)).copied().unwrap_or_default();
                *down = Some(Down {
                    failures: failures.saturating_add(1),
                    probe_at: later(now, pause),
                    is_probed: false,
                });
                true
            }
            Some(_) | None => false,
        }
    }

    /// The origin asks to be left alone for a while.
    pub(super) fn put_off(&mut self, origin: &str, pause: Duration, now: Timestamp, cap: Duration) {
        let until = later(now, pause.min(cap));
        let known = self.all.entry(origin.to_owned()).or_default();
        known.put_off = Some(known.put_off.map_or(until, |put_off| put_off.max(until)));
    }

    /// The origin is there: somebody else's call was answered.
    pub(super) fn answered(&mut self, origin: &str) {
        if let Some(known) = self.all.get_mut(origin) {
            known.down = None;
            known.unanswered = 0;
        }
    }

    /// The watches that wait for an origin.
    pub(super) fn waiting(&self, origin: &str) -> impl Iterator<Item = &WatchId> {
        self.all.get(origin).into_iter().flat_map(|known| &known.waiting)
    }

    /// When a watch that waits for its turn may have it; `None` when it is a matter of moments.
    pub(super) fn opens_at(&self, origin: &str, now: Timestamp) -> Option<Timestamp> {
        self.all.get(origin)?.opens_at().filter(|at| *at > now)
    }

    /// When the next origin that somebody waits for may be called again.
    pub(super) fn next_opening(&self, now: Timestamp) -> Option<Timestamp> {
        let waited_for = self.turns.iter().filter_map(|turn| self.all.get(turn));
        waited_for.filter_map(Origin::opens_at).filter(|at| *at > now).min()
    }

    /// Whether there is a place for one more stream.
    pub(super) fn has_place(&self, origin: &str, config: &WatchConfig) -> bool {
        let held = self.all.get(origin).map_or(0, |known| known.streams);
        self.streams < config.max_streams && held < config.streams_per_origin
    }

    /// Takes a place for a stream, if there is one.
    pub(super) fn take_place(&mut self, origin: &str, config: &WatchConfig) -> bool {
        let has_place = self.has_place(origin, config);
        if has_place {
            self.streams += 1;
            self.all.entry(origin.to_owned()).or_default().streams += 1;
        }
        has_place
    }

    /// Gives a place back.
    pub(super) fn free_place(&mut self, origin: &str) {
        if let Some(known) = self.all.get_mut(origin) {
            known.streams = known.streams.saturating_sub(1);
            self.streams = self.streams.saturating_sub(1);
        }
    }

    /// Notes that a watch would have a stream if there were a place.
    pub(super) fn want_place(&mut self, origin: &str, id: WatchId) {
        let known = self.all.entry(origin.to_owned()).or_default();
        if known.is_wanting.insert(id.clone()) {
            known.wanting.push_back(id);
            self.wanting += 1;
        }
    }

    /// Takes out the next watch that could have a place: of `freed` if possible, else of any origin.
    pub(super) fn next_wanting(&mut self, freed: &str, config: &WatchConfig) -> Option<WatchId> {
        if self.wanting == 0 {
            // Most of the time, and there may be hundreds of origins to look at.
            return None;
        }
        let is_wanting = |name: &str, origins: &Self| {
            origins.all.get(name).is_some_and(|known| !known.wanting.is_empty())
                && origins.has_place(name, config)
        };
        let name = if is_wanting(freed, self) {
            freed.to_owned()
        } else {
            self.all.keys().find(|name| is_wanting(name, self))?.clone()
        };
        let known = self.all.get_mut(&name)?;
        let id = known.wanting.pop_front()?;
        known.is_wanting.remove(&id);
        self.wanting -= 1;
        Some(id)
    }

    /// Forgets origins that nothing is to be known about.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        self.all.retain(|_, known| !known.is_idle(now));
    }
}

fn later(now: Timestamp, pause: Duration) -> Timestamp {
    now.saturating_add(pause).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;

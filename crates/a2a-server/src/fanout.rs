//! One log of events per live task, read by any number of streams at their own pace.
//!
//! An event is encoded once. It stays in the log until every reader has taken it, and the log is bounded: a writer
//! that finds it full waits for the slowest reader while that one still moves, and then cuts it off. A reader is told
//! that it was cut off; nothing is ever skipped silently.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::Notify, time::Instant};

/// Bounds of the event logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FanoutLimits {
    /// Bytes one task's log may hold. One event may be larger: it is then alone in the log.
    pub task_bytes: usize,
    /// Bytes all logs may hold together.
    pub process_bytes: usize,
    /// How long a writer waits for one reader, over that reader's whole life.
    pub patience: Duration,
    /// How many readers one task may have.
    pub readers: usize,
}

impl Default for FanoutLimits {
    fn default() -> Self {
        Self {
            task_bytes: 8 << 20,
            process_bytes: 64 << 20,
            patience: Duration::from_millis(250),
            readers: 64,
        }
    }
}

/// What an event means for the streams that carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventEnd {
    /// The task goes on.
    Open,
    /// The task waits for input: message streams close, subscriptions stay.
    Input,
    /// The task is over: every stream closes.
    Terminal,
}

/// One event, encoded as the JSON of a `StreamResponse`.
#[derive(Debug, Clone)]
pub(crate) struct LoggedEvent {
    pub(crate) json: Bytes,
    pub(crate) end: EventEnd,
}

/// Bytes held by all logs of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct FanoutBudget(Arc<AtomicUsize>);

/// The event log of one task.
#[derive(Debug)]
pub(crate) struct Fanout {
    limits: FanoutLimits,
    budget: FanoutBudget,
    log: Mutex<Log>,
    published: Notify,
    advanced: Notify,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<Arc<LoggedEvent>>,
    /// The number of the first event in `events`.
    first: u64,
    bytes: usize,
    readers: HashMap<u64, Reader>,
    next_reader: u64,
}

#[derive(Debug)]
struct Reader {
    cursor: u64,
    patience: Duration,
    cut_off: bool,
}

/// A reader was too slow and lost its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stream was read too slowly")]
pub(crate) struct CutOff;

/// A cursor in a task's event log.
#[derive(Debug)]
pub(crate) struct EventReader {
    fanout: Arc<Fanout>,
    id: u64,
}

impl Fanout {
    pub(crate) fn new(limits: FanoutLimits, budget: FanoutBudget) -> Self {
        Self {
            limits,
            budget,
            log: Mutex::default(),
            published: Notify::new(),
            advanced: Notify::new(),
        }
    }

    /// Adds a reader that gets every event from now on, or `None` if there are too many.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Option<EventReader> {
        let mut log = self.lock();
        if log.readers.len() >= self.limits.readers {
            return None;
        }
        let id = log.next_reader;
        log.next_reader += 1;
        let cursor = log.end();
        log.readers.insert(id, Reader { cursor, patience: self.limits.patience, cut_off: false });
        drop(log);
        Some(EventReader { fanout: Arc::clone(self), id })
    }

    /// Appends an event. Waits while the log is full, within each reader's patience.
    pub(crate) async fn publish(&self, event: LoggedEvent) {
        let mut event = Some(Arc::new(event));
        loop {
            let advanced = self.advanced.notified();
            tokio::pin!(advanced);
            advanced.as_mut().enable();
            let Some((slowest, patience)) = self.try_publish(&mut event) else { return };
            let began = Instant::now();
            let moved = tokio::time::timeout(patience, advanced).await.is_ok();
            self.charge(slowest, began.elapsed(), !moved);
        }
    }

    /// Appends if there is room (or nobody to read); else names the reader in the way and what patience it has left.
    fn try_publish(&self, event: &mut Option<Arc<LoggedEvent>>) -> Option<(u64, Duration)> {
        let mut log = self.lock();
        let size = event.as_ref()?.json.len();
        let full = log.bytes + size > self.limits.task_bytes
            || self.budget.0.load(Ordering::Relaxed) + size > self.limits.process_bytes;
        if full && !log.events.is_empty() {
            let behind = log.readers.iter().filter(|(_, reader)| !reader.cut_off);
            if let Some((id, reader)) = behind.min_by_key(|(_, reader)| reader.cursor) {
                return Some((*id, reader.patience));
            }
        }
        let event = event.take()?;
        if log.readers.values().any(|reader| !reader.cut_off) {
            log.bytes += size;
            self.budget.0.fetch_add(size, Ordering::Relaxed);
            log.events.push_back(event);
        } else {
            log.first += 1;
        }
        drop(log);
        self.published.notify_waiters();
        None
    }

    fn charge(&self, id: u64, waited: Duration, spent: bool) {
        let mut log = self.lock();
        if let Some(reader) = log.readers.get_mut(&id) {
            reader.patience = reader.patience.saturating_sub(waited);
            reader.cut_off = reader.cut_off || spent || reader.patience.is_zero();
        }
        self.trim(&mut log);
        drop(log);
        self.published.notify_waiters();
    }

    /// Forgets what every reader has taken.
    fn trim(&self, log: &mut Log) {
        let needed = log
            .readers
            .values()
            .filter(|reader| !reader.cut_off)
            .map(|reader| reader.cursor)
            .min()
            .unwrap_or(log.end());
        while log.first < needed {
            let Some(event) = log.events.pop_front() else { break };
            log.first += 1;
            log.bytes -= event.json.len();
            self.budget.0.fetch_sub(event.json.len(), Ordering::Relaxed);
        }
    }

    fn take(&self, id: u64) -> Option<Result<Arc<LoggedEvent>, CutOff>> {
        let mut log = self.lock();
        let first = log.first;
        let reader = log.readers.get_mut(&id)?;
        if reader.cut_off {
            return Some(Err(CutOff));
        }
        let offset = usize::try_from(reader.cursor.saturating_sub(first)).unwrap_or(usize::MAX);
        let next_cursor = reader.cursor + 1;
        let event = log.events.get(offset).map(Arc::clone)?;
        if let Some(reader) = log.readers.get_mut(&id) {
            reader.cursor = next_cursor;
        }
        self.trim(&mut log);
        drop(log);
        self.advanced.notify_waiters();
        Some(Ok(event))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }
}

impl Drop for Fanout {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.lock().bytes, Ordering::Relaxed);
    }
}

impl EventReader {
    /// Passes over what is in the log.
    pub(crate) fn skip_to_end(&mut self) {
        let mut log = self.fanout.lock();
        let end = log.end();
        if let Some(reader) = log.readers.get_mut(&self.id) {
            reader.cursor = end;
        }
        self.fanout.trim(&mut log);
        drop(log);
        self.fanout.advanced.notify_waiters();
    }

    /// Waits for the next event.
    ///
    /// # Cancel safety
    ///
    /// Safe: an event is taken only when it is returned.
    pub(crate) async fn next(&mut self) -> Result<Arc<LoggedEvent>, CutOff> {
        loop {
            let published = self.fanout.published.notified();
            tokio::pin!(published);
            published.as_mut().enable();
            if let Some(event) = self.fanout.take(self.id) {
                return event;
            }
            published.await;
        }
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut log = self.fanout.lock();
        log.readers.remove(&self.id);
        self.fanout.trim(&mut log);
        drop(log);
        self.fanout.advanced.notify_waiters();
    }
}

#[cfg(test)]
mod tests;

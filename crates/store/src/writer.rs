//! The one writer: takes everything that waits into one transaction, commits once, then answers each caller.
//!
//! A worker runs on the blocking pool only while there is work, so an idle store neither holds a thread nor keeps paused
//! test time from moving.

#[cfg(test)]
mod tests;
mod write_back;

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use volcanic_base::{Clock, with_causes};

use crate::error::DbError;
use crate::open::{Opened, connect_writer};
use crate::readers::Readers;
use crate::writer::write_back::Unbacked;

/// Callers beyond this many wait for a place: their work is in memory, and a commit takes milliseconds.
const QUEUE_CAPACITY: u32 = 1024;

/// Work that shares a commit at most. Larger groups gain little, and their first caller waits for the last.
const GROUP_LIMIT: usize = 256;

/// From so many answers on those who got them are waited for a moment: whoever asks again then shares the next commit with
/// those who wait already, instead of waiting for it. Otherwise askers fall into two halves that wait for each other.
const CROWD: usize = 8;

/// The longest such moment; it is no longer than half of what the last commit took.
const LONGEST_MOMENT: Duration = Duration::from_millis(5);

/// How long the lock that another process holds is waited for before that is told. A backup takes less.
const UNTOLD_WAIT: Duration = Duration::from_secs(2);

/// After that, how often it is looked whether the wait is still wanted. Within, SQLite tries about ten times a second.
const TOLD_WAIT: Duration = Duration::from_millis(500);

/// Looks between two log lines about one wait: ten minutes.
const LOOKS_PER_LINE: u32 = 1200;

/// What a piece of work sees.
#[derive(Debug)]
pub(crate) struct WriteScope<'a> {
    /// The connection, inside a savepoint of the group's transaction.
    pub(crate) connection: &'a Connection,
    /// The time of the write.
    pub(crate) now: Timestamp,
    /// The number of this opening.
    pub(crate) start: i64,
}

/// Hands work to the writer.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    start: i64,
    places: Arc<Semaphore>,
    queue: Mutex<Queue>,
    /// Tells a worker that waits for a moment that all came.
    came: Condvar,
    workers: TaskTracker,
    /// Whether another process has held the lock for longer than is untold.
    held: watch::Sender<bool>,
    /// Why the last group could not be written, until one is, or the log not written back, until it is.
    unwritable: watch::Sender<Option<Arc<str>>>,
    /// Whether a wait for the lock has to end.
    hurries: AtomicBool,
    /// Held by the worker alone; empty after a failed commit or write-back (the descriptor is not trusted again) and after
    /// closing.
    connection: Mutex<Option<Connection>>,
    /// That the log could not be written back; the worker's alone.
    unbacked: Mutex<Option<Unbacked>>,
    /// Closed with the writer's connection when what lies in the database file is not trusted.
    readers: Readers,
    commits: AtomicU64,
    jobs: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Job>,
    /// Whether a worker is on it.
    busy: bool,
    /// How many are to wait before a worker that waits for a moment is told.
    wanted: usize,
}

impl Writer {
    pub(crate) fn new(
        path: PathBuf,
        clock: Arc<dyn Clock>,
        opened: Opened,
        readers: Readers,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                path,
                clock,
                start: opened.start,
                places: Arc::new(Semaphore::new(QUEUE_CAPACITY as usize)),
                queue: Mutex::default(),
                came: Condvar::new(),
                workers: TaskTracker::new(),
                held: watch::Sender::new(false),
                unwritable: watch::Sender::new(None),
                hurries: AtomicBool::new(false),
                connection: Mutex::new(Some(opened.connection)),
                unbacked: Mutex::default(),
                readers,
                commits: AtomicU64::new(0),
                jobs: AtomicU64::new(0),
            }),
        }
    }

    /// Runs `work` in the next group and returns once the group is on disk; an error undoes this piece alone.
    ///
    /// # Cancel safety
    /// A caller that goes away before a place was free has written nothing; later, the work is done without it.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&WriteScope<'_>) -> Result<T, DbError> + Send + 'static,
    {
        let place =
            Arc::clone(&self.shared.places).acquire_owned().await.map_err(|_| DbError::Closed)?;
        let (answer, answered) = oneshot::channel();
        Shared::enqueue(&self.shared, Job { task: Box::new(Work { work, answer }), _place: place });
        answered.await.map_err(|_| DbError::Dropped)?
    }

    /// Whether another process holds the lock and work waits for it.
    pub(crate) fn held(&self) -> watch::Receiver<bool> {
        self.shared.held.subscribe()
    }

    /// Why nothing can be written, or written back, as long as that is so.
    pub(crate) fn unwritable(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.shared.unwritable.subscribe()
    }

    /// From now on a lock that another process holds fails what waits for it, after a moment.
    pub(crate) fn hurry(&self) {
        self.shared.hurries.store(true, Ordering::Relaxed);
    }

    /// Waits for everything accepted, joins the worker, writes the log back into the database and closes it.
    pub(crate) async fn close(&self) {
        self.hurry();
        let shared = Arc::clone(&self.shared);
        // With every place taken nothing waits; an error says that an earlier call came this far.
        if let Ok(_all) = shared.places.acquire_many(QUEUE_CAPACITY).await {
            shared.places.close();
        }
        shared.workers.close();
        shared.workers.wait().await;
        let closing = spawn_blocking(move || {
            if let Some(connection) = lock(&shared.connection).take()
                && let Err((_, error)) = connection.close()
            {
                tracing::warn!(%error, "store not closed cleanly");
            }
        });
        if closing.await.is_err() {
            tracing::error!("store not closed");
        }
    }

    /// Commits so far, and the pieces of work that they held.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.shared.commits.load(Ordering::Relaxed), self.shared.jobs.load(Ordering::Relaxed))
    }
}

/// A piece of work with its caller's place in the queue.
struct Job {
    task: Box<dyn Task>,
    _place: OwnedSemaphorePermit,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Job")
    }
}

/// Answers a caller once the fate of the group is known.
type Finish = Box<dyn FnOnce(Result<(), Arc<rusqlite::Error>>)>;

/// What a piece of work left.
struct Worked {
    /// Whether its changes are to be undone, and why.
    undo: Option<String>,
    finish: Finish,
}

trait Task: Send {
    fn run(self: Box<Self>, scope: &WriteScope<'_>) -> Worked;
    fn refuse(self: Box<Self>, error: Arc<rusqlite::Error>);
}

struct Work<T, F> {
    work: F,
    answer: oneshot::Sender<Result<T, DbError>>,
}

impl<T, F> Task for Work<T, F>
where
    T: Send + 'static,
    F: FnOnce(&WriteScope<'_>) -> Result<T, DbError> + Send,
{
    fn run(self: Box<Self>, scope: &WriteScope<'_>) -> Worked {
        let Self { work, answer } = *self;
        // The panic hook has told where; here it is the failure of one piece of work, its neighbours go on.
        let result =
            catch_unwind(AssertUnwindSafe(|| work(scope))).unwrap_or(Err(DbError::Panicked));
        Worked {
            undo: result.as_ref().err().map(|error| match error {
                DbError::Statement(source) => source.to_string(),
                other => with_causes(other),
            }),
            finish: Box::new(move |committed| {
                let result =
                    result.and_then(|value| committed.map(|()| value).map_err(DbError::Commit));
                // A caller that went away does not want the answer.
                drop(answer.send(result));
            }),
        }
    }

    fn refuse(self: Box<Self>, error: Arc<rusqlite::Error>) {
        drop(self.answer.send(Err(DbError::Commit(error))));
    }
}

impl Shared {
    fn enqueue(shared: &Arc<Self>, job: Job) {
        let mut queue = lock(&shared.queue);
        queue.waiting.push_back(job);
        let is_crowd = queue.waiting.len() >= queue.wanted;
        let begin = !std::mem::replace(&mut queue.busy, true);
        // A runtime that is stopping drops the shift at once, and that takes the lock again.
        drop(queue);
        // A worker that is woken for each of a crowd takes from it the time in which the others come.
        if is_crowd {
            shared.came.notify_one();
        }
        if begin {
            let shift = Shift { shared: Arc::clone(shared), over: false };
            drop(shared.workers.spawn_blocking(move || shift.work()));
        }
    }

    /// The next group, or the end of the shift: decided under one lock, so no job is left behind.
    fn next_group(&self) -> Option<VecDeque<Job>> {
        let mut queue = lock(&self.queue);
        if queue.waiting.is_empty() {
            queue.busy = false;
            return None;
        }
        let take = queue.waiting.len().min(GROUP_LIMIT);
        Some(queue.waiting.drain(..take).collect())
    }

    /// How many are to share the next commit, when so many were just answered: they, and those who wait already.
    fn crowd(&self, answered: usize) -> usize {
        if answered < CROWD {
            0
        } else {
            (lock(&self.queue).waiting.len() + answered).min(GROUP_LIMIT)
        }
    }

    /// Waits for a moment until so many wait for the next commit.
    fn gather(&self, wanted: usize, moment: Duration) {
        if wanted == 0 || moment.is_zero() {
            return;
        }
        let mut queue = lock(&self.queue);
        queue.wanted = wanted;
        let is_short = |queue: &mut Queue| queue.waiting.len() < wanted;
        let gathered = self.came.wait_timeout_while(queue, moment, is_short);
        drop(gathered.unwrap_or_else(PoisonError::into_inner));
    }

    /// Runs jobs from the front of `group` in one transaction; what is left in it was not begun.
    fn run_group(&self, slot: &mut Option<Connection>, group: &mut VecDeque<Job>) {
        let mut finishes = Vec::with_capacity(group.len());
        let outcome = match self.begin(slot) {
            Ok(connection) => self.run_jobs(connection, group, &mut finishes),
            Err(error) => {
                let error = Arc::new(error);
                self.note_failure(&error);
                for job in group.drain(..) {
                    job.task.refuse(Arc::clone(&error));
                }
                Err(error)
            }
        };
        match &outcome {
            Ok(Group { wrote }) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                self.jobs.fetch_add(finishes.len() as u64, Ordering::Relaxed);
                if *wrote && lock(&self.unbacked).is_none() {
                    self.unwritable.send_if_modified(|reason| reason.take().is_some());
                }
            }
            Err(error) => {
                self.note_failure(error);
                tracing::error!(%error, jobs = finishes.len(), "store commit failed");
                // A descriptor whose flush failed may claim success the next time.
                *slot = None;
            }
        }
        for finish in finishes {
            finish(outcome.as_ref().map(drop).map_err(Arc::clone));
        }
    }

    /// Notes why a group is not on disk. A lock that another process holds is told of as such.
    fn note_failure(&self, error: &rusqlite::Error) {
        if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) {
            self.note(&error.to_string());
        }
    }

    /// The first reason stays: what comes later may be a consequence.
    fn note(&self, reason: &str) {
        self.unwritable.send_if_modified(|told| {
            let is_new = told.is_none();
            told.get_or_insert_with(|| Arc::from(reason));
            is_new
        });
    }

    fn begin<'a>(&self, slot: &'a mut Option<Connection>) -> rusqlite::Result<&'a Connection> {
        let connection = match slot.take() {
            Some(connection) => connection,
            None => connect_writer(&self.path)?,
        };
        let connection = slot.insert(connection);
        self.take_lock(connection)?;
        Ok(connection)
    }

    /// Begins a transaction. The lock of another process (a shell with an open transaction, a slow backup) is waited for
    /// as long as it takes: nothing is lost by that, and whoever has an answer to give would have it again.
    fn take_lock(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut looks = 0_u32;
        let taken = loop {
            connection.busy_timeout(if looks == 0 { UNTOLD_WAIT } else { TOLD_WAIT })?;
            match run(connection, "BEGIN IMMEDIATE") {
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                        && !self.hurries.load(Ordering::Relaxed) => {}
                taken => break taken,
            }
            if looks.is_multiple_of(LOOKS_PER_LINE) {
                let database = self.path.display().to_string();
                tracing::warn!(
                    database,
                    "another process holds the lock; what is to be written waits for it"
                );
            }
            self.held.send_if_modified(|held| !std::mem::replace(held, true));
            looks = looks.wrapping_add(1).max(1);
        };
        if self.held.send_if_modified(|held| std::mem::replace(held, false)) && taken.is_ok() {
            tracing::info!("the lock is free again");
        }
        taken
    }

    fn run_jobs(
        &self,
        connection: &Connection,
        group: &mut VecDeque<Job>,
        finishes: &mut Vec<Finish>,
    ) -> Result<Group, Arc<rusqlite::Error>> {
        let scope = WriteScope { connection, now: self.clock.now(), start: self.start };
        let mut wrote = false;
        while let Some(Job { task, _place }) = group.pop_front() {
            run(connection, "SAVEPOINT job")?;
            let before = connection.total_changes();
            let Worked { undo, finish } = task.run(&scope);
            finishes.push(finish);
            // A full disk or a failed read makes SQLite undo the whole transaction by itself. The savepoint is gone then,
            // and these fail, and with them the group.
            if let Some(reason) = undo {
                if let Err(error) = run(connection, "ROLLBACK TO job") {
                    self.note(&reason);
                    return Err(error.into());
                }
            } else {
                wrote |= connection.total_changes() != before;
            }
            run(connection, "RELEASE job")?;
        }
        run(connection, "COMMIT")?;
        Ok(Group { wrote })
    }
}

/// A group that is on disk.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// Whether it had anything to write: else the disk was not put to the test.
    wrote: bool,
}

/// One stretch of work on the blocking pool.
struct Shift {
    shared: Arc<Shared>,
    over: bool,
}

impl Shift {
    fn work(mut self) {
        let mut slot = lock(&self.shared.connection);
        while let Some(mut group) = self.shared.next_group() {
            let (began, answered) = (Instant::now(), group.len());
            while !group.is_empty() {
                self.shared.run_group(&mut slot, &mut group);
            }
            let (took, crowd) = (began.elapsed(), self.shared.crowd(answered));
            self.shared.write_back(&mut slot);
            self.shared.gather(crowd, (took / 2).min(LONGEST_MOMENT));
        }
        drop(slot);
        self.over = true;
    }
}

impl Drop for Shift {
    /// A shift that did not reach its end (its runtime stopped before it began) fails what waits, so that nobody waits for
    /// ever and the next caller starts a new one.
    fn drop(&mut self) {
        if !self.over {
            let mut queue = lock(&self.shared.queue);
            queue.busy = false;
            let left = std::mem::take(&mut queue.waiting);
            drop(queue);
            drop(left);
        }
    }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

/// A panic under one of these locks leaves nothing half-done: work that panics is caught and undone.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rusqlite::Connection;
use tempfile::TempDir;
use volcanic_base::SystemClock;

use super::write_back::{BACK_PAUSE, LOG_PAGES, write_log_back};
use super::{CROWD, Job, Shared, Work, WriteScope, Writer, lock};
use crate::error::DbError;
use crate::open::{connect_reader, open_for_writing};
use crate::readers::Readers;

type AnyWork<T> = Box<dyn FnOnce(&WriteScope<'_>) -> Result<T, DbError> + Send>;

struct Bench {
    folder: TempDir,
    writer: Writer,
    readers: Readers,
}

impl Bench {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("state.db");
        let readers = Readers::new(&path);
        let opened = open_for_writing(&path).unwrap();
        let writer = Writer::new(path.clone(), Arc::new(SystemClock), opened, readers.clone());
        let bench = Self { folder, writer, readers };
        bench
            .run(|scope| Ok(scope.connection.execute_batch("CREATE TABLE words (word TEXT)")?))
            .await
            .unwrap();
        bench
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WriteScope<'_>) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, DbError> {
        self.writer.write(work).await
    }

    async fn say(&self, word: &'static str) -> Result<(), DbError> {
        self.run(move |scope| insert(scope, word)).await
    }

    /// Runs the works in one group: a gate holds the worker until all of them wait.
    async fn together<T: Send + 'static>(&self, works: Vec<AnyWork<T>>) -> Vec<Result<T, DbError>> {
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let (began, begun) = tokio::sync::oneshot::channel();
        let held = self.run(move |_| {
            began.send(()).unwrap();
            gate.recv().unwrap();
            Ok(())
        });
        let behind = async {
            begun.await.unwrap();
            let works = join_all(works.into_iter().map(|work| self.run(work)));
            tokio::join!(works, async move { open.send(()).unwrap() }).0
        };
        let (held, results) = tokio::join!(held, behind);
        held.unwrap();
        results
    }

    fn words(&self) -> Vec<String> {
        let connection = Connection::open(self.folder.path().join("state.db")).unwrap();
        let mut statement = connection.prepare("SELECT word FROM words ORDER BY rowid").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

fn insert(scope: &WriteScope<'_>, word: &str) -> Result<(), DbError> {
    scope.connection.execute("INSERT INTO words VALUES (?1)", [word])?;
    Ok(())
}

#[tokio::test]
async fn every_commit_is_flushed_to_a_log_and_links_are_checked() {
    let bench = Bench::new().await;
    let (mode, synchronous, foreign): (String, i64, i64) = bench
        .run(|scope| {
            let mode = scope.connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
            let synchronous =
                scope.connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
            let foreign =
                scope.connection.query_row("PRAGMA foreign_keys", [], |row| row.get(0))?;
            Ok((mode, synchronous, foreign))
        })
        .await
        .unwrap();
    assert_eq!((mode.as_str(), synchronous, foreign), ("wal", 2, 1));
}

#[tokio::test]
async fn work_that_waits_shares_one_commit() {
    let bench = Bench::new().await;
    let (before, _) = bench.writer.counts();
    let results = bench
        .together(vec![
            Box::new(|scope: &WriteScope<'_>| insert(scope, "a")),
            Box::new(|scope: &WriteScope<'_>| insert(scope, "b")),
        ])
        .await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(bench.writer.counts().0, before + 2, "the gate's and the one they share");
    assert_eq!(bench.words(), ["a", "b"]);
}

#[tokio::test]
async fn failed_work_is_undone_alone() {
    let bench = Bench::new().await;
    let results = bench
        .together(vec![
            Box::new(|scope: &WriteScope<'_>| insert(scope, "a")),
            Box::new(|scope: &WriteScope<'_>| {
                insert(scope, "undone")?;
                Err(DbError::NoEntry)
            }),
            Box::new(|scope: &WriteScope<'_>| insert(scope, "c")),
        ])
        .await;
    assert!(matches!(results[..], [Ok(()), Err(DbError::NoEntry), Ok(())]));
    assert_eq!(bench.words(), ["a", "c"]);
}

#[tokio::test]
async fn lost_transaction_fails_its_group_and_the_rest_goes_on() {
    let bench = Bench::new().await;
    let results = bench
        .together(vec![
            Box::new(|scope: &WriteScope<'_>| insert(scope, "a")),
            Box::new(|scope: &WriteScope<'_>| {
                // What SQLite does by itself on a full disk or a failed read.
                scope.connection.execute_batch("ROLLBACK")?;
                Err(DbError::NoEntry)
            }),
            Box::new(|scope: &WriteScope<'_>| insert(scope, "c")),
        ])
        .await;
    assert!(
        matches!(results[..], [Err(DbError::Commit(_)), Err(DbError::NoEntry), Ok(())]),
        "{results:?}"
    );
    assert_eq!(bench.words(), ["c"]);
}

#[tokio::test]
async fn full_disk_keeps_nothing_of_what_failed() {
    let bench = Bench::new().await;
    bench.say("before").await.unwrap();
    // A file that must not grow behaves like a full disk.
    bench
        .run(|scope| {
            scope.connection.pragma_update_and_check(None, "max_page_count", 40, |_| Ok(()))?;
            Ok(())
        })
        .await
        .unwrap();
    let results = bench
        .together(vec![
            Box::new(|scope: &WriteScope<'_>| insert(scope, "small")),
            Box::new(|scope: &WriteScope<'_>| insert(scope, &"x".repeat(3_000_000))),
        ])
        .await;
    assert!(results[1].is_err());
    let kept = bench.words();
    let expected: &[&str] = if results[0].is_ok() { &["before", "small"] } else { &["before"] };
    assert_eq!(kept, expected);
    bench.say("after").await.unwrap();
    assert_eq!(bench.words().last().map(String::as_str), Some("after"));
}

#[tokio::test]
async fn panicking_work_is_undone_alone() {
    let bench = Bench::new().await;
    let results = bench
        .together(vec![
            Box::new(|scope: &WriteScope<'_>| insert(scope, "a")),
            Box::new(|scope: &WriteScope<'_>| {
                insert(scope, "half")?;
                panic!("a bug of ours");
            }),
            Box::new(|scope: &WriteScope<'_>| insert(scope, "c")),
        ])
        .await;
    assert!(matches!(results[..], [Ok(()), Err(DbError::Panicked), Ok(())]));
    bench.say("after").await.unwrap();
    assert_eq!(bench.words(), ["a", "c", "after"]);
    bench.writer.close().await;
    assert!(matches!(bench.say("late").await, Err(DbError::Closed)));
}

#[tokio::test]
async fn every_opening_has_a_number_of_its_own() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let numbers: Vec<_> = (0..3).map(|_| open_for_writing(&path).unwrap().start).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[tokio::test]
async fn a_full_disk_is_told_until_something_was_written_again() {
    let bench = Bench::new().await;
    let unwritable = bench.writer.unwritable();
    let told = || unwritable.borrow().as_deref().map(str::to_owned);
    let limited = bench.run(|scope| {
        // As large as it is: a disk that is full. The connection goes after a failure, and the limit with it.
        Ok(scope
            .connection
            .query_row("PRAGMA max_page_count = 1", [], |row| row.get::<_, i64>(0))?)
    });
    limited.await.unwrap();
    assert_eq!(told(), None);
    let long = "word ".repeat(10_000);
    let refused = bench.run(move |scope| insert(scope, &long)).await;
    assert!(matches!(refused, Err(DbError::Statement(_) | DbError::Commit(_))), "{refused:?}");
    assert_eq!(told().as_deref(), Some("database or disk is full"));
    // Neither what writes nothing nor what is undone has put the disk to the test.
    bench.run(|_| Ok(())).await.unwrap();
    let undone = bench.run(|scope| insert(scope, "undone").and(Err::<(), _>(DbError::NoEntry)));
    assert!(undone.await.is_err());
    assert!(told().is_some());
    bench.say("well").await.unwrap();
    assert_eq!(told(), None);
    assert_eq!(bench.words(), ["well"]);
}

#[tokio::test]
async fn long_log_is_written_back_and_does_not_grow_on() {
    let bench = Bench::new().await;
    let log = bench.folder.path().join("state.db-wal");
    let size = || std::fs::metadata(&log).unwrap().len();
    let page = 4096;
    let most = 2 * u64::try_from(LOG_PAGES).unwrap() * page;
    let word: &'static str = "x".repeat(400 << 10).leak();
    for round in 0..40 {
        bench.say(word).await.unwrap();
        assert!(size() < most, "{} bytes after {round} rounds", size());
    }
    let written = std::fs::metadata(bench.folder.path().join("state.db")).unwrap().len();
    assert!(written > 8 << 20, "the database has only {written} bytes");
    assert_eq!(bench.words().len(), 40);
}

impl Bench {
    fn path(&self) -> PathBuf {
        self.folder.path().join("state.db")
    }

    /// A reader that keeps the log from being written back beyond what is in it now.
    fn reader(&self) -> Connection {
        let reader = connect_reader(&self.path()).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM words").unwrap();
        reader
    }

    /// How many pages the log has, and how many of them count as written back. The connection that asks does not write
    /// anything back when it is closed.
    fn log(&self) -> (i64, i64) {
        let connection = connect_reader(&self.path()).unwrap();
        let pages = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?));
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], pages).unwrap()
    }

    /// Runs something on the worker's place, with no worker on it.
    async fn at_rest<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared, &mut Option<Connection>) -> T + Send + 'static,
    ) -> T {
        let shared = Arc::clone(&self.writer.shared);
        tokio::task::spawn_blocking(move || {
            let mut slot = lock(&shared.connection);
            work(&shared, &mut slot)
        })
        .await
        .unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn log_that_cannot_be_written_back_is_told_until_it_can() {
    let bench = Bench::new().await;
    let unwritable = bench.writer.unwritable();
    let told = || unwritable.borrow().as_deref().map(str::to_owned);
    let word: &'static str = "x".repeat(8 << 20).leak();
    let reader = bench.reader();
    bench.say(word).await.unwrap();
    bench.at_rest(|_, _| ()).await;
    drop(reader);
    // A descriptor that takes no writes: what a disk that fails does to the database file, and not to the log.
    let path = bench.path();
    let is_empty = bench.at_rest(move |shared, slot| {
        *slot = Some(connect_reader(&path).unwrap());
        shared.write_back(slot);
        slot.is_none()
    });
    assert!(is_empty.await, "the descriptor is used again");
    assert_eq!(told().as_deref(), Some("disk I/O error"));
    let (pages, written) = bench.log();
    assert!(pages >= LOG_PAGES, "the log has {pages} pages");
    assert_eq!(written, 0);
    // Groups go on, and do not hide it. The next attempt is not made at once.
    bench.say("next").await.unwrap();
    bench.at_rest(|_, slot| assert!(slot.is_some())).await;
    assert_eq!(told().as_deref(), Some("disk I/O error"));
    assert_eq!(bench.log().1, 0);
    // An attempt that a reader keeps from the end has not flushed the database.
    let reader = bench.reader();
    bench.say("kept").await.unwrap();
    tokio::time::advance(BACK_PAUSE).await;
    bench.run(|_| Ok(())).await.unwrap();
    bench.at_rest(|_, _| ()).await;
    assert!(told().is_some());
    drop(reader);
    bench.run(|_| Ok(())).await.unwrap();
    bench.at_rest(|_, _| ()).await;
    assert_eq!(told(), None);
    let (pages, written) = bench.log();
    assert_eq!(pages, written);
    assert_eq!(bench.words(), [word, "next", "kept"]);
}

#[tokio::test]
async fn pages_that_no_flush_reached_are_written_back_again() {
    check_nothing_counts_as_written_back(0).await;
    check_nothing_counts_as_written_back(2).await;
}

async fn check_nothing_counts_as_written_back(idle_readers: usize) {
    let bench = Bench::new().await;
    bench.say("early").await.unwrap();
    let reader = bench.reader();
    bench.say("late").await.unwrap();
    // Beside a reader the earlier pages are written, and nothing is flushed.
    bench.run(|_| Ok(())).await.unwrap();
    let written = bench.at_rest(|_, slot| write_log_back(slot.as_ref().unwrap(), 0));
    assert!(!written.await.unwrap());
    let (pages, written) = bench.log();
    assert!(0 < written && written < pages, "{written} of {pages}");
    drop(reader);
    let both = Arc::new(std::sync::Barrier::new(idle_readers));
    let read = |_| {
        let both = Arc::clone(&both);
        bench.readers.read(move |connection| {
            both.wait();
            let count = "SELECT count(*) FROM words";
            Ok(connection.query_row(count, [], |row| row.get::<_, i64>(0))?)
        })
    };
    let counts = join_all((0..idle_readers).map(read)).await;
    assert!(counts.into_iter().all(|count| count.unwrap() == 2));
    bench.at_rest(Shared::distrust).await;
    assert_eq!(bench.log(), (pages, 0), "the log is as it was, and nothing counts as written back");
    assert_eq!(bench.words(), ["early", "late"]);
}

#[tokio::test]
async fn read_under_way_is_waited_for_before_its_connection_is_closed() {
    let bench = Bench::new().await;
    bench.say("word").await.unwrap();
    bench.at_rest(|_, slot| write_log_back(slot.as_ref().unwrap(), 0).unwrap()).await;
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let (began, begun) = tokio::sync::oneshot::channel();
    let read = bench.readers.read(move |connection| {
        let count = "SELECT count(*) FROM words";
        let count = connection.query_row(count, [], |row| row.get::<_, i64>(0))?;
        began.send(()).unwrap();
        gate.recv().unwrap();
        Ok(count)
    });
    let closing = async {
        begun.await.unwrap();
        let closing = bench.at_rest(Shared::distrust);
        tokio::pin!(closing);
        assert!(tokio::time::timeout(Duration::from_millis(200), &mut closing).await.is_err());
        open.send(()).unwrap();
        closing.await;
    };
    let (count, ()) = tokio::join!(read, closing);
    assert_eq!(count.unwrap(), 1);
    assert_eq!(bench.log().1, 0, "the index went with the last connection");
}

/// Puts work into the queue, as a caller does.
async fn come(shared: &Arc<Shared>) {
    let place = Arc::clone(&shared.places).acquire_owned().await.unwrap();
    let (answer, _) = tokio::sync::oneshot::channel();
    let work = |_: &WriteScope<'_>| Ok(());
    Shared::enqueue(shared, Job { task: Box::new(Work { work, answer }), _place: place });
}

#[tokio::test]
async fn crowd_that_was_answered_is_waited_for_until_it_is_back() {
    let bench = Bench::new().await;
    let shared = Arc::clone(&bench.writer.shared);
    // No worker takes what comes; the one that has just answered is still looking for more.
    shared.workers.close();
    shared.workers.wait().await;
    lock(&shared.queue).busy = true;
    come(&shared).await;
    assert_eq!(shared.crowd(CROWD - 1), 0, "few are not waited for");
    let wanted = shared.crowd(CROWD);
    assert_eq!(wanted, CROWD + 1);
    let waiting = Arc::clone(&shared);
    let gathered = tokio::task::spawn_blocking(move || {
        waiting.gather(wanted, Duration::from_mins(2));
        lock(&waiting.queue).waiting.len()
    });
    for _ in 0..CROWD {
        assert!(!gathered.is_finished(), "some are not back");
        come(&shared).await;
    }
    let gathered = tokio::time::timeout(Duration::from_mins(1), gathered).await;
    assert_eq!(gathered.expect("all are back").unwrap(), CROWD + 1);
}

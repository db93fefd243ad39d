//! Loss of power: whatever of what was not flushed is gone, what anybody outside had been told still holds.
//!
//! Lives of an assistant are recorded, operation by operation, together with what they send (`tests/shim/record.c`). Each
//! schedule then cuts the record somewhere, draws what the disk has of that, and looks whether it keeps what was promised
//! before the cut. From some of these disks the assistant lives on.

mod disk;
mod judge;
mod life;
mod promises;
mod record;
mod state;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinSet;
use volcanic_base::Chance;
use volcanic_testkit::{FaultSeed, drawn_below};

use crate::assistant::Home;
use crate::remote::{Remote, RemoteSetup};
use disk::{Disk, Image};
use judge::Judge;
use life::{Life, Screen};
use promises::Promises;
use record::{Operation, Record};

/// Schedules in one run of the tests.
const SCHEDULES: usize = 2_000;

/// How many records they are drawn from.
const RECORDS: usize = 8;

/// From one in so many disks the assistant lives on.
const LIVES_ON: usize = 20;

/// Who works on schedules at a time.
const WORKERS: usize = 2;

/// No life takes longer than this, whatever else the machine does.
const LIFETIME: Duration = Duration::from_mins(2);

/// Faults that are told at most.
const TOLD_FAULTS: usize = 12;

/// An agent, and lives that were led with it.
struct Stage {
    remote: Arc<Remote>,
    shim: TempDir,
}

/// What the schedules showed.
#[derive(Default)]
struct Findings {
    schedules: usize,
    lived_on: usize,
    /// Disks that had lost something.
    bereft: usize,
    /// Promises that were held against a disk.
    promises: usize,
    faults: Vec<String>,
}

impl Stage {
    async fn set() -> Self {
        let shim = tempfile::tempdir().unwrap();
        record::build_shim(shim.path());
        let remote = RemoteSetup::new().with_pushes().start().await;
        Self { remote: Arc::new(remote), shim }
    }

    async fn record(&self, name: &str, chance: &Chance) -> Record {
        let life = Life::drawn(name, chance);
        for word in life.words() {
            self.remote.release(word);
        }
        record::record(&self.remote, self.shim.path(), life, chance).await
    }

    /// Tries that many schedules of a record, each drawn from its number.
    async fn lose_power(
        &self,
        record: &Arc<Record>,
        seed: &FaultSeed,
        numbers: &[usize],
        lives_on: bool,
    ) -> Findings {
        let mut drawn: Vec<_> = numbers
            .iter()
            .map(|number| {
                let chance = seed.round(*number);
                (record.drawn_cut(&chance), *number, chance)
            })
            .collect();
        // Each worker goes through the record once.
        drawn.sort_by_key(|(cut, number, _)| (*cut, *number));
        let findings = Arc::new(Mutex::new(Findings::default()));
        let mut workers = JoinSet::new();
        for worker in 0..WORKERS {
            let mine = drawn.iter().skip(worker).step_by(WORKERS).cloned().collect();
            let (record, remote) = (Arc::clone(record), Arc::clone(&self.remote));
            let (findings, lives_on) = (Arc::clone(&findings), lives_on);
            workers.spawn_blocking(move || work(&record, &remote, mine, lives_on, &findings));
        }
        while let Some(worked) = workers.join_next().await {
            worked.unwrap();
        }
        std::mem::take(&mut *findings.lock().unwrap())
    }
}

/// Goes through a record and tries the schedules at their cuts.
fn work(
    record: &Record,
    remote: &Arc<Remote>,
    schedules: Vec<(usize, usize, Chance)>,
    lives_on: bool,
    findings: &Mutex<Findings>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut disk = Disk::new(record.before());
    let mut promises = Promises::default();
    let mut done = 0;
    for (cut, number, chance) in schedules {
        for operation in &record.operations()[done..cut] {
            disk.apply(operation);
            promises.hear(operation);
        }
        done = cut;
        let image = disk.after_power_loss(&chance);
        let lives_on = lives_on && number.is_multiple_of(LIVES_ON);
        let faults = runtime.block_on(try_disk(&image, record, remote, &promises, lives_on));
        let mut findings = findings.lock().unwrap();
        findings.schedules += 1;
        findings.lived_on += usize::from(lives_on);
        findings.bereft += usize::from(image.lost_something());
        findings.promises += promises.count();
        let place = format!("{} cut at {cut} (schedule {number})", record.name());
        findings.faults.extend(faults.into_iter().map(|fault| format!("{place}: {fault}")));
    }
}

/// Looks at one disk, and lets the assistant live on from it.
async fn try_disk(
    image: &Image,
    record: &Record,
    remote: &Arc<Remote>,
    promises: &Promises,
    lives_on: bool,
) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().canonicalize().unwrap());
    image.write_to(home.root());
    let judge = Judge { home: &home, remote, life: record.life() };
    let faults = judge.after_power_loss(promises).await;
    if !faults.is_empty() || !lives_on {
        return faults;
    }
    move_in(&home, record.home());
    let screen = Screen::remembering(promises.shown.clone());
    let living = async {
        let assistant = record.life().start(&home).await;
        record.life().live(&assistant, &screen).await;
        assistant.stop().await;
    };
    match tokio::time::timeout(LIFETIME, living).await {
        Ok(()) => judge.at_the_end(&screen),
        Err(_) => vec![format!("it does not come to rest: {}", judge.open_ends())],
    }
}

/// The state names the folder that it was recorded in; here it stands elsewhere.
fn move_in(home: &Home, recorded: &Path) {
    use std::os::unix::ffi::OsStrExt as _;
    if !home.database().exists() {
        return;
    }
    let database = rusqlite::Connection::open(home.database()).unwrap();
    let old = Home::at(recorded.to_owned()).workspace();
    let (old, new) = (old.as_os_str().as_bytes().to_vec(), home.workspace());
    for (table, column) in
        [("sends", "workspace"), ("watches", "workspace"), ("workspaces", "path")]
    {
        let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {column} = ?2");
        // A state that was lost before its first commit has no tables.
        let moved = database.execute(&sql, (new.as_os_str().as_bytes(), &old));
        assert!(moved.is_ok() || !has_table(&database, table), "{moved:?}");
    }
}

fn has_table(database: &rusqlite::Connection, name: &str) -> bool {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?1";
    database.query_row(sql, [name], |row| row.get::<_, i64>(0)).unwrap() > 0
}

impl Findings {
    fn add(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.lived_on += other.lived_on;
        self.bereft += other.bereft;
        self.promises += other.promises;
        self.faults.extend(other.faults);
    }

    fn assert_none(&self) {
        let told: Vec<_> = self.faults.iter().take(TOLD_FAULTS).collect();
        assert!(self.faults.is_empty(), "{} faults: {told:#?}", self.faults.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loss_of_power_takes_nothing_that_was_told_and_doubles_nothing() {
    let seed = FaultSeed::new();
    let stage = Stage::set().await;
    let schedules = FaultSeed::times(SCHEDULES);
    let records = RECORDS.max(schedules.div_ceil(SCHEDULES) * RECORDS);
    let mut findings = Findings::default();
    let mut heard = BTreeSet::new();
    for number in 0..records {
        // Drawn apart from the rounds of the schedules.
        let chance = seed.round(usize::MAX - number);
        let record = Arc::new(stage.record(&format!("r{number}"), &chance).await);
        heard.extend(record.kinds());
        let numbers: Vec<_> = (0..schedules).skip(number).step_by(records).collect();
        findings.add(stage.lose_power(&record, &seed, &numbers, true).await);
        findings.assert_none();
    }
    println!(
        "{} schedules of {records} records, {} disks had lost something, {} promises held, {} lived on",
        findings.schedules, findings.bereft, findings.promises, findings.lived_on
    );
    // Else it would not have been put to the test.
    assert!(findings.bereft * 3 > schedules, "only {} disks had lost something", findings.bereft);
    assert!(findings.promises > schedules * 4, "only {} promises were made", findings.promises);
    for kind in ["sent", "asked", "acknowledged", "shown", "file"] {
        assert!(heard.contains(kind), "no record has a promise of the kind \"{kind}\": {heard:?}");
    }
}

/// Leaves the flushes out that `is_left_out` names: what they kept may be lost now, and that must be seen.
async fn check_seen(what: &str, is_left_out: fn(&Record, &Operation) -> bool, fault: &str) {
    let seed = FaultSeed::new();
    let stage = Stage::set().await;
    let chance = seed.chance();
    let record = stage.record("careless", chance).await;
    let careless = Arc::new(record.without(is_left_out));
    // The same lives, and nothing but the flushes is missing.
    let left_out = record.operations().len() - careless.operations().len();
    assert!(left_out > 0, "there are no flushes of {what}");
    let record = Arc::new(record);
    let numbers: Vec<_> = (0..200).collect();
    stage.lose_power(&record, &seed, &numbers, false).await.assert_none();
    let findings = stage.lose_power(&careless, &seed, &numbers, false).await;
    let seen = findings.faults.iter().filter(|told| told.contains(fault)).count();
    assert!(
        seen > 0,
        "without {left_out} flushes of {what} nobody sees \"{fault}\": {:#?}",
        findings.faults.iter().take(TOLD_FAULTS).collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_that_is_not_flushed_is_seen() {
    let is_log = |record: &Record, operation: &Operation| match operation {
        Operation::Sync { inode, .. } => record.is_name_of(*inode, "state/state.db-wal"),
        _ => false,
    };
    check_seen("the log of the database", is_log, "left before it was on disk").await;
}

/// So `.cargo/config.toml` has SQLite built, which does not tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_is_flushed_without_the_times_of_its_file() {
    let (seed, stage) = (FaultSeed::new(), Stage::set().await);
    let record = stage.record("timeless", seed.chance()).await;
    let of_log = |operation: &Operation| match operation {
        Operation::Sync { inode, times } if record.is_name_of(*inode, "state/state.db-wal") => {
            Some(*times)
        }
        _ => None,
    };
    let flushes: Vec<_> = record.operations().iter().filter_map(of_log).collect();
    let with_times = flushes.iter().filter(|times| **times).count();
    assert!(!flushes.is_empty() && with_times == 0, "{with_times} of {}", flushes.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn received_file_that_is_not_flushed_is_seen() {
    let is_received = |record: &Record, operation: &Operation| match operation {
        Operation::Sync { inode, .. } => record.is_name_of(*inode, "workspace/inbox/"),
        _ => false,
    };
    check_seen("received files", is_received, "is told, but holds").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_not_flushed_are_seen() {
    let is_folder = |_: &Record, operation: &Operation| match operation {
        Operation::SyncFolder { path } => path.starts_with("workspace/inbox"),
        _ => false,
    };
    check_seen("names of received files", is_folder, "is told, but is not there").await;
}

/// Nothing but a number that is drawn below another.
fn one_in(chance: &Chance, of: usize) -> bool {
    drawn_below(chance, of) == 0
}

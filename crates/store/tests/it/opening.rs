//! Opening: modes, formats, damage.

use std::error::Error as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use volcanic_a2a_watch::WatchStore as _;
use volcanic_agent_core::{Accepted, PromptKey, SessionStore as _};
use volcanic_base::ManualClock;
use volcanic_store::{Store, StoreOpenError};

use crate::fixture::{Fixture, chat, prompt, start};

fn open(path: &Path) -> Result<Store, StoreOpenError> {
    Store::open(path, Arc::new(ManualClock::at(start())))
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn folder_and_files_are_for_the_owner_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("home").join("telegram").join("state.db");
    let store = open(&path).unwrap();
    store.accept(prompt("1", "k")).await.unwrap();
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&folder.path().join("home")), 0o700);
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn state_is_there_after_dropping_and_opening_again() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path).unwrap();
    store.accept(prompt("1", "k")).await.unwrap();
    drop(store);
    let store = open(&path).unwrap();
    assert_eq!(store.accept(prompt("1", "k")).await.unwrap(), Accepted::AlreadyThere);
    assert_eq!(store.waiting(&chat("1")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn torn_end_of_the_log_costs_nothing_that_was_answered_before() {
    let fixture = Fixture::new();
    fixture.accept(prompt("1", "a")).await;
    let log = fixture.folder.path().join("state.db-wal");
    let answered = std::fs::metadata(&log).unwrap().len();
    fixture.accept(prompt("1", "b")).await;
    let whole = std::fs::read(&log).unwrap();
    let end = whole.len();
    assert!(answered < end as u64);
    for cut in (usize::try_from(answered).unwrap()..end).step_by(997) {
        let folder = TempDir::new().unwrap();
        std::fs::copy(fixture.path(), folder.path().join("state.db")).unwrap();
        std::fs::write(folder.path().join("state.db-wal"), &whole[..cut]).unwrap();
        let store = open(&folder.path().join("state.db")).unwrap();
        let keys: Vec<_> = store
            .waiting(&chat("1"))
            .await
            .unwrap()
            .into_iter()
            .map(|prompt| prompt.prompt.key)
            .collect();
        assert_eq!(keys.iter().map(PromptKey::as_str).collect::<Vec<_>>(), ["a"], "cut at {cut}");
    }
}

#[tokio::test]
async fn start_that_cannot_be_counted_is_none() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    open(&path).unwrap().close().await;
    // It fails when it is committed, as with a disk that takes nothing.
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(
            "CREATE TABLE refusal (id INTEGER REFERENCES starts (id) DEFERRABLE INITIALLY DEFERRED);
             CREATE TRIGGER refuses AFTER UPDATE ON starts BEGIN INSERT INTO refusal VALUES (2); END",
        )
        .unwrap();
    // Else two processes would have the same number, and what the first left in flight would stay there.
    let opened = open(&path);
    assert!(matches!(opened, Err(StoreOpenError::Open { .. })), "{opened:?}");
}

#[test]
fn newer_format_is_refused_by_name_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    drop(open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let before = std::fs::read(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, StoreOpenError::Newer { found: 7, known: 5, .. }));
    let expected = format!(
        "`{}` has format 7, this version knows formats up to 5: use a newer version",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn damaged_file_is_named_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let rubbish = b"this is no database, whatever its name says".repeat(100);
    std::fs::write(&path, &rubbish).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, StoreOpenError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains(&path.display().to_string()));
    assert!(error.to_string().contains(".recover"));
    assert!(error.source().is_some());
    assert_eq!(std::fs::read(&path).unwrap(), rubbish);
}

#[tokio::test]
async fn file_that_lost_its_end_is_damaged() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let store = open(&path).unwrap();
    store.accept(prompt("1", "k")).await.unwrap();
    store.close().await;
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(8192).unwrap();
    let error = open(&path).unwrap_err();
    assert!(matches!(error, StoreOpenError::Damaged { .. }), "{error:?}");
}

#[test]
fn database_of_another_program_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE entries (id INTEGER)").unwrap();
    drop(other);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(open(&path).unwrap_err(), StoreOpenError::Foreign { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn folder_that_cannot_be_made_is_an_error_that_names_the_file() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("taken"), "a file").unwrap();
    let path = folder.path().join("taken").join("state.db");
    let error = open(&path).unwrap_err();
    assert!(
        matches!(&error, StoreOpenError::Create { path: named, .. } if *named == path),
        "{error:?}"
    );
}

#[tokio::test]
async fn database_of_the_first_format_is_brought_up_to_date_with_what_it_holds() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(include_str!("../../src/schema/v1.sql")).unwrap();
    connection.pragma_update(None, "application_id", 0x566f_6c63).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    connection
        .execute_batch(
            "INSERT INTO watches (
                 id, target, workspace, agent, origin, task_id, source, started_at, state, epoch, round, told, delivery_key,
                 goes_on, failures, not_found, hops
             ) VALUES (
                 'w1', '42', x'2f77', 'bot', 'https://bot.example', 't1', 'poll', '2026-11-30T12:00:00Z', 'watching', 3, 0,
                 '[]', '', 0, 0, 0, 0
             );
             INSERT INTO sends (message_id, target, workspace, agent, origin, hops, started_at, state)
             VALUES ('m1', '42', x'2f73656e74', 'bot', 'https://bot.example', 0, '2026-11-30T12:00:00Z', 'sending');",
        )
        .unwrap();
    drop(connection);
    assert!(matches!(
        Store::open_read_only(&path),
        Err(StoreOpenError::Older { found: 1, known: 5, .. })
    ));
    let store = open(&path).unwrap();
    let watches = store.live().await.unwrap();
    assert_eq!((watches.len(), watches[0].epoch, watches[0].continuations), (1, 3, 0));
    let send = &store.open_sends().await.unwrap()[0];
    assert_eq!((send.sought_since, &send.answered), (None, &None));
    assert!(store.knows_workspace(Path::new("/w")).await.unwrap());
    assert!(store.knows_workspace(Path::new("/sent")).await.unwrap());
    assert!(!store.knows_workspace(Path::new("/other")).await.unwrap());
}

#[test]
fn reader_that_comes_while_the_database_is_made_takes_it_for_none_of_another_program() {
    for _ in 0..40 {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("state.db");
        let reader = {
            let path = path.clone();
            std::thread::spawn(move || {
                loop {
                    match Store::open_read_only(&path) {
                        Ok(_) => return Ok(()),
                        Err(
                            StoreOpenError::Missing { .. } | StoreOpenError::Older { found: 0, .. },
                        ) => {}
                        Err(error) => return Err(error.to_string()),
                    }
                }
            })
        };
        drop(open(&path).unwrap());
        assert_eq!(reader.join().unwrap(), Ok(()));
    }
}

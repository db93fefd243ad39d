//! Opening the database: the file and its mode, the pragmas, the format and its migrations.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use volcanic_base::create_folders;

/// The formats, oldest first; a database of format `n` has run the first `n` of them.
const MIGRATIONS: [&str; 5] = [
    include_str!("schema/v1.sql"),
    include_str!("schema/v2.sql"),
    include_str!("schema/v3.sql"),
    include_str!("schema/v4.sql"),
    include_str!("schema/v5.sql"),
];

/// Marks the file as ours: "Volc".
const APPLICATION_ID: i64 = 0x566f_6c63;

/// What a reading connection keeps of the database in memory, in KiB. The system has it as well, and a connection that once
/// read everything would keep 2 MiB of that for ever.
const READER_CACHE: i64 = 256;

/// How long a statement waits for another process that holds the lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An error from opening a store. Nothing is deleted or overwritten in any case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreOpenError {
    /// The folder or the file could not be made.
    #[error("failed to create `{path}`")]
    Create {
        /// The database file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// There is no database to read.
    #[error("there is no `{path}`")]
    Missing {
        /// The database file.
        path: PathBuf,
    },
    /// The file is damaged, or no database at all.
    #[error(
        "`{path}` is damaged: put a copy back in its place, or move it away with its `-wal` and `-shm` files and try \
         `sqlite3 FILE .recover` on it"
    )]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// The file is a database of another program.
    #[error("`{path}` is a database of another program")]
    Foreign {
        /// The database file.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "`{path}` has format {found}, this version knows formats up to {known}: use a newer version"
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The format of the file.
        found: i64,
        /// The newest format that this version knows.
        known: i64,
    },
    /// The file has an older format and was opened for reading only.
    #[error(
        "`{path}` has format {found}, this version reads format {known}: start the assistant once to bring it up to date"
    )]
    Older {
        /// The database file.
        path: PathBuf,
        /// The format of the file.
        found: i64,
        /// The format that this version reads.
        known: i64,
    },
    /// Another process holds the lock of the database, and has done so for some seconds.
    #[error("another process holds the lock of `{path}`: wait for it to end, or end it")]
    Held {
        /// The database file.
        path: PathBuf,
    },
    /// The database could not be opened for another reason.
    #[error("failed to open `{path}`")]
    Open {
        /// The database file.
        path: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
}

/// A database that is ready for writing.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The writing connection.
    pub(crate) connection: Connection,
    /// The number of this opening; no earlier one has it.
    pub(crate) start: i64,
}

/// Opens the database for writing: creates it, brings it up to date, counts the start.
pub(crate) fn open_for_writing(path: &Path) -> Result<Opened, StoreOpenError> {
    create_file(path).map_err(|source| StoreOpenError::Create { path: path.to_owned(), source })?;
    let told = |source| describe(path, source);
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(told)?;
    let format = format_of(path, &connection)?;
    prepare_writer(&connection).map_err(told)?;
    migrate(&mut connection, format).map_err(told)?;
    let start = count_start(&mut connection).map_err(told)?;
    Ok(Opened { connection, start })
}

/// Counts a start. In a transaction of its own: a statement that returns a row has returned it before it commits, and
/// nobody would hear that it could not.
fn count_start(connection: &mut Connection) -> rusqlite::Result<i64> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let count = "UPDATE starts SET count = count + 1 RETURNING count";
    let start = transaction.query_row(count, [], |row| row.get(0))?;
    transaction.commit()?;
    Ok(start)
}

/// Checks that a reader of this version can use the database.
pub(crate) fn check_for_reading(path: &Path) -> Result<(), StoreOpenError> {
    if !path.exists() {
        return Err(StoreOpenError::Missing { path: path.to_owned() });
    }
    let connection = connect_reader(path).map_err(|source| describe(path, source))?;
    let found = format_of(path, &connection)?;
    if found < known_format() {
        return Err(StoreOpenError::Older { path: path.to_owned(), found, known: known_format() });
    }
    Ok(())
}

/// A further writing connection to a database that was opened before.
pub(crate) fn connect_writer(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    prepare_writer(&connection)?;
    Ok(connection)
}

/// A reading connection.
pub(crate) fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE)?;
    Ok(connection)
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Each statement has its index whatever it is given. Otherwise some are planned anew each time, which takes longer than
    // they do.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn prepare_writer(connection: &Connection) -> rusqlite::Result<()> {
    // The answer is the mode that is in force: a file system without shared memory stays in another one, which is
    // slower but as safe.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;",
    )?;
    // The writer writes the log back itself, once it has answered.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))
}

/// The format of the file; 0 for an empty one.
fn format_of(path: &Path, connection: &Connection) -> Result<i64, StoreOpenError> {
    let told = |source| describe(path, source);
    // At one moment: another process may be making the database just now.
    let moment = connection.unchecked_transaction().map_err(told)?;
    let number = |sql| moment.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(told);
    let application = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    let objects = number("SELECT count(*) FROM sqlite_schema")?;
    let empty = application == 0 && found == 0 && objects == 0;
    if !empty && application != APPLICATION_ID {
        return Err(StoreOpenError::Foreign { path: path.to_owned() });
    }
    if found > known_format() {
        return Err(StoreOpenError::Newer { path: path.to_owned(), found, known: known_format() });
    }
    Ok(found)
}

fn known_format() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

fn migrate(connection: &mut Connection, format: i64) -> rusqlite::Result<()> {
    let done = usize::try_from(format).unwrap_or(0);
    if done >= MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known_format())?;
    transaction.commit()
}

/// Makes the folder (0700) and the file (0600) before SQLite does it with its own, wider modes.
fn create_file(path: &Path) -> io::Result<()> {
    let here = Path::new(".");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(here);
    create_folders(folder, 0o700)?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            file.sync_all()?;
            File::open(folder)?.sync_all()
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn describe(path: &Path, source: rusqlite::Error) -> StoreOpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            StoreOpenError::Damaged { path, source }
        }
        Some(ErrorCode::DatabaseBusy) => StoreOpenError::Held { path },
        _ => StoreOpenError::Open { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_is_built_as_the_workspace_says() {
        // The other flag of `.cargo/config.toml`, how logs are flushed, is not among what SQLite tells.
        let connection = Connection::open_in_memory().unwrap();
        let mut options = connection.prepare("PRAGMA compile_options").unwrap();
        let mut options = options.query_map([], |row| row.get::<_, String>(0)).unwrap();
        assert!(options.any(|option| option.unwrap() == "DEFAULT_MEMSTATUS=0"));
    }
}

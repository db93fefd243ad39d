//! Writing the log back into the database, and what follows when that fails.

use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};
use tokio::time::Instant;

use crate::writer::{Shared, lock};

/// How many pages the log has before they are written back into the database: 4 MiB. That takes two more flushes, and what
/// is to be written next waits for it. With more pages it comes less often and takes longer.
pub(super) const LOG_PAGES: i64 = 1000;

/// Between attempts to write the log back once one failed. Each reads the whole log anew.
pub(super) const BACK_PAUSE: Duration = Duration::from_secs(1);

/// Attempts between two log lines about it: ten minutes or more.
const BACKS_PER_LINE: u32 = 600;

/// The log could not be written back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unbacked {
    attempts: u32,
    due: Instant,
}

impl Shared {
    /// Writes a long log back into the database. Those who were just answered do not wait for it.
    pub(super) fn write_back(&self, slot: &mut Option<Connection>) {
        let Some(connection) = slot else { return };
        let mut unbacked = lock(&self.unbacked);
        let least = match *unbacked {
            Some(Unbacked { due, .. }) if Instant::now() < due => return,
            Some(_) => 0,
            None => LOG_PAGES,
        };
        match write_log_back(connection, least) {
            Ok(true) if unbacked.take().is_some() => {
                tracing::info!("store log written back again");
                self.unwritable.send_if_modified(|reason| reason.take().is_some());
            }
            Ok(_) => {}
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
            Err(error) => {
                let attempts = unbacked.map_or(0, |unbacked| unbacked.attempts);
                if attempts.is_multiple_of(BACKS_PER_LINE) {
                    let database = self.path.display().to_string();
                    tracing::error!(database, %error, "store log not written back");
                }
                self.note(&error.to_string());
                self.distrust(slot);
                let attempts = attempts.saturating_add(1);
                *unbacked = Some(Unbacked { attempts, due: Instant::now() + BACK_PAUSE });
            }
        }
    }

    /// Closes all connections. The log has everything, but a descriptor whose flush failed may claim success the next time,
    /// and the index says of pages that they were written back which no flush reached. It goes with the last connection:
    /// the next one reads the log anew.
    pub(super) fn distrust(&self, slot: &mut Option<Connection>) {
        // Else the last connection would write back what the index lacks, and delete the log.
        if let Some(connection) = slot
            && let Err(error) =
                connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        {
            tracing::error!(%error, "store connection not closed");
            return;
        }
        *slot = None;
        self.readers.close_idle();
    }
}

/// Writes the log back if it has at least so many pages and there is something to write. Whether the database has all of it
/// now: pages that a reader still needs from the log are left, and then the database is not flushed either.
pub(super) fn write_log_back(connection: &Connection, least: i64) -> rusqlite::Result<bool> {
    let run = |sql| {
        let mut pragma = connection.prepare_cached(sql)?;
        pragma.query_row([], |row| {
            let is_busy = row.get::<_, i64>("busy")? != 0;
            Ok((is_busy, row.get::<_, i64>("log")?, row.get::<_, i64>("checkpointed")?))
        })
    };
    let (mut is_busy, mut pages, mut written) = run("PRAGMA wal_checkpoint(NOOP)")?;
    if pages >= least && written < pages {
        (is_busy, pages, written) = run("PRAGMA wal_checkpoint(PASSIVE)")?;
    }
    Ok(!is_busy && written >= pages)
}

//! Telegram updates: on disk before they are acknowledged, handled together with the prompt they become.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use volcanic_agent_core::{Accepted, NewPrompt, StoreError};

use crate::error::DbError;
use crate::inbound;
use crate::rows::time;
use crate::store::Store;
use crate::writer::WriteScope;

/// How long the ids of handled updates are kept. Telegram repeats an update for a day at most; after a quiet week it may
/// use old ids anew, which must not be taken for repeats.
const HANDLED_KEPT: Duration = Duration::from_hours(48);

/// A received update that waits to be handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedUpdate {
    /// Telegram's id of the update.
    pub update_id: i64,
    /// The update as Telegram sent it, JSON.
    pub raw: String,
    /// When it was received.
    pub received_at: Timestamp,
}

impl Store {
    /// Keeps received updates (id and raw JSON) and the offset of the next `getUpdates`, in one commit. Returns how many
    /// of them are new.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed; the updates must then not be acknowledged.
    pub async fn record_updates(
        &self,
        updates: Vec<(i64, String)>,
        next_offset: i64,
    ) -> Result<usize, StoreError> {
        let work = move |scope: &WriteScope<'_>| record(scope, &updates, next_offset);
        self.writer().write(work).await.map_err(|error| error.into_session("keep received updates"))
    }

    /// The offset for the next `getUpdates`; `None` before the first update.
    ///
    /// # Errors
    /// [`StoreError`] when the read failed.
    pub async fn telegram_offset(&self) -> Result<Option<i64>, StoreError> {
        self.readers()
            .read(offset)
            .await
            .map_err(|error| error.into_session("read the update offset"))
    }

    /// The updates that are not handled, in the order they were received, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the read failed.
    pub async fn updates_to_handle(&self, limit: u32) -> Result<Vec<ReceivedUpdate>, StoreError> {
        let work = move |connection: &Connection| to_handle(connection, limit);
        self.readers().read(work).await.map_err(|error| error.into_session("read received updates"))
    }

    /// Marks an update as handled and accepts the prompt it became, in one commit. `None` in, `None` out.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed; the update is then not handled.
    pub async fn update_handled(
        &self,
        update_id: i64,
        prompt: Option<NewPrompt>,
    ) -> Result<Option<Accepted>, StoreError> {
        self.updates_handled(vec![update_id], prompt).await
    }

    /// As [`Store::update_handled`] for several updates that became one prompt (an album).
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed; none of the updates is handled then.
    pub async fn updates_handled(
        &self,
        update_ids: Vec<i64>,
        prompt: Option<NewPrompt>,
    ) -> Result<Option<Accepted>, StoreError> {
        let work = move |scope: &WriteScope<'_>| {
            for update_id in &update_ids {
                handled(scope, *update_id)?;
            }
            prompt.map(|prompt| inbound::accept(scope, &prompt)).transpose()
        };
        self.writer()
            .write(work)
            .await
            .map_err(|error| error.into_session("mark updates as handled"))
    }
}

fn record(
    scope: &WriteScope<'_>,
    updates: &[(i64, String)],
    next_offset: i64,
) -> Result<usize, DbError> {
    forget_handled(scope)?;
    let mut insert = scope.connection.prepare_cached(
        "INSERT INTO telegram_updates (update_id, raw, received_at, handled) VALUES (?1, ?2, ?3, 0)
         ON CONFLICT (update_id) DO NOTHING",
    )?;
    let now = scope.now.to_string();
    let mut new = 0;
    for (update_id, raw) in updates {
        new += insert.execute(params![update_id, raw, now])?;
    }
    // Not the highest ever seen: after a quiet week Telegram may go on with lower ids.
    let mut keep = scope.connection.prepare_cached(
        "INSERT INTO telegram_state (id, next_offset) VALUES (1, ?1)
         ON CONFLICT (id) DO UPDATE SET next_offset = excluded.next_offset",
    )?;
    keep.execute([next_offset])?;
    Ok(new)
}

fn forget_handled(scope: &WriteScope<'_>) -> Result<(), DbError> {
    let Ok(before) = scope.now.checked_sub(HANDLED_KEPT) else {
        return Ok(());
    };
    let mut delete = scope.connection.prepare_cached(
        "DELETE FROM telegram_updates WHERE handled = 1 AND unixepoch(received_at) < ?1",
    )?;
    delete.execute([before.as_second()])?;
    Ok(())
}

fn offset(connection: &Connection) -> Result<Option<i64>, DbError> {
    let mut statement =
        connection.prepare_cached("SELECT next_offset FROM telegram_state WHERE id = 1")?;
    Ok(statement.query_row([], |row| row.get(0)).optional()?)
}

fn to_handle(connection: &Connection, limit: u32) -> Result<Vec<ReceivedUpdate>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT update_id, raw, received_at FROM telegram_updates WHERE handled = 0 ORDER BY id LIMIT ?1",
    )?;
    let updates = statement.query_map([limit], update)?;
    Ok(updates.collect::<Result<_, _>>()?)
}

fn handled(scope: &WriteScope<'_>, update_id: i64) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "UPDATE telegram_updates SET handled = 1, raw = NULL WHERE update_id = ?1 AND handled = 0",
    )?;
    statement.execute([update_id])?;
    Ok(())
}

fn update(row: &Row<'_>) -> rusqlite::Result<ReceivedUpdate> {
    Ok(ReceivedUpdate {
        update_id: row.get("update_id")?,
        raw: row.get("raw")?,
        received_at: time(row, "received_at")?,
    })
}

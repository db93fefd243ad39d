//! What goes to the screen: taken one by one, with the mark of the process that took it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{OptionalExtension as _, Row, params};
use volcanic_agent_core::{NewOutbox, OutboxId, OutboxItem, SourceRef, TargetId};

use crate::error::DbError;
use crate::rows::count;
use crate::writer::WriteScope;

/// Adds an item, once per key.
pub(crate) fn put(
    scope: &WriteScope<'_>,
    target: &TargetId,
    item: &NewOutbox,
) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "INSERT INTO outbox (target, key, body, source_ref, state, attempts, may_repeat, created_at)
         VALUES (?1, ?2, ?3, ?4, 'queued', 0, 0, ?5) ON CONFLICT (target, key) DO NOTHING",
    )?;
    statement.execute(params![
        target.as_str(),
        item.key,
        item.body,
        item.source.as_ref().map(SourceRef::as_str),
        scope.now.to_string(),
    ])?;
    Ok(())
}

/// Takes the oldest item that is queued, or that an earlier process left in flight.
pub(crate) fn take(
    scope: &WriteScope<'_>,
    target: &TargetId,
) -> Result<Option<OutboxItem>, DbError> {
    let mut statement = scope.connection.prepare_cached(
        "UPDATE outbox
         SET state = 'sending', attempts = attempts + 1, taken_by = ?2, may_repeat = may_repeat OR state = 'sending'
         WHERE id = (
             SELECT id FROM outbox
             WHERE target = ?1 AND state IN ('queued', 'sending') AND (state = 'queued' OR taken_by <> ?2)
             ORDER BY id LIMIT 1
         )
         RETURNING id, target, key, body, source_ref, attempts - 1 AS begun_before, may_repeat",
    )?;
    Ok(statement.query_row(params![target.as_str(), scope.start], item).optional()?)
}

/// Where an item in flight goes.
#[derive(Debug)]
pub(crate) enum OutboxEnd {
    Sent { message_id: Option<String> },
    Queued,
    Failed { reason: String },
}

/// Ends the flight of an item that this process took. One that has ended so already stays so: a commit that failed may be on
/// disk, and its caller tries again.
pub(crate) fn end(scope: &WriteScope<'_>, id: OutboxId, end: OutboxEnd) -> Result<(), DbError> {
    let (state, message_id, reason) = match end {
        OutboxEnd::Sent { message_id } => ("sent", message_id, None),
        OutboxEnd::Queued => ("queued", None, None),
        OutboxEnd::Failed { reason } => ("failed", None, Some(reason)),
    };
    let mut statement = scope.connection.prepare_cached(
        "UPDATE outbox SET state = ?2, message_id = ?3, reason = ?4, taken_by = NULL
         WHERE id = ?1 AND state = 'sending' AND taken_by = ?5",
    )?;
    match statement.execute(params![id.0, state, message_id, reason, scope.start])? {
        1 => Ok(()),
        _ if has_ended(scope, id, state)? => Ok(()),
        _ => Err(DbError::NotInFlight { id: id.0 }),
    }
}

fn has_ended(scope: &WriteScope<'_>, id: OutboxId, state: &str) -> Result<bool, DbError> {
    let mut statement = scope.connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM outbox WHERE id = ?1 AND state = ?2 AND taken_by IS NULL)",
    )?;
    Ok(statement.query_row(params![id.0, state], |row| row.get(0))?)
}

/// Items that were taken for a caller who went away before he had them. They were certainly not sent, and go back into the
/// queue when the next item is taken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unclaimed(Arc<Mutex<BTreeSet<Flight>>>);

/// One taking of one item: a later taking of the same item is another flight.
type Flight = (i64, u32);

impl Unclaimed {
    /// Holds a taken item until the caller has it.
    pub(crate) fn guard(&self, item: OutboxItem) -> ClaimGuard {
        ClaimGuard { item: Some(item), unclaimed: self.clone() }
    }

    /// The flights to put back.
    pub(crate) fn flights(&self) -> Vec<Flight> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Forgets flights that are put back on disk.
    pub(crate) fn forget(&self, flights: &[Flight]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for flight in flights {
            known.remove(flight);
        }
    }
}

/// Puts flights back into the queue; one that is over already is left alone.
pub(crate) fn put_back(scope: &WriteScope<'_>, flights: &[Flight]) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "UPDATE outbox SET state = 'queued', taken_by = NULL
         WHERE id = ?1 AND attempts = ?2 + 1 AND state = 'sending' AND taken_by = ?3",
    )?;
    for (id, begun_before) in flights {
        statement.execute(params![id, begun_before, scope.start])?;
    }
    Ok(())
}

/// A taken item on its way to the caller; dropped on the way, the item is unclaimed.
#[derive(Debug)]
pub(crate) struct ClaimGuard {
    item: Option<OutboxItem>,
    unclaimed: Unclaimed,
}

impl ClaimGuard {
    /// Hands the item over.
    pub(crate) fn claim(mut self) -> Option<OutboxItem> {
        self.item.take()
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        if let Some(item) = &self.item {
            let mut flights = self.unclaimed.0.lock().unwrap_or_else(PoisonError::into_inner);
            flights.insert((item.id.0, item.attempts));
        }
    }
}

fn item(row: &Row<'_>) -> rusqlite::Result<OutboxItem> {
    Ok(OutboxItem {
        id: OutboxId(row.get("id")?),
        target: TargetId::new(row.get::<_, String>("target")?),
        key: row.get("key")?,
        body: row.get("body")?,
        source: row.get::<_, Option<String>>("source_ref")?.map(SourceRef::new),
        attempts: count(row, "begun_before")?,
        may_repeat: row.get("may_repeat")?,
    })
}

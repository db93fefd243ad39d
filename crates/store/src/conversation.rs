//! Entries of conversations: appended with what they consume, settle and show, read back from the last reset on.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use volcanic_agent_core::{Commit, Entry, EntryBody, NewEntry, TargetId};

use crate::error::DbError;
use crate::inbound;
use crate::outbox;
use crate::rows::{count, json, time};
use crate::writer::WriteScope;

/// Writes one step of a conversation: all of it, or nothing.
pub(crate) fn commit(scope: &WriteScope<'_>, commit: Commit) -> Result<Vec<Entry>, DbError> {
    let Commit { target, consume, entries, outbox } = commit;
    if entries.is_empty() && !consume.is_empty() {
        return Err(DbError::NoEntry);
    }
    let first = last_seq(scope.connection, &target)? + 1;
    let mut written = Vec::with_capacity(entries.len());
    for (seq, NewEntry { body, delivery_key }) in (first..).zip(entries) {
        append(scope, &target, seq, &body)?;
        if let Some(key) = delivery_key {
            inbound::settle(scope, &target, &key, seq)?;
        }
        written.push(Entry { seq: u64::try_from(seq)?, at: scope.now, body });
    }
    for id in consume {
        inbound::consume(scope, &target, id, first)?;
    }
    for item in &outbox {
        outbox::put(scope, &target, item)?;
    }
    Ok(written)
}

/// The entries after the last reset, oldest first.
pub(crate) fn entries(connection: &Connection, target: &TargetId) -> Result<Vec<Entry>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, at, body FROM entries
         WHERE target = ?1
           AND seq > (SELECT coalesce(max(seq), 0) FROM entries WHERE target = ?1 AND resets = 1)
         ORDER BY seq",
    )?;
    let entries = statement.query_map([target.as_str()], entry)?;
    Ok(entries.collect::<Result<_, _>>()?)
}

/// The targets with waiting prompts, unsent outbox items or a run without an end.
pub(crate) fn targets_with_work(connection: &Connection) -> Result<Vec<TargetId>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT target FROM inbound WHERE consumed_by IS NULL
         UNION
         SELECT target FROM outbox WHERE state IN ('queued', 'sending')
         UNION
         SELECT entries.target
         FROM (SELECT target, max(seq) AS seq FROM entries GROUP BY target) AS last
         JOIN entries ON entries.target = last.target AND entries.seq = last.seq
         WHERE entries.ends_run = 0
         ORDER BY 1",
    )?;
    let targets = statement.query_map([], |row| row.get::<_, String>(0).map(TargetId::new))?;
    Ok(targets.collect::<Result<_, _>>()?)
}

fn last_seq(connection: &Connection, target: &TargetId) -> Result<i64, DbError> {
    let mut statement = connection
        .prepare_cached("SELECT seq FROM entries WHERE target = ?1 ORDER BY seq DESC LIMIT 1")?;
    Ok(statement.query_row([target.as_str()], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn append(
    scope: &WriteScope<'_>,
    target: &TargetId,
    seq: i64,
    body: &EntryBody,
) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "INSERT INTO entries (target, seq, at, ends_run, resets, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    statement.execute(params![
        target.as_str(),
        seq,
        scope.now.to_string(),
        body.ends_run(),
        matches!(body, EntryBody::Reset),
        serde_json::to_string(body)?,
    ])?;
    Ok(())
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry { seq: count(row, "seq")?, at: time(row, "at")?, body: json(row, "body")? })
}

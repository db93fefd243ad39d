//! Watches: inserted once per live task and conversation, then written under their epoch alone.

use std::path::Path;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
use volcanic_a2a_types::{ContextId, MessageId, TaskId};
use volcanic_a2a_watch::{WatchId, WatchRecord, WatchSource, WatchState, WatchTarget};
use volcanic_base::Secret;

use crate::error::DbError;
use crate::rows::{broken, count, json, optional_id, optional_time, path, path_bytes, time};
use crate::sends;
use crate::writer::WriteScope;

/// Keeps a watch as given, unless the conversation follows that task already: then the one it has.
pub(crate) fn keep(scope: &WriteScope<'_>, given: &WatchRecord) -> Result<WatchRecord, DbError> {
    match twin(scope, given)? {
        Some(known) => Ok(known),
        None => insert(scope, given),
    }
}

/// As [`keep`], for a message that led to the task: the watch that follows it already counts the message, and a new one knows
/// what was told of the task.
pub(crate) fn keep_for_send(
    scope: &WriteScope<'_>,
    message_id: &MessageId,
    mut given: WatchRecord,
) -> Result<WatchRecord, DbError> {
    let Some(known) = twin(scope, &given)? else {
        if let Some(over) = last_over(scope, &given)? {
            given.know_what_was_told(&sends::find(scope, message_id)?, &over);
        }
        let inserted = insert(scope, &given)?;
        supersede(scope, &given)?;
        return Ok(inserted);
    };
    if known.id == given.id && known.message_id.as_ref() == Some(message_id) {
        // Written before, by a commit that failed and is on disk: it is that message's own watch.
        return with_answers(scope.connection, known);
    }
    let mut count = scope
        .connection
        .prepare_cached("UPDATE watches SET continuations = continuations + 1 WHERE id = ?1")?;
    count.execute([known.id.as_str()])?;
    let continuations = known.continuations.saturating_add(1);
    with_answers(scope.connection, WatchRecord { continuations, ..known })
}

const LAST_OVER: &str = "SELECT * FROM watches
         WHERE target = ?1 AND agent = ?2 AND origin IN (?3, '') AND task_id = ?4 AND state = 'done'
         ORDER BY place DESC LIMIT 1";

/// The newest watch of the same task that is over.
fn last_over(scope: &WriteScope<'_>, given: &WatchRecord) -> Result<Option<WatchRecord>, DbError> {
    let mut over = scope.connection.prepare_cached(LAST_OVER)?;
    let task = params![given.target.as_str(), given.agent, given.origin, given.task_id.as_str()];
    Ok(over.query_row(task, watch).optional()?)
}

/// Adds how the questions stood that were answered by messages which no round of the watch covers.
fn with_answers(connection: &Connection, mut watch: WatchRecord) -> Result<WatchRecord, DbError> {
    if watch.is_behind() {
        for answered in sends::answers(connection, &watch)? {
            watch.note_told(answered);
        }
    }
    Ok(watch)
}

/// The watch that follows the same task for the same conversation, or has to again.
fn twin(scope: &WriteScope<'_>, given: &WatchRecord) -> Result<Option<WatchRecord>, DbError> {
    // Two queries, so that each has its index.
    for and in ["state <> 'done'", "state = 'done' AND continuations > followed"] {
        let mut known = scope.connection.prepare_cached(&format!(
            "SELECT * FROM watches WHERE target = ?1 AND agent = ?2 AND origin = ?3 AND task_id = ?4 AND {and}"
        ))?;
        let task =
            params![given.target.as_str(), given.agent, given.origin, given.task_id.as_str()];
        if let Some(known) = known.query_row(task, watch).optional()? {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

fn insert(scope: &WriteScope<'_>, given: &WatchRecord) -> Result<WatchRecord, DbError> {
    note_workspace(scope, &given.workspace)?;
    let mut insert = scope.connection.prepare_cached(
        "INSERT INTO watches (
             id, epoch, target, workspace, agent, origin, task_id, context_id, push_token, source, started_at, state,
             round, told, text, delivery_key, goes_on, failures, not_found, not_found_since, next_check_at, last_seen,
             hops, source_ref, message_id, continuations, followed
         ) VALUES (
             :id, :epoch, :target, :workspace, :agent, :origin, :task_id, :context_id, :push_token, :source,
             :started_at, :state, :round, :told, :text, :delivery_key, :goes_on, :failures, :not_found,
             :not_found_since, :next_check_at, :last_seen, :hops, :source_ref, :message_id,
             :continuations, :followed
         )",
    )?;
    let continuations: (&str, &dyn ToSql) = (":continuations", &given.continuations);
    with_columns(given, given.epoch, &[continuations], |columns| insert.execute(columns))?;
    Ok(given.clone())
}

/// Lets a watch that was inserted for a send take over from those that do not know where its task runs. A text that one
/// of them has claimed is still told.
fn supersede(scope: &WriteScope<'_>, inserted: &WatchRecord) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "UPDATE watches SET epoch = epoch + 1, goes_on = 0,
             state = CASE state WHEN 'claimed' THEN 'claimed' ELSE 'done' END
         WHERE target = ?1 AND agent = ?2 AND origin = '' AND task_id = ?3 AND state <> 'done' AND id <> ?4",
    )?;
    statement.execute(params![
        inserted.target.as_str(),
        inserted.agent,
        inserted.task_id.as_str(),
        inserted.id.as_str()
    ])?;
    Ok(())
}

/// Writes a watch with the next epoch if its kept epoch is the expected one. Its continuations are counted by sends alone.
pub(crate) fn update(
    scope: &WriteScope<'_>,
    expected_epoch: u64,
    given: &WatchRecord,
) -> Result<bool, DbError> {
    let mut update = scope.connection.prepare_cached(
        "UPDATE watches SET
             epoch = :epoch, target = :target, workspace = :workspace, agent = :agent, origin = :origin,
             task_id = :task_id, context_id = :context_id, push_token = :push_token, source = :source,
             started_at = :started_at, state = :state, round = :round, told = :told, text = :text,
             delivery_key = :delivery_key, goes_on = :goes_on, failures = :failures, not_found = :not_found,
             not_found_since = :not_found_since, next_check_at = :next_check_at, last_seen = :last_seen, hops = :hops,
             source_ref = :source_ref, message_id = :message_id, followed = :followed
         WHERE id = :id AND epoch = :expected_epoch",
    )?;
    let expected = i64::try_from(expected_epoch)?;
    let written = with_columns(
        given,
        expected_epoch.saturating_add(1),
        &[(":expected_epoch", &expected)],
        |columns| update.execute(columns),
    )?;
    if written == 1 {
        note_workspace(scope, &given.workspace)?;
    }
    Ok(written == 1)
}

/// The watches that are not done, or have to go on, oldest first.
pub(crate) fn live(connection: &Connection) -> Result<Vec<WatchRecord>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT * FROM watches INDEXED BY watches_live_task WHERE state <> 'done'
         UNION ALL SELECT * FROM watches WHERE state = 'done' AND continuations > followed",
    )?;
    let watches = statement.query_map([], |row| Ok((row.get::<_, i64>("place")?, watch(row)?)))?;
    let mut watches: Vec<_> = watches.collect::<Result<_, _>>()?;
    // SQLite would sort what does not fit into its cache in a file.
    watches.sort_unstable_by_key(|(place, _)| *place);
    watches.into_iter().map(|(_, watch)| with_answers(connection, watch)).collect()
}

/// One watch, whatever its state.
pub(crate) fn find(connection: &Connection, id: &WatchId) -> Result<Option<WatchRecord>, DbError> {
    let mut statement = connection.prepare_cached("SELECT * FROM watches WHERE id = ?1")?;
    let found = statement.query_row([id.as_str()], watch).optional()?;
    found.map(|watch| with_answers(connection, watch)).transpose()
}

/// Whether anything was ever kept for a workspace.
pub(crate) fn knows_workspace(connection: &Connection, workspace: &Path) -> Result<bool, DbError> {
    let mut statement =
        connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM workspaces WHERE path = ?1)")?;
    Ok(statement.query_row([path_bytes(workspace)], |row| row.get(0))?)
}

/// Notes that something is kept for a workspace, which no watch and no send ever leaves.
pub(crate) fn note_workspace(scope: &WriteScope<'_>, workspace: &Path) -> Result<(), DbError> {
    let mut statement = scope
        .connection
        .prepare_cached("INSERT INTO workspaces (path) VALUES (?1) ON CONFLICT DO NOTHING")?;
    statement.execute([path_bytes(workspace)])?;
    Ok(())
}

/// Hands a watch's columns, and `more`, to a statement.
fn with_columns<T>(
    watch: &WatchRecord,
    epoch: u64,
    more: &[(&str, &dyn ToSql)],
    run: impl FnOnce(&[(&str, &dyn ToSql)]) -> rusqlite::Result<T>,
) -> Result<T, DbError> {
    let epoch = i64::try_from(epoch)?;
    let told = serde_json::to_string(&watch.told)?;
    let started_at = watch.started_at.to_string();
    let not_found_since = watch.not_found_since.map(|at| at.to_string());
    let next_check_at = watch.next_check_at.map(|at| at.to_string());
    let mut columns: Vec<(&str, &dyn ToSql)> = Vec::with_capacity(32);
    let (id, target, task_id) = (watch.id.as_str(), watch.target.as_str(), watch.task_id.as_str());
    let workspace = path_bytes(&watch.workspace);
    let context_id = watch.context_id.as_ref().map(ContextId::as_str);
    let push_token = watch.push_token.as_ref().map(Secret::expose);
    let (source, state) = (watch.source.as_str(), watch.state.as_str());
    let message_id = watch.message_id.as_ref().map(MessageId::as_str);
    columns.extend_from_slice(&[
        (":id", &id),
        (":epoch", &epoch),
        (":target", &target),
        (":workspace", &workspace),
        (":agent", &watch.agent),
        (":origin", &watch.origin),
        (":task_id", &task_id),
        (":context_id", &context_id),
        (":push_token", &push_token),
        (":source", &source),
        (":started_at", &started_at),
        (":state", &state),
        (":round", &watch.round),
        (":told", &told),
        (":text", &watch.text),
        (":delivery_key", &watch.delivery_key),
        (":goes_on", &watch.goes_on),
        (":failures", &watch.failures),
        (":not_found", &watch.not_found),
        (":not_found_since", &not_found_since),
        (":next_check_at", &next_check_at),
        (":last_seen", &watch.last_seen),
        (":hops", &watch.hops),
        (":source_ref", &watch.source_ref),
        (":message_id", &message_id),
        (":followed", &watch.followed),
    ]);
    columns.extend_from_slice(more);
    Ok(run(&columns)?)
}

fn watch(row: &Row<'_>) -> rusqlite::Result<WatchRecord> {
    let (source, state): (String, String) = (row.get("source")?, row.get("state")?);
    Ok(WatchRecord {
        id: WatchId::new(row.get::<_, String>("id")?),
        target: WatchTarget::new(row.get::<_, String>("target")?),
        workspace: path(row, "workspace")?,
        agent: row.get("agent")?,
        origin: row.get("origin")?,
        task_id: TaskId::new(row.get::<_, String>("task_id")?),
        context_id: optional_id(row, "context_id", ContextId::new)?,
        push_token: optional_id(row, "push_token", Secret::new)?,
        source: WatchSource::parse(&source)
            .ok_or_else(|| broken(Type::Text, "unknown source of a watch".into()))?,
        started_at: time(row, "started_at")?,
        state: WatchState::parse(&state)
            .ok_or_else(|| broken(Type::Text, "unknown state of a watch".into()))?,
        epoch: count(row, "epoch")?,
        round: count(row, "round")?,
        told: json(row, "told")?,
        text: row.get("text")?,
        delivery_key: row.get("delivery_key")?,
        goes_on: row.get("goes_on")?,
        failures: count(row, "failures")?,
        not_found: count(row, "not_found")?,
        not_found_since: optional_time(row, "not_found_since")?,
        next_check_at: optional_time(row, "next_check_at")?,
        last_seen: row.get("last_seen")?,
        hops: count(row, "hops")?,
        source_ref: row.get("source_ref")?,
        message_id: optional_id(row, "message_id", MessageId::new)?,
        continuations: count(row, "continuations")?,
        followed: count(row, "followed")?,
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;
    use tempfile::TempDir;

    use super::*;
    use crate::open::open_for_writing;

    #[test]
    fn statement_is_not_planned_anew_for_what_it_is_given() {
        let folder = TempDir::new().unwrap();
        let connection = open_for_writing(&folder.path().join("state.db")).unwrap().connection;
        for origin in ["https://one.example", "", "https://two.example"] {
            // From the cache and back, as it is used.
            let mut over = connection.prepare_cached(LAST_OVER).unwrap();
            let found = over.query_row(params!["42", "bot", origin, "t"], |_| Ok(()));
            assert_eq!(found.optional().unwrap(), None);
        }
        let over = connection.prepare_cached(LAST_OVER).unwrap();
        assert_eq!(over.get_status(StatementStatus::RePrepare), 0);
    }
}

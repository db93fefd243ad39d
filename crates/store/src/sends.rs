//! Sends: on disk before the first byte leaves, marked once their end is known.

use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, named_params, params};
use volcanic_a2a_types::{ContextId, MessageId, TaskId};
use volcanic_a2a_watch::{MAX_ANSWERED, SendRecord, SendState, WatchRecord, WatchTarget};

use crate::error::DbError;
use crate::rows::{broken, count, optional_id, optional_time, path, path_bytes, time};
use crate::watches::note_workspace;
use crate::writer::WriteScope;

/// Keeps a send whose message id is new; `false` when it counts against a bound that is reached.
pub(crate) fn begin(
    scope: &WriteScope<'_>,
    send: &SendRecord,
    unattended_limit: u32,
) -> Result<bool, DbError> {
    if let Some(unattended) = &send.unattended {
        let mut left = scope.connection.prepare_cached(
            "SELECT count(*) FROM sends WHERE target = ?1 AND unattended = ?2 AND unattended IS NOT NULL",
        )?;
        let left: i64 =
            left.query_row(params![send.target.as_str(), unattended], |row| row.get(0))?;
        if left >= i64::from(unattended_limit) {
            return Ok(false);
        }
    }
    note_workspace(scope, &send.workspace)?;
    let mut statement = scope.connection.prepare_cached(
        "INSERT INTO sends (
             message_id, target, workspace, agent, origin, context_id, task_id, hops, source_ref, started_at, state,
             end_reason, unattended, sought_since, answered
         ) VALUES (
             :message_id, :target, :workspace, :agent, :origin, :context_id, :task_id, :hops, :source_ref, :started_at,
             :state, :end_reason, :unattended, :sought_since, :answered
         )",
    )?;
    statement.execute(named_params! {
        ":message_id": send.message_id.as_str(),
        ":target": send.target.as_str(),
        ":workspace": path_bytes(&send.workspace),
        ":agent": send.agent,
        ":origin": send.origin,
        ":context_id": send.context_id.as_ref().map(ContextId::as_str),
        ":task_id": send.task_id.as_ref().map(TaskId::as_str),
        ":hops": send.hops,
        ":source_ref": send.source_ref,
        ":started_at": send.started_at.to_string(),
        ":state": send.state.as_str(),
        ":end_reason": send.end_reason,
        ":unattended": send.unattended,
        ":sought_since": send.sought_since.map(|at| at.to_string()),
        ":answered": send.answered,
    })?;
    Ok(true)
}

/// Gives a kept send its new state.
pub(crate) fn mark(
    scope: &WriteScope<'_>,
    message_id: &MessageId,
    state: SendState,
    end_reason: Option<&str>,
) -> Result<(), DbError> {
    let mut statement = scope
        .connection
        .prepare_cached("UPDATE sends SET state = ?2, end_reason = ?3 WHERE message_id = ?1")?;
    match statement.execute(params![message_id.as_str(), state.as_str(), end_reason])? {
        1 => Ok(()),
        _ => Err(DbError::UnknownSend { message_id: message_id.as_str().to_owned() }),
    }
}

/// Keeps why an open send did not leave.
pub(crate) fn note_unsent(
    scope: &WriteScope<'_>,
    message_id: &MessageId,
    reason: &str,
) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "UPDATE sends SET end_reason = ?2, unattended = NULL WHERE message_id = ?1 AND state = 'sending'",
    )?;
    match statement.execute(params![message_id.as_str(), reason])? {
        1 => Ok(()),
        _ => Err(DbError::UnknownSend { message_id: message_id.as_str().to_owned() }),
    }
}

/// Keeps since when the end of an open send is looked for.
pub(crate) fn note_sought(
    scope: &WriteScope<'_>,
    message_id: &MessageId,
    since: Timestamp,
) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "UPDATE sends SET sought_since = ?2 WHERE message_id = ?1 AND state = 'sending'",
    )?;
    match statement.execute(params![message_id.as_str(), since.to_string()])? {
        1 => Ok(()),
        _ => Err(DbError::UnknownSend { message_id: message_id.as_str().to_owned() }),
    }
}

/// Keeps how the question stands that an open send is about to answer.
pub(crate) fn note_answered(
    scope: &WriteScope<'_>,
    message_id: &MessageId,
    answered: &str,
) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "UPDATE sends SET answered = ?2 WHERE message_id = ?1 AND state = 'sending'",
    )?;
    match statement.execute(params![message_id.as_str(), answered])? {
        1 => Ok(()),
        _ => Err(DbError::UnknownSend { message_id: message_id.as_str().to_owned() }),
    }
}

/// One send, whatever its state.
pub(crate) fn find(scope: &WriteScope<'_>, message_id: &MessageId) -> Result<SendRecord, DbError> {
    let mut statement =
        scope.connection.prepare_cached("SELECT * FROM sends WHERE message_id = ?1")?;
    Ok(statement.query_row([message_id.as_str()], send)?)
}

/// How the questions stood that messages to a watch's task answered last, oldest first.
pub(crate) fn answers(
    connection: &Connection,
    watch: &WatchRecord,
) -> Result<Vec<String>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT answered FROM sends
         WHERE workspace = ?1 AND target = ?2 AND agent = ?3 AND origin = ?4 AND task_id = ?5 AND state = 'known'
           AND answered IS NOT NULL
         ORDER BY place DESC LIMIT ?6",
    )?;
    let task = params![
        path_bytes(&watch.workspace),
        watch.target.as_str(),
        watch.agent,
        watch.origin,
        watch.task_id.as_str(),
        i64::try_from(MAX_ANSWERED).unwrap_or(i64::MAX),
    ];
    let answers = statement.query_map(task, |row| row.get(0))?;
    let mut answers: Vec<_> = answers.collect::<Result<_, _>>()?;
    answers.reverse();
    Ok(answers)
}

/// The sends that are not over, oldest first.
pub(crate) fn open(connection: &Connection) -> Result<Vec<SendRecord>, DbError> {
    let mut statement =
        connection.prepare_cached("SELECT * FROM sends WHERE state = 'sending' ORDER BY place")?;
    let sends = statement.query_map([], send)?;
    Ok(sends.collect::<Result<_, _>>()?)
}

fn send(row: &Row<'_>) -> rusqlite::Result<SendRecord> {
    let state: String = row.get("state")?;
    Ok(SendRecord {
        message_id: MessageId::new(row.get::<_, String>("message_id")?),
        target: WatchTarget::new(row.get::<_, String>("target")?),
        workspace: path(row, "workspace")?,
        agent: row.get("agent")?,
        origin: row.get("origin")?,
        context_id: optional_id(row, "context_id", ContextId::new)?,
        task_id: optional_id(row, "task_id", TaskId::new)?,
        hops: count(row, "hops")?,
        source_ref: row.get("source_ref")?,
        started_at: time(row, "started_at")?,
        state: SendState::parse(&state)
            .ok_or_else(|| broken(Type::Text, "unknown state of a send".into()))?,
        end_reason: row.get("end_reason")?,
        unattended: row.get("unattended")?,
        sought_since: optional_time(row, "sought_since")?,
        answered: row.get("answered")?,
    })
}

//! Accepted prompts: into the queue once per key, out of it by the entry that consumes them.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use volcanic_agent_core::{
    Accepted, InboundId, NewPrompt, Origin, Prompt, PromptKey, SourceRef, TargetId,
};

use crate::error::DbError;
use crate::rows::{broken, count, time};
use crate::writer::WriteScope;

/// Puts a prompt into the queue, once per key.
pub(crate) fn accept(scope: &WriteScope<'_>, prompt: &NewPrompt) -> Result<Accepted, DbError> {
    let mut statement = scope.connection.prepare_cached(
        "INSERT INTO inbound (target, key, origin, hops, source_ref, text, accepted_at)
         VALUES (:target, :key, :origin, :hops, :source, :text, :now)
         ON CONFLICT (target, key) DO NOTHING RETURNING id",
    )?;
    let values = named_params! {
        ":target": prompt.target.as_str(),
        ":key": prompt.key.as_str(),
        ":origin": origin_name(prompt.origin),
        ":hops": prompt.hops,
        ":source": prompt.source.as_ref().map(SourceRef::as_str),
        ":text": prompt.text,
        ":now": scope.now.to_string(),
    };
    let id = statement.query_row(values, |row| row.get(0)).optional()?;
    Ok(id.map_or(Accepted::AlreadyThere, |id| Accepted::New(InboundId(id))))
}

/// Those of `keys` that something in the conversation has.
pub(crate) fn taken(
    connection: &Connection,
    target: &TargetId,
    keys: Vec<PromptKey>,
) -> Result<Vec<PromptKey>, DbError> {
    let mut statement = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM inbound WHERE target = ?1 AND key = ?2)")?;
    let mut taken = Vec::new();
    for key in keys {
        let is_taken =
            statement.query_row([target.as_str(), key.as_str()], |row| row.get::<_, bool>(0))?;
        if is_taken {
            taken.push(key);
        }
    }
    Ok(taken)
}

/// The oldest prompts that no entry has consumed.
pub(crate) fn waiting(connection: &Connection, target: &TargetId) -> Result<Vec<Prompt>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, target, key, origin, hops, source_ref, text, accepted_at FROM inbound
         WHERE target = ?1 AND consumed_by IS NULL ORDER BY id LIMIT 256",
    )?;
    let prompts = statement.query_map([target.as_str()], prompt)?;
    Ok(prompts.collect::<Result<_, _>>()?)
}

/// Marks a waiting prompt as consumed by entry `seq`.
pub(crate) fn consume(
    scope: &WriteScope<'_>,
    target: &TargetId,
    id: InboundId,
    seq: i64,
) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "UPDATE inbound SET consumed_by = ?1 WHERE id = ?2 AND target = ?3 AND consumed_by IS NULL",
    )?;
    match statement.execute(params![seq, id.0, target.as_str()])? {
        1 => Ok(()),
        _ => Err(DbError::Taken { target: target.clone(), key: id.0.to_string() }),
    }
}

/// Takes a delivery's key for the entry that settles it, so that no prompt can carry the same outcome.
pub(crate) fn settle(
    scope: &WriteScope<'_>,
    target: &TargetId,
    key: &PromptKey,
    seq: i64,
) -> Result<(), DbError> {
    let mut statement = scope.connection.prepare_cached(
        "INSERT INTO inbound (target, key, origin, hops, text, accepted_at, consumed_by)
         VALUES (?1, ?2, 'delivery', 0, '', ?3, ?4) ON CONFLICT (target, key) DO NOTHING",
    )?;
    match statement.execute(params![target.as_str(), key.as_str(), scope.now.to_string(), seq])? {
        1 => Ok(()),
        _ => Err(DbError::Taken { target: target.clone(), key: key.as_str().to_owned() }),
    }
}

fn prompt(row: &Row<'_>) -> rusqlite::Result<Prompt> {
    Ok(Prompt {
        id: InboundId(row.get("id")?),
        prompt: NewPrompt {
            target: TargetId::new(row.get::<_, String>("target")?),
            key: PromptKey::new(row.get::<_, String>("key")?),
            origin: origin(&row.get::<_, String>("origin")?)?,
            hops: count(row, "hops")?,
            source: row.get::<_, Option<String>>("source_ref")?.map(SourceRef::new),
            text: row.get("text")?,
        },
        accepted_at: time(row, "accepted_at")?,
    })
}

fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Owner => "owner",
        Origin::Delivery => "delivery",
    }
}

fn origin(name: &str) -> rusqlite::Result<Origin> {
    match name {
        "owner" => Ok(Origin::Owner),
        "delivery" => Ok(Origin::Delivery),
        _ => Err(broken(Type::Text, "unknown origin".into())),
    }
}

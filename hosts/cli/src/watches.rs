//! `volcanic watches`: what the assistant of a workspace follows, read without touching it.

use std::{path::Path, time::Duration};

use anyhow::Result;
use jiff::Timestamp;
use serde_json::json;
use volcanic_a2a_tool::WatchLines;
use volcanic_a2a_watch::WatchRecord;
use volcanic_base::{Clock as _, SystemClock};
use volcanic_store::{Store, StoreOpenError};

use crate::{
    args::WatchesArgs,
    config::CliConfig,
    exit::Exit,
    home::Home,
    output::{Format, write_json, write_line},
};

/// Shows the watches.
///
/// # Errors
/// When the state cannot be read.
pub(crate) async fn watches(
    args: &WatchesArgs,
    config: &CliConfig,
    format: Format,
) -> Result<Exit> {
    let home = Home::of(&args.at.workspace, &config.home)?;
    let (watches, has_run) = match Store::open_read_only(&home.database_of_assistant()) {
        Ok(store) => {
            let mut watches = store.watches().await?;
            // The bot has all its chats in one state.
            watches.retain(|watch| is_same(&watch.workspace, &home.workspace));
            (watches, true)
        }
        // There was no chat yet, or the first one is only just beginning.
        Err(StoreOpenError::Missing { .. } | StoreOpenError::Older { found: 0, .. }) => {
            (Vec::new(), false)
        }
        Err(error) => return Err(error.into()),
    };
    if format == Format::Json {
        let watches: Vec<_> = watches.iter().map(as_json).collect();
        write_json(&json!({ "watches": watches }))?;
    } else if !has_run {
        write_line("No chat has run here yet.")?;
    } else if watches.is_empty() {
        write_line("No watches.")?;
    } else {
        let now = SystemClock.now();
        for watch in &watches {
            let span = |from: Timestamp, to: Timestamp| Duration::try_from(to.duration_since(from));
            let lines = WatchLines {
                agent: &watch.agent,
                task_id: watch.task_id.as_str(),
                source: watch.source,
                state: watch.state,
                age: span(watch.started_at, now).unwrap_or_default(),
                // Only checks that found something are written down, so what is past says nothing.
                next_check_in: watch.next_check_at.and_then(|at| span(now, at).ok()),
                last_seen: watch.last_seen.as_deref(),
            };
            write_line(lines)?;
        }
    }
    Ok(Exit::Done)
}

/// Whether a workspace, as its chat names it, is this one.
fn is_same(named: &Path, real: &Path) -> bool {
    named == real || named.canonicalize().is_ok_and(|named| named == real)
}

fn as_json(watch: &WatchRecord) -> serde_json::Value {
    json!({
        "target": watch.target.as_str(),
        "agent": watch.agent,
        "taskId": watch.task_id,
        "contextId": watch.context_id,
        "source": watch.source.as_str(),
        "state": watch.state.as_str(),
        "startedAt": watch.started_at,
        "nextCheckAt": watch.next_check_at,
        "lastSeen": watch.last_seen,
    })
}

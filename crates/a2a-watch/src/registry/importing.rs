//! Takes up the tasks of a `pending.json` that the store knows nothing of: the workspace was moved or restored.
//!
//! Anybody who can write into the workspace can write that file. So only agents of `agents.json` are asked, only for the
//! task ids, and only where their entry points when they are asked first; kept texts are not looked at.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use volcanic_a2a_client::{AgentEntry, AgentName, AgentsFile};
use volcanic_a2a_types::{ContextId, TaskId};
use volcanic_base::{ConfineError, ConfinedDir};

use super::context::Context;
use super::view::{PENDING_FILE, PENDING_FOLDER};
use crate::delivery::{Delivery, DeliveryEnd};
use crate::notice;
use crate::record::{WatchId, WatchRecord, WatchTarget};
use crate::store::WatchStoreError;

/// The largest file that is read, in bytes: kept texts stand in it.
const MAX_FILE: u64 = 16 << 20;
/// Where a list that cannot be read is kept.
const ASIDE_FILE: &str = ".volcanic/a2a/pending.broken.json";
/// The most tasks that are taken up.
const MAX_TASKS: usize = 200;

/// What is read of a watch in the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    agent: String,
    task_id: String,
    context_id: Option<String>,
    started_at: Option<Timestamp>,
    #[serde(default)]
    hops: u32,
    #[serde(rename = "ref")]
    source_ref: Option<String>,
}

/// Imports for every known conversation whose workspace the store does not know. Returns the workspaces whose view stands
/// from an earlier process and may be stale.
pub(super) async fn import_all(context: &Context) -> Result<Vec<PathBuf>, WatchStoreError> {
    let delivery = &context.deps.delivery;
    let mut views = Vec::new();
    for target in delivery.known_targets() {
        let Some(workspace) = delivery.workspace_for(&target) else { continue };
        let Some(bytes) = read(&workspace).await else { continue };
        // A list that could not be taken up is the only trace of its tasks, so the view does not replace it.
        if context.deps.store.knows_workspace(&workspace).await?
            || import(context, &target, &workspace, bytes).await?
        {
            views.push(workspace);
        }
    }
    Ok(views)
}

async fn read(workspace: &Path) -> Option<Vec<u8>> {
    let workspace = workspace.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let folder = ConfinedDir::open(workspace)?;
        // A process that was killed in the middle of writing a view left its temporary file.
        folder.sweep_temp_files(PENDING_FOLDER)?;
        folder.read_to_limit(PENDING_FILE, MAX_FILE)
    });
    match read.await {
        Ok(Ok(bytes)) => Some(bytes),
        Ok(Err(ConfineError::NotFound { .. })) => None,
        Ok(Err(error)) => {
            tracing::warn!(error = %error, "pending.json cannot be read");
            None
        }
        Err(error) => {
            tracing::error!(error = %error, "pending.json could not be read");
            None
        }
    }
}

/// What a file lists, as far as it can be read.
struct List {
    listed: Vec<Listed>,
    /// How many of its entries cannot be taken up.
    left_out: usize,
}

fn parse(bytes: &[u8]) -> serde_json::Result<List> {
    let entries: Vec<serde_json::Value> = serde_json::from_slice(bytes)?;
    let count = entries.len();
    let listed: Vec<Listed> = entries
        .into_iter()
        .filter_map(|entry| serde_json::from_value(entry).ok())
        // No entry of agents.json can have another name.
        .filter(|listed: &Listed| AgentName::new(&listed.agent).is_some())
        .take(MAX_TASKS)
        .collect();
    let left_out = count - listed.len();
    Ok(List { listed, left_out })
}

/// Imports what a file lists; whether the view may replace it.
async fn import(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    bytes: Vec<u8>,
) -> Result<bool, WatchStoreError> {
    let key = format!("a2a-import:{:x}", Sha256::digest(&bytes));
    let list = match parse(&bytes) {
        Ok(list) => list,
        Err(error) => {
            tracing::warn!(error = %error, "pending.json of an unknown workspace is not what it should be");
            return if set_aside(workspace, bytes).await {
                tell(context, target, key, notice::not_imported(ASIDE_FILE)).await?;
                Ok(true)
            } else {
                Ok(false)
            };
        }
    };
    // A file that cannot be read now says nothing about where the agents are: each watch finds out when it can.
    let file = context.file(workspace).await.unwrap_or_default();
    let watches: Vec<_> = list
        .listed
        .into_iter()
        .map(|listed| watch(context, target, workspace, &file, listed))
        .collect();
    if watches.is_empty() && list.left_out == 0 {
        return Ok(true);
    }
    // Told before it is kept: a crash in between imports again, and the same key tells nothing twice.
    tell(context, target, key, notice::imported(&watches, list.left_out)).await?;
    context.deps.store.add_watches(&watches).await?;
    tracing::info!(watches = watches.len(), "watches of an unknown workspace imported");
    Ok(true)
}

async fn tell(
    context: &Context,
    target: &WatchTarget,
    key: String,
    text: String,
) -> Result<(), WatchStoreError> {
    let delivery = Delivery { target: target.clone(), key, text, hops: 0, source_ref: None };
    match context.deps.delivery.deliver(&delivery).await {
        Ok(DeliveryEnd::Delivered) => Ok(()),
        Ok(DeliveryEnd::NotNow) => {
            // Each result names its task, so what is followed shows then.
            tracing::warn!("nobody could be told about imported watches");
            Ok(())
        }
        Err(error) => Err(WatchStoreError::new("tell about imported watches", error)),
    }
}

/// Copies a file that cannot be read, so that the view does not replace the only trace of its tasks.
async fn set_aside(workspace: &Path, bytes: Vec<u8>) -> bool {
    let workspace = workspace.to_owned();
    let copy = tokio::task::spawn_blocking(move || {
        ConfinedDir::open(workspace)?.write_atomic(ASIDE_FILE, &bytes, 0o600)
    });
    match copy.await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(error = %error, "pending.json could not be set aside");
            false
        }
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn watch(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    file: &AgentsFile,
    listed: Listed,
) -> WatchRecord {
    let now = context.deps.clock.now();
    let origin = file.agent(&listed.agent).map(AgentEntry::origin).unwrap_or_default();
    WatchRecord {
        context_id: listed.context_id.map(ContextId::from),
        hops: listed.hops,
        source_ref: listed.source_ref,
        ..WatchRecord::begun(
            WatchId::random(&context.deps.chance),
            target.clone(),
            workspace.to_owned(),
            (listed.agent, origin),
            TaskId::from(listed.task_id),
            listed.started_at.map_or(now, |started_at| started_at.min(now)),
        )
    }
}

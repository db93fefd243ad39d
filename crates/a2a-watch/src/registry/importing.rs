//! Takes up the tasks of a `pending.json` that the store knows nothing of: the workspace was moved or restored.
//!
//! Anybody who can write into the workspace can write that file. So only agents of `agents.json` are asked, only for the
//! task ids, and only where their entry points now; kept texts are not looked at.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use volcanic_a2a_client::AgentsFile;
use volcanic_a2a_types::{ContextId, TaskId};
use volcanic_base::{ConfineError, ConfinedDir};

use super::context::Context;
use super::view::{PENDING_FILE, PENDING_FOLDER};
use crate::delivery::{Delivery, DeliveryEnd};
use crate::notice;
use crate::record::{WatchId, WatchRecord, WatchTarget};
use crate::store::WatchStoreError;

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;
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
            || import(context, &target, &workspace, &bytes).await?
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

/// Imports what a file lists; whether it could.
async fn import(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    bytes: &[u8],
) -> Result<bool, WatchStoreError> {
    let listed: Vec<Listed> = match serde_json::from_slice(bytes) {
        Ok(listed) => listed,
        Err(error) => {
            tracing::warn!(error = %error, "pending.json of an unknown workspace is not what it should be");
            return Ok(false);
        }
    };
    let Ok(file) = context.file(workspace).await else { return Ok(false) };
    let watches: Vec<_> = listed
        .into_iter()
        .take(MAX_TASKS)
        .filter_map(|listed| watch(context, target, workspace, &file, listed))
        .collect();
    if watches.is_empty() {
        return Ok(true);
    }
    // Told before it is kept: a crash in between imports again, and the same key tells nothing twice.
    let delivery = Delivery {
        target: target.clone(),
        key: format!("a2a-import:{:x}", Sha256::digest(bytes)),
        text: notice::imported(&watches),
        hops: 0,
        source_ref: None,
    };
    match context.deps.delivery.deliver(&delivery).await {
        Ok(DeliveryEnd::Delivered) => {
            context.deps.store.add_watches(&watches).await?;
            tracing::info!(watches = watches.len(), "watches of an unknown workspace imported");
            Ok(true)
        }
        Ok(DeliveryEnd::NotNow) => Ok(false),
        Err(error) => Err(WatchStoreError::new("tell about imported watches", error)),
    }
}

fn watch(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    file: &AgentsFile,
    listed: Listed,
) -> Option<WatchRecord> {
    let entry = file.agent(&listed.agent)?;
    let now = context.deps.clock.now();
    Some(WatchRecord {
        context_id: listed.context_id.map(ContextId::from),
        hops: listed.hops,
        source_ref: listed.source_ref,
        ..WatchRecord::begun(
            WatchId::random(&context.deps.chance),
            target.clone(),
            workspace.to_owned(),
            (listed.agent, entry.origin()),
            TaskId::from(listed.task_id),
            listed.started_at.map_or(now, |started_at| started_at.min(now)),
        )
    })
}

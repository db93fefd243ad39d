//! Takes up the tasks of a `pending.json` that the store knows nothing of: the workspace was moved or restored.
//!
//! Anybody who can write into the workspace can write that file. So only agents of `agents.json` are asked, only for the
//! task ids, and only where their entry points when they are asked first; kept texts are not looked at.

mod list;

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use volcanic_a2a_client::{AgentEntry, AgentsFile, INBOX};
use volcanic_a2a_types::{ContextId, TaskId};
use volcanic_base::{ConfineError, ConfinedDir, EntryKind};

use super::context::Context;
use super::view::{PENDING_FILE, PENDING_FOLDER};
use crate::delivery::{Delivery, DeliveryEnd};
use crate::notice;
use crate::record::{WatchId, WatchRecord, WatchTarget};
use crate::store::WatchStoreError;
use list::{List, Listed};

/// The largest file that is read, in bytes: kept texts stand in it.
const MAX_FILE: u64 = 16 << 20;
/// Where a list that cannot be read, or not all of it, is kept.
const ASIDE_FILE: &str = ".volcanic/a2a/pending.broken.json";

/// A file, as far as it was read.
enum Found {
    Bytes(Vec<u8>),
    /// It is larger than any list: so many bytes.
    TooLarge(u64),
}

/// Imports for every known conversation whose workspace the store does not know. Returns the workspaces whose view stands
/// from an earlier process and may be stale.
pub(super) async fn import_all(context: &Context) -> Result<Vec<PathBuf>, WatchStoreError> {
    let delivery = &context.deps.delivery;
    let mut views = Vec::new();
    for target in delivery.known_targets() {
        let Some(workspace) = delivery.workspace_for(&target) else { continue };
        let Some(found) = read(&workspace).await else { continue };
        let is_replaced = if context.deps.store.knows_workspace(&workspace).await? {
            true
        } else {
            match found {
                Found::Bytes(bytes) => import(context, &target, &workspace, bytes).await?,
                Found::TooLarge(size) => put_aside(context, &target, &workspace, size).await?,
            }
        };
        // A list that could not be taken up is the only trace of its tasks, so the view does not replace it.
        if is_replaced {
            views.push(workspace);
        }
    }
    Ok(views)
}

/// Removes what a process left of received files that it was killed in the middle of, or that a bad disk did not even let
/// it take back. Whoever saves sweeps as well, but only where something is received again.
fn sweep_inbox(workspace: &ConfinedDir) {
    // Most workspaces have none.
    let Ok(agents) = workspace.list(INBOX) else { return };
    for agent in agents.into_iter().filter(|agent| agent.kind == EntryKind::Directory) {
        if let Err(error) = workspace.sweep_temp_files(Path::new(INBOX).join(agent.name)) {
            tracing::debug!(%error, "a folder of received files was not swept");
        }
    }
}

async fn read(workspace: &Path) -> Option<Found> {
    let workspace = workspace.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let folder = ConfinedDir::open(workspace)?;
        sweep_inbox(&folder);
        // A process that was killed in the middle of writing a view left its temporary file.
        folder.sweep_temp_files(PENDING_FOLDER)?;
        match folder.read_to_limit(PENDING_FILE, MAX_FILE) {
            Err(ConfineError::TooLarge { .. }) => {
                Ok(Found::TooLarge(folder.metadata(PENDING_FILE)?.len()))
            }
            read => read.map(Found::Bytes),
        }
    });
    match read.await {
        Ok(Ok(found)) => Some(found),
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

/// Imports what a file lists; whether the view may replace it.
async fn import(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    bytes: Vec<u8>,
) -> Result<bool, WatchStoreError> {
    let key = format!("a2a-import:{:x}", Sha256::digest(&bytes));
    let list = List::read(&bytes);
    let is_lossy = !list.is_whole || list.left_out > 0;
    let aside = if is_lossy && set_aside(workspace, bytes).await { Some(ASIDE_FILE) } else { None };
    if list.listed.is_empty() && !list.is_whole {
        tracing::warn!("pending.json of an unknown workspace is not what it should be");
        let Some(aside) = aside else { return Ok(false) };
        tell(context, target, key, notice::not_imported(aside)).await?;
        return Ok(true);
    }
    let losses = notice::Losses { left_out: list.left_out, is_cut: !list.is_whole, aside };
    // A file that cannot be read now says nothing about where the agents are: each watch finds out when it can.
    let file = context.file(workspace).await.unwrap_or_default();
    let watches: Vec<_> = list
        .listed
        .into_iter()
        .map(|listed| watch(context, target, workspace, &file, listed))
        .collect();
    if watches.is_empty() && !is_lossy {
        return Ok(true);
    }
    // Told before it is kept: a crash in between imports again, and the same key tells nothing twice.
    tell(context, target, key, notice::imported(&watches, losses)).await?;
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

/// Moves a file away that is too large for a list; whether it is gone.
async fn put_aside(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    size: u64,
) -> Result<bool, WatchStoreError> {
    tracing::warn!(size, "pending.json of an unknown workspace is too large");
    let key = format!("a2a-import:{size}");
    // Told before it is done: a crash in between does both again, and the same key tells nothing twice.
    tell(context, target, key, notice::not_imported(ASIDE_FILE)).await?;
    let path = workspace.to_owned();
    let moving = tokio::task::spawn_blocking(move || {
        ConfinedDir::open(path)?.rename(PENDING_FILE, ASIDE_FILE)
    });
    match moving.await {
        Ok(Ok(())) => Ok(true),
        Ok(Err(error)) => {
            tracing::warn!(error = %error, "pending.json could not be set aside");
            Ok(false)
        }
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Copies a file of which something is not taken up, so that the view does not replace the only trace of its tasks.
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
    let now = context.clock.now();
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

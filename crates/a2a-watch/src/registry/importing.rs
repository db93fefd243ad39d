//! Takes up the tasks of a `pending.json` that the store knows nothing of: the workspace was moved or restored.
//!
//! Anybody who can write into the workspace can write that file. So only agents of `agents.json` are asked, only for the
//! task ids, and only where their entry points when they are asked first; kept texts are not looked at.

mod list;

use std::io::{self, Read as _};
use std::iter;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use volcanic_a2a_client::{AgentEntry, AgentsFile, INBOX};
use volcanic_a2a_types::{ContextId, TaskId};
use volcanic_base::{ConfineError, ConfinedDir, EntryKind};

use super::context::{Context, blocking};
use super::view::{PENDING_FILE, PENDING_FOLDER};
use crate::delivery::{Delivery, DeliveryEnd};
use crate::machine::Hashing;
use crate::notice;
use crate::record::{WatchId, WatchRecord, WatchState, WatchTarget};
use crate::store::WatchStoreError;
use list::{List, Listed};

/// The largest file that is read, in bytes: kept texts stand in it.
const MAX_FILE: u64 = 16 << 20;
/// Where a list that cannot be read, or not all of it, is kept.
const ASIDE_FILE: &str = ".volcanic/a2a/pending.broken.json";
/// How many such lists are kept in a workspace.
const MAX_ASIDE: u32 = 100;
/// How much of a file that is too large makes the key of what is told of it, in bytes.
const KEYED: u64 = 1 << 20;

/// A file, as far as it was read.
enum Found {
    Bytes(Vec<u8>),
    /// It is larger than any list: so many bytes.
    TooLarge(u64),
    /// What is in it is not known.
    Unreadable,
}

/// Workspaces whose `pending.json` stands from before.
#[derive(Default)]
pub(super) struct Lists {
    /// It is a view that may be stale.
    pub(super) stale: Vec<PathBuf>,
    /// It could not be taken up and is the only trace of its tasks, so the view must not replace it.
    pub(super) kept: Vec<PathBuf>,
    /// Of one at least, there may be watches in the store now that were not there before.
    pub(super) are_taken_up: bool,
}

/// Imports for every known conversation whose workspace the store does not know.
pub(super) async fn import_all(context: &Context) -> Result<Lists, WatchStoreError> {
    let delivery = &context.deps.delivery;
    let mut lists = Lists::default();
    for target in delivery.known_targets() {
        let Some(workspace) = delivery.workspace_for(&target) else { continue };
        let Some(found) = read(&workspace).await else { continue };
        let is_known = context.deps.store.knows_workspace(&workspace).await?;
        let is_replaced = match found {
            Found::Unreadable => false,
            Found::Bytes(bytes) if is_known => {
                may_be_replaced(context, &target, &workspace, bytes).await?
            }
            Found::TooLarge(_) if is_known && is_large_view(context, &workspace).await? => true,
            Found::Bytes(bytes) => {
                lists.are_taken_up = true;
                import(context, &target, &workspace, bytes).await?
            }
            Found::TooLarge(size) => put_aside(context, &target, &workspace, size).await?,
        };
        if is_replaced { &mut lists.stale } else { &mut lists.kept }.push(workspace);
    }
    Ok(lists)
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
    let read = blocking(move || {
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
        Ok(found) => Some(found),
        Err(ConfineError::NotFound { .. }) => None,
        Err(error) => {
            tracing::warn!(error = %error, "pending.json cannot be read and is left as it is");
            Some(Found::Unreadable)
        }
    }
}

/// Whether the file of a workspace that is known may be replaced. It may be a list that could not be set aside when it was to
/// be taken up.
async fn may_be_replaced(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    bytes: Vec<u8>,
) -> Result<bool, WatchStoreError> {
    let (list, bytes) = blocking(move || (List::read(&bytes), bytes)).await;
    // A view is written whole. One of very many watches has more in it than is taken up of a list.
    if !list.is_lossy() || list.is_whole && is_view(context, workspace, &list).await? {
        return Ok(true);
    }
    let at = workspace.to_owned();
    let (key, aside) = blocking(move || (key(&bytes), set_aside(&at, &bytes))).await;
    if aside.is_none() {
        tell_kept(context, target, &key).await?;
    }
    Ok(aside.is_some())
}

/// Whether the file, which is too large for a list, is a view of ours: of watches with large texts.
async fn is_large_view(context: &Context, workspace: &Path) -> Result<bool, WatchStoreError> {
    let at = workspace.to_owned();
    let beginning = blocking(move || {
        let mut bytes = Vec::new();
        let file = ConfinedDir::open(at)?.open_file(PENDING_FILE)?;
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(not_read)?;
        Ok::<_, ConfineError>(List::read(&bytes))
    });
    match beginning.await {
        Ok(list) => is_view(context, workspace, &list).await,
        // Whoever is to set it aside finds the same.
        Err(_) => Ok(false),
    }
}

/// Whether an entry of a list is a watch of this store that is over.
async fn is_over(context: &Context, listed: &Listed) -> Result<bool, WatchStoreError> {
    let Some(id) = &listed.watch_id else { return Ok(false) };
    let watch = context.deps.store.watch(&WatchId::new(id.as_str())).await?;
    Ok(watch.is_some_and(|watch| watch.state == WatchState::Done && !watch.is_behind()))
}

/// Whether what was read of a file is a view of this store: another's watches have other ids, also where they were taken up.
async fn is_view(
    context: &Context,
    workspace: &Path,
    list: &List,
) -> Result<bool, WatchStoreError> {
    for listed in &list.listed {
        let Some(id) = &listed.watch_id else { return Ok(false) };
        let watch = context.deps.store.watch(&WatchId::new(id.as_str())).await?;
        if watch.is_none_or(|watch| watch.workspace != workspace) {
            return Ok(false);
        }
    }
    Ok(!list.listed.is_empty())
}

/// Imports what a file lists; whether the view may replace it.
async fn import(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    bytes: Vec<u8>,
) -> Result<bool, WatchStoreError> {
    let at = workspace.to_owned();
    let (key, list, aside) = blocking(move || {
        let list = List::read(&bytes);
        let aside = list.is_lossy().then(|| set_aside(&at, &bytes));
        (key(&bytes), list, aside)
    })
    .await;
    let aside = match aside {
        Some(None) => {
            // What would be taken up of it makes the workspace known, and with that the view replaces it one day.
            tell_kept(context, target, &key).await?;
            return Ok(false);
        }
        Some(Some(aside)) => Some(aside),
        None => None,
    };
    if let Some(aside) = aside.as_deref().filter(|_| list.listed.is_empty() && !list.is_whole) {
        tracing::warn!("pending.json of an unknown workspace is not what it should be");
        // Where nobody could be told, the next start finds it again.
        return tell(context, target, key, notice::not_imported(aside)).await;
    }
    let is_lossy = list.is_lossy();
    let losses =
        notice::Losses { left_out: list.left_out, is_cut: !list.is_whole, aside: aside.as_deref() };
    // A file that cannot be read now says nothing about where the agents are: each watch finds out when it can.
    let file = context.file(workspace).await.unwrap_or_default();
    let mut watches = Vec::new();
    for listed in list.listed {
        // What came with the list may be this very state, and the list may be older than its last moment.
        if !is_over(context, &listed).await? {
            watches.push(watch(context, target, workspace, &file, listed));
        }
    }
    if watches.is_empty() && !is_lossy {
        return Ok(true);
    }
    // Told before it is kept: a crash in between imports again, and the same key tells nothing twice. If nobody can be told,
    // each result names its task, so what is followed shows then.
    tell(context, target, key, notice::imported(&watches, losses)).await?;
    context.deps.store.add_watches(&watches).await?;
    tracing::info!(watches = watches.len(), "watches of an unknown workspace imported");
    Ok(true)
}

/// Says that a list stays where it is. It may be told of again when it is taken up, so the key is another.
async fn tell_kept(
    context: &Context,
    target: &WatchTarget,
    key: &str,
) -> Result<(), WatchStoreError> {
    // A later start may find room.
    let place = format!("{PENDING_FILE}, or later as one of the files pending.broken beside it");
    tell(context, target, format!("{key}:kept"), notice::not_imported(&place)).await?;
    Ok(())
}

/// Tells of a list; whether the conversation is there to be told.
async fn tell(
    context: &Context,
    target: &WatchTarget,
    key: String,
    text: String,
) -> Result<bool, WatchStoreError> {
    let delivery = Delivery { target: target.clone(), key, text, hops: 0, source_ref: None };
    match context.deps.delivery.deliver(&delivery).await {
        Ok(DeliveryEnd::Delivered) => Ok(true),
        Ok(DeliveryEnd::NotNow) => {
            tracing::warn!("nobody could be told about imported watches");
            Ok(false)
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
    tracing::warn!(size, "pending.json is too large");
    let at = workspace.to_owned();
    let (key, place) = match blocking(move || place_aside(&at, size)).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(error = %error, "pending.json cannot be read");
            return Ok(false);
        }
    };
    let Some(place) = place else {
        not_set_aside(&none_is_free());
        tell_kept(context, target, &key).await?;
        return Ok(false);
    };
    // Told before it is moved: once it is not there any more, nobody comes here again to tell.
    let text =
        notice::not_imported(&format!("{place}, or as {PENDING_FILE} if it cannot be moved"));
    if !tell(context, target, format!("{key}:{place}"), text).await? {
        return Ok(false);
    }
    let at = workspace.to_owned();
    Ok(blocking(move || move_aside(&at, &place)).await.inspect_err(not_set_aside).is_ok())
}

/// The key of what is to be told of a list that is too large, and where nothing is yet that it may be moved to.
fn place_aside(workspace: &Path, size: u64) -> Result<(String, Option<String>), ConfineError> {
    let folder = ConfinedDir::open(workspace)?;
    let mut digest = Sha256::new();
    digest.update(size.to_le_bytes());
    // The beginning of such a file tells it from another.
    let mut beginning = folder.open_file(PENDING_FILE)?.take(KEYED);
    io::copy(&mut beginning, &mut Hashing(&mut digest)).map_err(not_read)?;
    let place = aside_files().find(|aside| is_free(&folder, aside));
    Ok((format!("a2a-import:{:x}", digest.finalize()), place))
}

/// Moves the list, unless something came to be there meanwhile.
fn move_aside(workspace: &Path, place: &str) -> Result<(), ConfineError> {
    let folder = ConfinedDir::open(workspace)?;
    if !is_free(&folder, place) {
        return Err(ConfineError::AlreadyExists { path: place.into() });
    }
    folder.rename(PENDING_FILE, place)
}

fn is_free(folder: &ConfinedDir, place: &str) -> bool {
    matches!(folder.metadata(place), Err(ConfineError::NotFound { .. }))
}

fn not_read(source: io::Error) -> ConfineError {
    ConfineError::Io { path: PENDING_FILE.into(), source }
}

/// The key of what is told of a list.
fn key(bytes: &[u8]) -> String {
    format!("a2a-import:{:x}", Sha256::digest(bytes))
}

fn not_set_aside(error: &ConfineError) {
    tracing::warn!(%error, "pending.json could not be set aside");
}

/// Copies a list of which something is not taken up, so that the view does not replace the only trace of its tasks; where it
/// is then. A copy that is there already is as good.
fn set_aside(workspace: &Path, bytes: &[u8]) -> Option<String> {
    let copied = ConfinedDir::open(workspace).and_then(|folder| {
        for aside in aside_files() {
            match folder.create_new(&aside, bytes, 0o600) {
                Ok(()) => return Ok(aside),
                Err(ConfineError::AlreadyExists { .. }) => {
                    let kept = folder.read_to_limit(&aside, MAX_FILE);
                    if kept.is_ok_and(|kept| kept == bytes) {
                        return Ok(aside);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(none_is_free())
    });
    copied.inspect_err(not_set_aside).ok()
}

/// Where a list may be kept, in order. What is kept already is not replaced.
fn aside_files() -> impl Iterator<Item = String> {
    let more =
        (2..=MAX_ASIDE).map(|number| format!("{PENDING_FOLDER}/pending.broken.{number}.json"));
    iter::once(ASIDE_FILE.to_owned()).chain(more)
}

fn none_is_free() -> ConfineError {
    let source = io::Error::new(io::ErrorKind::AlreadyExists, "too many lists are kept");
    ConfineError::Io { path: ASIDE_FILE.into(), source }
}

fn watch(
    context: &Context,
    target: &WatchTarget,
    workspace: &Path,
    file: &AgentsFile,
    listed: Listed,
) -> WatchRecord {
    // A list has moments of the wall clock, and so has what is kept.
    let now = context.clock.kept(context.clock.now());
    let origin = file.agent(&listed.agent).map(AgentEntry::origin).unwrap_or_default();
    WatchRecord {
        context_id: listed.context_id.map(ContextId::from),
        hops: listed.hops,
        source_ref: listed.source_ref,
        ..WatchRecord::begun(
            WatchId::random(&context.deps.chance, context.deps.clock.now()),
            target.clone(),
            workspace.to_owned(),
            (listed.agent, origin),
            TaskId::from(listed.task_id),
            listed.started_at.map_or(now, |started_at| started_at.min(now)),
        )
    }
}

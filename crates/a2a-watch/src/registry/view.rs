//! `pending.json`: the workspace's watches for people to read. A view, never read back by this process.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;
use volcanic_base::ConfinedDir;

use super::jobs::{JobEnd, Owner};
use super::{Followed, Registry, Timer};
use crate::record::{WatchId, WatchRecord};

/// Where the view stands in a workspace.
pub(super) const PENDING_FILE: &str = ".volcanic/a2a/pending.json";
/// The folder of that file.
pub(super) const PENDING_FOLDER: &str = ".volcanic/a2a";

/// Which views may differ from what is on disk.
#[derive(Default)]
pub(super) struct Views {
    changed: BTreeSet<PathBuf>,
    written: HashMap<PathBuf, Vec<u8>>,
    armed: bool,
}

/// One watch, in the fields of the original design and three of ours. It holds the push token, so it has no `Debug`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PendingWatch<'a> {
    watch_id: &'a str,
    target: &'a str,
    agent: &'a str,
    task_id: &'a str,
    context_id: Option<&'a str>,
    push_token: Option<&'a str>,
    started_at: Timestamp,
    source: &'a str,
    undelivered: Option<&'a str>,
    state: &'a str,
    hops: u32,
    #[serde(rename = "ref")]
    source_ref: Option<&'a str>,
}

impl<'a> PendingWatch<'a> {
    fn of(record: &'a WatchRecord) -> Self {
        Self {
            watch_id: record.id.as_str(),
            target: record.target.as_str(),
            agent: &record.agent,
            task_id: record.task_id.as_str(),
            context_id: record.context_id.as_ref().map(volcanic_a2a_types::ContextId::as_str),
            push_token: record.push_token.as_ref().map(volcanic_base::Secret::expose),
            started_at: record.started_at,
            source: record.source.as_str(),
            undelivered: record.text.as_deref(),
            state: record.state.as_str(),
            hops: record.hops,
            source_ref: record.source_ref.as_deref(),
        }
    }
}

impl Views {
    /// Notes that a workspace's watches may look different now.
    pub(super) fn changed(&mut self, workspace: &PathBuf) {
        if !self.changed.contains(workspace) {
            self.changed.insert(workspace.clone());
        }
    }

    /// The views whose bytes differ from what was last written.
    fn take_changed(&mut self, watches: &HashMap<WatchId, Followed>) -> Vec<(PathBuf, Vec<u8>)> {
        let mut views = Vec::new();
        for workspace in std::mem::take(&mut self.changed) {
            match render(&workspace, watches) {
                Ok(bytes) if self.written.get(&workspace) != Some(&bytes) => {
                    views.push((workspace, bytes));
                }
                Ok(_) => {}
                Err(error) => tracing::error!(error = %error, "a view of watches cannot be made"),
            }
        }
        for (workspace, bytes) in &views {
            self.written.insert(workspace.clone(), bytes.clone());
        }
        views
    }

    /// Writes what is still to be written, at shutdown.
    pub(super) async fn write_now(&mut self, watches: &HashMap<WatchId, Followed>) {
        let views = self.take_changed(watches);
        if !views.is_empty() {
            write(views).await;
        }
    }
}

impl Registry {
    pub(super) fn arm_view(&mut self) {
        if !self.views.armed && !self.views.changed.is_empty() {
            self.views.armed = true;
            self.timers.insert(Timer::View, self.context.config.view_gap);
        }
    }

    pub(super) fn begin_views(&mut self) {
        let views = self.views.take_changed(&self.watches);
        if views.is_empty() {
            self.views.armed = false;
            return;
        }
        let workspaces = views.iter().map(|(workspace, _)| workspace.clone()).collect();
        let job = self.jobs.set.spawn(async move { JobEnd::Viewed { failed: write(views).await } });
        self.jobs.own(&job, Owner::Views(workspaces));
    }

    /// A round of writes ended; `failed` is tried again with the next.
    pub(super) fn on_viewed(&mut self, failed: Vec<PathBuf>) {
        self.views.armed = false;
        for workspace in failed {
            self.views.written.remove(&workspace);
            self.views.changed(&workspace);
        }
        self.arm_view();
    }
}

fn render(
    workspace: &PathBuf,
    watches: &HashMap<WatchId, Followed>,
) -> serde_json::Result<Vec<u8>> {
    let mut records: Vec<_> = watches
        .values()
        .map(|followed| followed.watch.record())
        .filter(|record| record.workspace == *workspace)
        .collect();
    records.sort_by(|one, other| (one.started_at, &one.id).cmp(&(other.started_at, &other.id)));
    let views: Vec<_> = records.into_iter().map(PendingWatch::of).collect();
    let mut bytes = serde_json::to_vec_pretty(&views)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes views; returns the workspaces whose view could not be written.
async fn write(views: Vec<(PathBuf, Vec<u8>)>) -> Vec<PathBuf> {
    let all: Vec<_> = views.iter().map(|(workspace, _)| workspace.clone()).collect();
    let written = tokio::task::spawn_blocking(move || {
        views
            .into_iter()
            .filter(|(workspace, bytes)| !write_one(workspace, bytes))
            .map(|(path, _)| path)
            .collect()
    });
    written.await.unwrap_or(all)
}

fn write_one(workspace: &PathBuf, bytes: &[u8]) -> bool {
    let written = ConfinedDir::open(workspace).and_then(|folder| {
        folder.create_dir_all(PENDING_FOLDER)?;
        folder.write_atomic(PENDING_FILE, bytes, 0o600)
    });
    if let Err(error) = &written {
        tracing::warn!(error = %error, "pending.json could not be written");
    }
    // A workspace that is gone has no view to keep.
    written.is_ok() || !workspace.is_dir()
}

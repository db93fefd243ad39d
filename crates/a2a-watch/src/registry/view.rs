//! `pending.json`: the workspace's watches for people to read. A view, never read back by this process.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use volcanic_base::ConfinedDir;

use super::following::Watches;
use super::jobs::{JobEnd, Owner};
use super::{Registry, Timer};
use crate::record::WatchRecord;

/// Where the view stands in a workspace.
pub(super) const PENDING_FILE: &str = ".volcanic/a2a/pending.json";
/// The folder of that file.
pub(super) const PENDING_FOLDER: &str = ".volcanic/a2a";

/// Watches that are put into views in one go, or one view of more: the registry does nothing else meanwhile.
const AT_ONCE: usize = 256;

/// How many times as long as a round of writes the disk is left to what must be on it, as when work is handed over from
/// hundreds of workspaces at once…
const REST: u32 = 4;
/// …and for how long at most.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// Which views may differ from what is on disk.
#[derive(Default)]
pub(super) struct Views {
    changed: BTreeSet<PathBuf>,
    /// Workspaces whose file is somebody else's list, which is not to be replaced.
    kept: HashSet<PathBuf>,
    /// What is left of the round of writes that is under way.
    left: Vec<PathBuf>,
    /// Digests of what was written.
    written: HashMap<PathBuf, [u8; 32]>,
    /// Writes that are under way, whoever waits for them.
    writes: TaskTracker,
    armed: bool,
    /// When the round began that is under way…
    began_at: Option<Instant>,
    /// …and how long the last one has earned the disk a rest.
    rest: Duration,
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

/// A view that is to be written.
struct NextView {
    workspace: PathBuf,
    bytes: Vec<u8>,
    /// Whether its folder has to be made, and made durable: this process has not written there, or it failed.
    is_first: bool,
}

impl Views {
    /// Leaves the files of these workspaces alone.
    pub(super) fn keep(&mut self, workspaces: Vec<PathBuf>) {
        self.kept.extend(workspaces);
    }

    /// Notes that a workspace's watches may look different now.
    pub(super) fn changed(&mut self, workspace: &PathBuf) {
        if !self.changed.contains(workspace) && !self.kept.contains(workspace) {
            self.changed.insert(workspace.clone());
        }
    }

    /// The next views of the round, as far as their bytes differ from what was last written.
    fn take_next(&mut self, watches: &Watches) -> Vec<NextView> {
        let (mut views, mut shown) = (Vec::new(), 0);
        while shown < AT_ONCE
            && let Some(workspace) = self.left.pop()
        {
            let records = records(&workspace, watches);
            shown += records.len().max(1);
            match render(records) {
                Ok(bytes) => {
                    let digest = Sha256::digest(&bytes).into();
                    let last = self.written.insert(workspace.clone(), digest);
                    if last != Some(digest) {
                        views.push(NextView { workspace, bytes, is_first: last.is_none() });
                    }
                }
                Err(error) => tracing::error!(error = %error, "a view of watches cannot be made"),
            }
        }
        views
    }

    /// Takes back that these were written.
    pub(super) fn not_written(&mut self, workspaces: Vec<PathBuf>) {
        for workspace in workspaces {
            self.written.remove(&workspace);
            self.changed(&workspace);
        }
    }

    /// Writes what is still to be written, at shutdown.
    pub(super) async fn write_now(&mut self, watches: &Watches) {
        // An earlier write that comes after these would bring back what was.
        self.writes.close();
        self.writes.wait().await;
        self.left.extend(std::mem::take(&mut self.changed));
        while !self.left.is_empty() {
            let views = self.take_next(watches);
            write(&self.writes, views).await;
        }
    }
}

impl Registry {
    pub(super) fn arm_view(&mut self) {
        if !self.views.armed && !self.views.changed.is_empty() {
            self.views.armed = true;
            let pause = self.context.config.view_gap.max(self.views.rest);
            self.timers.insert(Timer::View, pause);
        }
    }

    pub(super) fn begin_views(&mut self) {
        let changed = std::mem::take(&mut self.views.changed);
        self.views.left.extend(changed);
        self.views.began_at = Some(Instant::now());
        self.write_views();
    }

    /// Goes on with a round of writes.
    fn write_views(&mut self) {
        if self.views.left.is_empty() {
            let took = self.views.began_at.take().map(|began_at| began_at.elapsed());
            self.views.rest = took.unwrap_or_default().saturating_mul(REST).min(LONGEST_REST);
            self.views.armed = false;
            return self.arm_view();
        }
        let views = self.views.take_next(&self.watches);
        let workspaces = views.iter().map(|view| view.workspace.clone()).collect();
        let writes = self.views.writes.clone();
        let job = self
            .jobs
            .set
            .spawn(async move { JobEnd::Viewed { failed: write(&writes, views).await } });
        self.jobs.own(&job, Owner::Views(workspaces));
    }

    /// Some writes of a round ended; what `failed` is tried again with the next round.
    pub(super) fn on_viewed(&mut self, failed: Vec<PathBuf>) {
        self.views.not_written(failed);
        self.write_views();
    }
}

fn records<'w>(workspace: &Path, watches: &'w Watches) -> Vec<&'w WatchRecord> {
    watches.of_workspace(workspace).map(|(_, followed)| followed.watch.record()).collect()
}

fn render(mut records: Vec<&WatchRecord>) -> serde_json::Result<Vec<u8>> {
    records.sort_by(|one, other| (one.started_at, &one.id).cmp(&(other.started_at, &other.id)));
    let views: Vec<_> = records.into_iter().map(PendingWatch::of).collect();
    let mut bytes = serde_json::to_vec_pretty(&views)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes views; returns the workspaces whose view could not be written.
async fn write(writes: &TaskTracker, views: Vec<NextView>) -> Vec<PathBuf> {
    let all: Vec<_> = views.iter().map(|view| view.workspace.clone()).collect();
    let written = writes.spawn_blocking(move || {
        let unwritten = views.into_iter().filter(|view| !write_one(view));
        unwritten.map(|view| view.workspace).collect()
    });
    written.await.unwrap_or(all)
}

fn write_one(view: &NextView) -> bool {
    let NextView { workspace, bytes, is_first } = view;
    let written = ConfinedDir::open(workspace).and_then(|folder| {
        if *is_first {
            folder.create_dir_all(PENDING_FOLDER)?;
        }
        folder.write_atomic(PENDING_FILE, bytes, 0o600)
    });
    if let Err(error) = &written {
        tracing::warn!(error = %error, "pending.json could not be written");
    }
    // A workspace that is gone has no view to keep.
    written.is_ok() || !workspace.is_dir()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn last_views_come_after_a_write_that_nobody_waits_for_any_more() {
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path().to_owned();
        let mut views = Views::default();
        let (release, released) = mpsc::channel::<()>();
        let earlier = path.clone();
        views.writes.spawn_blocking(move || {
            released.recv().unwrap();
            write_one(&NextView { workspace: earlier, bytes: b"old".to_vec(), is_first: true })
        });
        views.changed(&path);
        let watches = Watches::default();
        let written = views.write_now(&watches);
        let releasing = async {
            // By now the last views would be under way.
            tokio::task::spawn_blocking(|| {}).await.unwrap();
            release.send(()).unwrap();
        };
        tokio::join!(written, releasing);
        views.writes.wait().await;
        assert_eq!(std::fs::read(path.join(PENDING_FILE)).unwrap(), b"[]\n");
    }
}

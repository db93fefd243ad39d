//! What may lie in the workspace and in the state once everything is at rest.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{journal::ToldFiles, scene::Scene};

/// The list of agents, in the workspace.
pub(super) const AGENTS: &str = ".volcanic/a2a/agents.json";

/// The list of followed tasks, in the workspace.
const PENDING: &str = ".volcanic/a2a/pending.json";

/// Where received files go.
const INBOX: &str = "inbox/a2a/demo/";

/// The files of a state folder; those of an open database may be there when another process looks at it.
const STATE: [&str; 4] = ["holder", "state.db", "state.db-wal", "state.db-shm"];

impl Scene {
    /// Whether the list of followed tasks is readable, if there is one.
    pub(super) fn pending_faults(&self) -> Vec<String> {
        match self.pending() {
            Ok(_) => Vec::new(),
            Err(error) => vec![format!("pending.json: {error:#}")],
        }
    }

    /// Whether the folders hold what they must and nothing else. `told` are the received files that outcomes name, with
    /// what each must hold.
    pub(super) fn folder_faults(&self, told: &ToldFiles) -> Result<Vec<String>> {
        let mut faults = self.pending_faults();
        if let Ok(Some(left)) = self.pending()
            && left != serde_json::json!([])
        {
            faults.push(format!("nothing is followed any more, but pending.json says: {left}"));
        }
        for (path, word) in &told.saved {
            match fs::read_to_string(self.workspace().join(path)) {
                Ok(text) if text.trim_end() == word => {}
                Ok(text) => faults.push(format!("{path} holds {text:?} instead of {word}")),
                Err(error) => faults.push(format!("{path} cannot be read: {error}")),
            }
        }
        for path in files_below(self.workspace())? {
            let known = path == AGENTS || path == PENDING || told.saved.contains_key(&path);
            // A disk that failed in the very end of saving did not let it be taken back either.
            let failed = || {
                let text = fs::read_to_string(self.workspace().join(&path)).unwrap_or_default();
                told.unsaved.contains(text.trim_end())
            };
            if !known && path.starts_with(INBOX) && failed() {
                continue;
            }
            if !known && path.starts_with(INBOX) {
                faults.push(format!("{path} was received, but no outcome names it"));
            } else if !known {
                faults.push(format!("{path} was left behind in the workspace"));
            }
        }
        let state = self.database().parent().context("the database has no folder")?;
        for path in files_below(state)? {
            if !STATE.contains(&path.as_str()) {
                faults.push(format!("{path} was left behind in the state folder"));
            }
        }
        Ok(faults)
    }

    /// The left-overs of files that were being written, wherever they are.
    pub(super) fn stale_files(&self) -> Result<Vec<String>> {
        let state = self.database().parent().context("the database has no folder")?;
        let mut files = files_below(self.workspace())?;
        files.extend(files_below(state)?);
        files.retain(|path| path.contains("volcanic-tmp"));
        Ok(files)
    }

    /// What `pending.json` lists.
    pub(super) fn pending(&self) -> Result<Option<serde_json::Value>> {
        let file = self.workspace().join(PENDING);
        if !file.exists() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&fs::read(file)?)?))
    }
}

/// Every file below a folder, by its path from there.
fn files_below(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner))? {
            let entry = entry?;
            let path = inner.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                files.push(path.to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

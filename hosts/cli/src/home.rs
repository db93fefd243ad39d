//! Where the state of a workspace's chat is, and who holds it.

use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};
use volcanic_base::{ConfinedDir, DirLock};
use volcanic_host::{BOT_STATE, BOT_WORKSPACES, DATABASE, private_folder};

use crate::exit::{OrUsage as _, UsageError};

/// The file in the state folder that says which process holds the workspace.
const HOLDER: &str = "holder";

/// The folder in it for keys of agents.
const SECRETS: &str = "secrets";

/// A workspace, and the state folder that belongs to it.
#[derive(Debug)]
pub(crate) struct Home {
    /// The workspace, absolute and without links.
    pub(crate) workspace: PathBuf,
    /// `<VOLCANIC_HOME>/cli/<hash of the workspace's path>`.
    pub(crate) state: PathBuf,
    /// The bot's database, when the workspace is one of the bot's chats'.
    of_bot: Option<PathBuf>,
}

/// The right to be the one chat of a workspace that keeps state and follows tasks.
#[derive(Debug)]
pub(crate) struct Held {
    /// Kept for as long as the process has the workspace.
    _lock: DirLock,
}

impl Home {
    /// Finds the state folder of a workspace; makes nothing.
    pub(crate) fn of(workspace: &Path, volcanic_home: &Path) -> Result<Self> {
        let (workspace, home) = real(workspace, volcanic_home)?;
        // The conversation must not lie where the assistant's own tools write.
        if home.starts_with(&workspace) {
            return Err(UsageError::new(format!(
                "the workspace `{}` contains the assistant's own state `{}`: choose another folder with --workspace, or set VOLCANIC_HOME to one outside of it",
                workspace.display(),
                home.display()
            ))
            .into());
        }
        let state = state_of(&workspace, &home);
        let is_bots = workspace.parent() == Some(home.join(BOT_WORKSPACES).as_path());
        let of_bot = is_bots.then(|| home.join(BOT_STATE).join(DATABASE));
        Ok(Self { workspace, state, of_bot })
    }

    /// The folder of the keys that a workspace's agents.json may name.
    pub(crate) fn secrets_of(workspace: &Path, volcanic_home: &Path) -> Result<PathBuf> {
        let (workspace, home) = real(workspace, volcanic_home)?;
        Ok(state_of(&workspace, &home).join(SECRETS))
    }

    /// The same for this one.
    pub(crate) fn secrets(&self) -> PathBuf {
        self.state.join(SECRETS)
    }

    /// The database of the conversation and its watches.
    pub(crate) fn database(&self) -> PathBuf {
        self.state.join(DATABASE)
    }

    /// The database of the assistant that lives in the workspace: the bot, in a workspace of one of its chats.
    pub(crate) fn database_of_assistant(&self) -> PathBuf {
        self.of_bot.clone().unwrap_or_else(|| self.database())
    }

    /// Takes the workspace, or says which process has it.
    pub(crate) fn hold(&self) -> Result<Result<Held, String>> {
        let directory = ConfinedDir::open(&self.workspace)?;
        let lock = directory.try_lock().context("failed to lock the workspace")?;
        let holder = self.state.join(HOLDER);
        match lock {
            None => {
                let pid = std::fs::read_to_string(holder).unwrap_or_default();
                let pid = pid.trim();
                Ok(Err(if pid.is_empty() {
                    "another process".to_owned()
                } else {
                    format!("process {pid}")
                }))
            }
            Some(lock) => {
                private_folder(&self.state).with_context(|| {
                    format!("failed to make the state folder `{}`", self.state.display())
                })?;
                // A process that was killed in the middle of writing `holder` left its temporary file.
                volcanic_base::sweep_temp_files(&self.state)
                    .context("failed to read the state folder")?;
                volcanic_base::write_atomic(
                    holder,
                    std::process::id().to_string().as_bytes(),
                    0o600,
                )
                .context("failed to write the state folder")?;
                Ok(Ok(Held { _lock: lock }))
            }
        }
    }
}

/// Both folders, without links.
fn real(workspace: &Path, volcanic_home: &Path) -> Result<(PathBuf, PathBuf)> {
    let workspace = workspace
        .canonicalize()
        .with_context(|| format!("the workspace `{}` cannot be used", workspace.display()))
        .or_usage()?;
    Ok((workspace, absolute(volcanic_home)?))
}

fn state_of(workspace: &Path, home: &Path) -> PathBuf {
    let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
    let hash = digest.iter().take(8).fold(String::new(), |mut hash, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02x}");
        hash
    });
    home.join("cli").join(hash)
}

/// The path without links as far as it exists.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return Ok(path
                .strip_prefix(ancestor)
                .map_or_else(|_| path.clone(), |rest| real.join(rest)));
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_around_the_state_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Home::of(folder.path(), &folder.path().join("not/yet/there")).unwrap_err();
        assert!(error.to_string().contains("contains the assistant's own state"), "{error}");
    }

    #[test]
    fn links_do_not_hide_the_state_inside_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let (workspace, link) = (folder.path().join("workspace"), folder.path().join("link"));
        std::fs::create_dir(&workspace).unwrap();
        std::os::unix::fs::symlink(&workspace, &link).unwrap();
        assert!(Home::of(&workspace, &link.join("state")).is_err());
    }

    #[test]
    fn one_workspace_has_one_holder_and_another_learns_who() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let home = Home::of(&workspace, &folder.path().join("home")).unwrap();
        let held = home.hold().unwrap().unwrap();
        let told = home.hold().unwrap().unwrap_err();
        assert_eq!(told, format!("process {}", std::process::id()));
        drop(held);
        let left = home.state.join(".holder.1-0.volcanic-tmp");
        std::fs::write(&left, "1").unwrap();
        assert!(home.hold().unwrap().is_ok());
        assert!(!left.exists(), "what a killed process left behind goes");
    }
}

//! The workspace as the tools see it: paths the model wrote, confined, and changes one after the other.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use volcanic_agent_core::ToolOutput;
use volcanic_base::{ConfineError, ConfinedDir, with_causes};

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

/// Why a call failed, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<ConfineError> for Failure {
    fn from(error: ConfineError) -> Self {
        Self(with_causes(&error))
    }
}

/// Reads a call's arguments.
pub(crate) fn arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, Failure> {
    serde_json::from_value(arguments)
        .map_err(|error| Failure(format!("the arguments do not fit: {error}")))
}

/// Turns what a tool did into what the model reads.
pub(crate) fn output(result: Result<String, Failure>) -> ToolOutput {
    match result {
        Ok(text) => ToolOutput::text(text),
        Err(Failure(text)) => ToolOutput::error(text),
    }
}

/// The workspace shared by the tools of one set.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    directory: ConfinedDir,
    /// Held over each change from reading to writing. One lock for all files: two names can mean one file, and a change
    /// takes milliseconds.
    changes: Arc<Mutex<()>>,
}

/// A file about to be written.
#[derive(Debug)]
pub(crate) struct Destination {
    /// The path with its last links followed, so that a link keeps being one.
    pub(crate) path: PathBuf,
    /// What is there now.
    pub(crate) existing: Option<Metadata>,
}

impl Destination {
    /// The mode to write with: what the file had, else the usual one, and the owner's alone where keys are kept.
    pub(crate) fn mode(&self) -> u32 {
        use std::os::unix::fs::PermissionsExt as _;
        match &self.existing {
            Some(metadata) => metadata.permissions().mode() & 0o777,
            None if self.path.components().any(|part| part.as_os_str() == ".volcanic") => 0o600,
            None => 0o644,
        }
    }
}

impl Workspace {
    pub(crate) fn new(directory: ConfinedDir) -> Self {
        Self { directory, changes: Arc::default() }
    }

    pub(crate) fn directory(&self) -> &ConfinedDir {
        &self.directory
    }

    /// Runs blocking work on the workspace.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    {
        let workspace = self.clone();
        join(tokio::task::spawn_blocking(move || work(&workspace))).await
    }

    /// Runs blocking work that changes files, after all such work that was asked for before. It is finished even if the
    /// caller goes away, and the next one waits for it.
    pub(crate) async fn change<T, F>(&self, work: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    {
        let guard = Arc::clone(&self.changes).lock_owned().await;
        let workspace = self.clone();
        join(tokio::task::spawn_blocking(move || {
            let result = work(&workspace);
            drop(guard);
            result
        }))
        .await
    }

    /// The path relative to the workspace. Models like to write absolute ones; those inside are understood.
    pub(crate) fn relative(&self, given: &str) -> Result<PathBuf, Failure> {
        if given.is_empty() {
            return Err(Failure::new("the path is empty"));
        }
        let given = Path::new(given);
        let relative = if given.is_absolute() {
            given
                .strip_prefix(self.directory.path())
                .map_err(|_| ConfineError::Outside { path: given.to_owned() })?
        } else {
            given
        };
        Ok(if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative.to_owned() })
    }

    /// Where writing to `given` ends up.
    pub(crate) fn destination(&self, given: &str) -> Result<Destination, Failure> {
        let mut path = self.relative(given)?;
        for _ in 0..MAX_LINKS {
            let existing = match self.directory.metadata(&path) {
                Ok(metadata) => Some(metadata),
                Err(ConfineError::NotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            // Only says whether there is a link: whatever it names is resolved by the directory again.
            if let Ok(target) = fs::read_link(self.directory.path().join(&path)) {
                path = path.parent().unwrap_or(Path::new("")).join(target);
                continue;
            }
            if existing.as_ref().is_some_and(|metadata| !metadata.is_file()) {
                return Err(ConfineError::NotAFile { path }.into());
            }
            return Ok(Destination { path, existing });
        }
        Err(Failure(format!("`{given}` goes through too many links")))
    }
}

async fn join<T>(task: tokio::task::JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    // The text of a panic may hold whatever was at hand, so it is shown nowhere.
    task.await.unwrap_or_else(|_| Err(Failure("the work was not finished".to_owned())))
}

//! Files of the workspace that are sent along.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use volcanic_a2a_types::Part;
use volcanic_base::{ConfineError, ConfinedDir};

/// The folder of a workspace that holds keys.
const PRIVATE: &str = ".volcanic";

/// Why a file cannot be sent along. A sentence for the model; names the path as it was given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachmentError {
    /// Nothing can be read at the path, or it leaves the workspace.
    #[error("Could not attach a file: {source}.")]
    Unreadable {
        /// Why.
        #[source]
        source: ConfineError,
    },
    /// The path leads into the folder that holds keys.
    #[error("Could not attach `{}`: files below {PRIVATE} are not sent to agents.", path.display())]
    Private {
        /// The path.
        path: PathBuf,
    },
    /// The files are too large together.
    #[error("Could not attach the files: together they are larger than {limit} bytes.")]
    TooLarge {
        /// The largest size, in bytes.
        limit: u64,
    },
}

/// Reads files of the workspace as parts of a message, `max_total` bytes of them at most. Paths are relative to the
/// workspace, or absolute and inside it. Blocks, but not on a FIFO.
///
/// # Errors
///
/// [`AttachmentError`] for the first file that cannot be sent.
pub fn read_attachments(
    workspace: &ConfinedDir,
    paths: &[String],
    max_total: u64,
) -> Result<Vec<Part>, AttachmentError> {
    let mut left = max_total;
    let mut parts = Vec::with_capacity(paths.len());
    for given in paths {
        let path = Path::new(given);
        let path = path.strip_prefix(workspace.path()).unwrap_or(path);
        if is_private(workspace, path) {
            return Err(AttachmentError::Private { path: path.to_owned() });
        }
        let bytes = workspace.read_to_limit(path, left).map_err(|source| match source {
            ConfineError::TooLarge { .. } => AttachmentError::TooLarge { limit: max_total },
            source => AttachmentError::Unreadable { source },
        })?;
        left = left.saturating_sub(bytes.len() as u64);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        parts.push(Part::raw(bytes, media_type(path), name));
    }
    Ok(parts)
}

/// Whether the path, as written or with its links followed, leads into the folder with keys.
fn is_private(workspace: &ConfinedDir, path: &Path) -> bool {
    let is_inside = |path: &Path| {
        path.components()
            .find(|component| *component != Component::CurDir)
            .is_some_and(|first| first.as_os_str().eq_ignore_ascii_case(PRIVATE))
    };
    let real = fs::canonicalize(workspace.path()).and_then(|root| {
        let real = fs::canonicalize(root.join(path))?;
        Ok(real.strip_prefix(&root).map(Path::to_owned).unwrap_or_default())
    });
    is_inside(path) || real.is_ok_and(|real| is_inside(&real))
}

fn media_type(path: &Path) -> &'static str {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    match extension.to_str().unwrap_or_default() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "pdf" => "application/pdf",
        "txt" => "text/plain",
        "md" => "text/markdown",
        "json" => "application/json",
        "csv" => "text/csv",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;

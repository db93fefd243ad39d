//! The folder that a command works in.

use std::path::Path;

use anyhow::{Context as _, Result};
use volcanic_base::ConfinedDir;

use crate::exit::OrUsage as _;

/// Opens the folder of `--workspace`.
///
/// # Errors
/// When there is no such folder: the user named it.
pub(crate) fn open(folder: &Path) -> Result<ConfinedDir> {
    // Its real path, so that absolute paths of files in it are known to be in it.
    let real = folder.canonicalize().map_err(anyhow::Error::from);
    real.and_then(|real| Ok(ConfinedDir::open(real)?))
        .with_context(|| {
            format!("the workspace `{}` cannot be used (see --workspace)", folder.display())
        })
        .or_usage()
}

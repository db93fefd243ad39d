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
    ConfinedDir::open(folder)
        .with_context(|| {
            format!("the workspace `{}` cannot be used (see --workspace)", folder.display())
        })
        .or_usage()
}

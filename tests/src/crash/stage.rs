//! What all scenes of a run share: the program under test, the shim, the rules of the remote agent.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempDir;

use super::shim;

/// The rules of the remote agent.
const RULES: &str = include_str!("remote.toml");

/// The stage of a run.
#[derive(Debug)]
pub(super) struct Stage {
    /// A copy of the binary: whoever builds meanwhile does not change what is put to the test.
    pub(super) volcanic: PathBuf,
    pub(super) shim: PathBuf,
    pub(super) rules: PathBuf,
    _folder: TempDir,
}

impl Stage {
    pub(super) fn set(volcanic: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("volcanic-stage-").tempdir()?;
        let root = folder.path().canonicalize()?;
        let rules = root.join("remote.toml");
        std::fs::write(&rules, RULES)?;
        let copy = root.join("volcanic");
        std::fs::copy(volcanic, &copy)?;
        Ok(Self { volcanic: copy, shim: shim::build(&root)?, rules, _folder: folder })
    }
}

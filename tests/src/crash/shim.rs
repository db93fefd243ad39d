//! Compiles the shim that ends a process at its k-th file operation.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// Builds `tests/shim/crash.c` into `folder` with the system's C compiler.
pub(super) fn build(folder: &Path) -> Result<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/crash.c");
    let shim = folder.join("crash.so");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
        .args([&shim, &source])
        .arg("-ldl")
        .status()
        .context("failed to start the C compiler `cc`")?;
    ensure!(status.success(), "the C compiler refused {}", source.display());
    Ok(shim)
}

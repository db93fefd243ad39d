//! Tasks that need programs of other people: builds them, then hands over to the runners in `tests/`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell::{built, command, root, run};

/// Installs the peers and runs the interop matrix.
pub(crate) fn interop(quick: bool, only: Option<&str>) -> Result<()> {
    let python = python_peer("a2a-python")?;
    let python_03 = python_peer("a2a-python-0.3")?;
    let rust = rust_peer()?;
    node_peer()?;
    build(&["volcanic-cli", "volcanic-telegram"])?;
    let mut runner = runner("interop");
    runner
        .arg("--python")
        .arg(python)
        .arg("--python-03")
        .arg(python_03)
        .arg("--rust-peer")
        .arg(rust)
        .arg("--peers")
        .arg(root().join("tests/peers"));
    runner.arg("--volcanic").arg(built("debug").join("volcanic"));
    runner.arg("--bot").arg(built("debug").join("volcanic-telegram"));
    if quick {
        runner.arg("--quick");
    }
    if let Some(only) = only {
        runner.args(["--only", only]);
    }
    run(&mut runner)
}

/// How often the shipped binary is put to which test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CrashCounts {
    /// Kills.
    pub(crate) kills: u32,
    /// From how many operations on a life gets a bad disk.
    pub(crate) disks: u32,
    /// How many minutes one assistant lives beside all that.
    pub(crate) long_life: u32,
}

/// Builds the assistant and runs the crash judge.
pub(crate) fn crash(counts: &CrashCounts, seed: Option<u64>) -> Result<()> {
    build_for_crash()?;
    run(&mut crash_runner(counts, seed))
}

/// Builds what the crash judge puts to the test.
pub(crate) fn build_for_crash() -> Result<()> {
    build(&["volcanic-cli"])
}

/// The crash judge.
pub(crate) fn crash_runner(counts: &CrashCounts, seed: Option<u64>) -> Command {
    let mut runner = runner("crash");
    runner.arg("--volcanic").arg(built("debug").join("volcanic"));
    runner.args(["--kills", &counts.kills.to_string()]);
    runner.args(["--disks", &counts.disks.to_string()]);
    runner.args(["--long-life", &counts.long_life.to_string()]);
    if let Some(seed) = seed {
        runner.args(["--seed", &seed.to_string()]);
    }
    runner
}

/// Builds packages of ours.
fn build(packages: &[&str]) -> Result<()> {
    let mut cargo = command("cargo");
    cargo.args(["build", "--locked"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    run(&mut cargo)
}

/// One of the runners in `tests/`; its own arguments follow.
fn runner(bin: &str) -> Command {
    let mut cargo = command("cargo");
    cargo.args(["run", "--quiet", "--locked", "--package", "volcanic-e2e", "--bin", bin, "--"]);
    cargo
}

/// A venv with the locked packages of a peer; returns its interpreter. What is installed already is left alone.
fn python_peer(name: &str) -> Result<PathBuf> {
    let venv = built("peers").join(name);
    let python = venv.join("bin/python");
    let lock = root().join("tests/peers").join(name).join("requirements.txt");
    let wanted =
        fs::read_to_string(&lock).with_context(|| format!("failed to read the lock of {name}"))?;
    let installed = venv.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    run(command("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    run(command(&python)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--require-hashes", "--no-deps", "-r"])
        .arg(lock))?;
    fs::write(installed, wanted).with_context(|| format!("failed to note what {name} has"))?;
    Ok(python)
}

/// The agent on the official Rust SDK; returns its binary.
fn rust_peer() -> Result<PathBuf> {
    let target = built("peers").join("rust");
    let manifest = root().join("tests/peers/a2a-lf/Cargo.toml");
    run(command("cargo")
        .args(["build", "--locked", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target))?;
    Ok(target.join("debug/a2a-lf-peer"))
}

/// The model server that nobody here wrote.
fn node_peer() -> Result<()> {
    let folder = root().join("tests/peers/aimock");
    run(command("npm").args(["ci", "--no-audit", "--no-fund", "--silent"]).current_dir(folder))
}

//! `cargo xtask check`: everything a tool can hold about the code.

use anyhow::{Context as _, Result};

use crate::shell::{self, command};
use crate::{layers, mutants, shipped};

pub(crate) fn run() -> Result<()> {
    layers::run()?;
    shipped::run()?;
    mutants::check()?;
    shell::run(command("cargo").args(["fmt", "--all", "--check"]))?;
    // Of a workspace of their own, and held by their lock alone: nothing here can break them.
    let peers = ["fmt", "--check", "--manifest-path", "bench/peers/Cargo.toml"];
    shell::run(command("cargo").args(peers))?;
    // One too; what its targets call may have changed.
    let fuzz = ["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"];
    shell::run(command("cargo").args(fuzz))?;
    let fuzz = ["check", "--locked", "--manifest-path", "fuzz/Cargo.toml"];
    shell::run(command("cargo").args(fuzz).args(["--target-dir", "target/fuzz/check"]))?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    shell::run(command("cargo").args(clippy))?;
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"];
    shell::run(command("cargo").args(docs).env("RUSTDOCFLAGS", "-D warnings"))?;
    shell::run(command("cargo").args([
        "deny",
        "--all-features",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
    .context("cargo-deny refused, or is not installed: `.ci/run` says which release belongs here")
}

//! `cargo xtask fuzz`: each target of `fuzz/` for a bounded time, seeded with what official SDKs put on the wire.
//!
//! There is one toolchain, a stable one; `RUSTC_BOOTSTRAP` lets it instrument the code, in a workspace of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::shell::{output, root, run};

const TARGETS: [&str; 4] = ["sse", "jsonrpc", "card", "task"];

const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Zsanitizer=address",
    "-Ccodegen-units=1",
];

/// Runs every target, or the one named, each for `seconds`.
pub(crate) fn run_all(seconds: u32, only: Option<&str>) -> Result<()> {
    let targets: Vec<&str> =
        TARGETS.into_iter().filter(|target| only.is_none_or(|only| only == *target)).collect();
    if targets.is_empty() {
        bail!("there is no such target; there are {}", TARGETS.join(", "));
    }
    let built = build()?;
    let work = root().join("target/fuzz");
    let seeds = Seeds::collect()?;
    for target in targets {
        let place = work.join(target);
        let corpus = place.join("corpus");
        let seeded = place.join("seeds");
        for folder in [&corpus, &seeded] {
            fs::create_dir_all(folder)
                .with_context(|| format!("failed to create {}", folder.display()))?;
        }
        let count = seeds.write(target, &seeded)?;
        println!("{target}: {count} seeds, {seconds} s");
        // Findings go beside the corpus, with the name of their kind in front: `crash-…`, `oom-…`, `timeout-…`.
        let mut fuzz = Command::new(built.join(target));
        fuzz.arg(format!("-max_total_time={seconds}"))
            .args([
                "-timeout=10",
                "-rss_limit_mb=1024",
                "-max_len=16384",
                "-print_final_stats=1",
                "-verbosity=0",
            ])
            .arg(format!("-artifact_prefix={}/", place.display()))
            .args([&corpus, &seeded]);
        run(&mut fuzz)
            .with_context(|| format!("{target} found something; see {}", place.display()))?;
    }
    Ok(())
}

/// Builds all targets and says where they are.
fn build() -> Result<PathBuf> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc does not say its host")?;
    let target = root().join("target/fuzz/build");
    let mut cargo = Command::new("cargo");
    // With the host named as target, build scripts and macros are built without the flags.
    cargo
        .current_dir(root().join("fuzz"))
        .args(["build", "--release", "--locked", "--target", host])
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"));
    run(&mut cargo)?;
    Ok(target.join(host).join("release"))
}

/// What the recorded exchanges hold, by target.
struct Seeds {
    streams: Vec<Vec<u8>>,
    bodies: Vec<Value>,
}

impl Seeds {
    fn collect() -> Result<Self> {
        let mut seeds = Self { streams: Vec::new(), bodies: Vec::new() };
        seeds.walk(&root().join("crates/a2a-types/tests/fixtures/corpus"))?;
        Ok(seeds)
    }

    fn walk(&mut self, folder: &Path) -> Result<()> {
        let entries =
            fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                self.walk(&path)?;
                continue;
            }
            let bytes =
                fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
            match path.extension().and_then(|extension| extension.to_str()) {
                // The first byte says how the stream is cut.
                Some("sse") => self.streams.push([&[7], bytes.as_slice()].concat()),
                Some("json") => {
                    let value: Value = serde_json::from_slice(&bytes)?;
                    let sides = ["request", "response"];
                    let bodies = sides.iter().map(|side| value[side]["body"].clone());
                    self.bodies.extend(bodies.filter(Value::is_object));
                    if value.get("request").is_none() {
                        self.bodies.push(value);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the seeds of a target and counts them.
    fn write(&self, target: &str, folder: &Path) -> Result<usize> {
        let seeds: Vec<Vec<u8>> = match target {
            "sse" => self.streams.clone(),
            "jsonrpc" => self.matching(|body| body.get("jsonrpc").is_some().then_some(body)),
            "card" => self.matching(|body| {
                [body, &body["result"]].into_iter().find(|body| body.get("skills").is_some())
            }),
            _ => self.matching(|body| {
                let inner = body.get("result").unwrap_or(body);
                inner.get("skills").is_none().then_some(inner)
            }),
        };
        for (index, seed) in seeds.iter().enumerate() {
            let path = folder.join(format!("{index:04}"));
            fs::write(&path, seed)
                .with_context(|| format!("failed to write {}", path.display()))?;
        }
        Ok(seeds.len())
    }

    fn matching<'s>(&'s self, choose: impl Fn(&'s Value) -> Option<&'s Value>) -> Vec<Vec<u8>> {
        self.bodies.iter().filter_map(choose).map(|body| body.to_string().into_bytes()).collect()
    }
}

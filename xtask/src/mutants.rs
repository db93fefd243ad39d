//! `cargo xtask mutants`: breaks the product in ways that must not pass, one at a time, and sees which test says so.
//!
//! A mutant is a patch below `tests/mutants`. Before its diff stands what it breaks, and lines that begin with
//! `Killed by: ` and name a package and a test of it. Each of those tests has to pass on the product and to fail on the
//! mutant. Built and run in a copy of what is committed, below `target/mutants`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::shell::{self, command, root};

/// How long the tests of one mutant may take, building included: one that hangs is found out as well.
const PATIENCE: Duration = Duration::from_mins(20);
const KILLED_BY: &str = "Killed by: ";

struct Mutant {
    name: String,
    patch: PathBuf,
    /// What it breaks.
    what: String,
    /// Packages and their tests.
    killers: BTreeSet<(String, String)>,
}

/// How the named tests of one package ended.
#[derive(Default)]
struct Ended {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
}

/// Proves that every mutant can be made of the product as it stands.
pub(crate) fn check() -> Result<()> {
    for Mutant { patch, .. } in mutants(None)? {
        shell::run(command("git").args(["apply", "--check"]).arg(patch))?;
    }
    Ok(())
}

/// Tries all mutants, or the one of a name.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let mutants = mutants(only)?;
    let folder = root().join("target/mutants");
    let tree = folder.join("tree");
    remove_tree(&tree)?;
    shell::run(command("git").args(["worktree", "add", "--quiet", "--detach"]).arg(&tree))?;
    let judged = judge(&mutants, &folder, &tree);
    remove_tree(&tree)?;
    let verdicts = judged?;
    println!();
    for (mutant, verdict) in mutants.iter().zip(&verdicts) {
        let verdict = match verdict {
            Ok(()) => "killed".to_owned(),
            Err(why) => format!("SURVIVED: {why}"),
        };
        println!("{}: {verdict}\n    {}", mutant.name, mutant.what);
        for (package, test) in &mutant.killers {
            println!("    {package} {test}");
        }
    }
    let survivors = verdicts.iter().filter(|verdict| verdict.is_err()).count();
    println!("mutants: {} of {} killed", verdicts.len() - survivors, verdicts.len());
    ensure!(survivors == 0, "{survivors} mutants survived");
    Ok(())
}

fn judge(mutants: &[Mutant], folder: &Path, tree: &Path) -> Result<Vec<Result<(), String>>> {
    let built = folder.join("built");
    println!("\n== the product as it is");
    let all = mutants.iter().flat_map(|mutant| mutant.killers.clone()).collect();
    for (package, ended) in test(&all, tree, &built)? {
        let named = of_package(&all, &package);
        let lacking: Vec<_> = named.difference(&ended.passed).collect();
        ensure!(lacking.is_empty(), "without a mutant these did not pass: {package} {lacking:?}");
    }
    let mut verdicts = Vec::new();
    for mutant in mutants {
        println!("\n== {}", mutant.name);
        let git = || {
            let mut git = Command::new("git");
            git.current_dir(tree);
            git
        };
        shell::run(git().arg("apply").arg(&mutant.patch))?;
        let mut verdict = Ok(());
        for (package, ended) in test(&mutant.killers, tree, &built)? {
            let named = of_package(&mutant.killers, &package);
            let lenient: Vec<_> = named.difference(&ended.failed).collect();
            if !lenient.is_empty() {
                verdict = Err(format!("{package} {lenient:?} did not fail"));
            }
        }
        shell::run(git().args(["checkout", "--quiet", "--", "."]))?;
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

fn mutants(only: Option<&str>) -> Result<Vec<Mutant>> {
    let folder = root().join("tests/mutants");
    let mut mutants = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let patch = entry?.path();
        if patch.extension().is_some_and(|extension| extension == "patch") {
            mutants.push(read(patch)?);
        }
    }
    mutants.sort_by(|one, other| one.name.cmp(&other.name));
    if let Some(only) = only {
        mutants.retain(|mutant| mutant.name == only);
    }
    ensure!(!mutants.is_empty(), "there is no such mutant in {}", folder.display());
    Ok(mutants)
}

fn read(patch: PathBuf) -> Result<Mutant> {
    let text = fs::read_to_string(&patch).with_context(|| patch.display().to_string())?;
    let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let head = text.lines().take_while(|line| !line.starts_with("--- "));
    let (killers, what): (Vec<_>, Vec<_>) = head.partition(|line| line.starts_with(KILLED_BY));
    let killers = killers.into_iter().map(|line| {
        let named = line.trim_start_matches(KILLED_BY).split_once(' ');
        let (package, of) = named.with_context(|| format!("{name}: `{line}` names no test"))?;
        Ok((package.to_owned(), of.trim().to_owned()))
    });
    let killers: BTreeSet<_> = killers.collect::<Result<_>>()?;
    if killers.is_empty() {
        bail!("{} says no test that kills it", patch.display());
    }
    let what: Vec<_> = what.into_iter().map(str::trim).filter(|line| !line.is_empty()).collect();
    Ok(Mutant { name, patch, what: what.join(" "), killers })
}

fn of_package(killers: &BTreeSet<(String, String)>, package: &str) -> BTreeSet<String> {
    let named = killers.iter().filter(|(of, _)| of == package);
    named.map(|(_, test)| test.clone()).collect()
}

/// Runs tests, package by package.
fn test(
    killers: &BTreeSet<(String, String)>,
    tree: &Path,
    built: &Path,
) -> Result<Vec<(String, Ended)>> {
    let packages: BTreeSet<_> = killers.iter().map(|(package, _)| package.clone()).collect();
    let mut all = Vec::new();
    for package in packages {
        let named = of_package(killers, &package);
        let mut cargo = Command::new("cargo");
        cargo.current_dir(tree).env("CARGO_TARGET_DIR", built);
        cargo.args(["test", "--locked", "--no-fail-fast", "--package", &package, "--tests", "--"]);
        cargo.arg("--exact").args(&named);
        let log = built.with_extension("log");
        let printed = run_within(&mut cargo, &log)?;
        let mut ended = Ended::default();
        for line in printed.lines() {
            let Some((test, end)) =
                line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
            else {
                continue;
            };
            match end {
                "ok" => ended.passed.insert(test.to_owned()),
                "FAILED" => ended.failed.insert(test.to_owned()),
                _ => false,
            };
        }
        println!("{package}: {} passed, {} failed", ended.passed.len(), ended.failed.len());
        ensure!(
            !ended.passed.is_empty() || !ended.failed.is_empty(),
            "no test of {package} ran, the end of what it printed:\n{}",
            tail(&printed)
        );
        all.push((package, ended));
    }
    Ok(all)
}

/// What a command prints until it ends; one that hangs is ended.
fn run_within(command: &mut Command, log: &Path) -> Result<String> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = fs::File::create(log)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .context("failed to start cargo")?;
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > PATIENCE {
            end(&mut child)?;
            bail!("the tests did not end in {} minutes", PATIENCE.as_secs() / 60);
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok(String::from_utf8_lossy(&fs::read(log)?).into_owned())
}

fn end(child: &mut Child) -> Result<()> {
    child.kill()?;
    child.wait()?;
    Ok(())
}

fn tail(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

fn remove_tree(tree: &Path) -> Result<()> {
    if tree.exists() {
        shell::run(command("git").args(["worktree", "remove", "--force"]).arg(tree))?;
    }
    Ok(())
}

//! `cargo xtask mutants`: breaks the product in ways that must not pass, one at a time, and sees which test says so.
//!
//! A mutant is a patch below `tests/mutants`. Before its diff stands what it breaks, and lines that begin with
//! `Killed by: ` and name a package and a test of it. Each of those tests has to pass on the product and to fail on the
//! mutant. Built and run in a copy of what is committed, below `target/mutants`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::shell::{self, command, root};

/// How long the tests of one package may take, building included.
const PATIENCE: Duration = Duration::from_mins(20);
const KILLED_BY: &str = "Killed by: ";
/// Runs a command beside something that waits for the end of standard input, and then ends their group.
const GUARD: &str =
    "exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL 0; } & exec 3<&-; exec \"$@\"";

struct Mutant {
    name: String,
    patch: PathBuf,
    /// What it breaks.
    what: String,
    /// Packages and their tests.
    killers: BTreeSet<(String, String)>,
}

/// How the named tests of one package ended.
#[derive(Debug, Default, PartialEq)]
struct Ended {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// Whether they had to be ended. Nobody knows then what they would have said.
    hung: bool,
}

/// What came of a mutant.
#[derive(Debug, PartialEq)]
enum Verdict {
    Killed,
    /// Tests that did not fail.
    Survived(String),
    /// Tests that did not end. They are to be mended: a test that fails says what is wrong.
    Hung(String),
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
            Verdict::Killed => "killed".to_owned(),
            Verdict::Survived(why) => format!("SURVIVED: {why}"),
            Verdict::Hung(why) => format!("HUNG: {why}"),
        };
        println!("{}: {verdict}\n    {}", mutant.name, mutant.what);
        for (package, test) in &mutant.killers {
            println!("    {package} {test}");
        }
    }
    let killed = verdicts.iter().filter(|verdict| **verdict == Verdict::Killed).count();
    println!("mutants: {killed} of {} killed", verdicts.len());
    ensure!(killed == verdicts.len(), "{} mutants were not killed", verdicts.len() - killed);
    Ok(())
}

fn judge(mutants: &[Mutant], folder: &Path, tree: &Path) -> Result<Vec<Verdict>> {
    let built = folder.join("built");
    println!("\n== the product as it is");
    let all = mutants.iter().flat_map(|mutant| mutant.killers.clone()).collect();
    for (package, ended) in test(&all, tree, &built)? {
        let named = of_package(&all, &package);
        ensure!(!ended.hung, "without a mutant the tests of {package} did not end: {named:?}");
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
        let ended = test(&mutant.killers, tree, &built)?;
        shell::run(git().args(["checkout", "--quiet", "--", "."]))?;
        verdicts.push(verdict(&mutant.killers, &ended));
    }
    Ok(verdicts)
}

/// What is to be said of a mutant by the tests that are to kill it.
fn verdict(killers: &BTreeSet<(String, String)>, ended: &[(String, Ended)]) -> Verdict {
    let mut verdict = Verdict::Killed;
    for (package, ended) in ended {
        let named = of_package(killers, package);
        let lenient: Vec<_> = named.difference(&ended.failed).collect();
        if ended.hung {
            return Verdict::Hung(format!("{package} {lenient:?} did not end"));
        }
        if !lenient.is_empty() {
            verdict = Verdict::Survived(format!("{package} {lenient:?} did not fail"));
        }
    }
    verdict
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
        let mut cargo = guarded("cargo");
        cargo.current_dir(tree).env("CARGO_TARGET_DIR", built);
        cargo.args(["test", "--locked", "--no-fail-fast", "--package", &package, "--tests", "--"]);
        cargo.arg("--exact").args(&named);
        let log = built.with_extension("log");
        let (printed, hung) = run_within(&mut cargo, &log, PATIENCE)?;
        let ended = Ended { hung, ..Ended::of(&printed) };
        println!("{package}: {} passed, {} failed", ended.passed.len(), ended.failed.len());
        ensure!(
            hung || !ended.passed.is_empty() || !ended.failed.is_empty(),
            "no test of {package} ran, the end of what it printed:\n{}",
            tail(&printed)
        );
        all.push((package, ended));
    }
    Ok(all)
}

impl Ended {
    /// What the test binaries say, line by line.
    fn of(printed: &str) -> Self {
        let mut ended = Self::default();
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
        ended
    }
}

/// A program that is to be started by [`start`].
fn guarded(program: &str) -> Command {
    let mut guarded = Command::new("sh");
    guarded.args(["-c", GUARD, "sh", program]);
    guarded
}

/// Starts a [`guarded`] command in a group of its own. It ends, with all that it started, when the child's standard input is
/// closed: also when this process is ended, however that is, since no Ctrl-C reaches another group.
fn start(command: &mut Command, log: &Path) -> Result<Child> {
    let file = fs::File::create(log)?;
    command.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(file).process_group(0);
    command.spawn().with_context(|| format!("failed to start {}", command.get_program().display()))
}

/// What a [`guarded`] command prints, and whether it had to be ended: with all that it started, since it is not cargo that
/// hangs but a test, which would go on for ever.
fn run_within(command: &mut Command, log: &Path, patience: Duration) -> Result<(String, bool)> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut child = start(command, log)?;
    let begun = Instant::now();
    let mut hung = false;
    while child.try_wait()?.is_none() {
        if begun.elapsed() > patience {
            end_group(&mut child)?;
            hung = true;
            break;
        }
        thread::sleep(Duration::from_millis(200));
    }
    Ok((String::from_utf8_lossy(&fs::read(log)?).into_owned(), hung))
}

fn end_group(leader: &mut Child) -> Result<()> {
    shell::run(command("kill").args(["-KILL", "--", &format!("-{}", leader.id())]))?;
    leader.wait()?;
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
    // One that somebody deleted is still on git's list, and could not be added again.
    shell::run(command("git").args(["worktree", "prune"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_fails_kills_a_mutant() {
        let killers = [("net", "a::b"), ("net", "c"), ("store", "d")];
        let killers = killers.map(|(package, test)| (package.to_owned(), test.to_owned())).into();
        let net = "test a::b ... FAILED\nnonsense\ntest other ... ok\n";
        let check = |rest_of_net: &str, hung: bool, store: &str, expected: Verdict| {
            let net = Ended { hung, ..Ended::of(&format!("{net}{rest_of_net}")) };
            let ended = [("net".to_owned(), net), ("store".to_owned(), Ended::of(store))];
            assert_eq!(verdict(&killers, &ended), expected);
        };
        let failed = "test d ... FAILED";
        check("test c ... FAILED", false, failed, Verdict::Killed);
        let survived = |told: &str| Verdict::Survived(told.to_owned());
        check("test c ... ok", false, failed, survived("net [\"c\"] did not fail"));
        check("test c ... FAILED", false, "", survived("store [\"d\"] did not fail"));
        let hung = Verdict::Hung("net [\"c\"] did not end".to_owned());
        check("test c ... test d ... ok", true, failed, hung);
    }

    #[test]
    fn what_hangs_is_ended_with_all_that_it_started() {
        let folder = std::env::temp_dir().join(format!("volcanic-hung-{}", std::process::id()));
        let log = folder.join("log");
        let (printed, hung) = run_within(&mut waiting(), &log, Duration::from_secs(5)).unwrap();
        assert!(hung);
        ends(printed.trim());
        let mut quick = guarded("echo");
        let ended = run_within(quick.arg("here"), &log, PATIENCE).unwrap();
        assert_eq!(ended, ("here\n".to_owned(), false));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn all_that_was_started_ends_with_who_started_it() {
        let folder = std::env::temp_dir().join(format!("volcanic-left-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let log = folder.join("log");
        let mut shell = start(&mut waiting(), &log).unwrap();
        let child =
            within(|| fs::read_to_string(&log).ok().filter(|printed| printed.ends_with('\n')));
        // As when this process is no more.
        drop(shell.stdin.take());
        ends(child.trim());
        assert!(!shell.wait().unwrap().success());
        fs::remove_dir_all(folder).unwrap();
    }

    /// Waits for what it started, as cargo does, and prints its id.
    fn waiting() -> Command {
        let mut shell = guarded("sh");
        shell.args(["-c", "sleep 600 & echo $!; wait"]);
        shell
    }

    #[track_caller]
    fn ends(child: &str) {
        let stat = Path::new("/proc").join(child.parse::<u32>().unwrap().to_string()).join("stat");
        // Until its end is looked at, which others do, it is listed as a zombie.
        within(|| {
            let runs = fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(" Z "));
            (!runs).then_some(())
        });
    }

    #[track_caller]
    fn within<T>(look: impl Fn() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "it did not come to that");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

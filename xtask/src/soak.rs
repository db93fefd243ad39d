//! `cargo xtask soak`: every kind of fault, mixed, round after round. A round is what CI runs, and tests of faults that
//! draw what they try. Round `i` of a seed draws the same as ever, so a run can be taken up where it was left.

use std::{
    io::{BufRead as _, BufReader},
    ops::Range,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    peers::{CrashCounts, build_for_crash, crash_runner},
    shell::command,
};

/// Rounds of a whole run: ten times what CI runs.
const ROUNDS: u64 = 10;

/// The packages with tests of faults: their paths contain `faults::`.
const PACKAGES: [&str; 3] = ["volcanic-e2e", "volcanic-a2a-watch", "volcanic-a2a-client"];

/// What to run.
#[derive(Debug)]
pub(crate) struct SoakPlan {
    /// One round, with a share of the kills.
    pub(crate) quick: bool,
    /// Decides every choice.
    pub(crate) seed: u64,
    /// The first round.
    pub(crate) from: u64,
    /// No round begins after so many minutes.
    pub(crate) minutes: Option<u64>,
}

/// What came of a round.
#[derive(Debug, Default)]
struct Sum {
    rounds: u64,
    kills: u64,
    tests: u64,
    red: Vec<String>,
}

impl SoakPlan {
    /// The rounds to run; there is at least one.
    fn rounds(&self) -> Result<Range<u64>> {
        let end = if self.quick { self.from.saturating_add(1) } else { ROUNDS };
        ensure!(
            self.from < end,
            "a run has the rounds 0 to {}, there is nothing to go on with from {}",
            ROUNDS - 1,
            self.from
        );
        ensure!(self.minutes != Some(0), "no round begins in 0 minutes");
        Ok(self.from..end)
    }
}

/// Runs the plan; the last line is the verdict.
pub(crate) fn run(plan: &SoakPlan) -> Result<()> {
    let rounds = plan.rounds()?;
    build_for_crash()?;
    let started = Instant::now();
    let limit = plan.minutes.map(|minutes| Duration::from_secs(minutes * 60));
    let mut sum = Sum::default();
    for round in rounds {
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            println!("the time is up; go on with --seed {} --from {round}", plan.seed);
            break;
        }
        let seed = mix(plan.seed, round);
        println!(
            "== round {round} of seed {} (draws from {seed}), {} s",
            plan.seed,
            started.elapsed().as_secs()
        );
        one_round(plan.quick, seed, &mut sum)?;
        sum.rounds += 1;
        println!(
            "== round {round} is over, {} red so far, {} s",
            sum.red.len(),
            started.elapsed().as_secs()
        );
    }
    for red in &sum.red {
        println!("RED: {red}");
    }
    let verdict = if sum.red.is_empty() { "green" } else { "red" };
    println!(
        "soak of seed {} from round {}: {verdict}; {} rounds, {} kills, {} tests of faults, {} red, {} s",
        plan.seed,
        plan.from,
        sum.rounds,
        sum.kills,
        sum.tests,
        sum.red.len(),
        started.elapsed().as_secs()
    );
    ensure!(sum.red.is_empty(), "{} red", sum.red.len());
    Ok(())
}

fn one_round(quick: bool, seed: u64, sum: &mut Sum) -> Result<()> {
    let counts = if quick {
        CrashCounts { kills: 1_000, disks: 30, long_life: 4 }
    } else {
        CrashCounts { kills: 3_000, disks: 60, long_life: 15 }
    };
    let told = tell(&mut crash_runner(&counts, Some(seed)))?;
    sum.kills += u64::from(counts.kills);
    if !told.is_well {
        sum.red.push(format!("faults of the shipped binary, --seed {seed}: {}", told.last));
    }
    let mut tests = command("cargo");
    tests.args(["test", "--locked", "--no-fail-fast"]);
    for package in PACKAGES {
        tests.args(["--package", package]);
    }
    tests.args(["--", "faults::"]).env("VOLCANIC_FAULTS_SEED", seed.to_string());
    tests.env("VOLCANIC_FAULTS_TIMES", if quick { "1" } else { "2" });
    let told = tell(&mut tests)?;
    sum.tests += told.passed;
    if told.passed == 0 {
        sum.red.push("no test of faults was found".to_owned());
    }
    if !told.is_well {
        sum.red.push(format!("tests of faults, VOLCANIC_FAULTS_SEED={seed}"));
    }
    Ok(())
}

/// What a command told.
struct Told {
    is_well: bool,
    last: String,
    /// Tests that passed.
    passed: u64,
}

/// Runs a command, its output on the screen as it comes.
fn tell(command: &mut Command) -> Result<Told> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("failed to start a runner")?;
    let output = child.stdout.take().context("a runner has no output")?;
    let (mut last, mut passed) = (String::new(), 0);
    for line in BufReader::new(output).lines() {
        let line = line.context("failed to read what a runner says")?;
        println!("{line}");
        if let Some(counts) = line.strip_prefix("test result: ") {
            let words = counts.split_whitespace().collect::<Vec<_>>();
            let place = words.iter().position(|word| *word == "passed;");
            let count = place.and_then(|place| words.get(place.checked_sub(1)?)?.parse().ok());
            passed += count.unwrap_or(0);
        }
        if !line.trim().is_empty() {
            last = line;
        }
    }
    let status = child.wait().context("failed to wait for a runner")?;
    Ok(Told { is_well: status.success(), last, passed })
}

/// A round's own seed (the finisher of `SplitMix64`).
fn mix(seed: u64, round: u64) -> u64 {
    let mut value = seed.wrapping_add(round.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (value ^ (value >> 31)) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_without_a_round_is_refused() {
        let rounds = |quick, from, minutes| {
            let plan = SoakPlan { quick, seed: 1, from, minutes };
            plan.rounds().map_err(|error| error.to_string())
        };
        assert_eq!(rounds(false, 0, None), Ok(0..ROUNDS));
        assert_eq!(rounds(false, 9, Some(1)), Ok(9..ROUNDS));
        assert_eq!(rounds(true, 12, None), Ok(12..13));
        let refused = |told: &str| Err(told.to_owned());
        let none = "a run has the rounds 0 to 9, there is nothing to go on with from 10";
        assert_eq!(rounds(false, 10, None), refused(none));
        assert_eq!(rounds(false, 0, Some(0)), refused("no round begins in 0 minutes"));
        assert!(rounds(true, u64::MAX, None).is_err());
    }
}

//! The crash run: one assistant over one state, killed again and again in the middle of the whole path, then judged.
//!
//! The killer knows nothing of the code it kills: it starts the shipped binary, types, and ends it, half at random
//! times and half before the k-th write, fsync or rename (`tests/shim/crash.c`). The judge shares no code with the
//! assistant either: it reads the database with SQL and the remote agent's own journal.

mod judge;
mod shim;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::time::Instant;
use volcanic_base::Chance;
use volcanic_testkit::{Process, Program};

pub use judge::{Judge, Phase};

/// The longest a run of the assistant is left alone before it is killed whatever it does.
const LONGEST_RUN: Duration = Duration::from_millis(1_800);

/// How long the assistant has, at the very end, to bring everything to rest.
const SETTLING: Duration = Duration::from_secs(90);

/// What to do.
#[derive(Debug)]
pub struct CrashPlan {
    /// The binary to kill.
    pub volcanic: PathBuf,
    /// How many kills.
    pub kills: u32,
    /// Decides every choice of the run.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct CrashReport {
    /// Kills by the phase the state was in.
    pub phases: BTreeMap<Phase, u32>,
    /// Kills before the k-th operation.
    pub at_operation: u32,
    /// Kills at a random time.
    pub at_random: u32,
    /// Messages that the remote agent received.
    pub received: usize,
    /// Outcomes in the conversation.
    pub entered: usize,
    /// Sends whose outcome was announced as unknown.
    pub unknown: usize,
    /// Answers shown again, labelled.
    pub repeats: usize,
    /// Broken promises; none, if all is well.
    pub faults: Vec<String>,
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kills per phase:")?;
        for (phase, count) in &self.phases {
            writeln!(f, "  {count:>4}  {phase}")?;
        }
        writeln!(
            f,
            "{} before the k-th operation, {} at a random time",
            self.at_operation, self.at_random
        )?;
        for fault in &self.faults {
            writeln!(f, "FAULT: {fault}")?;
        }
        write!(
            f,
            "{} messages received by the remote, {} outcomes entered, {} announced as unknown, {} answers shown again with a label, {} faults",
            self.received,
            self.entered,
            self.unknown,
            self.repeats,
            self.faults.len()
        )
    }
}

/// Runs the plan.
///
/// # Errors
/// When something that is not under test fails, such as the compiler of the shim.
pub async fn run(plan: &CrashPlan) -> Result<CrashReport> {
    let scene = Scene::prepare(&plan.volcanic).await?;
    let chance = Chance::seeded(plan.seed);
    let (operations, mut screen) = scene.count_operations().await?;
    println!("one undisturbed turn has {operations} operations");

    let mut report = CrashReport::default();
    let mut typed = Vec::new();
    for kill in 0..plan.kills {
        let word = format!("w{kill}x{}", &chance.uuid().simple().to_string()[..8]);
        let (shown, by_operation) = scene.live_and_die(&chance, &word, kill, operations).await?;
        typed.push(word);
        screen.extend(shown);
        if by_operation {
            report.at_operation += 1;
        } else {
            report.at_random += 1;
        }
        let judge = Judge::of_the_dead(&scene.database)?;
        *report.phases.entry(judge.phase()?).or_default() += 1;
        report.faults.extend(judge.standing_faults()?);
        if kill % 20 == 19 {
            println!("{} kills, {} faults", kill + 1, report.faults.len());
        }
    }
    screen.extend(scene.settle(&mut report).await?);
    Judge::of_the_dead(&scene.database)?.verdict(&scene.journal, &typed, &screen, &mut report)?;
    Ok(report)
}

/// The remote agent, the folders, and the shim.
struct Scene {
    volcanic: PathBuf,
    shim: PathBuf,
    home: PathBuf,
    workspace: PathBuf,
    journal: PathBuf,
    database: PathBuf,
    _remote: Process,
    folder: TempDir,
}

impl Scene {
    async fn prepare(volcanic: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("volcanic-crash-").tempdir()?;
        let root = folder.path().canonicalize()?;
        let shim = shim::build(&root)?;
        let (home, workspace, journal) =
            (root.join("home"), root.join("workspace"), root.join("journal.jsonl"));
        std::fs::create_dir_all(workspace.join(".volcanic/a2a"))?;
        std::fs::create_dir_all(root.join("remote"))?;
        let mut remote = Program::new("the remote agent", volcanic)
            .args(["serve", "--scripted", "--listen", "127.0.0.1:0", "--workspace"])
            .arg(root.join("remote"))
            .arg("--journal")
            .arg(&journal)
            .env("VOLCANIC_HOME", root.join("remote-home"))
            .start()?;
        let line = remote
            .line(Duration::from_secs(10), "its address", |line| line.contains("http://"))
            .await?;
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"))
            .context("no address")?;
        let agents = serde_json::json!([{ "name": "demo", "url": url }]);
        std::fs::write(workspace.join(".volcanic/a2a/agents.json"), agents.to_string())?;
        let mut scene = Self {
            volcanic: volcanic.to_owned(),
            shim,
            home,
            workspace,
            journal,
            database: PathBuf::new(),
            _remote: remote,
            folder,
        };
        scene.database = scene.first_start().await?;
        Ok(scene)
    }

    /// Starts once and ends in order, so that the state exists; returns its database.
    async fn first_start(&self) -> Result<PathBuf> {
        let (status, _) = self.chat("1").start()?.finish(Duration::from_secs(20)).await?;
        ensure!(status.success(), "the assistant does not start: {status}");
        let states = std::fs::read_dir(self.home.join("cli"))?;
        let state = states.flatten().next().context("the assistant made no state")?;
        Ok(state.path().join("state.db"))
    }

    fn chat(&self, wait_seconds: &str) -> Program {
        Program::new("the assistant", &self.volcanic)
            .args(["chat", "--model", "scripted", "--workspace"])
            .arg(&self.workspace)
            .env("VOLCANIC_HOME", &self.home)
            .env("A2AClient__WaitSeconds", wait_seconds)
            .quiet()
    }

    /// How many operations a turn with a quick task has when nobody disturbs it, and what it showed.
    async fn count_operations(&self) -> Result<(u64, Vec<String>)> {
        let count = self.folder.path().join("count");
        let mut chat = self
            .chat("1")
            .env("LD_PRELOAD", &self.shim)
            .env("CRASH_UNDER", self.folder.path().canonicalize()?)
            .env("CRASH_COUNT", &count)
            .start()?;
        chat.say("ask demo: echo calibration").await?;
        chat.line(Duration::from_secs(20), "an answer", |line| line.contains("echo: calibration"))
            .await?;
        let (_, shown) = chat.finish(Duration::from_secs(20)).await?;
        let text = std::fs::read_to_string(&count).context("the shim counted nothing")?;
        let operations: u64 = text.trim().parse().context("the shim's count is no number")?;
        ensure!(operations > 10, "only {operations} operations were seen: is the shim loaded?");
        Ok((operations, shown))
    }

    /// One life of the assistant: it is told something and killed. Returns what it showed, and whether an operation was
    /// its end.
    async fn live_and_die(
        &self,
        chance: &Chance,
        word: &str,
        kill: u32,
        operations: u64,
    ) -> Result<(Vec<String>, bool)> {
        // Handing over at once and waiting for a second lead through different phases.
        let wait = if chance.fraction() < 0.5 { "0" } else { "1" };
        let mut program = self.chat(wait);
        let at_operation = kill % 2 == 1;
        if at_operation {
            let at = 1 + fraction_of(chance, operations);
            program = program
                .env("LD_PRELOAD", &self.shim)
                .env("CRASH_UNDER", self.folder.path().canonicalize()?)
                .env("CRASH_AT", at.to_string());
        }
        let started = Instant::now();
        let mut chat = program.start()?;
        let line = if chance.fraction() < 0.5 {
            format!("ask demo: echo {word}")
        } else {
            format!("ask demo: slow 1 {word}")
        };
        // An early kill closes the input; what was not taken was not said.
        let _ = chat.say(&line).await;
        if at_operation {
            let by_operation = chat.ended_within(LONGEST_RUN).await;
            let (_, shown) = chat.kill().await?;
            return Ok((shown, by_operation));
        }
        let life = LONGEST_RUN.mul_f64(chance.fraction());
        chat.ended_within(life.saturating_sub(started.elapsed())).await;
        let (_, shown) = chat.kill().await?;
        Ok((shown, false))
    }

    /// Starts it for the last time and lets it bring everything to rest.
    async fn settle(&self, report: &mut CrashReport) -> Result<Vec<String>> {
        let mut chat = self.chat("1").start()?;
        let deadline = Instant::now() + SETTLING;
        let mut open = Vec::new();
        while Instant::now() < deadline {
            open = Judge::of_the_living(&self.database)?.open_ends()?;
            if open.is_empty() {
                break;
            }
            // Reads on, so that the assistant is not held up by a full pipe, and looks again a little later.
            if chat.ended_within(Duration::from_millis(200)).await {
                report.faults.push("the assistant ended by itself at the last start".to_owned());
                break;
            }
        }
        for end in open {
            report.faults.push(format!("still open {SETTLING:?} after the last start: {end}"));
        }
        let (_, shown) = chat.finish(Duration::from_secs(20)).await?;
        Ok(shown)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a small count"
)]
fn fraction_of(chance: &Chance, count: u64) -> u64 {
    (chance.fraction() * count as f64) as u64
}

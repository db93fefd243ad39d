//! The stage: a remote agent, a workspace, a state, and the lives of the assistant over them.

use std::{
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;
use volcanic_base::Chance;
use volcanic_testkit::{Process, Program};

use super::{CrashReport, judge::Judge, shim};

/// The longest a run of the assistant is left alone before it is killed whatever it does.
const LONGEST_RUN: Duration = Duration::from_millis(1_800);

/// How long the assistant has, at the very end, to bring everything to rest.
const SETTLING: Duration = Duration::from_secs(90);

/// How long everything has to stay at rest, so that nothing comes late.
const RESTING: Duration = Duration::from_secs(3);

/// What SIGKILL is.
const KILLED: i32 = 9;

/// The remote agent, the folders, and the shim.
pub(super) struct Scene {
    volcanic: PathBuf,
    shim: PathBuf,
    home: PathBuf,
    workspace: PathBuf,
    journal: PathBuf,
    database: PathBuf,
    _remote: Process,
    folder: TempDir,
}

/// The end of one life.
pub(super) struct Death {
    /// What was on the screen.
    pub(super) shown: Vec<String>,
    /// Whether an operation was its end.
    pub(super) at_operation: bool,
    /// It ended otherwise than by being killed: it did not start, or it gave up.
    pub(super) fault: Option<String>,
}

impl Scene {
    pub(super) async fn prepare(volcanic: &Path) -> Result<Self> {
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

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    /// What the remote agent says it received.
    pub(super) fn journal(&self) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(&self.journal)
            .context("failed to read the remote's journal")?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
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
    pub(super) async fn count_operations(&self) -> Result<(u64, Vec<String>)> {
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

    /// One life of the assistant: it is told something and killed.
    pub(super) async fn live_and_die(
        &self,
        chance: &Chance,
        line: &str,
        kill: u32,
        operations: u64,
    ) -> Result<Death> {
        // Handing over at once and waiting for a second lead through different phases.
        let wait = if chance.fraction() < 0.5 { "0" } else { "1" };
        let mut program = self.chat(wait);
        let by_operation = kill % 2 == 1;
        if by_operation {
            let at = 1 + fraction_of(chance, operations);
            program = program
                .env("LD_PRELOAD", &self.shim)
                .env("CRASH_UNDER", self.folder.path().canonicalize()?)
                .env("CRASH_AT", at.to_string());
        }
        let started = Instant::now();
        let mut chat = program.start()?;
        // An early kill closes the input; what was not taken was not said.
        let _ = chat.say(line).await;
        let life = if by_operation { LONGEST_RUN } else { LONGEST_RUN.mul_f64(chance.fraction()) };
        let ended = chat.ended_within(life.saturating_sub(started.elapsed())).await;
        let (status, shown) = chat.kill().await?;
        Ok(Death { at_operation: by_operation && ended, fault: unexpected(status, &shown), shown })
    }

    /// Starts it for the last time and lets it bring everything to rest.
    pub(super) async fn settle(&self, report: &mut CrashReport) -> Result<Vec<String>> {
        let mut chat = self.chat("1").start()?;
        let deadline = Instant::now() + SETTLING;
        let mut at_rest_since = None;
        loop {
            let open = Judge::of_the_living(&self.database)?.open_ends()?;
            let now = Instant::now();
            if !open.is_empty() {
                at_rest_since = None;
            } else if now >= *at_rest_since.get_or_insert(now) + RESTING {
                break;
            }
            if now >= deadline {
                for end in open {
                    report.fault(format!("still open {SETTLING:?} after the last start: {end}"));
                }
                break;
            }
            // Reads on, so that the assistant is not held up by a full pipe, and looks again a little later.
            if chat.ended_within(Duration::from_millis(200)).await {
                break;
            }
        }
        let (status, shown) = chat.finish(Duration::from_secs(20)).await?;
        if !status.success() {
            report.fault(format!("the last start ended with {status}"));
        }
        Ok(shown)
    }
}

/// Why a life counts as no kill, if it does.
fn unexpected(status: ExitStatus, shown: &[String]) -> Option<String> {
    (status.signal() != Some(KILLED))
        .then(|| format!("it was not killed, it ended with {status} after:\n{}", shown.join("\n")))
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

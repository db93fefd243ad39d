//! One assistant over one state, with its remote agent: what is said to it, and what it leaves.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;
use volcanic_testkit::{Process, Program};

use super::{folders, journal, judge::Judge, said::Said, screen, stage::Stage, tally::Tally};

/// How long a program has for what it does in a moment when nothing else runs.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// How long the assistant has to bring everything to rest.
const SETTLING: Duration = Duration::from_secs(150);

/// The remote agent, the folders, and what was said and seen so far.
pub(super) struct Scene {
    pub(super) stage: Arc<Stage>,
    workspace: PathBuf,
    home: PathBuf,
    database: PathBuf,
    remote: Option<Process>,
    /// Where the remote agent listens, as `address:port`.
    address: String,
    said: Vec<Said>,
    screen: Vec<String>,
    /// Messages of which a dead assistant did not know whether they had left.
    in_flight: BTreeSet<String>,
    /// Whether files may have been lost with an announcement.
    bad_disk: bool,
    /// Whether the agent ended now and then, and its tasks with it.
    bad_agent: bool,
    root: PathBuf,
    folder: TempDir,
}

impl Scene {
    /// A new state at rest.
    pub(super) async fn prepare(stage: &Arc<Stage>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("volcanic-crash-").tempdir()?;
        let root = folder.path().canonicalize()?;
        let workspace = root.join("world/workspace");
        std::fs::create_dir_all(workspace.join(".volcanic/a2a"))?;
        std::fs::create_dir_all(root.join("remote"))?;
        let mut scene = Self {
            stage: Arc::clone(stage),
            home: root.join("world/home"),
            database: PathBuf::new(),
            remote: None,
            address: "127.0.0.1:0".to_owned(),
            said: Vec::new(),
            screen: Vec::new(),
            in_flight: BTreeSet::new(),
            bad_disk: false,
            bad_agent: false,
            workspace,
            root,
            folder,
        };
        scene.start_remote().await?;
        let agents =
            serde_json::json!([{ "name": "demo", "url": format!("http://{}", scene.address) }]);
        std::fs::write(scene.workspace.join(folders::AGENTS), agents.to_string())?;
        let (status, _) = scene.chat("1")?.start()?.finish(PATIENCE).await?;
        ensure!(status.success(), "the assistant does not start: {status}");
        let states = std::fs::read_dir(scene.home.join("cli"))?;
        let state = states.flatten().next().context("the assistant made no state")?;
        scene.database = state.path().join("state.db");
        Ok(scene)
    }

    /// Starts the remote agent, at the same address as before.
    pub(super) async fn start_remote(&mut self) -> Result<()> {
        let mut remote = Program::new("the remote agent", &self.stage.volcanic)
            .arg("serve")
            .arg(format!("--scripted={}", self.stage.rules.display()))
            .args(["--listen", &self.address, "--workspace"])
            .arg(self.root.join("remote"))
            .arg("--journal")
            .arg(self.root.join("journal.jsonl"))
            .env("VOLCANIC_HOME", self.root.join("remote-home"))
            .start()?;
        let line = remote.line(PATIENCE, "its address", |line| line.contains("http://")).await?;
        let mut words = line.split_whitespace();
        let url = words.find_map(|word| word.strip_prefix("http://")).context("no address")?;
        url.trim_end_matches('/').clone_into(&mut self.address);
        self.remote = Some(remote);
        Ok(())
    }

    /// Ends the remote agent with SIGKILL.
    pub(super) async fn kill_remote(&mut self) -> Result<()> {
        if let Some(remote) = self.remote.take() {
            remote.kill().await?;
        }
        Ok(())
    }

    pub(super) fn remote_id(&self) -> Option<u32> {
        self.remote.as_ref().and_then(Process::id)
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    /// A file beside home and workspace.
    pub(super) fn aside(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What the remote agent says it received.
    pub(super) fn journal(&self) -> Result<Vec<Value>> {
        let file = self.root.join("journal.jsonl");
        let text = std::fs::read_to_string(file).context("failed to read the remote's journal")?;
        // Its last line may be half there while it runs.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        Ok(whole.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// Whether the remote agent is done with a task.
    pub(super) fn is_over(&self, task: &str) -> bool {
        let file = self.root.join("remote/.volcanic/a2a/tasks").join(format!("{task}.json"));
        std::fs::read_to_string(file).is_ok_and(|text| {
            ["COMPLETED", "FAILED"].iter().any(|end| text.contains(&format!("TASK_STATE_{end}")))
        })
    }

    /// The chat, to be started.
    pub(super) fn chat(&self, wait_seconds: &str) -> Result<Program> {
        Ok(Program::new("the assistant", &self.stage.volcanic)
            .args(["chat", "--model", "scripted", "--workspace"])
            .arg(&self.workspace)
            .env("VOLCANIC_HOME", &self.home)
            .env("TMPDIR", &self.root)
            .env("A2AClient__WaitSeconds", wait_seconds)
            .errors_into(self.log()?))
    }

    fn log(&self) -> Result<File> {
        Ok(OpenOptions::new().create(true).append(true).open(self.root.join("errors.log"))?)
    }

    /// The same with the shim before it.
    pub(super) fn shimmed(&self, program: Program) -> Program {
        program.env("LD_PRELOAD", &self.stage.shim).env("CRASH_UNDER", self.root.join("world"))
    }

    /// Notes what is typed, and returns its line.
    pub(super) fn say(&mut self, said: Said) -> String {
        let line = said.line();
        self.said.push(said);
        line
    }

    /// From now on files may not be saved, if that is said.
    pub(super) fn spoil_disk(&mut self) {
        self.bad_disk = true;
    }

    /// From now on the agent may fail tasks, and messages may not reach it.
    pub(super) fn spoil_agent(&mut self) {
        self.bad_agent = true;
    }

    pub(super) fn had_bad_agent(&self) -> bool {
        self.bad_agent
    }

    pub(super) fn had_bad_disk(&self) -> bool {
        self.bad_disk
    }

    /// Notes what was on a screen.
    pub(super) fn saw(&mut self, shown: Vec<String>) {
        self.screen.extend(shown);
    }

    /// What nobody knew about messages when the assistant died.
    pub(super) fn note_in_flight(&mut self, judge: &Judge) -> Result<()> {
        self.in_flight.extend(judge.sends_in_flight()?);
        Ok(())
    }

    /// Starts the assistant undisturbed, lets it bring everything to rest and for so long stay there, and ends it.
    pub(super) async fn settle(&mut self, resting: Duration, tally: &mut Tally) -> Result<()> {
        let mut chat = self.chat("1")?.start()?;
        self.until_rest(&mut chat, resting, tally).await?;
        let (status, shown) = chat.finish(PATIENCE).await?;
        self.saw(shown);
        if !status.success() {
            tally.fault(format!("a start without disturbance ended with {status}"));
        }
        Ok(())
    }

    /// Waits until nothing is open any more and stays so for a while.
    pub(super) async fn until_rest(
        &self,
        chat: &mut Process,
        resting: Duration,
        tally: &mut Tally,
    ) -> Result<()> {
        let judge = Judge::of_the_living(&self.database)?;
        let deadline = Instant::now() + SETTLING;
        let mut at_rest_since = None;
        loop {
            let open = judge.open_ends()?;
            let now = Instant::now();
            if !open.is_empty() {
                at_rest_since = None;
            } else if now >= *at_rest_since.get_or_insert(now) + resting {
                return Ok(());
            }
            if now >= deadline {
                for end in open {
                    tally.fault(format!("still open after {SETTLING:?}: {end}"));
                }
                return Ok(());
            }
            // Reads on, so that the assistant is not held up by a full pipe, and looks again a little later.
            if chat.ended_within(Duration::from_millis(50)).await {
                return Ok(());
            }
        }
    }

    /// Holds all that was said against all that is left. Nothing may be open any more.
    pub(super) fn verdict(&self, tally: &mut Tally) -> Result<()> {
        let judge = Judge::of_the_dead(&self.database)?;
        let mut faults = judge.standing_faults()?;
        faults.extend(judge.faults_at_rest()?);
        let told = journal::judge(&judge, self, &self.said, &self.in_flight, tally)?;
        screen::judge(&judge, &self.screen.join("\n"), tally)?;
        faults.extend(self.folder_faults(&told)?);
        let log = std::fs::read(self.root.join("errors.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        faults.extend(log.lines().filter(|line| line.contains("panicked")).map(str::to_owned));
        tally.faults_of(&self.name(), faults);
        Ok(())
    }

    /// What tells this scene from others.
    pub(super) fn name(&self) -> String {
        self.folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Keeps everything for whoever looks for the cause of a fault.
    pub(super) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

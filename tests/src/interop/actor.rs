//! Who plays: the assistant with its `a2a` tool, or the command line. Both are told the same and answer in lines.

use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::time::{Instant, sleep};
use volcanic_testkit::{Process, Program};

/// How much longer than what is waited for on purpose a program may take to say what came of an order.
const TELLING: Duration = Duration::from_secs(30);

/// The line after everything that the assistant says.
const TOLD: &str = "-- told --";

/// Who plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Player {
    /// The assistant's `a2a` tool, with a scripted model.
    Tool,
    /// `volcanic send`, `status` and so on.
    CommandLine,
}

impl fmt::Display for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::CommandLine => "CLI",
        })
    }
}

/// A player at work, in a workspace of its own.
pub(super) struct Actor {
    pub(super) player: Player,
    volcanic: PathBuf,
    folder: PathBuf,
    wait: Duration,
    chat: Option<Process>,
    /// What the last order came to.
    lines: Vec<String>,
    exit: Option<i32>,
}

/// A line that says how a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) task: String,
    pub(super) context: String,
}

impl Actor {
    /// A player whose files lie in `folder`, and who waits that long for an outcome.
    pub(super) fn new(player: Player, volcanic: &Path, folder: &Path, wait: Duration) -> Self {
        Self {
            player,
            volcanic: volcanic.to_owned(),
            folder: folder.to_owned(),
            wait,
            chat: None,
            lines: Vec::new(),
            exit: None,
        }
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.folder.join("workspace")
    }

    /// Lists the agents.
    pub(super) async fn agents(&mut self) -> Result<()> {
        match self.player {
            Player::Tool => self.say("agents").await,
            Player::CommandLine => self.run(&["agents"]).await,
        }
    }

    /// Sends words to an agent of the workspace.
    pub(super) async fn send_to(&mut self, agent: &str, words: &str) -> Result<()> {
        match self.player {
            Player::Tool => self.say(&format!("ask {agent}: {words}")).await,
            Player::CommandLine => {
                let wait = self.wait_argument();
                self.run(&["send", agent, words, "--wait", &wait]).await
            }
        }
    }

    /// Sends words to the peer.
    pub(super) async fn send(&mut self, words: &str) -> Result<()> {
        self.send_to("peer", words).await
    }

    /// Sends words and a file of the workspace to the peer.
    pub(super) async fn send_file(&mut self, words: &str, file: &str) -> Result<()> {
        match self.player {
            Player::Tool => self.say(&format!("send peer {file}: {words}")).await,
            Player::CommandLine => {
                let wait = self.wait_argument();
                self.run(&["send", "peer", words, "--file", file, "--wait", &wait]).await
            }
        }
    }

    /// Answers the question of a task.
    pub(super) async fn reply(&mut self, task: &str, words: &str) -> Result<()> {
        match self.player {
            Player::Tool => self.say(&format!("reply peer {task}: {words}")).await,
            Player::CommandLine => {
                let wait = self.wait_argument();
                self.run(&["send", "peer", words, "--task", task, "--wait", &wait]).await
            }
        }
    }

    /// Asks how a task stands.
    pub(super) async fn status(&mut self, task: &str) -> Result<()> {
        match self.player {
            Player::Tool => self.say(&format!("status peer {task}")).await,
            Player::CommandLine => self.run(&["status", "peer", task]).await,
        }
    }

    /// Asks until the task has settled.
    pub(super) async fn status_until_settled(&mut self, task: &str) -> Result<()> {
        if self.player == Player::CommandLine {
            return self.run(&["status", "peer", task, "--wait", "20s"]).await;
        }
        let deadline = Instant::now() + TELLING;
        loop {
            self.status(task).await?;
            let goes_on = ["is submitted", "is working"];
            if !self.lines.iter().any(|line| goes_on.iter().any(|word| line.contains(word))) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the task goes on and on:\n{}", self.shown());
            // The tool answers at once; somebody who asks leaves a moment between two questions.
            sleep(Duration::from_millis(300)).await;
        }
    }

    /// Asks for a task to be canceled.
    pub(super) async fn cancel(&mut self, task: &str) -> Result<()> {
        match self.player {
            Player::Tool => self.say(&format!("cancel peer {task}")).await,
            Player::CommandLine => self.run(&["cancel", "peer", task]).await,
        }
    }

    /// Waits until the assistant speaks by itself.
    pub(super) async fn news(&mut self, within: Duration) -> Result<()> {
        let chat = self.chat.as_mut().context("there is no chat to hear news from")?;
        self.lines = told(chat, within, "news").await?;
        Ok(())
    }

    /// Runs a command of `volcanic` to its end.
    pub(super) async fn run(&mut self, arguments: &[&str]) -> Result<()> {
        let errors = self.folder.join("errors.txt");
        let program = Program::new("the command line", &self.volcanic)
            .args(arguments)
            .arg("--workspace")
            .arg(self.workspace())
            .env("VOLCANIC_HOME", self.folder.join("home"))
            .errors_into(File::create(&errors).context("failed to make a file for errors")?)
            .start()?;
        let (status, mut lines) = program.finish(self.wait + TELLING).await?;
        let errors = std::fs::read_to_string(&errors).context("failed to read the errors")?;
        lines.extend(errors.lines().map(str::to_owned));
        self.lines = lines;
        self.exit = status.code();
        Ok(())
    }

    /// The line that says of a task that it stands so.
    pub(super) fn task_line(&self, state: &str) -> Result<Shown> {
        let what = format!("a task that is {state}");
        let ending = format!("is {state}.");
        let line = self.line(&what, |line| line.contains(": task ") && line.ends_with(&ending))?;
        let (_, rest) = line.split_once(": task ").context("no task")?;
        let mut words = rest.split([' ', '(', ')']).filter(|word| !word.is_empty());
        let task = words.next().context("no task")?.to_owned();
        let context = words.nth(1).context("no context")?.to_owned();
        Ok(Shown { task, context })
    }

    /// Finds a line of what the last order came to.
    pub(super) fn line(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<&str> {
        match self.lines.iter().find(|line| wanted(line)) {
            Some(line) => Ok(line),
            None => bail!("the {} did not show {what}; it showed:\n{}", self.player, self.shown()),
        }
    }

    /// Checks how the command ended; the tool has no such thing.
    pub(super) fn exits(&self, code: i32) -> Result<()> {
        if self.player == Player::CommandLine {
            ensure!(
                self.exit == Some(code),
                "the command ended with {:?} instead of {code}; it showed:\n{}",
                self.exit,
                self.shown()
            );
        }
        Ok(())
    }

    /// Everything that the last order came to.
    pub(super) fn shown(&self) -> String {
        self.lines.join("\n")
    }

    fn wait_argument(&self) -> String {
        format!("{}s", self.wait.as_secs())
    }

    /// Says something to the assistant and hears it out.
    async fn say(&mut self, words: &str) -> Result<()> {
        if self.chat.is_none() {
            self.chat = Some(self.start_chat()?);
        }
        let chat = self.chat.as_mut().context("there is no chat")?;
        chat.say(words).await?;
        self.lines = told(chat, self.wait + TELLING, "an answer").await?;
        Ok(())
    }

    fn start_chat(&self) -> Result<Process> {
        let rules = self.folder.join("rules.toml");
        std::fs::write(&rules, RULES.replace("$told", TOLD))?;
        let chat = Program::new("the assistant", &self.volcanic)
            .args(["chat", "--model", &format!("scripted:{}", rules.display()), "--workspace"])
            .arg(self.workspace())
            .env("VOLCANIC_HOME", self.folder.join("home"))
            .env("A2AClient__WaitSeconds", self.wait.as_secs().to_string())
            .start()?;
        Ok(chat)
    }
}

async fn told(chat: &mut Process, within: Duration, what: &str) -> Result<Vec<String>> {
    let before = chat.seen().len();
    chat.line(within, what, |line| line == TOLD).await?;
    let lines = &chat.seen()[before..];
    Ok(lines.iter().filter(|line| *line != TOLD).cloned().collect())
}

/// A model that does what it is told and marks the end of whatever it says.
const RULES: &str = r#"
[[rule]]
when = '(?s)\A\[A2A (?<body>.*)\z'
say = "News: ${body}\n$told"

[[rule]]
when = '\Aagents\z'
call = { tool = "a2a", arguments = { action = "agents" } }

[[rule]]
when = '(?s)\Aask (?<agent>\S+): (?<text>.*)\z'
call = { tool = "a2a", arguments = { action = "send", agent = "${agent}", message = "${text}" } }

[[rule]]
when = '(?s)\Areply (?<agent>\S+) (?<task>\S+): (?<text>.*)\z'
call = { tool = "a2a", arguments = { action = "send", agent = "${agent}", taskId = "${task}", message = "${text}" } }

[[rule]]
when = '(?s)\Asend (?<agent>\S+) (?<file>\S+): (?<text>.*)\z'
call = { tool = "a2a", arguments = { action = "send", agent = "${agent}", message = "${text}", files = ["${file}"] } }

[[rule]]
when = '\Astatus (?<agent>\S+) (?<task>\S+)\z'
call = { tool = "a2a", arguments = { action = "status", agent = "${agent}", taskId = "${task}" } }

[[rule]]
when = '\Acancel (?<agent>\S+) (?<task>\S+)\z'
call = { tool = "a2a", arguments = { action = "cancel", agent = "${agent}", taskId = "${task}" } }

[[rule]]
after = "tool"
say = "$result\n$told"
"#;

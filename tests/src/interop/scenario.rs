//! What is played with each agent, and what must come of it.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use volcanic_base::Chance;
use volcanic_testkit::{BotApi, Process, Program, RecordingProxy};

use super::{
    InteropPlan, PeerKind,
    peer::{Peer, await_listener, free_port},
};

/// How long an answer of a peer may take to appear.
const ANSWER: Duration = Duration::from_secs(10);

/// How long a polled result may take: the first poll is after 15 s, with up to a tenth more.
const POLLED: Duration = Duration::from_secs(25);

/// How long a pushed result may take. A watch that is pushed to reads by itself only after ten minutes.
const PUSHED: Duration = Duration::from_secs(12);

/// The owner in the bot's cells.
const OWNER: i64 = 111_111_111;

/// A scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// A task that is done at once.
    Quick,
    /// A question, and its answer on the same task.
    Ask,
    /// A file artifact.
    File,
    /// A long task whose result is found by polling.
    Poll,
    /// A long task whose result is announced by a push.
    Push,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Quick, Self::Ask, Self::File, Self::Poll, Self::Push];

    /// What `BREAK` calls it.
    fn key(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Ask => "ask",
            Self::File => "file",
            Self::Poll => "poll",
            Self::Push => "push",
        }
    }

    /// The peer that a quick run breaks.
    pub(super) fn breaks_on(self) -> PeerKind {
        match self {
            Self::Quick | Self::File | Self::Push => PeerKind::Rust,
            Self::Ask | Self::Poll => PeerKind::Python,
        }
    }

    /// What the report of a broken peer must say: that the check failed which the breakage is about, and no other.
    pub(super) fn fault_when_broken(self) -> &'static str {
        match self {
            Self::Quick => "did not show the answer",
            Self::Ask => "did not show a task that is input-required",
            Self::File => "the file holds \"not what was asked\"",
            Self::Poll => "did not show the result",
            Self::Push => "no result was pushed",
        }
    }

    /// Plays it.
    pub(super) async fn play(self, plan: &InteropPlan, kind: PeerKind, broken: bool) -> Result<()> {
        let peer = Peer::start(plan, kind, broken.then(|| self.key())).await?;
        let word = word();
        let played = match self {
            Self::Quick => quick(plan, &peer, &word).await,
            Self::Ask => ask(plan, &peer, &word).await,
            Self::File => file(plan, &peer, &word).await,
            Self::Poll => poll(plan, &peer, &word).await,
            Self::Push => push(plan, &peer, &word).await,
        };
        played.with_context(|| format!("the exchange was:\n{}", peer.proxy.transcript()))
    }
}

/// A word that nobody has seen before.
pub(super) fn word() -> String {
    format!("w{}", &Chance::from_os().uuid().simple().to_string()[..8])
}

async fn quick(plan: &InteropPlan, peer: &Peer, word: &str) -> Result<()> {
    let mut chat = Chat::start(plan, peer)?;
    chat.process.say(&format!("ask peer: quick {word}")).await?;
    let task = chat.task_line("is completed").await?;
    chat.process.line(ANSWER, "the answer", |line| line == format!("quick: {word}")).await?;
    check_exchange(peer, word, &task)
}

async fn ask(plan: &InteropPlan, peer: &Peer, word: &str) -> Result<()> {
    let mut chat = Chat::start(plan, peer)?;
    chat.process.say(&format!("ask peer: ask {word}")).await?;
    let task = chat.task_line("is input-required").await?;
    chat.process
        .line(ANSWER, "the question", |line| line.contains(&format!("Which day for {word}?")))
        .await?;
    chat.process.say(&format!("reply peer {task}: Monday")).await?;
    let same = chat.task_line("is completed").await?;
    ensure!(same == task, "the answer went to task {same} instead of {task}");
    chat.process
        .line(ANSWER, "the answer", |line| line == format!("booked {word} for Monday"))
        .await?;
    ensure!(
        peer.proxy.requested(&format!("\"taskId\":\"{task}\"")),
        "the answer on the wire names no task"
    );
    check_exchange(peer, &format!("ask {word}"), &task)
}

async fn file(plan: &InteropPlan, peer: &Peer, word: &str) -> Result<()> {
    let mut chat = Chat::start(plan, peer)?;
    chat.process.say(&format!("ask peer: file {word}")).await?;
    let task = chat.task_line("is completed").await?;
    chat.process.line(ANSWER, "the answer", |line| line == format!("the report on {word}")).await?;
    let line = chat.process.line(ANSWER, "the file", |line| line.starts_with("Files: ")).await?;
    let path = line.trim_start_matches("Files: ").trim();
    ensure!(path == "inbox/a2a/peer/report.txt", "the file was saved as {path}");
    let bytes =
        std::fs::read(chat.workspace().join(path)).context("the file named is not there")?;
    let wanted = format!("report {word}\n");
    ensure!(bytes == wanted.as_bytes(), "the file holds {:?}", String::from_utf8_lossy(&bytes));
    check_exchange(peer, word, &task)
}

async fn poll(plan: &InteropPlan, peer: &Peer, word: &str) -> Result<()> {
    let mut chat = Chat::start(plan, peer)?;
    chat.process.say(&format!("ask peer: slow 3 {word}")).await?;
    let task = chat.task_line("is working").await?;
    chat.process.line(ANSWER, "the hand-over", |line| line.contains("will be delivered")).await?;
    let reads = peer.proxy.times_requested("\"GetTask\"");
    chat.process.line(POLLED, "the result", |line| line.contains(&format!("slow: {word}"))).await?;
    ensure!(peer.proxy.times_requested("\"GetTask\"") > reads, "the result came without a poll");
    ensure!(
        !peer.proxy.requested("CreateTaskPushNotificationConfig"),
        "a chat without a push route asked for pushes"
    );
    check_exchange(peer, word, &task)
}

/// The bot, because only a host with a listener can be pushed to.
async fn push(plan: &InteropPlan, peer: &Peer, word: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let telegram = BotApi::start().await?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port().await?));
    let route = RecordingProxy::start(listen).await?;
    let workspace = folder.path().join(format!("telegram-workspaces/{OWNER}"));
    list_peer(&workspace, peer)?;
    let _bot = Program::new("the bot", &plan.bot)
        .env("VOLCANIC_HOME", folder.path())
        .env("TELEGRAM_BOT_TOKEN", telegram.token())
        .env("TELEGRAM_ALLOWED_USER_IDS", OWNER.to_string())
        .env("Telegram__ApiUrl", telegram.url())
        .env("Telegram__Model", "scripted")
        .env("Ops__Log__Level", "warn")
        .env("A2AClient__Enabled", "true")
        .env("A2AClient__WaitSeconds", "1")
        .env("A2A__Enabled", "true")
        .env("A2A__Listen", listen.to_string())
        .env("A2A__PublicUrl", format!("http://{}", route.address()))
        .start()?;
    await_listener(listen).await?;
    telegram.user_says(OWNER, &format!("ask peer: slow 3 {word}"));
    telegram
        .await_message(OWNER, ANSWER, |message| message.text.contains("will be delivered"))
        .await?;
    telegram
        .await_message(OWNER, PUSHED, |message| message.text.contains(&format!("slow: {word}")))
        .await
        .context("no result was pushed")?;
    ensure!(route.requested("POST /a2a/push/"), "the result came, but not by a push");
    ensure!(peer.proxy.requested("CreateTaskPushNotificationConfig"), "no push config was made");
    ensure!(
        telegram.violations().is_empty(),
        "the bot broke the Bot API: {:?}",
        telegram.violations()
    );
    ensure!(
        peer.proxy.times_requested(&format!("slow 3 {word}")) == 1,
        "the message was not sent exactly once"
    );
    Ok(())
}

/// What every exchange must show: the message once, our version, and the task's id from the peer.
fn check_exchange(peer: &Peer, said: &str, task: &str) -> Result<()> {
    let times = peer.proxy.times_requested(said);
    ensure!(times == 1, "{said} was sent {times} times");
    ensure!(peer.proxy.requested("a2a-version: 1.0"), "a request carried no version");
    ensure!(
        peer.proxy.requested("\"returnImmediately\":true"),
        "the send did not ask to return immediately"
    );
    ensure!(peer.proxy.requested("\"volcanic.hops\":1"), "the send carried no hops");
    ensure!(peer.proxy.answered(task), "the peer never named task {task}");
    Ok(())
}

/// A chat without a terminal whose workspace lists the peer.
struct Chat {
    process: Process,
    folder: TempDir,
}

impl Chat {
    fn start(plan: &InteropPlan, peer: &Peer) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let workspace = folder.path().join("workspace");
        list_peer(&workspace, peer)?;
        let process = Program::new("the assistant", &plan.volcanic)
            .args(["chat", "--model", "scripted", "--workspace"])
            .arg(&workspace)
            .env("VOLCANIC_HOME", folder.path().join("home"))
            .env("A2AClient__WaitSeconds", "1")
            .start()?;
        Ok(Self { process, folder })
    }

    fn workspace(&self) -> std::path::PathBuf {
        self.folder.path().join("workspace")
    }

    /// Waits for the line that says how a task stands, and returns the task's id.
    async fn task_line(&mut self, stands: &str) -> Result<String> {
        let what = format!("a task that {stands}");
        let line = self
            .process
            .line(ANSWER, &what, |line| line.contains(": task ") && line.contains(stands))
            .await?;
        let (_, rest) = line.split_once(": task ").context("no task")?;
        Ok(rest.split(' ').next().unwrap_or_default().to_owned())
    }
}

/// Writes agents.json with the peer in it.
pub(super) fn list_peer(workspace: &Path, peer: &Peer) -> Result<()> {
    let settings = workspace.join(".volcanic/a2a");
    std::fs::create_dir_all(&settings)?;
    let agents = json!([{ "name": "peer", "url": peer.url() }]);
    std::fs::write(settings.join("agents.json"), agents.to_string())?;
    Ok(())
}

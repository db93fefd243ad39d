//! The shipped binary, started with an environment of its own.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};
use volcanic_agent_core::{Entry, EntryBody, Origin, SessionStore as _, TargetId};
use volcanic_base::SystemClock;
use volcanic_store::Store;
use volcanic_testkit::{BotApi, SentMessage};

/// The owner, whose id is also their private chat's.
pub(crate) const OWNER: i64 = 111_111_111;
/// Long enough for a busy machine; nothing waits this long when all is well.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A Bot API, a home folder, and what a bot is told beside them.
pub(crate) struct World {
    pub(crate) api: BotApi,
    pub(crate) home: TempDir,
    settings: Vec<(String, String)>,
}

/// A bot that runs; killed when dropped.
pub(crate) struct Bot {
    child: Child,
}

/// A port that nobody is given as long as this lives: it is bound, and only whoever is told of it can listen there.
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    _bound: TcpSocket,
}

impl Port {
    pub(crate) fn reserve() -> Self {
        let bound = TcpSocket::new_v4().expect("a socket");
        bound.set_reuseaddr(true).expect("a port that can be listened on");
        bound.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
        Self { address: bound.local_addr().expect("an address"), _bound: bound }
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        let api = BotApi::start().await.expect("the Bot API starts");
        let home = tempfile::tempdir().expect("a folder");
        let mut world = Self { api, home, settings: Vec::new() };
        world.set("VOLCANIC_HOME", world.home.path().display().to_string());
        world.set("TELEGRAM_BOT_TOKEN", world.api.token().to_owned());
        world.set("TELEGRAM_ALLOWED_USER_IDS", OWNER.to_string());
        world.set("Telegram__ApiUrl", world.api.url());
        world.set("Telegram__Model", "scripted");
        world
    }

    /// Sets a variable of the bots that are started from now on.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.into()));
    }

    /// Has the bot answer by these rules.
    pub(crate) fn set_rules(&mut self, rules: &str) {
        let path = self.home.path().join("rules.toml");
        std::fs::write(&path, rules).expect("written");
        self.set("Telegram__Model", format!("scripted:{}", path.display()));
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_volcanic-telegram"));
        command
            .env_clear()
            .envs(self.settings.iter().cloned())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    pub(crate) fn start(&self) -> Bot {
        let log = File::options().create(true).append(true).open(self.log_path()).expect("a log");
        let mut command = self.command();
        command.stderr(log);
        Bot { child: command.spawn().expect("the bot starts") }
    }

    fn log_path(&self) -> PathBuf {
        self.home.path().join("bot.log")
    }

    /// What all bots of this world logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.home.path().join("telegram-workspaces").join(OWNER.to_string())
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home.path().join("telegram/state.db")
    }

    /// Writes `agents.json`, before a first start, too.
    pub(crate) fn set_agents(&self, agents: &serde_json::Value) {
        let folder = self.workspace().join(".volcanic/a2a");
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join("agents.json"), agents.to_string()).expect("written");
    }

    pub(crate) fn says(&self, text: &str) -> i64 {
        self.api.user_says(OWNER, text)
    }

    /// Waits for a message to the owner for which `fits` is true.
    pub(crate) async fn sees(&self, fits: impl Fn(&SentMessage) -> bool) -> SentMessage {
        match self.api.await_message(OWNER, LIMIT, fits).await {
            Ok(message) => message,
            Err(error) => {
                panic!("{error}\nviolations: {:?}\nlog:\n{}", self.api.violations(), self.log())
            }
        }
    }

    /// Waits for a message to the owner that holds `part`.
    pub(crate) async fn sees_text(&self, part: &str) -> SentMessage {
        self.sees(|message| message.text.contains(part)).await
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.api.sent_to(OWNER).into_iter().map(|message| message.text).collect()
    }

    /// How many messages to the owner hold `part`.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.texts().iter().filter(|text| text.contains(part)).count()
    }

    /// The owner's conversation, read from the state of a bot that has ended.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        let store = open_store(&self.state());
        let entries = store.entries(&TargetId::new(OWNER.to_string())).await.expect("entries");
        store.close().await;
        entries
    }

    /// The prompts in the conversation, with who wrote them.
    pub(crate) async fn prompts(&self) -> Vec<(Origin, String)> {
        let entries = self.entries().await.into_iter();
        let prompt = |entry: Entry| match entry.body {
            EntryBody::User { text, origin, .. } => Some((origin, text)),
            _ => None,
        };
        entries.filter_map(prompt).collect()
    }

    /// Nothing that no bot should do was done, and no secret was written down.
    #[track_caller]
    pub(crate) fn check_manners(&self) {
        assert_eq!(self.api.violations(), Vec::<String>::new());
        assert!(!self.log().contains(self.api.token()), "the token is in the log");
    }
}

impl Bot {
    /// SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }

    /// SIGTERM, and how it ended.
    pub(crate) async fn terminate(mut self) -> ExitStatus {
        self.ask_to_end();
        self.ended().await
    }

    pub(crate) fn ask_to_end(&self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.and_then(rustix::process::Pid::from_raw).expect("it runs");
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("signalled");
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(LIMIT, self.child.wait())
            .await
            .expect("it ends in time")
            .expect("waited for")
    }
}

pub(crate) fn open_store(path: &Path) -> Store {
    Store::open(path, Arc::new(SystemClock)).expect("the state opens")
}

//! A workspace, a home and a remote agent, each in a folder of their own.

use std::{
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpSocket,
    process::{Child, Command},
    time::{sleep, timeout},
};
use volcanic_testkit::{Process, Program};

/// How long anything may take before a test gives it up; nothing is expected to come near.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The binary under test.
pub(crate) const VOLCANIC: &str = env!("CARGO_BIN_EXE_volcanic");

/// Folders of one test.
pub(crate) struct World {
    folder: TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A remote agent: `volcanic serve --scripted` in a process of its own.
pub(crate) struct Remote {
    pub(crate) url: String,
    pub(crate) process: Process,
    journal: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("workspace")).unwrap();
        fs::create_dir(folder.path().join("remote")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// Writes a file below the world's folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Makes an agent known to the workspace as `demo`.
    pub(crate) fn knows(&self, url: &str) {
        self.agents(&json!([{ "name": "demo", "url": url }]));
    }

    pub(crate) fn agents(&self, agents: &Value) {
        self.write("workspace/.volcanic/a2a/agents.json", &agents.to_string());
    }

    /// A `volcanic` command in the workspace.
    pub(crate) fn program(&self, name: &str) -> Program {
        Program::new(name, VOLCANIC)
            .env("VOLCANIC_HOME", self.path("home"))
            .current_dir(self.workspace())
    }

    /// The chat in the workspace, with the scripted model; the assistant waits this many seconds for an agent.
    pub(crate) fn chat(&self, wait: u32) -> Process {
        self.program("the chat")
            .args(["chat", "--model", "scripted"])
            .env("A2AClient__WaitSeconds", wait.to_string())
            .start()
            .unwrap()
    }

    /// The same for a program whose files may be kept from growing: it sees that its writes fail.
    pub(crate) fn chat_without_size_signal(&self, wait: u32) -> Process {
        Program::new("the chat", "/bin/sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", VOLCANIC])
            .args(["chat", "--model", "scripted"])
            .env("VOLCANIC_HOME", self.path("home"))
            .env("A2AClient__WaitSeconds", wait.to_string())
            .current_dir(self.workspace())
            .start()
            .unwrap()
    }

    /// Runs a command in the workspace to its end, with nothing to read.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, &[]).await
    }

    pub(crate) async fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
        let child = self.command(arguments, variables).spawn().unwrap();
        Self::ended(child).await
    }

    /// The same with something to read.
    pub(crate) async fn run_input(&self, arguments: &[&str], input: &str) -> Ran {
        self.run_input_with(arguments, input, &[]).await
    }

    pub(crate) async fn run_input_with(
        &self,
        arguments: &[&str],
        input: &str,
        variables: &[(&str, &str)],
    ) -> Ran {
        let mut command = self.command(arguments, variables);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut typed = child.stdin.take().unwrap();
        // It may end without reading all of it.
        let _ = typed.write_all(input.as_bytes()).await;
        drop(typed);
        Self::ended(child).await
    }

    /// Starts a command in the workspace whose output is for the end.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments, &[]).spawn().unwrap()
    }

    /// Waits for the end of a command.
    pub(crate) async fn ended(child: Child) -> Ran {
        let output = timeout(SOON, child.wait_with_output()).await;
        let output = output.expect("it did not end").unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts a command in the workspace whose output is read line by line.
    pub(crate) fn start(&self, name: &str, arguments: &[&str]) -> Process {
        self.program(name).args(arguments).start().unwrap()
    }

    /// A command in the workspace with nothing to read, whose output is for the end.
    pub(crate) fn command(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(VOLCANIC);
        command.args(arguments).env_clear().env("VOLCANIC_HOME", self.path("home"));
        command.envs(variables.iter().copied()).current_dir(self.workspace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    /// The watches as another program sees them.
    pub(crate) async fn watches(&self) -> Vec<Value> {
        let ran = self.run(&["watches", "--json"]).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json()["watches"].as_array().unwrap().clone()
    }

    /// Waits until something is watched, and returns it.
    pub(crate) async fn until_watched(&self) -> Vec<Value> {
        let waited = timeout(SOON, async {
            loop {
                let watches = self.watches().await;
                if !watches.is_empty() {
                    return watches;
                }
            }
        });
        waited.await.expect("nothing is watched")
    }

    /// Starts the remote agent with the built-in rules, and makes it known as `demo`.
    pub(crate) async fn remote(&self) -> Remote {
        self.remote_with(None).await
    }

    pub(crate) async fn remote_with(&self, rules: Option<&str>) -> Remote {
        let rules = rules.map(|rules| self.write("rules.toml", rules));
        let journal = self.path("journal.jsonl");
        let mut process = self
            .program("the remote")
            .args(["serve", "--scripted"])
            .args(rules)
            .args(["--listen", "127.0.0.1:0", "--workspace"])
            .arg(self.path("remote"))
            .arg("--journal")
            .arg(&journal)
            .start()
            .unwrap();
        let line =
            process.line(SOON, "its address", |line| line.contains("http://")).await.unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
        self.knows(url);
        Remote { url: url.to_owned(), process, journal }
    }

    /// Everything below the workspace, as paths from it.
    pub(crate) fn workspace_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.workspace(), &mut found).unwrap();
        found.sort();
        found
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks the exit code and that all of it was told where people look for it.
    #[track_caller]
    pub(crate) fn check(&self, code: i32, told: &[&str]) {
        let text = if code == 0 || code == 5 || code == 6 { &self.out } else { &self.err };
        assert_eq!(self.code, code, "{self:?}");
        for part in told {
            assert!(text.contains(part), "`{part}` is missing: {self:?}");
        }
    }

    /// The task that is named.
    #[track_caller]
    pub(crate) fn task(&self) -> &str {
        task_in(&self.out).unwrap_or_else(|| panic!("no task is named: {self:?}"))
    }
}

impl Remote {
    /// What it received, oldest first.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.journal).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How many messages with that word it received.
    pub(crate) fn received(&self, word: &str) -> usize {
        let has = |entry: &&Value| entry["text"].as_str().unwrap().contains(word);
        self.journal().iter().filter(has).count()
    }
}

/// The task a line names.
pub(crate) fn task_in(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(": task ")?;
    rest.split([' ', ',']).next().filter(|id| !id.is_empty())
}

/// Reads on until a line contains `part`.
pub(crate) async fn shows(process: &mut Process, part: &str) -> String {
    let line = process.line(SOON, part, |line| line.contains(part)).await;
    line.unwrap_or_else(|error| panic!("{error}"))
}

/// An address where nobody listens as long as this lives: the port is taken, so that nobody is given it.
pub(crate) struct Nobody {
    pub(crate) url: String,
    _bound: TcpSocket,
}

pub(crate) fn nobody() -> Nobody {
    let bound = TcpSocket::new_v4().unwrap();
    bound.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    Nobody { url: format!("http://{}/", bound.local_addr().unwrap()), _bound: bound }
}

/// Sends a signal to a process of this test.
pub(crate) async fn signal(process: &Process, name: &str) {
    signal_id(process.id().unwrap(), name).await;
}

pub(crate) async fn signal_id(id: u32, name: &str) {
    let id = id.to_string();
    let status = Command::new("kill").args(["-s", name, &id]).status().await.unwrap();
    assert!(status.success());
}

/// Waits for something that only a look can tell.
pub(crate) async fn until(mut there: impl FnMut() -> bool) {
    let waited = timeout(SOON, async {
        while !there() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.expect("it did not come");
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), found)?;
        }
        found.push(entry.path());
    }
    Ok(())
}

//! The child processes of the demo: started, read line by line, killed for real, never left behind.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout_at},
};

/// Lines of a process kept for the report when something is missing; more are dropped from the front.
const KEPT_LINES: usize = 200;

/// A program that is started, talked to line by line and ended.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

/// What to start.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// What the report calls it.
    pub(crate) name: &'static str,
    /// The binary.
    pub(crate) binary: &'a PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// Variables it gets beside `PATH`; nothing else of ours is passed on.
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

impl Process {
    /// Starts a program. It is killed when the value is dropped.
    pub(crate) fn start(program: Program<'_>) -> Result<Self> {
        let mut command = Command::new(program.binary);
        command.args(&program.arguments).env_clear().envs(program.environment);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let name = program.name;
        let mut child = command.spawn().with_context(|| format!("failed to start {name}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the child has no output")?;
        Ok(Self { name, child, input, output: BufReader::new(output).lines(), seen: Vec::new() })
    }

    /// Types a line.
    pub(crate) async fn say(&mut self, line: &str) -> Result<()> {
        let name = self.name;
        let input =
            self.input.as_mut().with_context(|| format!("{name} takes no input any more"))?;
        input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .with_context(|| format!("{name} takes no input any more"))
    }

    /// Reads on until a line satisfies `wanted`, and returns that line.
    pub(crate) async fn line(
        &mut self,
        within: Duration,
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let deadline = Instant::now() + within;
        loop {
            let next = timeout_at(deadline, self.output.next_line()).await;
            let Ok(next) = next else {
                bail!("{} did not show {what} within {within:?}{}", self.name, self.transcript());
            };
            match next.with_context(|| format!("{} printed something unreadable", self.name))? {
                Some(line) => {
                    let found = wanted(&line);
                    self.remember(line.clone());
                    if found {
                        return Ok(line);
                    }
                }
                None => bail!("{} ended before it showed {what}{}", self.name, self.transcript()),
            }
        }
    }

    /// Kills the process with SIGKILL, as a crash would, and returns how it ended.
    pub(crate) async fn kill(mut self) -> Result<ExitStatus> {
        self.child.start_kill().with_context(|| format!("failed to kill {}", self.name))?;
        self.child.wait().await.with_context(|| format!("failed to see {} end", self.name))
    }

    /// Closes the input, reads to the end and returns how the process ended and all that it had shown.
    pub(crate) async fn finish(mut self, within: Duration) -> Result<(ExitStatus, Vec<String>)> {
        self.input = None;
        let deadline = Instant::now() + within;
        loop {
            match timeout_at(deadline, self.output.next_line()).await {
                Ok(Ok(Some(line))) => self.remember(line),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => {
                    return Err(error).context("the child printed something unreadable");
                }
                Err(_) => bail!("{} did not end within {within:?}", self.name),
            }
        }
        let status = timeout_at(deadline, self.child.wait()).await;
        let status =
            status.with_context(|| format!("{} did not end within {within:?}", self.name))??;
        Ok((status, self.seen))
    }

    fn remember(&mut self, line: String) {
        if self.seen.len() == KEPT_LINES {
            self.seen.remove(0);
        }
        self.seen.push(line);
    }

    fn transcript(&self) -> String {
        let mut text = String::from("; it showed:");
        for line in &self.seen {
            text.push_str("\n    | ");
            text.push_str(line);
        }
        text
    }
}

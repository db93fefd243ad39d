//! Programs under test: started with an environment of their own, read and written line by line, killed for real.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout_at},
};

mod measure;

pub use measure::Measured;

/// What to start, and with what.
#[derive(Debug)]
pub struct Program {
    name: String,
    command: Command,
}

/// A program that runs. It is killed when the value is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    seen: Vec<String>,
}

/// A program did not do what was expected; its output so far is in the text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The wanted line did not come.
    #[error("{name} did not show {what} ({why}); it showed:\n{shown}")]
    Missing {
        /// The program.
        name: String,
        /// What was waited for.
        what: String,
        /// Whether it ended or the time was up.
        why: &'static str,
        /// What it printed so far.
        shown: String,
    },
    /// The program could not be started, talked to or waited for.
    #[error("{name}: {action}")]
    Io {
        /// The program.
        name: String,
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl Program {
    /// A program with nothing in its environment but `PATH`; its errors go to ours.
    pub fn new(name: &str, binary: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(binary);
        command
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        // The programs under test start others by name.
        #[expect(clippy::disallowed_methods, reason = "a test host passes its own PATH on")]
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", path);
        Self { name: name.to_owned(), command }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, arguments: I) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    /// Sets the folder it starts in.
    #[must_use]
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Writes its errors into a file.
    #[must_use]
    pub fn errors_into(mut self, file: File) -> Self {
        self.command.stderr(file);
        self
    }

    /// Throws its errors away.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.command.stderr(Stdio::null());
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// [`ProcessError::Io`].
    pub fn start(mut self) -> Result<Process, ProcessError> {
        let started = self.command.spawn().and_then(|mut child| {
            let output = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
            Ok((child.stdin.take(), output, child))
        });
        let (input, output, child) = started.map_err(|source| ProcessError::Io {
            name: self.name.clone(),
            action: "failed to start",
            source,
        })?;
        Ok(Process {
            name: self.name,
            child,
            input,
            output: BufReader::new(output).lines(),
            seen: Vec::new(),
        })
    }
}

impl Process {
    /// Types a line.
    ///
    /// # Errors
    /// [`ProcessError::Io`] when it takes no input any more.
    pub async fn say(&mut self, line: &str) -> Result<(), ProcessError> {
        let written = match &mut self.input {
            Some(input) => input.write_all(format!("{line}\n").as_bytes()).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        written.map_err(|source| self.io("takes no input", source))
    }

    /// Reads on until a line satisfies `wanted`, and returns it.
    ///
    /// # Errors
    /// [`ProcessError::Missing`] with all that it showed.
    pub async fn line(
        &mut self,
        within: Duration,
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String, ProcessError> {
        let deadline = Instant::now() + within;
        loop {
            match timeout_at(deadline, self.output.next_line()).await {
                Ok(Ok(Some(line))) => {
                    let found = wanted(&line);
                    self.seen.push(line.clone());
                    if found {
                        return Ok(line);
                    }
                }
                Ok(Ok(None)) => return Err(self.missing(what, "it ended")),
                Ok(Err(source)) => return Err(self.io("failed to be read", source)),
                Err(_) => return Err(self.missing(what, "the time was up")),
            }
        }
    }

    /// Every line read so far.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Its process id while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until it has ended by itself, reading on, or until the time is up.
    pub async fn ended_within(&mut self, within: Duration) -> bool {
        self.drain(Instant::now() + within).await
    }

    /// Kills it with SIGKILL and returns all that it had printed.
    ///
    /// # Errors
    /// [`ProcessError::Io`].
    pub async fn kill(mut self) -> Result<(ExitStatus, Vec<String>), ProcessError> {
        // It may have ended by itself already, which is as good.
        let _ = self.child.start_kill();
        let waited = self.child.wait().await;
        let status = waited.map_err(|source| self.io("failed to be waited for", source))?;
        self.drain(Instant::now() + Duration::from_secs(5)).await;
        Ok((status, self.seen))
    }

    /// Closes its input, reads to the end and returns how it ended and all that it had printed.
    ///
    /// # Errors
    /// [`ProcessError::Missing`] when it does not end in time.
    pub async fn finish(
        mut self,
        within: Duration,
    ) -> Result<(ExitStatus, Vec<String>), ProcessError> {
        self.input = None;
        let deadline = Instant::now() + within;
        if !self.drain(deadline).await {
            return Err(self.missing("its end", "the time was up"));
        }
        match timeout_at(deadline, self.child.wait()).await {
            Ok(Ok(status)) => Ok((status, self.seen)),
            Ok(Err(source)) => Err(self.io("failed to be waited for", source)),
            Err(_) => Err(self.missing("its end", "the time was up")),
        }
    }

    /// Reads to the end of the output; false when the time is up before it.
    async fn drain(&mut self, deadline: Instant) -> bool {
        while let Ok(line) = timeout_at(deadline, self.output.next_line()).await {
            match line {
                Ok(Some(line)) => self.seen.push(line),
                Ok(None) | Err(_) => return true,
            }
        }
        false
    }

    fn missing(&self, what: &str, why: &'static str) -> ProcessError {
        let shown = self.seen.join("\n");
        ProcessError::Missing { name: self.name.clone(), what: what.to_owned(), why, shown }
    }

    fn io(&self, action: &'static str, source: io::Error) -> ProcessError {
        ProcessError::Io { name: self.name.clone(), action, source }
    }
}

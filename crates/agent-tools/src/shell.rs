//! One shell command from start to end: its process group, its output, its limits.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::ToolConfig;

mod output;
mod report;

pub(crate) use output::{Kept, Output};
pub(crate) use report::Report;

/// How long, in all, output is still read after the shell has ended. A background process may write for ever.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The shell ended with this code; 128 + n stands for signal n.
    Exited(i32),
    /// It was stopped at its limit.
    TimedOut,
    /// It was stopped with the run.
    Aborted,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: End,
    pub(crate) output: Output,
    /// A background process still holds the output open.
    pub(crate) held_open: bool,
}

/// Runs a command to its end, to its limit or until `cancel`.
///
/// Standard output and error share one pipe, so that their order is kept.
///
/// # Cancel safety
///
/// When dropped, the command's process group is killed.
pub(crate) async fn run(
    command: &str,
    directory: &Path,
    config: &ToolConfig,
    limit: Duration,
    cancel: &CancellationToken,
) -> io::Result<Ran> {
    let (reader, writer) = io::pipe()?;
    let mut reader = pipe::Receiver::from_owned_fd(reader.into())?;
    let mut shell = Shell::start(command, directory, config, writer)?;
    let mut output = Output::new(config.output_dir.clone(), config.output_file_max);
    let mut chunk = vec![0; 16 * 1024];
    let deadline = sleep(limit);
    tokio::pin!(deadline);
    let mut open = true;
    let end = loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break End::Aborted,
            () = &mut deadline => break End::TimedOut,
            status = shell.child.wait() => break shell.ended(status?),
            read = reader.read(&mut chunk), if open => match read {
                Ok(0) | Err(_) => open = false,
                Ok(count) => output.push(&chunk[..count]).await,
            },
        }
    };
    match end {
        End::Exited(_) => {}
        End::TimedOut | End::Aborted => shell.stop(config.shell_kill_grace).await?,
    }
    let idle = config.shell_output_idle;
    let held_open = open && drain(&mut reader, &mut chunk, &mut output, idle).await;
    Ok(Ran { end, output, held_open })
}

/// Reads what is still in the pipe. Not to the end of it: a background process keeps that away for as long as it lives.
/// Says whether one does.
async fn drain(
    reader: &mut pipe::Receiver,
    chunk: &mut [u8],
    output: &mut Output,
    idle: Duration,
) -> bool {
    let give_up = Instant::now() + DRAIN_MAX;
    while Instant::now() < give_up {
        match timeout(idle, reader.read(chunk)).await {
            Ok(Ok(0) | Err(_)) => return false,
            Ok(Ok(count)) => output.push(&chunk[..count]).await,
            Err(_) => return true,
        }
    }
    true
}

/// A running shell. Dropped while it runs, it takes its whole process group with it.
struct Shell {
    /// The group; none once the shell is reaped, because the number may then come to mean strangers.
    group: Option<Pid>,
    child: Child,
}

impl Shell {
    fn start(
        command: &str,
        directory: &Path,
        config: &ToolConfig,
        writer: io::PipeWriter,
    ) -> io::Result<Self> {
        let child = Command::new(&config.shell)
            .arg("-c")
            .arg(command)
            .current_dir(directory)
            .env_clear()
            .envs(config.shell_env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::from(writer.try_clone()?))
            .stderr(Stdio::from(writer))
            .process_group(0)
            .spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { group, child })
    }

    /// The shell was reaped: what it left running in the background stays.
    fn ended(&mut self, status: ExitStatus) -> End {
        use std::os::unix::process::ExitStatusExt as _;
        self.group = None;
        let signal = status.signal().map(|signal| 128 + signal);
        End::Exited(status.code().or(signal).unwrap_or(-1))
    }

    /// Ends the whole group: asks, waits, kills. The shell is not reaped before the kill, so the group's number is
    /// certainly still its own.
    async fn stop(&mut self, grace: Duration) -> io::Result<()> {
        self.signal(Signal::TERM);
        sleep(grace).await;
        self.signal(Signal::KILL);
        self.child.wait().await?;
        self.group = None;
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::debug!(tool.name = "bash", %error, "process group not signalled");
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

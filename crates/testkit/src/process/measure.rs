//! Runs a program to its end and measures it.

use std::{
    io::{self, Read},
    process::{Child, Stdio},
    time::Duration,
};

use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep},
};
use wait4::{ResUse, Wait4 as _};

use super::{ProcessError, Program};

/// The most that is kept of what a program prints, in bytes; the rest is read away.
const KEPT: u64 = 4 << 20;
/// Between two looks at whether it has ended.
const LOOK: Duration = Duration::from_millis(2);

/// How a program ended, what it printed, and what it took.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it printed, up to 4 MiB.
    pub out: String,
    /// What it printed as errors, up to 4 MiB.
    pub err: String,
    /// The most memory it had resident, in bytes, as the system counted it.
    pub peak: u64,
    /// How long it ran.
    pub took: Duration,
}

/// A child that does not outlive whoever waits for it.
struct Running {
    child: Child,
    has_ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            // It may have ended by itself, which is as good.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Program {
    /// Runs it to its end, with nothing to read.
    ///
    /// # Errors
    /// [`ProcessError::Missing`] when it does not end in time; it is killed then.
    pub async fn measure(self, within: Duration) -> Result<Measured, ProcessError> {
        let Self { name, command } = self;
        let io = |action| {
            let name = name.clone();
            move |source| ProcessError::Io { name, action, source }
        };
        let mut command = command.into_std();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = Instant::now();
        let child = command.spawn().map_err(io("failed to start"))?;
        let mut running = Running { child, has_ended: false };
        let out = read(running.child.stdout.take());
        let err = read(running.child.stderr.take());
        let used = until_ended(&mut running, started + within).await;
        let used = used.map_err(io("failed to be waited for"))?;
        let took = started.elapsed();
        if used.is_none() {
            drop(running);
        }
        let out = text(out).await.map_err(io("failed to be read"))?;
        let err = text(err).await.map_err(io("failed to be read"))?;
        match used {
            Some(ResUse { status, rusage }) => {
                Ok(Measured { code: status.code(), out, err, peak: rusage.maxrss, took })
            }
            None => Err(ProcessError::Missing {
                name,
                what: "its end".to_owned(),
                why: "the time was up",
                shown: format!("{out}{err}"),
            }),
        }
    }
}

async fn until_ended(running: &mut Running, deadline: Instant) -> io::Result<Option<ResUse>> {
    while Instant::now() < deadline {
        if let Some(used) = running.child.try_wait4()? {
            running.has_ended = true;
            return Ok(Some(used));
        }
        sleep(LOOK).await;
    }
    Ok(None)
}

fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<io::Result<Vec<u8>>> {
    spawn_blocking(move || {
        let mut kept = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.by_ref().take(KEPT).read_to_end(&mut kept)?;
            io::copy(&mut pipe, &mut io::sink())?;
        }
        Ok(kept)
    })
}

async fn text(read: JoinHandle<io::Result<Vec<u8>>>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read.await??).into_owned())
}

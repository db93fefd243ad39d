//! Runs a program to its end and measures it.

use std::{
    fs,
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
    /// The most memory it had resident, in bytes.
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
        let (used, seen) = until_ended(&mut running, started + within).await;
        let used = used.map_err(io("failed to be waited for"))?;
        let took = started.elapsed();
        if used.is_none() {
            drop(running);
        }
        let out = text(out).await.map_err(io("failed to be read"))?;
        let err = text(err).await.map_err(io("failed to be read"))?;
        match used {
            Some(ResUse { status, rusage }) => {
                let peak = peak(rusage.maxrss, seen, high_water("self"));
                Ok(Measured { code: status.code(), out, err, peak, took })
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

/// Waits for the end, and returns the most memory seen on the way as well.
async fn until_ended(
    running: &mut Running,
    deadline: Instant,
) -> (io::Result<Option<ResUse>>, Option<u64>) {
    let child = running.child.id().to_string();
    let mut seen = None;
    while Instant::now() < deadline {
        seen = high_water(&child).or(seen);
        match running.child.try_wait4() {
            Ok(Some(used)) => {
                running.has_ended = true;
                return (Ok(Some(used)), seen);
            }
            Ok(None) => sleep(LOOK).await,
            Err(error) => return (Err(error), seen),
        }
    }
    (Ok(None), seen)
}

/// The most memory that a program had. What the system `counted` for it begins with what we had when we started it, so below
/// our own most that may be us; then it is what was `seen` of it, if there was time to look.
fn peak(counted: u64, seen: Option<u64>, ours: Option<u64>) -> u64 {
    match (seen, ours) {
        (Some(seen), Some(ours)) if counted <= ours => seen,
        (Some(_) | None, _) => counted,
    }
}

/// The most memory that a process had resident, in bytes, where the system tells. One that has ended has none.
fn high_water(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
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

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    async fn peak_of(script: &str) -> u64 {
        let shell = Program::new("shell", "/bin/sh").args(["-c", script]);
        let ran = shell.measure(Duration::from_secs(30)).await.unwrap();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.peak
    }

    #[tokio::test]
    async fn what_a_program_takes_is_not_hidden_by_what_we_have() {
        // Written, so that it is resident.
        let ours = black_box(vec![1_u8; 96 << 20]);
        let small = peak_of("sleep 0.1").await;
        assert!(small < 32 << 20, "{small} bytes");
        let large = peak_of("x=$(head -c 50000000 /dev/zero | tr '\\0' x); sleep 0.1").await;
        assert!(large > small + 40_000_000, "{small} and {large} bytes");
        black_box(ours);
    }
}

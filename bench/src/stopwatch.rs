//! What every client of the bench does alike: it takes orders on standard input, one a line, and answers each with what
//! it took. So all clients run at the same time, are warm, and are measured in turn.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use cpu_time::ProcessTime;

/// How many calls are under way at once in [`Measure::Many`].
pub(crate) const AT_ONCE: u64 = 64;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Calls of `GetTask`, one after the other.
    One,
    /// The same, [`AT_ONCE`] of them at once.
    Many,
    /// Streams of many small events.
    Events,
    /// Streams of one event with a text of so many bytes.
    Large(usize),
}

impl Measure {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "one" => Some(Self::One),
            "many" => Some(Self::Many),
            "events" => Some(Self::Events),
            _ => word.strip_prefix("large-")?.parse().ok().map(Self::Large),
        }
    }

    /// The text of the message that asks the server for such a stream.
    pub(crate) fn request(self) -> String {
        match self {
            Self::One | Self::Many | Self::Events => "events".to_owned(),
            Self::Large(bytes) => format!("large-{bytes}"),
        }
    }
}

/// A client under measurement.
pub(crate) trait Client: Clone + Send + Sync + 'static {
    /// Reads a task once.
    fn get(&self) -> impl Future<Output = Result<()>> + Send;

    /// Follows a stream to its end and returns how many events came.
    fn stream(&self, request: &str) -> impl Future<Output = Result<u64>> + Send;
}

/// Obeys lines of the form `MEASURE COUNT` until there are no more. The answer to each: nanoseconds that passed,
/// nanoseconds of processor time that the process took, calls or events done.
pub(crate) fn obey<C, F>(connect: impl FnOnce(String) -> F) -> Result<()>
where
    C: Client,
    F: Future<Output = Result<C>>,
{
    let url = std::env::args().nth(1).context("the server's URL is needed")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let client = runtime.block_on(connect(url))?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let order = line.split_once(' ').and_then(|(measure, count)| {
            Some((Measure::parse(measure)?, count.parse::<u64>().ok()?))
        });
        let (measure, count) = order.with_context(|| format!("no such order: {line}"))?;
        // Connections are open and buffers grown before the clock starts.
        runtime.block_on(run(client.clone(), measure, count.div_ceil(10)))?;
        let (began, cpu) = (Instant::now(), ProcessTime::now());
        let done = runtime.block_on(run(client.clone(), measure, count))?;
        let (took, cpu) = (began.elapsed(), cpu.elapsed());
        let mut answer = std::io::stdout().lock();
        writeln!(answer, "{} {} {done}", nanoseconds(took), nanoseconds(cpu))?;
        answer.flush()?;
    }
    Ok(())
}

/// Works on the runtime's own threads, as the calls of a program do.
async fn run<C: Client>(client: C, measure: Measure, count: u64) -> Result<u64> {
    let (workers, each) = match measure {
        Measure::Many => (AT_ONCE, count.div_ceil(AT_ONCE)),
        Measure::One | Measure::Events | Measure::Large(_) => (1, count),
    };
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..workers {
        let client = client.clone();
        running.spawn(async move {
            let mut done = 0;
            for _ in 0..each {
                done += match measure {
                    Measure::One | Measure::Many => client.get().await.map(|()| 1)?,
                    Measure::Events | Measure::Large(_) => {
                        client.stream(&measure.request()).await?
                    }
                };
            }
            anyhow::Ok(done)
        });
    }
    let mut done = 0;
    while let Some(worker) = running.join_next().await {
        done += worker??;
    }
    Ok(done)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

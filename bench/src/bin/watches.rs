//! The registry of watches as hosts run it, under measurement: real store, real connections, outcomes into a session
//! store, and the route for pushes.
//!
//! `bench-watches seed …` leaves a state behind as a process does that followed many tasks; `bench-watches run …` takes it
//! up and answers orders on standard input, one a line, until there are no more. So what writing the state took is in
//! no figure.

#[path = "../watches/noted.rs"]
mod noted;
#[path = "../numbering.rs"]
mod numbering;
#[path = "../watches/seed.rs"]
mod seed;
#[path = "../watches/world.rs"]
mod world;

use std::{io::Write as _, time::Duration};

use anyhow::{Context as _, Result, bail};
use cpu_time::ProcessTime;
use tokio::time::Instant;
use world::{Setup, World};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["seed", home, kind, count, ref urls @ ..] => {
            seed::seed(home.as_ref(), kind, count.parse()?, urls).await
        }
        ["run", home, kind, stagger, ref urls @ ..] => {
            let stagger = Duration::from_micros(stagger.parse()?);
            let setup = Setup { home: home.into(), pushes: kind == "push", stagger };
            run(setup, urls.len()).await
        }
        _ => bail!("usage: bench-watches seed HOME KIND COUNT URL… | run HOME KIND STAGGER URL…"),
    }
}

/// Starts the world, says that it is there, and obeys.
async fn run(setup: Setup, workspaces: usize) -> Result<()> {
    let mut world = World::start(setup, workspaces).await?;
    say(&format!("{} {}", world.push_address(), world.opening().as_nanos()))?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["restore"] => {
                let began = Instant::now();
                world.restore().await;
                nanoseconds(began.elapsed())
            }
            ["memory"] => memory()?.to_string(),
            ["cpu-so-far"] => nanoseconds(ProcessTime::now().as_duration()),
            ["cpu", seconds] => {
                let (began, cpu) = (Instant::now(), ProcessTime::now());
                tokio::time::sleep(Duration::from_secs(seconds.parse()?)).await;
                let (took, cpu) = (began.elapsed(), cpu.elapsed());
                format!("{} {}", nanoseconds(took), nanoseconds(cpu))
            }
            ["latencies"] => {
                let taken = world.latencies();
                taken.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
            }
            ["hand-overs", askers, seconds] => {
                let seconds = Duration::from_secs(seconds.parse()?);
                world.hand_over(askers.parse()?, seconds).await?
            }
            _ => bail!("no such order: {line}"),
        };
        say(&answer)?;
    }
    world.stop().await;
    Ok(())
}

fn say(answer: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{answer}")?;
    Ok(output.flush()?)
}

/// The resident memory of this process, in bytes.
fn memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kibibytes.context("no VmRSS")?.parse::<u64>()? << 10)
}

fn nanoseconds(time: Duration) -> String {
    time.as_nanos().to_string()
}

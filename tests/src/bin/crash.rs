//! Kills, stops and spoils the shipped `volcanic chat` over and over and judges what it left. Started by `cargo xtask
//! crash` and `cargo xtask soak`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Parser;
use volcanic_e2e::crash::{CrashPlan, run};

#[derive(Debug, Parser)]
struct Args {
    /// The binary to put to the test.
    #[arg(long)]
    volcanic: PathBuf,
    /// How many kills.
    #[arg(long, default_value_t = 1000)]
    kills: u32,
    /// Leaves out that a life is ended at each of its operations once.
    #[arg(long)]
    no_steps: bool,
    /// From how many operations on a life gets each kind of bad disk.
    #[arg(long, default_value_t = 60)]
    disks: u32,
    /// How many rounds two assistants share a workspace.
    #[arg(long, default_value_t = 20)]
    twins: u32,
    /// How many ends by SIGTERM.
    #[arg(long, default_value_t = 28)]
    stops: u32,
    /// How many minutes one assistant lives beside all that.
    #[arg(long, default_value_t = 0)]
    long_life: u64,
    /// How many scenes are played at once.
    #[arg(long, default_value_t = 4)]
    width: usize,
    /// The seed of the run.
    #[arg(long)]
    seed: Option<u64>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()) ^ 0x9e37_79b9);
    let plan = CrashPlan {
        volcanic: args.volcanic,
        kills: args.kills,
        steps: !args.no_steps,
        disks: args.disks,
        twins: args.twins,
        stops: args.stops,
        long_life: Duration::from_mins(args.long_life),
        width: args.width.max(1),
        seed,
    };
    println!("crash: {} kills, seed {seed}", plan.kills);
    let tally = run(&plan).await?;
    println!("{tally}");
    Ok(if tally.faults().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! Kills the shipped `volcanic chat` over and over and judges what it left. Started by `cargo xtask crash`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use volcanic_e2e::crash::{CrashPlan, run};

#[derive(Debug, Parser)]
struct Args {
    /// The binary to kill.
    #[arg(long)]
    volcanic: PathBuf,
    /// How many kills.
    #[arg(long, default_value_t = 200)]
    kills: u32,
    /// The seed of the run.
    #[arg(long)]
    seed: Option<u64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| u64::from(std::process::id()) ^ 0x9e37_79b9);
    let plan = CrashPlan { volcanic: args.volcanic, kills: args.kills, seed };
    println!("crash: {} kills, seed {seed}", plan.kills);
    let report = run(&plan).await?;
    println!("{report}");
    anyhow::ensure!(report.faults().is_empty(), "{} broken promises", report.faults().len());
    Ok(())
}

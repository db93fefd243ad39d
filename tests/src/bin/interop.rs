//! The assistant against agents that other people wrote. Started by `cargo xtask interop`, which builds the peers.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use volcanic_e2e::interop::{InteropPlan, run};

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let report = run(&InteropPlan::parse()).await?;
    println!("\n{report}");
    Ok(if report.is_green() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

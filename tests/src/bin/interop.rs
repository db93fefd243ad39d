//! The assistant against agents that other people wrote. Started by `cargo xtask interop`, which builds the peers.

use anyhow::{Result, ensure};
use clap::Parser;
use volcanic_e2e::interop::{InteropPlan, run};

#[tokio::main]
async fn main() -> Result<()> {
    let report = run(&InteropPlan::parse()).await?;
    println!("\n{report}");
    ensure!(report.is_green(), "not every cell is as it must be");
    Ok(())
}

//! Chat, tool and bot against agents on the official SDKs, over sockets, with a recording proxy in between.
//!
//! A cell is green when the right text and bytes came out **and** the recorded exchange shows how. For every scenario
//! there is also a peer that is broken on purpose: a scenario that stays green on it proves nothing and counts as red.

mod models;
mod peer;
mod scenario;

use std::{fmt, path::PathBuf};

use anyhow::Result;
use clap::Parser;

pub use peer::PeerKind;
pub use scenario::Scenario;

/// What to run, and where the programs are.
#[derive(Debug, Parser)]
pub struct InteropPlan {
    /// A Python with the peer's packages.
    #[arg(long)]
    pub python: PathBuf,
    /// The built agent on the official Rust SDK.
    #[arg(long)]
    pub rust_peer: PathBuf,
    /// The folder `tests/peers`.
    #[arg(long)]
    pub peers: PathBuf,
    /// The `volcanic` binary.
    #[arg(long)]
    pub volcanic: PathBuf,
    /// The `volcanic-telegram` binary.
    #[arg(long)]
    pub bot: PathBuf,
    /// Break each scenario on one peer only, instead of on both.
    #[arg(long)]
    pub quick: bool,
    /// Only cells whose name contains this.
    #[arg(long)]
    pub only: Option<String>,
}

/// The verdicts.
#[derive(Debug, Default)]
pub struct InteropReport {
    cells: Vec<Cell>,
}

#[derive(Debug)]
struct Cell {
    name: String,
    /// Why it is not as it must be.
    fault: Option<String>,
}

impl InteropReport {
    /// Whether every cell is as it must be, and there was one.
    pub fn is_green(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.fault.is_none())
    }

    fn add(&mut self, name: String, fault: Option<String>) {
        match &fault {
            None => println!("green  {name}"),
            Some(fault) => println!("RED    {name}\n{fault}"),
        }
        self.cells.push(Cell { name, fault });
    }
}

impl fmt::Display for InteropReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for cell in &self.cells {
            writeln!(f, "{} {}", if cell.fault.is_none() { "green" } else { "RED  " }, cell.name)?;
        }
        let red = self.cells.iter().filter(|cell| cell.fault.is_some()).count();
        write!(f, "interop: {} cells, {red} red", self.cells.len())
    }
}

/// Runs the matrix.
///
/// # Errors
/// When the run itself cannot go on; a cell that fails is a verdict, not an error.
pub async fn run(plan: &InteropPlan) -> Result<InteropReport> {
    let mut report = InteropReport::default();
    let wanted = |name: &str| plan.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    for kind in PeerKind::ALL {
        for scenario in Scenario::ALL {
            let name = format!("{scenario} on {kind}");
            if wanted(&name) {
                let played = scenario.play(plan, kind, false).await;
                report.add(name, played.err().map(|error| format!("{error:#}")));
            }
            let broken = format!("{scenario} on {kind}, broken on purpose");
            if wanted(&broken) && (!plan.quick || kind == scenario.breaks_on()) {
                let played = scenario.play(plan, kind, true).await;
                let wanted = scenario.fault_when_broken();
                let fault = match played.map_err(|error| format!("{error:#}")) {
                    Ok(()) => Some("it stayed green although the peer was broken".to_owned()),
                    Err(error) if error.contains(wanted) => None,
                    Err(error) => Some(format!("it failed, but not with \"{wanted}\":\n{error}")),
                };
                report.add(broken, fault);
            }
        }
    }
    let name = "a model server nobody here wrote: chat, tool call, answer";
    if wanted(name) {
        report.add(
            name.to_owned(),
            models::round_trip(plan).await.err().map(|error| format!("{error:#}")),
        );
    }
    Ok(report)
}

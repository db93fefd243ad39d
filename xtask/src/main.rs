//! Project tasks: `cargo xtask check`, `interop`, `crash`, `soak`, `fuzz`, `mutants`, `bench`.

mod bench;
mod check;
mod fuzz;
mod layers;
mod mutants;
mod peers;
mod shell;
mod shipped;
mod soak;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Project tasks")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Layers, what is shipped, formatting, clippy, docs, and licences, bans and sources; all with the committed lock.
    Check,
    /// Only the layer table against the manifests.
    Layers,
    /// Tool, command line and bot against agents on the official SDKs, with every exchange recorded.
    Interop {
        /// Every row in one column only; the columns take turns.
        #[arg(long)]
        quick: bool,
        /// Only cells whose name contains this, such as `cancel (tool)` or `0.3.26`.
        #[arg(long)]
        only: Option<String>,
    },
    /// Kills and stops the shipped `volcanic chat` over and over, ends it at each of its operations once, gives it bad
    /// disks and a twin, and judges what it left on disk.
    Crash {
        /// How many kills.
        #[arg(long, default_value_t = 1000)]
        kills: u32,
        /// From how many operations on a life gets a bad disk.
        #[arg(long, default_value_t = 60)]
        disks: u32,
        /// The seed of the run; printed, so that a failure can be repeated.
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Every kind of fault, mixed: rounds of `crash` and of the tests of faults. The last line is the verdict.
    Soak {
        /// One round, shorter.
        #[arg(long)]
        quick: bool,
        /// Decides every choice; printed, so that a run can be repeated or taken up again.
        #[arg(long)]
        seed: Option<u64>,
        /// The first round; the earlier ones have been run.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// No round begins after so many minutes.
        #[arg(long)]
        minutes: Option<u64>,
    },
    /// What reads bytes from outside, with bytes that nobody wrote: streams, JSON-RPC, cards, tasks.
    Fuzz {
        /// How long each target runs; without a bound it would not end.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
        seconds: u32,
        /// Only this target.
        #[arg(long)]
        only: Option<String>,
    },
    /// Breaks the product in ways that must not pass, one at a time, and sees which test says so.
    Mutants {
        /// Only this one.
        name: Option<String>,
    },
    /// How fast something is, and what it takes; see `bench/README.md`.
    Bench {
        #[command(subcommand)]
        what: Bench,
    },
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// The client beside the official SDK's and beside reqwest alone.
    Client {
        /// Few and short rounds.
        #[arg(long)]
        quick: bool,
    },
    /// Ten thousand watches: memory, idle processor time, pushes, restart, hand-overs.
    Watches {
        /// One short round.
        #[arg(long)]
        quick: bool,
    },
}

fn main() -> Result<()> {
    match Args::parse().task {
        Task::Check => check::run(),
        Task::Layers => layers::run(),
        Task::Interop { quick, only } => peers::interop(quick, only.as_deref()),
        Task::Crash { kills, disks, seed } => {
            peers::crash(&peers::CrashCounts { kills, disks, long_life: 0 }, seed)
        }
        Task::Soak { quick, seed, from, minutes } => {
            let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
            soak::run(&soak::SoakPlan { quick, seed, from, minutes })
        }
        Task::Bench { what: Bench::Client { quick } } => bench::client(quick),
        Task::Bench { what: Bench::Watches { quick } } => bench::watches(quick),
        Task::Mutants { name } => mutants::run(name.as_deref()),
        Task::Fuzz { seconds, only } => fuzz::run_all(seconds, only.as_deref()),
    }
}

//! Tool, command line and bot against agents on the official SDKs, over sockets, with a recording proxy in between.
//!
//! A cell is green when the right ids, text and bytes came out **and** the recorded exchange shows how. Every scenario is
//! also played with an agent that is broken on purpose: one that stays green there, or fails for another reason than the
//! breakage, proves nothing and is told as such.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use clap::Parser;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout},
};

mod actor;
mod blame;
mod following;
mod models;
mod peer;
mod play;
mod pushed;
mod report;
mod scenario;
mod scene;
mod wire;

use peer::{Column, Peers};
use scenario::{Row, Scenario};
use scene::Scene;

pub use report::InteropReport;
use report::Verdict;

/// How many cells are played at once: most of them wait for an agent that takes its time.
const AT_ONCE: usize = 6;

/// How long a cell may take as a whole.
const PATIENCE: Duration = Duration::from_mins(2);

/// What to run, and where the programs are.
#[derive(Debug, Clone, Parser)]
pub struct InteropPlan {
    /// A Python with the packages of `a2a-python`.
    #[arg(long)]
    pub python: PathBuf,
    /// A Python with the packages of `a2a-python-0.3`.
    #[arg(long)]
    pub python_03: PathBuf,
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
    /// Every row in one column only; the columns take turns. Fewer tasks are followed.
    #[arg(long)]
    pub quick: bool,
    /// Only cells whose name contains this, such as `cancel (tool)` or `0.3.26`.
    #[arg(long)]
    pub only: Option<String>,
}

/// A cell to be played: with the agent as it should be, or with the one that gets everything wrong.
#[derive(Debug, Clone, Copy)]
struct Job {
    row: Row,
    column: Column,
    is_broken: bool,
}

impl InteropPlan {
    fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (turn, row) in Row::all().filter(|row| row.is_played()).enumerate() {
            let mut columns: Vec<Column> = Column::ALL.into_iter().collect();
            columns.rotate_left(turn % Column::ALL.len());
            columns.retain(|column| row.not_applicable(*column).is_none());
            if self.quick {
                // An agent is blamed only beside one that is not.
                columns.sort_by_key(|column| blame::is_known(row, *column));
                columns.truncate(1);
            }
            columns.retain(|column| self.wants(&format!("{row} on {column}")));
            for column in columns {
                jobs.extend([false, true].map(|is_broken| Job { row, column, is_broken }));
            }
        }
        // What takes longest begins first.
        jobs.sort_by_key(|job| job.row.scenario != Scenario::Polled);
        jobs
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}

/// Runs the matrix.
///
/// # Errors
/// When the run itself cannot go on; a cell that fails is a verdict, not an error.
pub async fn run(plan: &InteropPlan) -> Result<InteropReport> {
    let began = Instant::now();
    let jobs = plan.jobs();
    let following = following::jobs(plan);
    let folder = tempfile::tempdir()?;
    let models = plan.wants(models::NAME);
    let mut wanted: Vec<_> = jobs.iter().map(|job| (job.column.sdk(), job.is_broken)).collect();
    wanted.extend(following.iter().map(|job| (job.column.sdk(), job.is_broken)));
    if models {
        wanted.push((Column::PythonRpc.sdk(), false));
    }
    let peers = Arc::new(Peers::start(plan, wanted, folder.path()).await?);
    println!("the agents listen after {:.1} s", began.elapsed().as_secs_f32());

    let mut report = InteropReport::default();
    let plan = Arc::new(plan.clone());
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for job in jobs {
        let (plan, peers, places) = (Arc::clone(&plan), Arc::clone(&peers), Arc::clone(&places));
        playing.spawn(async move {
            let _place = places.acquire_owned().await;
            let began = Instant::now();
            let verdict = judge(&plan, &peers, job).await;
            (job, verdict, began.elapsed())
        });
    }
    while let Some(played) = playing.join_next().await {
        let (job, verdict, took) = played.context("a cell panicked")?;
        report.add(job.row, job.column, job.is_broken, verdict, took);
    }
    if models {
        report.add_models(models::round_trip(&plan, &peers).await);
    }
    report.settle_blame();
    report.following = following::run(&plan, &peers, following).await?;
    report.took = began.elapsed();
    if !report.is_green() {
        println!("what the agents complained about stands in {}", folder.keep().display());
    }
    Ok(report)
}

/// Plays a cell and says what it came to.
async fn judge(plan: &InteropPlan, peers: &Peers, job: Job) -> Verdict {
    let Job { row, column, is_broken } = job;
    let played = timeout(PATIENCE, play_cell(plan, peers, job)).await;
    let played =
        played.unwrap_or_else(|_| Err(anyhow::anyhow!("it did not end in {PATIENCE:?}").into()));
    match (played, is_broken) {
        (Ok(()), false) => Verdict::Green,
        (Ok(()), true) => {
            Verdict::Blind("it stayed green although the agent was broken".to_owned())
        }
        (Err(fault), false) => match blame::peer(row, column, &fault.calls) {
            Some(blame) => Verdict::Peer { blame, record: fault.to_string() },
            None => Verdict::Red(fault.to_string()),
        },
        (Err(fault), true) => {
            let wanted = row.scenario.fault_when_broken();
            if fault.text.contains(wanted) {
                Verdict::Green
            } else {
                Verdict::Blind(format!("it failed, but not with \"{wanted}\":\n{fault}"))
            }
        }
    }
}

/// What went wrong in a cell, with the record.
#[derive(Debug, Default)]
struct Fault {
    text: String,
    calls: Vec<wire::Call>,
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Self { text: format!("{error:#}"), calls: Vec::new() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nthe exchange was:\n{}", self.text, wire::transcript(&self.calls))
    }
}

async fn play_cell(plan: &InteropPlan, peers: &Peers, job: Job) -> Result<(), Fault> {
    let Job { row: Row { scenario, player }, column, is_broken } = job;
    let address = peers.address(column.sdk(), is_broken)?;
    let mut scene =
        Scene::set(plan, column, player, scenario.kind(), scenario.wait(), address).await?;
    let played = match scenario {
        Scenario::Pushed => pushed::play(plan, &mut scene).await,
        _ => play::play(scenario, &mut scene).await,
    };
    played.map_err(|error| Fault { text: format!("{error:#}"), calls: scene.calls() })
}

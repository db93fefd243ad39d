//! How long tasks at agents of other people are followed: each source, with faults on the way, many tasks at once.
//!
//! A cell is one registry on a real store, one agent behind a proxy that can do it harm, and tasks that work until their gate
//! is opened, each with a word of its own. It is green when every outcome entered the conversation once, whole and right,
//! and was found by a hint that is right for the cell (`rules.rs`).

use std::{fmt, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, timeout},
};

mod agent;
mod assistant;
mod cell;
mod hints;
mod proxy;
mod report;
mod rules;

pub(super) use report::FollowingReport;

use super::{InteropPlan, peer::Column, peer::Peers, peer::Sdk, report::Verdict};
use hints::Hints;

/// How many cells are played at once; with few tasks each they mostly wait.
const AT_ONCE: usize = 3;
const AT_ONCE_QUICK: usize = 8;

/// How many tasks a cell has…
const TASKS: usize = 100;
/// …in a quick run, and with a broken agent.
const FEW_TASKS: usize = 5;

/// How long a cell may take as a whole.
const PATIENCE: Duration = Duration::from_mins(3);

/// How a watch learns that its task has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Push,
    Subscribe,
    Poll,
}

/// What happens on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Trouble {
    None,
    /// Every piece of an answer comes late.
    Delayed,
    /// Connections are cut at a random byte while the tasks end.
    Cut,
    /// Nobody listens at the agent's port while tasks end.
    Closed,
    /// The agent is killed while its tasks run, and started again.
    Restarted,
}

/// A row of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FollowRow {
    pub(super) source: Source,
    pub(super) trouble: Trouble,
}

/// A cell to be played.
#[derive(Debug, Clone, Copy)]
pub(super) struct FollowJob {
    pub(super) row: FollowRow,
    pub(super) column: Column,
    pub(super) is_broken: bool,
    pub(super) tasks: usize,
}

impl FollowRow {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        [Source::Push, Source::Subscribe, Source::Poll].into_iter().flat_map(|source| {
            let troubles = [
                Trouble::None,
                Trouble::Delayed,
                Trouble::Cut,
                Trouble::Closed,
                Trouble::Restarted,
            ];
            troubles.map(|trouble| Self { source, trouble })
        })
    }

    /// Why there is nothing to play in a column, if so.
    pub(super) fn not_applicable(self, column: Column) -> Option<&'static str> {
        (self.source == Source::Push && column.sdk() == Sdk::Python03)
            .then_some("pushes of 0.3 carry the same hint; they are played once, in result by push")
    }
}

impl fmt::Display for FollowRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::Push => "push",
            Source::Subscribe => "subscribe",
            Source::Poll => "poll",
        };
        let trouble = match self.trouble {
            Trouble::None => "no trouble",
            Trouble::Delayed => "answers delayed",
            Trouble::Cut => "connections cut",
            Trouble::Closed => "port closed",
            Trouble::Restarted => "agent restarted",
        };
        write!(f, "following by {source}, {trouble}")
    }
}

impl fmt::Display for FollowJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = if self.is_broken { ", broken on purpose" } else { "" };
        write!(f, "{} on {}{broken}", self.row, self.column)
    }
}

/// The cells of a run.
pub(super) fn jobs(plan: &InteropPlan) -> Vec<FollowJob> {
    let mut jobs = Vec::new();
    for (turn, row) in FollowRow::all().enumerate() {
        let mut columns: Vec<Column> = Column::ALL.into_iter().collect();
        columns.rotate_left(turn % Column::ALL.len());
        columns.retain(|column| row.not_applicable(*column).is_none());
        if plan.quick {
            columns.truncate(1);
        }
        columns.retain(|column| plan.wants(&format!("{row} on {column}")));
        for column in columns {
            let job = |is_broken| {
                let tasks = if plan.quick || is_broken { FEW_TASKS } else { TASKS };
                FollowJob { row, column, is_broken, tasks }
            };
            jobs.extend([false, true].map(job));
        }
    }
    // What takes longest begins first.
    jobs.sort_by_key(|job| (job.row.trouble != Trouble::Restarted, !job.is_broken));
    jobs
}

/// Plays the cells against agents that run already; those that are to be restarted get an agent each.
pub(super) async fn run(
    plan: &Arc<InteropPlan>,
    peers: &Arc<Peers>,
    jobs: Vec<FollowJob>,
) -> Result<FollowingReport> {
    let mut report = FollowingReport::default();
    if jobs.is_empty() {
        return Ok(report);
    }
    println!(
        "\nfollowing: {} tasks in each cell at once; the pauses of the registry are a sixtieth of the real ones: {}",
        if plan.quick { FEW_TASKS } else { TASKS },
        assistant::PAUSES
    );
    let began = Instant::now();
    let hints = Hints::listen()?;
    let at_once = if plan.quick { AT_ONCE_QUICK } else { AT_ONCE };
    let places = Arc::new(Semaphore::new(at_once));
    let mut playing = JoinSet::new();
    for job in jobs {
        let (plan, peers) = (Arc::clone(plan), Arc::clone(peers));
        let (hints, places) = (Arc::clone(&hints), Arc::clone(&places));
        playing.spawn(async move {
            let _place = places.acquire_owned().await;
            let began = Instant::now();
            let verdict = judge(&plan, &peers, &hints, job).await;
            (job, verdict, began.elapsed())
        });
    }
    while let Some(played) = playing.join_next().await {
        let (job, (verdict, found), took) = played.context("a cell panicked")?;
        report.add(job, verdict, found, took);
    }
    report.took = began.elapsed();
    Ok(report)
}

/// Plays a cell; what it came to, and what found the ends of its tasks.
async fn judge(
    plan: &InteropPlan,
    peers: &Peers,
    hints: &Hints,
    job: FollowJob,
) -> (Verdict, String) {
    let played = timeout(PATIENCE, cell::play(plan, peers, hints, job)).await;
    let played = played.unwrap_or_else(|_| {
        let error = anyhow::anyhow!("it did not end in {PATIENCE:?}");
        Err(cell::FollowFault { error, calls: Vec::new(), found: String::new() })
    });
    match (played, job.is_broken) {
        (Ok(found), false) => (Verdict::Green, found),
        (Ok(found), true) => {
            let why = "it stayed green although the agent was broken".to_owned();
            (Verdict::Blind(why), found)
        }
        (Err(fault), false) => (Verdict::Red(fault.to_string()), fault.found),
        (Err(fault), true) => {
            let wanted = rules::fault_when_broken(job.row, job.column);
            if format!("{:#}", fault.error).contains(wanted) {
                (Verdict::Green, fault.found)
            } else {
                let why = format!("it failed, but not with \"{wanted}\":\n{fault}");
                (Verdict::Blind(why), fault.found)
            }
        }
    }
}

//! A whole scripted life (owner's message, send, hand over, watch, claim, accept, run, shown, settle,
//! view, end), ended before its k-th operation for each k there is, each time from a state at rest.

use std::{
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use tokio::task::JoinSet;
use volcanic_base::Chance;

use super::{
    judge::Judge,
    kills::unexpected,
    said::{Said, SaidTask},
    scene::{PATIENCE, Scene},
    stage::Stage,
    tally::Tally,
    whole,
};

/// So many lives in a row that had no k-th operation: there is none. How many a life has varies a little with what is
/// written together.
const WITHOUT: u64 = 6;

/// The least that a life has, …
const LEAST: u64 = 120;

/// … and more than it has by far: whoever comes so far without an end is not getting anywhere.
const MOST: u64 = 2_000;

/// What the workers share.
struct Course {
    next: AtomicU64,
    /// Lives in a row that came to their end by themselves.
    outlived: AtomicU64,
}

/// Ends a life at each of its operations once.
pub(super) async fn run(stage: &Arc<Stage>, width: usize, seed: u64) -> Result<Tally> {
    let course = Arc::new(Course { next: AtomicU64::new(1), outlived: AtomicU64::new(0) });
    let mut workers = JoinSet::new();
    for worker in 0..width {
        let chance = Chance::seeded(seed.wrapping_add(worker as u64));
        workers.spawn(work(Arc::clone(stage), Arc::clone(&course), chance));
    }
    let mut tally = Tally::default();
    while let Some(done) = workers.join_next().await {
        tally.add(whole(done?));
    }
    let operations = tally.counted("operations of a life, each its end once");
    if operations < LEAST {
        tally.fault(format!("a whole life had only {operations} operations: is the shim loaded?"));
    }
    Ok(tally)
}

async fn work(stage: Arc<Stage>, course: Arc<Course>, chance: Chance) -> Result<Tally> {
    let mut scene = Scene::prepare(&stage).await?;
    let mut tally = Tally::default();
    while course.outlived.load(Ordering::Relaxed) < WITHOUT {
        let at = course.next.fetch_add(1, Ordering::Relaxed);
        if at > MOST {
            tally.fault(format!("a whole life does not come to its end before operation {at}"));
            break;
        }
        let faults_before = tally.faults().len();
        if live_to(&mut scene, &chance, at, &mut tally).await? {
            course.outlived.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        course.outlived.store(0, Ordering::Relaxed);
        tally.count("operations of a life, each its end once", 1);
        let judge = Judge::of_the_dead(scene.database())?;
        scene.note_in_flight(&judge)?;
        let faults = judge.standing_faults()?.into_iter().chain(scene.pending_faults());
        tally.faults_of(&format!("ended at operation {at}"), faults);
        scene.settle(Duration::ZERO, &mut tally).await?;
        let stale = scene.stale_files()?.into_iter().map(|file| format!("{file} was left behind"));
        tally.faults_of(&format!("after operation {at} and another start"), stale);
        // All of it again each time, so that a fault names its operation; only what is wrong counts here.
        let mut whole = Tally::default();
        scene.verdict(&mut whole)?;
        tally.faults_of(&format!("ended at operation {at}"), whole.faults().iter().cloned());
        if tally.faults().len() > faults_before {
            tally.note(format!("these faults came with operation {at}"));
            break;
        }
    }
    if tally.faults().is_empty() {
        scene.verdict(&mut tally)?;
    } else {
        tally.note(format!("left {}", scene.keep().display()));
    }
    Ok(tally)
}

/// A whole life, or as much of it as there is before its k-th operation; says whether it was whole.
async fn live_to(scene: &mut Scene, chance: &Chance, at: u64, tally: &mut Tally) -> Result<bool> {
    let line = scene.say(Said::new(SaidTask::Late, chance));
    let program = scene.shimmed(scene.chat("0")?).env("CRASH_AT", at.to_string());
    let mut chat = program.start()?;
    // An early end closes the input.
    let _ = chat.say(&line).await;
    let judge = Judge::of_the_living(scene.database())?;
    let before = judge.answers()?.len();
    let mut waited = Duration::ZERO;
    // What it hands over with and what came of it are two answers, and in the end nothing is followed any more.
    while !(judge.answers()?.len() >= before + 2
        && judge.open_ends()?.is_empty()
        && scene.pending().is_ok_and(|view| view == Some(serde_json::json!([]))))
    {
        let glance = Duration::from_millis(20);
        waited += glance;
        if waited > PATIENCE {
            tally.fault(format!("a life did not come to its end before operation {at}"));
            break;
        }
        if chat.ended_within(glance).await {
            break;
        }
    }
    drop(judge);
    let (status, shown) = chat.finish(PATIENCE).await?;
    if let Some(fault) = odd_end(status, &shown) {
        tally.fault(format!("before operation {at}: {fault}"));
    }
    scene.saw(shown);
    Ok(status.success())
}

/// Why a life was neither whole nor ended by the shim, if that is so: one that gives up or panics is none that was killed.
fn odd_end(status: ExitStatus, shown: &[String]) -> Option<String> {
    if status.success() { None } else { unexpected(status, shown) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_life_is_whole_or_killed_and_every_other_end_is_a_fault() {
        let check = |raw: i32, is_odd: bool| {
            let shown = ["shown".to_owned()];
            let odd = odd_end(ExitStatus::from_raw(raw), &shown);
            assert_eq!(odd.is_some(), is_odd, "{raw}: {odd:?}");
            assert!(odd.is_none_or(|odd| odd.contains("shown")));
        };
        // Success, SIGKILL; a code of failure, that of a panic, SIGABRT, SIGTERM.
        check(0, false);
        check(9, false);
        for raw in [1 << 8, 101 << 8, 6, 15] {
            check(raw, true);
        }
    }
}

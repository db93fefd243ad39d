//! SIGTERM in the middle of a turn, a send, a watch, a restore. It ends soon, and nothing is lost.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tokio::{process::Command, time::Instant};
use volcanic_base::Chance;
use volcanic_testkit::Process;

use super::{
    aim::below,
    judge::Judge,
    phase::Phase,
    said::{Said, SaidTask},
    scene::{PATIENCE, Scene},
    stage::Stage,
    tally::Tally,
};

/// How long an end may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How long the moment to stop at is waited for. It may be over before the judge, on a machine that is busy, looks.
const SIGHT: Duration = Duration::from_secs(20);

/// Ends that there were.
const ALL: &str = "ends by SIGTERM";

/// When the end is asked for.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// What the judge sees.
    In(Phase),
    /// While the agent does not answer.
    Unanswered,
    /// Right after the start, with a task to be followed on, so many milliseconds after the agent stopped answering, or
    /// with it there.
    Start { after: u64, with_agent: bool },
}

/// So many ends over one state.
pub(super) async fn run(stage: Arc<Stage>, stops: u32, seed: u64) -> Result<Tally> {
    let mut scene = Scene::prepare(&stage).await?;
    let (mut tally, chance) = (Tally::default(), Chance::seeded(seed));
    for stop in 0..stops {
        let (name, moment) = match stop % 7 {
            0 => ("in a run of the owner", Moment::In(Phase::Run)),
            1 => ("with an answer in flight", Moment::In(Phase::AnswerInFlight)),
            2 => ("in an attended wait", Moment::In(Phase::AttendedWait)),
            3 => ("while a task is watched", Moment::In(Phase::Watching)),
            4 => ("in a run that an outcome started", Moment::In(Phase::ResultRun)),
            5 => ("while the agent does not answer", Moment::Unanswered),
            _ => {
                let (after, with_agent) = (below(&chance, 400), below(&chance, 2) == 0);
                ("right after a start with a watch", Moment::Start { after, with_agent })
            }
        };
        let faults = tally.faults().len();
        let is_in_time = live_and_stop(&mut scene, &chance, moment, &mut tally)
            .await
            .with_context(|| format!("stop {stop} of seed {seed}, {moment:?}"))?;
        tally.count(ALL, 1);
        tally.end(name, is_in_time);
        if tally.faults().len() > faults {
            tally.note(format!("these faults came with stop {stop} of seed {seed}, {moment:?}"));
        }
    }
    scene.settle(Duration::from_secs(1), &mut tally).await?;
    scene.verdict(&mut tally)?;
    Ok(tally)
}

/// Lives and is ended; whether that was at the moment it was for.
async fn live_and_stop(
    scene: &mut Scene,
    chance: &Chance,
    moment: Moment,
    tally: &mut Tally,
) -> Result<bool> {
    let wait = if matches!(moment, Moment::In(Phase::AttendedWait)) { "30" } else { "0" };
    let line = scene.say(Said::new(SaidTask::Slow, chance));
    let remote = scene.remote_id().context("the remote agent has ended")?;
    let mut chat = scene.shimmed(scene.chat(wait)?).env("CRASH_SLOW", "15000").start()?;
    let mut held_up = false;
    let is_in_time = match moment {
        Moment::In(phase) => said_and_seen(scene, &mut chat, &line, phase).await?,
        Moment::Unanswered => {
            signal("STOP", remote).await?;
            held_up = true;
            // It has not got the message, whatever its socket took.
            let is_in_time = said_and_seen(scene, &mut chat, &line, Phase::Run).await?;
            chat.ended_within(Duration::from_millis(100)).await;
            is_in_time
        }
        Moment::Start { after, with_agent } => {
            let is_in_time = said_and_seen(scene, &mut chat, &line, Phase::Watching).await?;
            let (_, shown) = chat.kill().await?;
            scene.saw(shown);
            if !with_agent {
                signal("STOP", remote).await?;
                held_up = true;
            }
            chat = scene.chat(wait)?.start()?;
            chat.ended_within(Duration::from_millis(after)).await;
            is_in_time
        }
    };
    let asked = Instant::now();
    let id = chat.id().context("the assistant ended by itself")?;
    signal("TERM", id).await?;
    let ended = chat.ended_within(LIMIT).await;
    let took = asked.elapsed();
    if held_up {
        signal("CONT", remote).await?;
    }
    let (status, shown) = if ended { chat.finish(PATIENCE).await? } else { chat.kill().await? };
    scene.saw(shown);
    // One that has just started may not listen yet, which is as good as a kill.
    let early = matches!(moment, Moment::Start { .. });
    if !ended {
        tally.fault(format!("it had not ended {took:?} after SIGTERM"));
    } else if !status.success() && !early {
        tally.fault(format!("it ended with {status} after SIGTERM"));
    }
    let judge = Judge::of_the_dead(scene.database())?;
    scene.note_in_flight(&judge)?;
    let faults = judge.standing_faults()?.into_iter().chain(scene.pending_faults());
    tally.faults_of("after SIGTERM", faults);
    Ok(is_in_time)
}

/// Says something and waits until something is newly in a phase; false when nobody saw that.
async fn said_and_seen(
    scene: &Scene,
    chat: &mut Process,
    line: &str,
    phase: Phase,
) -> Result<bool> {
    let judge = Judge::of_the_living(scene.database())?;
    // What is said may be under way, or over, at the first look after it.
    let before = judge.standing(phase, scene)?;
    chat.say(line).await?;
    let deadline = Instant::now() + SIGHT;
    while judge.standing(phase, scene)?.iter().all(|id| before.contains(id)) {
        ensure!(!chat.ended_within(Duration::from_millis(1)).await, "it ended before \"{phase}\"");
        if Instant::now() >= deadline {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether enough ends came at each of the moments they were for. The others are ends at some moment, and were judged like
/// these.
pub(super) fn check_reach(tally: &mut Tally) {
    let missed = tally.ends().filter(|(_, (all, in_time))| in_time * 2 < *all);
    let missed: Vec<_> = missed
        .map(|(moment, (all, in_time))| {
            format!("of {all} ends by SIGTERM {moment} only {in_time} came then")
        })
        .collect();
    tally.faults_of("aim", missed);
}

/// Sends a signal.
pub(super) async fn signal(name: &str, process: u32) -> Result<()> {
    let status =
        Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status().await?;
    ensure!(status.success(), "{name} could not be sent to process {process}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_missed_their_moment_are_a_fault_when_most_of_one_moment_did() {
        let check = |reached: &[(&'static str, u32, u32)], faults: &[&str]| {
            let mut tally = Tally::default();
            for (moment, all, in_time) in reached {
                // As they come together: scene by scene.
                let mut scene = Tally::default();
                (0..*all).for_each(|end| scene.end(moment, end < *in_time));
                tally.add(scene);
            }
            check_reach(&mut tally);
            assert_eq!(tally.faults(), faults);
        };
        check(&[], &[]);
        check(&[("early", 4, 2), ("late", 4, 4)], &[]);
        check(&[("early", 2, 0), ("late", 4, 4), ("early", 2, 2)], &[]);
        check(
            &[("early", 4, 4), ("late", 2, 0), ("late", 2, 1)],
            &["aim: of 4 ends by SIGTERM late only 1 came then"],
        );
        check(
            &[("early", 24, 24), ("late", 4, 0)],
            &["aim: of 4 ends by SIGTERM late only 0 came then"],
        );
    }
}

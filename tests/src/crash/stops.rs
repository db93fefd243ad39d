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
        let moment = match stop % 7 {
            0 => Moment::In(Phase::Run),
            1 => Moment::In(Phase::AnswerInFlight),
            2 => Moment::In(Phase::AttendedWait),
            3 => Moment::In(Phase::Watching),
            4 => Moment::In(Phase::ResultRun),
            5 => Moment::Unanswered,
            _ => Moment::Start { after: below(&chance, 400), with_agent: below(&chance, 2) == 0 },
        };
        let faults = tally.faults().len();
        live_and_stop(&mut scene, &chance, moment, &mut tally)
            .await
            .with_context(|| format!("stop {stop} of seed {seed}, {moment:?}"))?;
        tally.count("ends by SIGTERM", 1);
        if tally.faults().len() > faults {
            tally.note(format!("these faults came with stop {stop} of seed {seed}, {moment:?}"));
        }
    }
    scene.settle(Duration::from_secs(1), &mut tally).await?;
    scene.verdict(&mut tally)?;
    Ok(tally)
}

async fn live_and_stop(
    scene: &mut Scene,
    chance: &Chance,
    moment: Moment,
    tally: &mut Tally,
) -> Result<()> {
    let wait = if matches!(moment, Moment::In(Phase::AttendedWait)) { "30" } else { "0" };
    let line = scene.say(Said::new(SaidTask::Slow, chance));
    let remote = scene.remote_id().context("the remote agent has ended")?;
    let mut chat = scene.shimmed(scene.chat(wait)?).env("CRASH_SLOW", "15000").start()?;
    let mut held_up = false;
    match moment {
        Moment::In(phase) => {
            chat.say(&line).await?;
            until(scene, &mut chat, phase).await?;
        }
        Moment::Unanswered => {
            signal("STOP", remote).await?;
            held_up = true;
            chat.say(&line).await?;
            // It has not got the message, whatever its socket took.
            until(scene, &mut chat, Phase::Run).await?;
            chat.ended_within(Duration::from_millis(100)).await;
        }
        Moment::Start { after, with_agent } => {
            chat.say(&line).await?;
            until(scene, &mut chat, Phase::Watching).await?;
            let (_, shown) = chat.kill().await?;
            scene.saw(shown);
            if !with_agent {
                signal("STOP", remote).await?;
                held_up = true;
            }
            chat = scene.chat(wait)?.start()?;
            chat.ended_within(Duration::from_millis(after)).await;
        }
    }
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
    Ok(())
}

/// Waits until something is newly in a phase.
async fn until(scene: &Scene, chat: &mut Process, phase: Phase) -> Result<()> {
    let judge = Judge::of_the_living(scene.database())?;
    let before = judge.standing(phase, scene)?;
    let deadline = Instant::now() + PATIENCE;
    while judge.standing(phase, scene)?.iter().all(|id| before.contains(id)) {
        ensure!(Instant::now() < deadline, "nothing came to \"{phase}\"");
        ensure!(!chat.ended_within(Duration::from_millis(1)).await, "it ended before \"{phase}\"");
    }
    Ok(())
}

/// Sends a signal.
pub(super) async fn signal(name: &str, process: u32) -> Result<()> {
    let status =
        Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status().await?;
    ensure!(status.success(), "{name} could not be sent to process {process}");
    Ok(())
}

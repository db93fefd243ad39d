//! Kills at every step, without rest in between; then everything is brought to rest and judged.

use std::{
    collections::BTreeSet, os::unix::process::ExitStatusExt as _, path::Path, process::ExitStatus,
    sync::Arc, time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tokio::time::Instant;
use volcanic_base::Chance;
use volcanic_testkit::Process;

use super::{
    aim::Aim,
    judge::Judge,
    phase::Phase,
    said::{Said, SaidTask},
    scene::{PATIENCE, Scene},
    stage::Stage,
    tally::Tally,
};

/// The longest a life goes on that does not come to the operation it is to end at.
const LONGEST_LIFE: Duration = Duration::from_millis(1_500);

/// The same for a life that is to end with a view: it is replaced a second after a change.
const LONGEST_WITH_VIEW: Duration = Duration::from_secs(4);

/// Between two looks for the phase to end in.
const GLANCE: Duration = Duration::from_millis(1);

/// How long everything has to stay at rest in the end, so that nothing comes late.
const RESTING: Duration = Duration::from_millis(1_500);

/// What SIGKILL is.
const KILLED: i32 = 9;

/// What stood in which phase when the last life ended.
type Standing = BTreeSet<(Phase, String)>;

/// One scene: so many lives that are killed, and one that is not. All of the kills go to the phases of `focus`, or else to
/// everything that there is.
pub(super) async fn round(
    stage: Arc<Stage>,
    kills: u32,
    focus: Vec<Phase>,
    seed: u64,
) -> Result<Tally> {
    let mut scene = Scene::prepare(&stage).await?;
    let mut tally = Tally::default();
    let chance = Chance::seeded(seed);
    let operations = count_operations(&mut scene, &chance).await?;
    let mut before = Standing::new();
    for kill in 0..kills {
        let aim = if focus.is_empty() {
            Aim::choose(&chance, operations, &tally)
        } else {
            Aim::at_rarest(&chance, focus.iter().copied(), &tally)
        };
        let log = scene.aside("shim.log");
        let _ = std::fs::remove_file(&log);
        live_and_die(&mut scene, &chance, aim, kill, &mut tally).await?;
        let judge = Judge::of_the_dead(scene.database())?;
        before = count_phases(&scene, &judge, &before, &log, &mut tally)?;
        scene.note_in_flight(&judge)?;
        let faults = judge.standing_faults()?.into_iter().chain(scene.pending_faults());
        tally.faults_of(&format!("seed {seed}, after kill {kill} ({aim:?})"), faults);
    }
    scene.settle(RESTING, &mut tally).await?;
    scene.verdict(&mut tally)?;
    if !tally.faults().is_empty() {
        tally.note(format!("seed {seed} left {}", scene.keep().display()));
    }
    Ok(tally)
}

/// How many operations a life has that hands a task over and hears of its end when nobody disturbs it.
async fn count_operations(scene: &mut Scene, chance: &Chance) -> Result<u64> {
    let count = scene.aside("count");
    let said = Said::new(SaidTask::Slow, chance);
    let told = format!("finished: {}", said.word);
    let line = scene.say(said);
    let program = scene.shimmed(scene.chat("0")?).env("CRASH_COUNT", &count);
    let mut chat = program.start()?;
    chat.say(&line).await?;
    chat.line(PATIENCE, "an outcome", |line| line.contains(&told)).await?;
    let (status, shown) = chat.finish(PATIENCE).await?;
    ensure!(
        status.success(),
        "an undisturbed life ended with {status} after:\n{}",
        shown.join("\n")
    );
    scene.saw(shown);
    let text = std::fs::read_to_string(&count).context("the shim counted nothing")?;
    let operations: u64 = text.trim().parse().context("the shim's count is no number")?;
    ensure!(operations > 50, "only {operations} operations were seen: is the shim loaded?");
    Ok(operations)
}

/// One life: the assistant is told something and killed.
async fn live_and_die(
    scene: &mut Scene,
    chance: &Chance,
    aim: Aim,
    kill: u32,
    tally: &mut Tally,
) -> Result<()> {
    // Handing over at once and waiting for a second lead through different phases.
    let (wait, said) = match aim.way() {
        Some((wait, task)) => (wait, Said::new(task, chance)),
        None => (if chance.fraction() < 0.6 { "0" } else { "1" }, Said::any(chance)),
    };
    let program = aim.arm(scene.chat(wait)?, scene).env("CRASH_LOG", scene.aside("shim.log"));
    let line = scene.say(said);
    let started = Instant::now();
    let left = |life: Duration| life.saturating_sub(started.elapsed());
    let mut chat = program.start()?;
    // An early kill closes the input; what was not taken was not said.
    let _ = chat.say(&line).await;
    let (end, ended) = match aim {
        Aim::Time(millis) => {
            ("kills at a random time", chat.ended_within(left(Duration::from_millis(millis))).await)
        }
        Aim::Operation { .. } => {
            ("kills at the k-th operation", chat.ended_within(left(LONGEST_LIFE)).await)
        }
        Aim::Sending { .. } => {
            ("kills around something sent", chat.ended_within(left(LONGEST_LIFE)).await)
        }
        Aim::View { .. } => (
            "kills while pending.json is replaced",
            chat.ended_within(left(LONGEST_WITH_VIEW)).await,
        ),
        Aim::Sight(phase) => {
            ("kills on sight", seen(scene, &mut chat, phase, left(LONGEST_LIFE)).await?)
        }
    };
    let (status, shown) = chat.kill().await?;
    let outlived = !ended && !matches!(aim, Aim::Time(_));
    tally.count(if outlived { "kills after they outlived their aim" } else { end }, 1);
    tally.count("kills", 1);
    if let Some(fault) = unexpected(status, &shown) {
        tally.fault(format!("life {kill} of {}: {fault}", scene.name()));
    }
    scene.saw(shown);
    Ok(())
}

/// Waits until something is newly in a phase.
async fn seen(scene: &Scene, chat: &mut Process, phase: Phase, within: Duration) -> Result<bool> {
    let judge = Judge::of_the_living(scene.database())?;
    let before = judge.standing(phase, scene)?;
    let deadline = Instant::now() + within;
    while Instant::now() < deadline {
        if judge.standing(phase, scene)?.iter().any(|id| !before.contains(id)) {
            return Ok(true);
        }
        if chat.ended_within(GLANCE).await {
            return Ok(false);
        }
    }
    Ok(false)
}

/// Counts the phases in which something stands that did not before.
fn count_phases(
    scene: &Scene,
    judge: &Judge,
    before: &Standing,
    log: &Path,
    tally: &mut Tally,
) -> Result<Standing> {
    let mut now = Standing::new();
    for phase in Phase::ALL {
        let ids = judge.standing(phase, scene)?;
        if ids.iter().any(|id| !before.contains(&(phase, id.clone()))) {
            tally.hit(phase);
        }
        now.extend(ids.into_iter().map(|id| (phase, id)));
    }
    let ended = std::fs::read_to_string(log).unwrap_or_default();
    if ended.lines().any(|line| line.starts_with("ended") && line.contains("/.volcanic/a2a")) {
        tally.hit(Phase::View);
    }
    Ok(now)
}

/// Why a life counts as no kill, if it does.
pub(super) fn unexpected(status: ExitStatus, shown: &[String]) -> Option<String> {
    (status.signal() != Some(KILLED))
        .then(|| format!("it was not killed, it ended with {status} after:\n{}", shown.join("\n")))
}

//! Faults of the shipped binary: it is killed, stopped, started twice and given bad disks, then judged.
//!
//! The killer knows nothing of the code it kills: it starts the shipped binary, types, and ends it, at random times, when
//! the judge sees what is under way, and before or in the middle of the k-th write, fsync or rename (`tests/shim/crash.c`).
//! The judge shares no code with the assistant either: it reads the database with SQL, the folders, the screen and the
//! remote agent's own journal.

mod aim;
mod disk;
mod folders;
mod journal;
mod judge;
mod kills;
mod long;
mod phase;
mod said;
mod scene;
mod screen;
mod shim;
mod stage;
mod steps;
mod stops;
mod tally;
mod twins;

use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::task::JoinSet;
use volcanic_base::Chance;

use phase::Phase;
use stage::Stage;
pub use tally::Tally;

/// Kills over one state, before everything is brought to rest and judged.
const KILLS_PER_SCENE: u32 = 50;

/// From so many kills on there must have been enough in each phase that is asked for; else the run would not prove what
/// it says.
const MANY_KILLS: u32 = 1_000;

/// What is enough then.
const ENOUGH_PER_PHASE: u32 = 50;

/// Chance, and how fast the machine is, decide how many there are; so many scenes more at most, with so many kills each,
/// make up for it.
const FURTHER_SCENES: u32 = 20;
const FURTHER_KILLS: u32 = 20;

/// None of those scenes begins after so long.
const FURTHER_TIME: Duration = Duration::from_mins(15);

/// Ends by SIGTERM over one state.
const STOPS_PER_SCENE: u32 = 14;

/// What to do.
#[derive(Debug, Clone)]
pub struct CrashPlan {
    /// The binary to put to the test.
    pub volcanic: PathBuf,
    /// How many kills.
    pub kills: u32,
    /// Whether a life is ended at each of its operations once.
    pub steps: bool,
    /// From how many operations on a life gets each kind of bad disk.
    pub disks: u32,
    /// How many rounds two assistants share a workspace.
    pub twins: u32,
    /// How many ends by SIGTERM.
    pub stops: u32,
    /// How long one assistant lives beside all that; not at all when it is zero.
    pub long_life: Duration,
    /// How many scenes are played at once. Most of them wait most of the time.
    pub width: usize,
    /// Decides every choice of the run.
    pub seed: u64,
}

/// One scene, or a few in a row, to be played beside others.
type Act = Pin<Box<dyn Future<Output = Result<Tally>> + Send>>;

/// Runs the plan.
///
/// # Errors
/// When something that is not under test fails, such as the compiler of the shim.
pub async fn run(plan: &CrashPlan) -> Result<Tally> {
    let stage = Arc::new(Stage::set(&plan.volcanic)?);
    let chance = Chance::seeded(plan.seed);
    let mut tally = Tally::default();
    let mut beside = JoinSet::new();
    if !plan.long_life.is_zero() {
        beside.spawn(long::run(Arc::clone(&stage), plan.long_life, seed(&chance)));
    }
    if plan.steps {
        let steps = steps::run(&stage, plan.width, seed(&chance));
        tally.add(part("every operation once", async { Ok(whole(steps.await)) }).await?);
    }
    let scenes = plan.kills.div_ceil(KILLS_PER_SCENE);
    let kills = (0..scenes).map(|scene| {
        let kills = KILLS_PER_SCENE.min(plan.kills - scene * KILLS_PER_SCENE);
        Box::pin(kills::round(Arc::clone(&stage), kills, Vec::new(), seed(&chance))) as Act
    });
    tally.add(part("kills", play(plan.width, kills.collect())).await?);
    if plan.kills >= MANY_KILLS {
        make_up_for(&mut tally, async |focus| {
            let more = kills::round(Arc::clone(&stage), FURTHER_KILLS, focus, seed(&chance));
            part("further kills where they are too rare", async { Ok(whole(more.await)) }).await
        })
        .await?;
    }
    check_reach(&mut tally, plan.kills);
    if plan.disks > 0 {
        let lives = async {
            let mut lives = Tally::default();
            let life = disk::measure(&stage, &chance, &mut lives).await?;
            println!("a whole life: {life:?}");
            let cases = disk::Case::all(u64::from(plan.disks), life, &chance);
            let width = plan.width * 3;
            let acts = (0..width).map(|worker| {
                let mine = cases.iter().skip(worker).step_by(width).copied().collect();
                Box::pin(disk::run(Arc::clone(&stage), mine, seed(&chance))) as Act
            });
            lives.add(play(width, acts.collect()).await?);
            disk::check_reach(&mut lives);
            Ok(lives)
        };
        tally.add(part("bad disks", async { Ok(whole(lives.await)) }).await?);
    }
    let stops = (0..plan.stops.div_ceil(STOPS_PER_SCENE)).map(|scene| {
        let stops = STOPS_PER_SCENE.min(plan.stops - scene * STOPS_PER_SCENE);
        Box::pin(stops::run(Arc::clone(&stage), stops, seed(&chance))) as Act
    });
    let mut acts: Vec<Act> = stops.collect();
    if plan.twins > 0 {
        acts.push(Box::pin(twins::run(Arc::clone(&stage), plan.twins, seed(&chance))));
    }
    let ends = async {
        let mut ends = play(plan.width, acts).await?;
        stops::check_reach(&mut ends);
        Ok(ends)
    };
    tally.add(part("SIGTERM, and two in one workspace", ends).await?);
    while let Some(long) = beside.join_next().await {
        tally.add(whole(long?));
    }
    Ok(tally)
}

/// A part of the run, with a line about what came of it.
async fn part(name: &str, work: impl Future<Output = Result<Tally>>) -> Result<Tally> {
    let started = Instant::now();
    let tally = work.await?;
    println!("{name}: {} s, {} faults", started.elapsed().as_secs(), tally.faults().len());
    Ok(tally)
}

/// Plays scenes, so many at a time.
async fn play(width: usize, acts: Vec<Act>) -> Result<Tally> {
    let (mut tally, mut playing) = (Tally::default(), JoinSet::new());
    let (mut acts, mut played) = (acts.into_iter(), 0);
    loop {
        while playing.len() < width
            && let Some(act) = acts.next()
        {
            playing.spawn(act);
        }
        let Some(done) = playing.join_next().await else { return Ok(tally) };
        tally.add(whole(done?));
        played += 1;
        println!("  {played} scenes, {} faults", tally.faults().len());
    }
}

/// What came of a scene. One that broke off is a fault: what the others found is told all the same.
fn whole(played: Result<Tally>) -> Tally {
    played.unwrap_or_else(|error| {
        let mut tally = Tally::default();
        tally.fault(format!("a scene broke off: {error:#}"));
        tally
    })
}

fn seed(chance: &Chance) -> u64 {
    aim::below(chance, 1 << 48)
}

/// The phases into which not enough kills fell.
fn too_rare(tally: &Tally) -> Vec<Phase> {
    let asked_for = Phase::ASKED_FOR.into_iter();
    asked_for.filter(|phase| tally.hits(*phase) < ENOUGH_PER_PHASE).collect()
}

/// Plays one scene more after the other, each for the phases into which not enough kills fell, until there are enough or
/// it has gone on for too long.
async fn make_up_for(
    tally: &mut Tally,
    scene: impl AsyncFn(Vec<Phase>) -> Result<Tally>,
) -> Result<()> {
    let deadline = tokio::time::Instant::now() + FURTHER_TIME;
    for _ in 0..FURTHER_SCENES {
        let focus = too_rare(tally);
        if focus.is_empty() || tokio::time::Instant::now() >= deadline {
            break;
        }
        tally.add(scene(focus).await?);
        tally.count("further scenes where kills were too rare", 1);
    }
    Ok(())
}

/// Whether the run came to where its promises are put to the test.
fn check_reach(tally: &mut Tally, kills: u32) {
    if kills >= MANY_KILLS {
        for phase in too_rare(tally) {
            let hits = tally.hits(phase);
            tally.fault(format!("only {hits} kills fell into the phase \"{phase}\""));
        }
    }
    let received = tally.counted("messages received by the remote");
    if received < u64::from(kills) / 4 {
        tally.fault(format!("only {received} messages were sent in {kills} lives"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_scene_that_breaks_off_is_a_fault_and_ends_no_other() {
        let acts: Vec<Act> = vec![
            Box::pin(async { Err(anyhow::anyhow!("no line").context("stop 3")) }),
            Box::pin(async {
                let mut tally = Tally::default();
                tally.hit(Phase::Claim);
                Ok(tally)
            }),
        ];
        let tally = play(1, acts).await.unwrap();
        assert_eq!(tally.faults(), ["a scene broke off: stop 3: no line"]);
        assert_eq!(tally.hits(Phase::Claim), 1);
    }

    /// A run in which enough kills fell into every phase but one.
    fn all_but_claims(claims: u32) -> Tally {
        let mut tally = Tally::default();
        for phase in Phase::ASKED_FOR {
            let hits = if phase == Phase::Claim { claims } else { ENOUGH_PER_PHASE };
            (0..hits).for_each(|_| tally.hit(phase));
        }
        tally
    }

    #[tokio::test(start_paused = true)]
    async fn kills_that_are_too_rare_are_made_up_for_however_slowly_they_come() {
        let mut tally = all_but_claims(ENOUGH_PER_PHASE - 15);
        let one_more = async |focus| {
            assert_eq!(focus, [Phase::Claim]);
            let mut scene = Tally::default();
            scene.hit(Phase::Claim);
            Ok(scene)
        };
        make_up_for(&mut tally, one_more).await.unwrap();
        assert_eq!(tally.hits(Phase::Claim), ENOUGH_PER_PHASE);
        assert_eq!(tally.counted("further scenes where kills were too rare"), 15);
        make_up_for(&mut tally, async |_| panic!("there are enough")).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn making_up_for_kills_ends_and_what_still_lacks_is_a_fault() {
        let check = async |scene_takes: Duration, scenes: u64| {
            let mut tally = all_but_claims(0);
            let none = async |_| {
                tokio::time::sleep(scene_takes).await;
                Ok(Tally::default())
            };
            make_up_for(&mut tally, none).await.unwrap();
            assert_eq!(tally.counted("further scenes where kills were too rare"), scenes);
            check_reach(&mut tally, MANY_KILLS);
            let told = format!("only 0 kills fell into the phase \"{}\"", Phase::Claim);
            assert!(tally.faults().contains(&told), "{:?}", tally.faults());
        };
        check(Duration::from_secs(1), FURTHER_SCENES.into()).await;
        check(FURTHER_TIME / 2, 2).await;
    }
}

//! A disk that is full, fails, or cannot be written for a while. What is there stays whole, nothing ends that
//! had started, the owner is told once, and all goes on by itself when the disk is well again.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use tokio::time::Instant;
use volcanic_base::Chance;
use volcanic_testkit::{Process, Program};

use super::{
    aim::below,
    judge::Judge,
    said::{Said, SaidTask},
    scene::{PATIENCE, Scene},
    stage::Stage,
    tally::Tally,
};

/// What the owner is told, and told when it is over.
const TOLD: &str = "(this chat's state cannot be written";
const OVER: &str = "(the state can be written again";

/// What is said when a prompt could not be kept.
const NOT_KEPT: &str = "could not be kept";

/// Between two looks.
const GLANCE: Duration = Duration::from_millis(50);

/// How long a disk is away that comes back by itself.
const WHILE: Duration = Duration::from_millis(1_500);

/// From so long on the owner has to have been told.
const UNTOLD: Duration = Duration::from_secs(30);

/// What is counted of these lives.
const LIVES: &str = "lives with a bad disk";
const FAILED: &str = "operations that failed";
const TROUBLES_TOLD: &str = "troubles that were told";
const WENT_ON: &str = "lives that went on by themselves";

/// What is wrong with the disk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trouble {
    Full,
    Failing,
    /// Only flushes fail, and lose what they were to keep.
    FailingFlushes,
    ReadOnly,
}

impl Trouble {
    const ALL: [Self; 4] = [Self::Full, Self::Failing, Self::FailingFlushes, Self::ReadOnly];

    /// What is counted of it: all lives with it, and those in which something failed for it.
    fn counts(self) -> [&'static str; 2] {
        match self {
            Self::Full => ["lives with a full disk", "lives that a full disk disturbed"],
            Self::Failing => ["lives with a failing disk", "lives that a failing disk disturbed"],
            Self::FailingFlushes => {
                ["lives with failing flushes", "lives that failing flushes disturbed"]
            }
            Self::ReadOnly => {
                ["lives with a read-only disk", "lives that a read-only disk disturbed"]
            }
        }
    }
}

/// For how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    Once,
    While,
    UntilTold,
}

/// One life with a bad disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    trouble: Trouble,
    span: Span,
    /// The operation from which on it is bad, of those that the trouble is about.
    at: u64,
}

impl Case {
    /// A full disk, and one that fails otherwise (the ways taking turns), for every span, each from `points`
    /// operations on that are spread over a whole life of so many operations and flushes.
    pub(super) fn all(points: u64, life: Life, chance: &Chance) -> Vec<Self> {
        let mut cases = Vec::new();
        for point in 0..points {
            let otherwise = match point % 3 {
                0 => Trouble::Failing,
                1 => Trouble::FailingFlushes,
                _ => Trouble::ReadOnly,
            };
            for trouble in [Trouble::Full, otherwise] {
                for span in [Span::Once, Span::While, Span::UntilTold] {
                    let all = match trouble {
                        Trouble::FailingFlushes => life.flushes,
                        Trouble::Full | Trouble::Failing | Trouble::ReadOnly => life.operations,
                    };
                    let step = all.div_ceil(points).max(1);
                    let at = 1 + (point * all / points.max(1)) + below(chance, step);
                    cases.push(Self { trouble, span, at });
                }
            }
        }
        cases
    }

    fn arm(self, program: Program, scene: &Scene) -> Program {
        let error = match self.trouble {
            Trouble::Full => "enospc",
            Trouble::Failing | Trouble::FailingFlushes => "eio",
            Trouble::ReadOnly => "erofs",
        };
        let mut program = scene
            .shimmed(program)
            .env("CRASH_FAIL", error)
            .env("CRASH_AT", self.at.to_string())
            .env("CRASH_LOSE", "1")
            .env("CRASH_LOG", scene.aside("shim.log"));
        if matches!(self.trouble, Trouble::FailingFlushes) {
            program = program.env("CRASH_ON", "flushes");
        }
        if self.span != Span::Once {
            program = program.env("CRASH_WHILE", bad(scene));
        }
        program
    }
}

/// The disk is bad as long as this file is there.
fn bad(scene: &Scene) -> PathBuf {
    scene.aside("bad-disk")
}

/// How long a whole life is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    operations: u64,
    flushes: u64,
}

/// Counts a whole undisturbed life.
pub(super) async fn measure(
    stage: &Arc<Stage>,
    chance: &Chance,
    tally: &mut Tally,
) -> Result<Life> {
    let mut counts = [0; 2];
    for (count, on) in counts.iter_mut().zip(["files", "flushes"]) {
        let mut scene = Scene::prepare(stage).await?;
        let file = scene.aside("count");
        let line = scene.say(Said::new(SaidTask::Late, chance));
        let program = scene.shimmed(scene.chat("0")?);
        let program = program.env("CRASH_COUNT", &file).env("CRASH_ON", on);
        let mut chat = program.start()?;
        chat.say(&line).await?;
        chat.line(PATIENCE, "an outcome", |line| line.contains("Files:")).await?;
        scene.until_rest(&mut chat, Duration::from_secs(2), tally).await?;
        let (status, shown) = chat.finish(PATIENCE).await?;
        if !status.success() {
            tally.fault(format!("an undisturbed life ended with {status} after {shown:?}"));
        }
        *count = std::fs::read_to_string(&file)?.trim().parse()?;
    }
    let [operations, flushes] = counts;
    Ok(Life { operations, flushes })
}

/// Lives through some cases, each from a state at rest.
pub(super) async fn run(stage: Arc<Stage>, cases: Vec<Case>, seed: u64) -> Result<Tally> {
    let mut scene = Scene::prepare(&stage).await?;
    scene.spoil_disk();
    let (mut tally, chance) = (Tally::default(), Chance::seeded(seed));
    for case in cases {
        let mut here = Tally::default();
        live_through(&mut scene, &chance, case, &mut here).await?;
        scene.settle(Duration::ZERO, &mut here).await?;
        let stale = scene.stale_files()?.into_iter().map(|file| format!("{file} was left behind"));
        here.faults_of("after another start", stale);
        // All of it again each time, so only what is wrong counts here.
        let mut whole = Tally::default();
        scene.verdict(&mut whole)?;
        here.faults_of(&scene.name(), whole.faults().iter().cloned());
        tally.count(LIVES, 1);
        let is_bad = !here.faults().is_empty();
        tally.faults_of(&format!("{case:?}"), here.faults().to_vec());
        tally.add(here.without_faults());
        if is_bad {
            tally.note(format!("{case:?} of seed {seed} left {}", scene.keep().display()));
            return Ok(tally);
        }
    }
    scene.verdict(&mut tally)?;
    Ok(tally)
}

async fn live_through(
    scene: &mut Scene,
    chance: &Chance,
    case: Case,
    tally: &mut Tally,
) -> Result<()> {
    std::fs::write(bad(scene), "")?;
    let log = scene.aside("shim.log");
    let _ = std::fs::remove_file(&log);
    let word = Said::new(SaidTask::Late, chance);
    let line = word.line();
    let program = case.arm(scene.chat("0")?, scene);
    let judge = Judge::of_the_living(scene.database())?;
    let answers = judge.answers()?.len();
    let mut chat = program.start()?;
    let _ = chat.say(&line).await;
    scene.say(word);
    let mut life = Disturbed { bad_since: None, well_since: None, said_again: false };
    let deadline = Instant::now() + UNTOLD + 2 * PATIENCE;
    loop {
        if chat.ended_within(GLANCE).await {
            break;
        }
        let now = Instant::now();
        if life.bad_since.is_none()
            && std::fs::read_to_string(&log).is_ok_and(|log| log.contains("failed"))
        {
            life.bad_since = Some(now);
        }
        life.mend(scene, case, &chat, now, tally)?;
        if is_told(&chat, NOT_KEPT) && life.well_since.is_some() && !life.said_again {
            // The owner does what the chat asked for.
            life.said_again = true;
            chat.say(&line).await?;
        }
        // One, when the message could not be sent: nothing is open in between where there are to be two.
        let is_done = judge.answers().is_ok_and(|now| now.len() > answers)
            && judge.open_ends().is_ok_and(|open| open.is_empty());
        let is_over =
            case.span == Span::Once || life.well_since.is_some() || life.bad_since.is_none();
        if is_done && is_over {
            break;
        }
        if now >= deadline {
            let open = judge.open_ends().unwrap_or_default();
            tally.fault(format!(
                "it did not go on by itself: {open:?}; it showed {:?}",
                chat.seen()
            ));
            break;
        }
    }
    let _ = std::fs::remove_file(bad(scene));
    drop(judge);
    end(scene, chat, case, &life, tally).await?;
    judge_log(&log, case.trouble, tally);
    Ok(())
}

/// How far a life with a bad disk is.
struct Disturbed {
    bad_since: Option<Instant>,
    well_since: Option<Instant>,
    said_again: bool,
}

impl Disturbed {
    /// Makes the disk well again when it is time.
    fn mend(
        &mut self,
        scene: &Scene,
        case: Case,
        chat: &Process,
        now: Instant,
        tally: &mut Tally,
    ) -> Result<()> {
        let (Some(since), None) = (self.bad_since, self.well_since) else { return Ok(()) };
        let is_time = match case.span {
            Span::Once => return Ok(()),
            Span::While => now >= since + WHILE,
            Span::UntilTold => is_told(chat, TOLD) || is_told(chat, NOT_KEPT),
        };
        let is_late = now >= since + UNTOLD;
        if is_late && case.span == Span::UntilTold && !is_time {
            tally.fault(format!("the owner was not told; on the screen is {:?}", chat.seen()));
        }
        if is_time || is_late {
            std::fs::remove_file(bad(scene))?;
            self.well_since = Some(now);
        }
        Ok(())
    }
}

fn is_told(chat: &Process, what: &str) -> bool {
    chat.seen().iter().any(|line| line.contains(what))
}

/// Ends the life and judges how it went.
async fn end(
    scene: &mut Scene,
    chat: Process,
    case: Case,
    life: &Disturbed,
    tally: &mut Tally,
) -> Result<()> {
    let (status, shown) = chat.finish(2 * PATIENCE).await?;
    let told = shown.iter().filter(|line| line.contains(TOLD)).count();
    let over = shown.iter().filter(|line| line.contains(OVER)).count();
    // It is told once, and again at most when it came again after it was over.
    if told > over + 1 || (case.span != Span::Once && told > 1) {
        tally.fault(format!(
            "the owner was told {told} times, and {over} times that it is over: {shown:?}"
        ));
    }
    tally.count(TROUBLES_TOLD, told as u64);
    if status.success() {
        tally.count(WENT_ON, 1);
    } else if status.code().is_none_or(|code| code != 1) {
        tally.fault(format!("it ended with {status} after {shown:?}"));
    } else if shown.iter().all(|line| line.contains(NOT_KEPT) || line.contains(TOLD)) {
        // It could not start, and said why on its other output.
        tally.count("lives that a bad disk kept from starting, or from keeping what was said", 1);
    } else if !life.said_again {
        tally.fault(format!("it had started and ended with {status} after {shown:?}"));
    }
    scene.saw(shown);
    scene.note_in_flight(&Judge::of_the_dead(scene.database())?)?;
    Ok(())
}

/// What the shim saw: a descriptor whose flush failed is not flushed again, not even after it was written to again.
fn judge_log(log: &Path, trouble: Trouble, tally: &mut Tally) {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let failed = log.lines().filter(|line| line.starts_with("failed")).count();
    tally.count(FAILED, failed as u64);
    let [lives, disturbed] = trouble.counts();
    tally.count(lives, 1);
    tally.count(disturbed, u64::from(failed > 0));
    let is_again = |line: &&str| line.starts_with("again") || line.starts_with("rewritten");
    for line in log.lines().filter(is_again) {
        tally.fault(format!("a descriptor was flushed again although that had failed: {line}"));
    }
}

/// Whether the disks were bad, the owner was told and the assistant went on: else the lives say nothing.
pub(super) fn check_reach(tally: &mut Tally) {
    for [lives, disturbed] in Trouble::ALL.map(Trouble::counts) {
        check_floor(tally, disturbed, tally.counted(lives) * 3 / 4);
    }
    let lives = tally.counted(LIVES);
    // A disk that fails once is mostly not worth a word; one that is bad until that is told makes up a third.
    check_floor(tally, TROUBLES_TOLD, lives / 4);
    check_floor(tally, WENT_ON, lives / 2);
}

fn check_floor(tally: &mut Tally, what: &'static str, least: u64) {
    let count = tally.counted(what);
    if count < least {
        tally.fault(format!("only {count} {what}, not {least}: did the shim do its work?"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_that_no_disk_disturbed_are_a_fault_and_so_is_an_owner_who_was_not_told() {
        let check = |disturbed: u64, told: u64, went_on: u64, faults: &[&str]| {
            let mut tally = Tally::default();
            for trouble in Trouble::ALL {
                let [lives, of_these] = trouble.counts();
                tally.count(lives, 10);
                tally
                    .count(of_these, if matches!(trouble, Trouble::Full) { disturbed } else { 10 });
            }
            tally.count(LIVES, 40);
            tally.count(TROUBLES_TOLD, told);
            tally.count(WENT_ON, went_on);
            check_reach(&mut tally);
            let expected = faults.iter().map(|fault| format!("{fault}: did the shim do its work?"));
            assert_eq!(tally.faults(), expected.collect::<Vec<_>>());
        };
        check(7, 10, 20, &[]);
        check(6, 10, 20, &["only 6 lives that a full disk disturbed, not 7"]);
        check(10, 9, 20, &["only 9 troubles that were told, not 10"]);
        check(10, 10, 19, &["only 19 lives that went on by themselves, not 20"]);
    }
}

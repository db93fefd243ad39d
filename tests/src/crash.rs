//! The crash run: one assistant over one state, killed again and again in the middle of the whole path, then judged.
//!
//! The killer knows nothing of the code it kills: it starts the shipped binary, types, and ends it, half at random
//! times and half before the k-th write, fsync or rename (`tests/shim/crash.c`). The judge shares no code with the
//! assistant either: it reads the database with SQL, the folders, the screen and the remote agent's own journal.

mod folders;
mod journal;
mod judge;
mod phase;
mod scene;
mod screen;
mod shim;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use anyhow::Result;
use volcanic_base::Chance;

use judge::Judge;
use phase::Phase;
use scene::Scene;

/// From so many kills on, a phase in which there was none is a fault: the run would not prove what it says.
const ENOUGH_KILLS: u32 = 150;

/// What to do.
#[derive(Debug)]
pub struct CrashPlan {
    /// The binary to kill.
    pub volcanic: PathBuf,
    /// How many kills.
    pub kills: u32,
    /// Decides every choice of the run.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct CrashReport {
    /// Kills by the phases in which something stood; what one life leaves, the next ones bring to an end.
    phases: BTreeMap<Phase, u32>,
    at_operation: u32,
    at_random: u32,
    /// Messages that the remote agent received.
    received: usize,
    /// Outcomes in the conversation.
    entered: usize,
    /// Sends whose outcome was announced as unknown.
    unknown: usize,
    /// Answers shown again, labelled.
    repeats: usize,
    faults: Vec<String>,
}

impl CrashReport {
    /// Broken promises; none, if all is well.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    /// Whether the run came to where its promises are put to the test.
    fn check_reach(&mut self, kills: u32) {
        let untouched: Vec<_> =
            Phase::ALL.iter().filter(|phase| !self.phases.contains_key(phase)).collect();
        if kills >= ENOUGH_KILLS {
            for phase in untouched {
                self.fault(format!("no kill fell into the phase \"{phase}\""));
            }
        }
        if self.received < kills as usize / 4 {
            let received = self.received;
            self.fault(format!("only {received} messages were sent in {kills} lives"));
        }
    }
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kills per phase (one kill can hit several):")?;
        for phase in Phase::ALL {
            let count = self.phases.get(&phase).copied().unwrap_or_default();
            writeln!(f, "  {count:>4}  {phase}")?;
        }
        writeln!(
            f,
            "{} before the k-th operation, {} at a random time",
            self.at_operation, self.at_random
        )?;
        for fault in &self.faults {
            writeln!(f, "FAULT: {fault}")?;
        }
        write!(
            f,
            "{} messages received by the remote, {} outcomes entered, {} announced as unknown, {} answers shown again with a label, {} faults",
            self.received,
            self.entered,
            self.unknown,
            self.repeats,
            self.faults.len()
        )
    }
}

/// What was typed, and how its outcome is told from all others.
#[derive(Debug)]
struct Said {
    word: String,
    task: SaidTask,
}

/// What the remote agent is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SaidTask {
    Echo,
    Slow,
    /// Its word comes back in a file.
    Report,
}

impl Said {
    fn line(&self) -> String {
        let word = &self.word;
        match self.task {
            SaidTask::Echo => format!("ask demo: echo {word}"),
            SaidTask::Slow => format!("ask demo: slow 1 {word}"),
            SaidTask::Report => format!("ask demo: report {word}"),
        }
    }
}

/// Runs the plan.
///
/// # Errors
/// When something that is not under test fails, such as the compiler of the shim.
pub async fn run(plan: &CrashPlan) -> Result<CrashReport> {
    let scene = Scene::prepare(&plan.volcanic).await?;
    let chance = Chance::seeded(plan.seed);
    let (operations, mut screen) = scene.count_operations().await?;
    println!("one undisturbed turn has {operations} operations");

    let mut report = CrashReport::default();
    let mut said = Vec::new();
    let mut in_flight = BTreeSet::new();
    for kill in 0..plan.kills {
        let word = format!("w{kill}x{}", &chance.uuid().simple().to_string()[..8]);
        let task = match chance.fraction() {
            share if share < 0.4 => SaidTask::Echo,
            share if share < 0.8 => SaidTask::Slow,
            _ => SaidTask::Report,
        };
        said.push(Said { word, task });
        let line = said[said.len() - 1].line();
        let death = scene.live_and_die(&chance, &line, kill, operations).await?;
        screen.extend(death.shown);
        if death.at_operation {
            report.at_operation += 1;
        } else {
            report.at_random += 1;
        }
        report.faults.extend(death.fault.map(|fault| format!("life {kill}: {fault}")));
        let judge = Judge::of_the_dead(scene.database())?;
        for phase in judge.phases()? {
            *report.phases.entry(phase).or_default() += 1;
        }
        in_flight.extend(judge.sends_in_flight()?);
        for fault in judge.standing_faults()?.into_iter().chain(scene.pending_faults()) {
            report.fault(format!("after kill {kill}: {fault}"));
        }
        if kill % 20 == 19 {
            println!("{} kills, {} faults", kill + 1, report.faults.len());
        }
    }
    screen.extend(scene.settle(&mut report).await?);
    let judge = Judge::of_the_dead(scene.database())?;
    report.faults.extend(judge.standing_faults()?);
    report.faults.extend(judge.faults_at_rest()?);
    let told_files = journal::judge(&judge, &scene, &said, &in_flight, &mut report)?;
    screen::judge(&judge, &screen.join("\n"), &mut report)?;
    report.faults.extend(scene.folder_faults(&told_files)?);
    report.check_reach(plan.kills);
    Ok(report)
}

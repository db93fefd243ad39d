//! One assistant that lives long while its agent ends, comes back, and stands still. It leaks neither memory nor
//! descriptors, and nothing gets lost.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tokio::time::Instant;
use volcanic_base::Chance;
use volcanic_testkit::Process;

use super::{
    aim::below,
    said::Said,
    scene::{PATIENCE, Scene},
    stage::Stage,
    stops::signal,
    tally::Tally,
};

/// Prompts of one conversation, before the next one begins: what is said is kept in memory.
const PROMPTS: u32 = 20;

/// Memory that may come to what was there after the first quarter of the time, in KiB: caches and the allocator's own.
const GROWTH: u64 = 16 << 10;

/// Descriptors likewise.
const MORE_DESCRIPTORS: u64 = 12;

/// Looks of which the middle one is compared.
const LOOKS: usize = 8;

/// What a process has at a moment.
#[derive(Debug, Clone, Copy)]
struct Sample {
    resident: u64,
    descriptors: u64,
}

/// Lets an assistant live for so long.
pub(super) async fn run(stage: Arc<Stage>, life: Duration, seed: u64) -> Result<Tally> {
    let mut scene = Scene::prepare(&stage).await?;
    scene.spoil_agent();
    let (mut tally, chance) = (Tally::default(), Chance::seeded(seed));
    let mut chat = scene.chat("1")?.start()?;
    let id = chat.id().context("the assistant has ended")?;
    let started = Instant::now();
    let mut samples = Vec::new();
    let mut said = 0_u32;
    while started.elapsed() < life {
        if said % PROMPTS == PROMPTS - 1 {
            // A run that it would stop has no answer.
            scene.until_rest(&mut chat, Duration::ZERO, &mut tally).await?;
            chat.say("/new").await?;
        }
        let word = Said::any(&chance);
        chat.say(&scene.say(word)).await?;
        said += 1;
        trouble(&mut scene, &mut chat, &chance).await?;
        let pause = Duration::from_millis(300 + below(&chance, 900));
        ensure!(!chat.ended_within(pause).await, "it ended after {said} prompts");
        samples.push(sample(id)?);
    }
    scene.until_rest(&mut chat, Duration::from_secs(1), &mut tally).await?;
    samples.push(sample(id)?);
    let (status, shown) = chat.finish(PATIENCE).await?;
    scene.saw(shown);
    if !status.success() {
        tally.fault(format!("a long life ended with {status}"));
    }
    tally.count("prompts of one long life", u64::from(said));
    compare(&samples, started.elapsed(), &mut tally);
    scene.verdict(&mut tally)?;
    if !tally.faults().is_empty() {
        tally.note(format!("the long life of seed {seed} left {}", scene.keep().display()));
    }
    Ok(tally)
}

/// What the agent does meanwhile.
async fn trouble(scene: &mut Scene, chat: &mut Process, chance: &Chance) -> Result<()> {
    let moment = Duration::from_millis(below(chance, 3_000));
    match below(chance, 8) {
        0 => {
            scene.kill_remote().await?;
            chat.ended_within(moment).await;
            scene.start_remote().await?;
        }
        1 => {
            let remote = scene.remote_id().context("the remote agent has ended")?;
            signal("STOP", remote).await?;
            chat.ended_within(moment).await;
            signal("CONT", remote).await?;
        }
        _ => {}
    }
    Ok(())
}

fn sample(process: u32) -> Result<Sample> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = line.and_then(|line| line.split_whitespace().next()).context("no VmRSS")?;
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd"))?.count() as u64;
    Ok(Sample { resident: resident.parse()?, descriptors })
}

/// Holds the end against the time after the first quarter.
fn compare(samples: &[Sample], life: Duration, tally: &mut Tally) {
    let after_quarter = &samples[samples.len() / 4..];
    if after_quarter.len() < 2 * LOOKS {
        tally.fault(format!("too few looks at a long life to compare: {}", samples.len()));
        return;
    }
    let early = &after_quarter[..LOOKS];
    let late = &after_quarter[after_quarter.len() - LOOKS..];
    let middle = |samples: &[Sample], of: fn(&Sample) -> u64| {
        let mut values: Vec<u64> = samples.iter().map(of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let resident = [early, late].map(|samples| middle(samples, |sample| sample.resident));
    let descriptors = [early, late].map(|samples| middle(samples, |sample| sample.descriptors));
    tally.note(format!(
        "a life of {} s: resident {} KiB after a quarter of it, {} KiB in the end; descriptors {} and {}",
        life.as_secs(),
        resident[0],
        resident[1],
        descriptors[0],
        descriptors[1]
    ));
    if resident[1] > resident[0] + GROWTH {
        tally.fault(format!("memory grew from {} to {} KiB", resident[0], resident[1]));
    }
    if descriptors[1] > descriptors[0] + MORE_DESCRIPTORS {
        tally.fault(format!("descriptors grew from {} to {}", descriptors[0], descriptors[1]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The faults of a life with so many looks, of which the second half finds so much more.
    #[track_caller]
    fn check(looks: usize, more_memory: u64, more_descriptors: u64, faults: &[&str]) {
        let sample = |look| {
            let is_late = u64::from(look >= looks / 2);
            let resident = 20_000 + is_late * more_memory;
            Sample { resident, descriptors: 10 + is_late * more_descriptors }
        };
        let samples: Vec<_> = (0..looks).map(sample).collect();
        let mut tally = Tally::default();
        compare(&samples, Duration::from_mins(1), &mut tally);
        assert_eq!(tally.faults(), faults);
    }

    #[test]
    fn what_grows_is_a_fault_and_so_is_a_life_that_nobody_looked_at() {
        check(100, 0, 0, &[]);
        check(100, GROWTH, MORE_DESCRIPTORS, &[]);
        check(100, GROWTH + 1, 0, &["memory grew from 20000 to 36385 KiB"]);
        check(100, 0, MORE_DESCRIPTORS + 1, &["descriptors grew from 10 to 23"]);
        // Early and late looks are not the same ones.
        check(22, GROWTH + 1, 0, &["memory grew from 20000 to 36385 KiB"]);
        check(20, GROWTH + 1, 0, &["too few looks at a long life to compare: 20"]);
        check(0, 0, 0, &["too few looks at a long life to compare: 0"]);
    }
}

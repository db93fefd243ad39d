//! Two assistants in one workspace. The second says who has it and follows nothing; nothing is told twice.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use tokio::time::Instant;
use volcanic_base::Chance;
use volcanic_testkit::Process;

use super::{
    aim::below,
    judge::Judge,
    said::{Said, SaidTask},
    scene::{PATIENCE, Scene},
    stage::Stage,
    tally::Tally,
};

/// What the second one says.
const HELD: &str = "has this workspace";

/// So many rounds over one state.
pub(super) async fn run(stage: Arc<Stage>, rounds: u32, seed: u64) -> Result<Tally> {
    let mut scene = Scene::prepare(&stage).await?;
    let (mut tally, chance) = (Tally::default(), Chance::seeded(seed));
    for round in 0..rounds {
        let faults = tally.faults().len();
        if round % 2 == 0 {
            one_after_the_other(&mut scene, &chance, &mut tally).await?;
        } else {
            at_once(&mut scene, &chance, &mut tally).await?;
        }
        tally.count("rounds of two in one workspace", 1);
        if tally.faults().len() > faults {
            tally.note(format!("these faults came with round {round} of seed {seed}"));
            break;
        }
    }
    scene.settle(Duration::from_secs(1), &mut tally).await?;
    scene.verdict(&mut tally)?;
    Ok(tally)
}

/// The second starts while the first follows a task; one of the two is killed.
async fn one_after_the_other(scene: &mut Scene, chance: &Chance, tally: &mut Tally) -> Result<()> {
    let mut first = scene.chat("0")?.start()?;
    let id = first.id().context("the first one ended")?;
    first.say(&scene.say(Said::new(SaidTask::Slow, chance))).await?;
    first.line(PATIENCE, "that it follows the task", |line| line.contains("delivered")).await?;
    let mut second = scene.chat("0")?.start()?;
    let told = format!("process {id} {HELD}");
    second.line(PATIENCE, "who has the workspace", |line| line.contains(&told)).await?;
    second.say("ask demo: echo twin").await?;
    second
        .line(PATIENCE, "that it has no agents", |line| line.contains("not available here"))
        .await?;
    if below(chance, 2) == 0 {
        second.kill().await?;
        scene.until_rest(&mut first, Duration::ZERO, tally).await?;
        leave(scene, first, tally).await
    } else {
        let (_, shown) = first.kill().await?;
        scene.saw(shown);
        scene.note_in_flight(&Judge::of_the_dead(scene.database())?)?;
        // The second one stays a visitor; whoever comes now has the workspace.
        let mut third = scene.chat("0")?.start()?;
        scene.until_rest(&mut third, Duration::ZERO, tally).await?;
        if third.seen().iter().any(|line| line.contains(HELD)) {
            tally.fault("the workspace of a dead process was held");
        }
        second.finish(PATIENCE).await?;
        leave(scene, third, tally).await
    }
}

/// Both start at the same time: one of them has the workspace.
async fn at_once(scene: &mut Scene, chance: &Chance, tally: &mut Tally) -> Result<()> {
    let mut both = [scene.chat("0")?.start()?, scene.chat("0")?.start()?];
    let said = [Said::new(SaidTask::Slow, chance), Said::new(SaidTask::Slow, chance)];
    for (chat, said) in both.iter_mut().zip(said) {
        chat.say(&scene.say(said)).await?;
    }
    let deadline = Instant::now() + PATIENCE;
    // The visitor ends its turn without an agent, the other one hands its task over.
    for chat in &mut both {
        let within = deadline.saturating_duration_since(Instant::now());
        let is_end = |line: &str| line.contains("not available here") || line.contains("delivered");
        chat.line(within, "the end of its turn", is_end).await?;
    }
    let is_visitor = |chat: &Process| chat.seen().iter().any(|line| line.contains(HELD));
    let visitors = both.iter().filter(|chat| is_visitor(chat)).count();
    if visitors != 1 {
        tally.fault(format!("of two that started at once {visitors} were refused the workspace"));
    }
    let [one, other] = both;
    let (mut holder, visitor) = if is_visitor(&one) { (other, one) } else { (one, other) };
    visitor.finish(PATIENCE).await?;
    scene.until_rest(&mut holder, Duration::ZERO, tally).await?;
    leave(scene, holder, tally).await
}

async fn leave(scene: &mut Scene, chat: Process, tally: &mut Tally) -> Result<()> {
    let (status, shown) = chat.finish(PATIENCE).await?;
    scene.saw(shown);
    if !status.success() {
        tally.fault(format!("an undisturbed end was {status}"));
    }
    Ok(())
}

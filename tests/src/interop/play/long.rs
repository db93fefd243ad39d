//! Tasks that outlast the patience of whoever asked.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::interop::{
    actor::{Player, Shown},
    scene::Scene,
    wire::{Call, Operation, WireEvent},
};

/// How long a polled result may take: the first poll is after 15 s, with up to a tenth more.
const POLLED: Duration = Duration::from_secs(30);

/// How long a result that a stream announces may take: less than until the first poll.
const STREAMED: Duration = Duration::from_secs(12);

/// Sends something that takes longer than it is waited for.
async fn begin(scene: &mut Scene, seconds: u32) -> Result<Shown> {
    let words = format!("slow {seconds} {}", scene.word);
    scene.actor.send(&words).await?;
    let shown = goes_on(scene)?;
    scene.actor.exits(5)?;
    if scene.actor.player == Player::Tool {
        let handed_over = |line: &str| line.contains("will be delivered to this conversation");
        scene.actor.line("the hand-over", handed_over).map(drop)?;
    }
    scene.sent(&words)?.is(&shown)?;
    Ok(shown)
}

/// What is known of a task that goes on: it has been accepted, and perhaps begun.
fn goes_on(scene: &Scene) -> Result<Shown> {
    let working = scene.actor.task_line("working");
    working.or_else(|_| scene.actor.task_line("submitted"))
}

/// The outcome of the task that [`begin`] began.
fn is_done(scene: &Scene, begun: &Shown) -> Result<()> {
    let shown = scene.actor.task_line("completed")?;
    ensure!(shown == *begun, "the outcome is of {shown:?} instead of {begun:?}");
    let answer = format!("slow: {}", scene.word);
    scene.actor.line("the answer", |line| line == answer).map(drop)?;
    scene.actor.exits(0)
}

pub(super) async fn slow_then_status(scene: &mut Scene) -> Result<()> {
    let begun = begin(scene, 5).await?;
    let reads = scene.reads();
    scene.actor.status(&begun.task).await?;
    ensure!(goes_on(scene)? == begun, "the status is of another task");
    scene.actor.exits(5)?;
    ensure!(scene.reads() > reads, "the status was told without asking");
    scene.actor.status_until_settled(&begun.task).await?;
    is_done(scene, &begun)?;
    scene.check_calls()?;
    let last = scene.calls_of(&Operation::GetTask).pop().and_then(|call| call.task());
    let last = last.context("the last read holds no task")?;
    ensure!(last.id == begun.task && last.state == "completed", "the last read was {last:?}");
    Ok(())
}

pub(super) async fn cancel(scene: &mut Scene) -> Result<()> {
    let begun = begin(scene, 60).await?;
    scene.actor.cancel(&begun.task).await?;
    let shown = scene.actor.task_line("canceled")?;
    ensure!(shown == begun, "{shown:?} was canceled instead of {begun:?}");
    scene.actor.exits(0)?;
    scene.check_calls()?;
    let call = scene.call_of(&Operation::CancelTask)?;
    let task = call.task().context("the answer to the cancellation holds no task")?;
    ensure!(task.id == begun.task && task.state == "canceled", "the agent answered {task:?}");
    Ok(())
}

pub(super) async fn agent_down(scene: &mut Scene) -> Result<()> {
    let begun = begin(scene, 3).await?;
    scene.proxy.go_down().await;
    scene.actor.status(&begun.task).await?;
    let unreachable = |line: &str| line.contains("Could not reach agent \"peer\"");
    scene.actor.line("that the agent cannot be reached", unreachable).map(drop)?;
    scene.actor.exits(3)?;
    if scene.actor.player == Player::Tool {
        let watched = |line: &str| line.contains("The task is still watched.");
        scene.actor.line("that the task is still watched", watched).map(drop)?;
    }
    scene.proxy.come_back().await?;
    scene.actor.status_until_settled(&begun.task).await?;
    is_done(scene, &begun)?;
    scene.sent(&format!("slow 3 {}", scene.word))?.is(&begun)
}

/// The message is answered when the task has ended, and that is all there is to it: nothing is sent again meanwhile.
pub(super) async fn holds_back(scene: &mut Scene) -> Result<()> {
    let words = format!("hold 3 {}", scene.word);
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line("completed")?;
    let answer = format!("held: {}", scene.word);
    scene.actor.line("the answer", |line| line == answer).map(drop)?;
    scene.actor.exits(0)?;
    let sent = scene.sent(&words)?;
    sent.is(&shown)?;
    let state = &sent.task.state;
    ensure!(state == "completed", "the agent answered before the task had ended: it was {state}");
    Ok(())
}

/// The outcome of the task that [`begin`] began finds its way into the chat by itself.
async fn comes_by_itself(scene: &mut Scene, begun: &Shown, within: Duration) -> Result<()> {
    let reads = scene.reads();
    scene.actor.news(within).await?;
    let shown = scene.actor.shown();
    let whose = format!("result from \"peer\", task {} (completed)", begun.task);
    ensure!(shown.contains(&whose), "the news is not of the task:\n{shown}");
    let answer = format!("slow: {}", scene.word);
    ensure!(shown.contains(&answer), "the news did not bring the result:\n{shown}");
    ensure!(scene.reads() > reads, "the result came without a read");
    let pushes = scene.calls_of(&Operation::CreatePushConfig).len();
    ensure!(pushes == 0, "a chat without a push route asked for pushes");
    scene.sent(&format!("slow 3 {}", scene.word))?.is(begun)
}

/// The agent does not stream, and a chat has no push route, so it has to be asked.
pub(super) async fn polled(scene: &mut Scene) -> Result<()> {
    let begun = begin(scene, 3).await?;
    comes_by_itself(scene, &begun, POLLED).await?;
    let streams = scene.calls_of(&Operation::SubscribeToTask).len();
    ensure!(streams == 0, "an agent that does not stream was subscribed to");
    Ok(())
}

/// The watch holds a stream of its own, which says when to read.
pub(super) async fn streamed(scene: &mut Scene) -> Result<()> {
    let begun = begin(scene, 3).await?;
    comes_by_itself(scene, &begun, STREAMED).await?;
    let streams = scene.calls_of(&Operation::SubscribeToTask);
    let told = |call: &Call| call.events().contains(&WireEvent::Status("completed".to_owned()));
    ensure!(streams.iter().any(told), "no stream told that the task had ended");
    Ok(())
}

//! Streams, and what is done without them.

use anyhow::{Context as _, Result, ensure};

use crate::interop::{
    scene::Scene,
    wire::{Call, Operation, WireEvent},
};

/// In how many steps the agent answers.
const STEPS: usize = 6;

fn steps(scene: &Scene) -> (String, Vec<String>) {
    let texts = (1..=STEPS).map(|number| format!("step {number} of {}", scene.word)).collect();
    (format!("steps {STEPS} {}", scene.word), texts)
}

/// Checks that a stream brought an answer piece by piece, and then the end. Who subscribes comes after the first pieces, but
/// before the last two.
fn came_one_by_one(call: &Call, texts: &[String]) -> Result<()> {
    ensure!(call.is_stream(), "{} was not answered with a stream", call.target());
    let events = call.events();
    let pieces: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            WireEvent::Artifact(text) => Some(text.trim()),
            _ => None,
        })
        .collect();
    let is_end = texts.iter().map(String::as_str).collect::<Vec<_>>().ends_with(&pieces);
    ensure!(
        is_end && pieces.len() > 1,
        "the stream did not bring the steps one by one: {pieces:?}"
    );
    let last = events.last().context("the stream brought nothing")?;
    ensure!(*last == WireEvent::Status("completed".to_owned()), "the last event was {last:?}");
    Ok(())
}

/// Checks that the answer is shown once and whole: each step on a line of its own, in order, none twice.
fn is_told_once(scene: &Scene, texts: &[String]) -> Result<()> {
    let shown = scene.actor.shown();
    let told: Vec<&str> = shown.lines().filter(|line| line.starts_with("step ")).collect();
    ensure!(told == texts, "the {} did not show the answer once: {told:?}", scene.actor.player);
    Ok(())
}

/// A task that is waited for at an agent that streams: it is subscribed to, and read when the stream says that it ended.
pub(super) async fn streaming(scene: &mut Scene) -> Result<()> {
    let (words, texts) = steps(scene);
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line("completed")?;
    scene.actor.exits(0)?;
    scene.sent(&words)?.is(&shown)?;
    let subscriptions = scene.calls_of(&Operation::SubscribeToTask);
    let stream = subscriptions.last().context("it was not subscribed to")?;
    came_one_by_one(stream, &texts)?;
    let read = scene.calls_of(&Operation::GetTask).pop().and_then(|call| call.task());
    ensure!(
        read.is_some_and(|task| task.id == shown.task && task.state == "completed"),
        "the outcome was not read from the agent"
    );
    is_told_once(scene, &texts)
}

/// A task that is waited for at an agent that does not stream: it is read again and again.
pub(super) async fn not_streaming(scene: &mut Scene) -> Result<()> {
    let words = format!("slow 2 {}", scene.word);
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line("completed")?;
    let subscriptions = scene.calls_of(&Operation::SubscribeToTask).len();
    ensure!(subscriptions == 0, "it was subscribed to, {subscriptions} times");
    let answer = format!("slow: {}", scene.word);
    scene.actor.line("the answer", |line| line == answer).map(drop)?;
    scene.actor.exits(0)?;
    ensure!(scene.reads() > 1, "the task was read {} times", scene.reads());
    scene.sent(&words)?.is(&shown)
}

/// The stream is the answer to the message itself.
pub(super) async fn streamed_send(scene: &mut Scene) -> Result<()> {
    let (words, texts) = steps(scene);
    scene.actor.run(&["send", "peer", &words, "--stream"]).await?;
    let call = scene.sent_over(&Operation::SendStreamingMessage, &words)?;
    came_one_by_one(&call, &texts)?;
    for text in &texts {
        scene.actor.line(text, |line| line.contains(text)).map(drop)?;
    }
    let task = call.events().into_iter().find_map(|event| match event {
        WireEvent::Task(task) => Some(task),
        _ => None,
    });
    let task = task.context("the stream brought no task")?;
    scene.actor.line("the task", |line| line.contains(&task.id)).map(drop)?;
    scene.actor.exits(0)
}

/// A task that somebody else waits for is followed to its end.
pub(super) async fn subscribe(scene: &mut Scene) -> Result<()> {
    let (words, texts) = steps(scene);
    scene.actor.run(&["send", "peer", &words, "--async"]).await?;
    let sent = scene.sent(&words)?;
    scene.actor.line("the task", |line| line.contains(&sent.task.id)).map(drop)?;
    scene.actor.run(&["subscribe", "peer", &sent.task.id]).await?;
    scene.check_calls()?;
    let stream = scene.calls_of(&Operation::SubscribeToTask).pop();
    let stream = stream.context("it was not subscribed to")?;
    came_one_by_one(&stream, &texts)?;
    for text in &texts {
        scene.actor.line(text, |line| line.contains(text)).map(drop)?;
    }
    scene.actor.exits(0)
}

/// The stream breaks off in the middle of its first event; what was missed is read.
pub(super) async fn stream_cut(scene: &mut Scene) -> Result<()> {
    let words = format!("slow 3 {}", scene.word);
    scene.proxy.cut_next_stream();
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line("completed")?;
    let answer = format!("slow: {}", scene.word);
    scene.actor.line("the answer", |line| line == answer).map(drop)?;
    scene.actor.exits(0)?;
    ensure!(!scene.proxy.will_cut(), "there was no stream to cut");
    scene.sent(&words)?.is(&shown)?;
    let is_cut = |call: &Call| call.is_stream() && !call.is_whole();
    let streams = scene.calls_of(&Operation::SubscribeToTask);
    ensure!(streams.iter().any(is_cut), "no stream broke off");
    let read = scene.calls_of(&Operation::GetTask).pop().and_then(|call| call.task());
    ensure!(
        read.is_some_and(|task| task.id == shown.task && task.state == "completed"),
        "the outcome was not read from the agent"
    );
    Ok(())
}

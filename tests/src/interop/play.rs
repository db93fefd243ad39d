//! How each scenario is played, and what it must come to.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::{
    actor::Player,
    scenario::Scenario,
    scene::{Scene, files},
    wire::Operation,
};

mod following;
mod long;
mod refusing;
mod webhooks;

/// Plays a scenario to its end.
pub(super) async fn play(scenario: Scenario, scene: &mut Scene) -> Result<()> {
    match scenario {
        Scenario::List => list(scene).await,
        Scenario::Send => send(scene).await,
        Scenario::Files => both_ways(scene).await,
        Scenario::Parts => parts(scene).await,
        Scenario::Question => question(scene).await,
        Scenario::Failed => ends_badly(scene, "fail", "failed", "cannot do").await,
        Scenario::Rejected => ends_badly(scene, "reject", "rejected", "will not do").await,
        Scenario::SlowThenStatus => long::slow_then_status(scene).await,
        Scenario::Cancel => long::cancel(scene).await,
        Scenario::CancelTooLate => refusing::cancel_too_late(scene).await,
        Scenario::Streaming => following::streaming(scene).await,
        Scenario::NotStreaming => following::not_streaming(scene).await,
        Scenario::StreamedSend => following::streamed_send(scene).await,
        Scenario::Subscribe => following::subscribe(scene).await,
        Scenario::StreamCut => following::stream_cut(scene).await,
        Scenario::WrongKey => refusing::wrong_key(scene).await,
        Scenario::AgentDown => long::agent_down(scene).await,
        Scenario::HoldsBack => long::holds_back(scene).await,
        Scenario::ListTasks => list_tasks(scene).await,
        Scenario::PushConfigs => webhooks::all_four(scene).await,
        Scenario::Polled => long::polled(scene).await,
        Scenario::Streamed => long::streamed(scene).await,
        // It is played by the bot, which has no scene of its own.
        Scenario::Pushed => Ok(()),
    }
}

async fn list(scene: &mut Scene) -> Result<()> {
    scene.actor.agents().await?;
    let actor = &scene.actor;
    actor.line("the agent", |line| line.starts_with("peer")).map(drop)?;
    actor.line("that it streams and pushes", |line| line.contains("streams, pushes")).map(drop)?;
    actor
        .line("the skill", |line| {
            line.contains("interop") && line.contains("Answers, asks, files, waits")
        })
        .map(drop)?;
    actor.exits(0)?;
    let card = scene.call_of(&Operation::Card)?;
    ensure!(card.status() == Some(200), "the card was answered with {:?}", card.status());
    ensure!(scene.calls().len() == 1, "more than the card was asked for");
    Ok(())
}

async fn send(scene: &mut Scene) -> Result<()> {
    let words = format!("quick {}", scene.word);
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line("completed")?;
    let answer = format!("quick: {}", scene.word);
    scene.actor.line("the answer", |line| line == answer).map(drop)?;
    scene.actor.exits(0)?;
    scene.sent(&words)?.is(&shown)
}

async fn both_ways(scene: &mut Scene) -> Result<()> {
    // Every byte there is, so that nothing passes for text.
    let there: Vec<u8> = (0..=255).chain(scene.word.bytes()).collect();
    fs::write(scene.actor.workspace().join("all.bin"), &there)?;
    let words = format!("mirror {}", scene.word);
    scene.actor.send_file(&words, "all.bin").await?;
    let shown = scene.actor.task_line("completed")?;
    let answer = format!("mirrored 1 for {}", scene.word);
    scene.actor.line("the answer", |line| line == answer).map(drop)?;
    let named = "Files: inbox/a2a/peer/mirrored-all.bin";
    scene.actor.line("the file", |line| line == named).map(drop)?;
    scene.actor.exits(0)?;
    let saved = files(&scene.actor.workspace().join("inbox/a2a/peer"))?;
    ensure!(saved.len() == 1, "these files were saved: {:?}", saved.keys());
    let bytes = saved.get("mirrored-all.bin").context("the file named is not there")?;
    let back: Vec<u8> = there.into_iter().rev().collect();
    ensure!(*bytes == back, "the file holds {:?}", String::from_utf8_lossy(bytes));
    let call = scene.sent_over(&Operation::SendMessage, &words)?;
    let text = call.params.to_string();
    ensure!(text.contains("all.bin"), "the file went out without its name");
    scene.sent(&words)?.is(&shown)
}

/// The tool takes no links and no data, so it only gets some.
async fn parts(scene: &mut Scene) -> Result<()> {
    let word = scene.word.clone();
    let words = format!("parts {word}");
    let link = format!("https://files.example/{word}/there");
    let given = match scene.actor.player {
        Player::Tool => {
            scene.actor.send(&words).await?;
            "nothing".to_owned()
        }
        Player::CommandLine => {
            let data = format!(r#"{{"word":"{word}"}}"#);
            let arguments = ["send", "peer", &words, "--url", &link, "--data", &data];
            scene.actor.run(&arguments).await?;
            format!("{link} and {word}")
        }
    };
    let shown = scene.actor.task_line("completed")?;
    let data = format!(r#"{{"back":"{word}"}}"#);
    scene.actor.line("the data", |line| line == data).map(drop)?;
    let links = format!("Links: https://files.example/{word}.pdf");
    scene.actor.line("the link", |line| line == links).map(drop)?;
    let answer = format!("given {given}");
    scene.actor.line("what the agent was given", |line| line == answer).map(drop)?;
    scene.actor.exits(0)?;
    let saved = files(&scene.actor.workspace().join("inbox/a2a/peer"))?;
    ensure!(saved.is_empty(), "a link was fetched: {:?}", saved.keys());
    scene.sent(&words)?.is(&shown)
}

async fn question(scene: &mut Scene) -> Result<()> {
    let words = format!("ask {}", scene.word);
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line("input-required")?;
    let asked = format!("Which day for {}?", scene.word);
    scene.actor.line("the question", |line| line == asked).map(drop)?;
    scene.actor.exits(6)?;
    scene.sent(&words)?.is(&shown)?;

    let reply = format!("Monday-{}", scene.word);
    scene.actor.reply(&shown.task, &reply).await?;
    let same = scene.actor.task_line("completed")?;
    ensure!(same == shown, "the answer went to {same:?} instead of {shown:?}");
    let answer = format!("booked {} for {reply}", scene.word);
    scene.actor.line("the answer", |line| line == answer).map(drop)?;
    scene.actor.exits(0)?;
    scene.sent(&reply)?.is(&same)?;
    let call = scene.sent_over(&Operation::SendMessage, &reply)?;
    let message = &call.params["message"];
    ensure!(message["taskId"] == shown.task.as_str(), "the answer named no task");
    ensure!(message["contextId"] == shown.context.as_str(), "the answer named no context");
    Ok(())
}

async fn ends_badly(scene: &mut Scene, verb: &str, state: &str, why: &str) -> Result<()> {
    let words = format!("{verb} {}", scene.word);
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line(state)?;
    let why = format!("{why} {}", scene.word);
    scene.actor.line("why", |line| line == why).map(drop)?;
    scene.actor.exits(1)?;
    scene.sent(&words)?.is(&shown)
}

/// Two tasks of one conversation, and one of another.
async fn list_tasks(scene: &mut Scene) -> Result<()> {
    let word = scene.word.clone();
    scene.actor.send(&format!("quick {word}")).await?;
    let first = scene.actor.task_line("completed")?;
    let other = format!("steps 1 {word}");
    scene.actor.run(&["send", "peer", &other, "--context", &first.context]).await?;
    let second = scene.actor.task_line("completed")?;
    ensure!(second.context == first.context, "the second task is in another context");
    scene.actor.send(&format!("quick elsewhere {word}")).await?;
    let elsewhere = scene.actor.task_line("completed")?;

    scene.actor.run(&["tasks", "peer", "--context", &first.context]).await?;
    scene.actor.exits(0)?;
    for task in [&first.task, &second.task] {
        let is_it = |line: &str| line.contains(task.as_str()) && line.contains("completed");
        scene.actor.line("the other task", is_it).map(drop)?;
    }
    ensure!(!scene.actor.shown().contains(&elsewhere.task), "a task of elsewhere is shown");
    scene.check_calls()?;
    let call = scene.call_of(&Operation::ListTasks)?;
    let tasks = call.result()["tasks"].as_array().map_or(0, Vec::len);
    ensure!(tasks == 2, "the agent listed {tasks} tasks instead of two");
    Ok(())
}

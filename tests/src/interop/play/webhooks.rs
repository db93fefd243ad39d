//! The webhooks of a task, by hand.

use anyhow::{Context as _, Result, ensure};

use crate::interop::{
    scene::Scene,
    wire::{Call, Operation},
};

/// A webhook is made, read, listed and removed.
pub(super) async fn all_four(scene: &mut Scene) -> Result<()> {
    let words = format!("slow 30 {}", scene.word);
    scene.actor.run(&["send", "peer", &words, "--async"]).await?;
    let sent = scene.sent(&words)?;
    let task = sent.task.id.as_str();
    let hook = format!("http://127.0.0.1:9/hook/{}", scene.word);
    let id = format!("hook-{}", scene.word);
    let token = format!("token-{}", scene.word);
    let token_file = scene.folder().join("token");
    std::fs::write(&token_file, &token)?;
    let token_file = token_file.display().to_string();

    let arguments =
        ["push-config", "create", "peer", task, &hook, "--id", &id, "--token-file", &token_file];
    scene.actor.run(&arguments).await?;
    scene.actor.exits(0)?;
    ensure!(!scene.actor.shown().contains(&token), "the token is shown");
    let made = scene.call_of(&Operation::CreatePushConfig)?;
    is_it(&made, &id, &hook)?;
    ensure!(made.params.to_string().contains(&token), "the token was not sent");

    scene.actor.run(&["push-config", "get", "peer", task, &id]).await?;
    scene.actor.exits(0)?;
    scene.actor.line("the webhook", |line| line.contains(&hook)).map(drop)?;
    is_it(&scene.call_of(&Operation::GetPushConfig)?, &id, &hook)?;

    scene.actor.run(&["push-config", "list", "peer", task]).await?;
    scene.actor.exits(0)?;
    scene.actor.line("the webhook", |line| line.contains(&hook)).map(drop)?;
    is_it(&scene.call_of(&Operation::ListPushConfigs)?, &id, &hook)?;

    scene.actor.run(&["push-config", "delete", "peer", task, &id]).await?;
    scene.actor.exits(0)?;
    scene.call_of(&Operation::DeletePushConfig)?;
    scene.actor.run(&["push-config", "list", "peer", task]).await?;
    ensure!(!scene.actor.shown().contains(&hook), "the webhook is still there");
    scene.actor.exits(0)?;
    let last = scene.calls_of(&Operation::ListPushConfigs).pop().context("no list")?;
    ensure!(!last.result().to_string().contains(&hook), "the agent still lists the webhook");
    scene.actor.cancel(task).await?;
    scene.check_calls()
}

/// Checks that the agent's answer is about the webhook.
fn is_it(call: &Call, id: &str, hook: &str) -> Result<()> {
    let result = call.result().to_string();
    ensure!(
        result.contains(id) && result.contains(hook),
        "{:?} was answered with {result}",
        call.operation
    );
    Ok(())
}

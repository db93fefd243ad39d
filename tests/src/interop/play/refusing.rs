//! What agents refuse.

use anyhow::{Context as _, Result, ensure};

use crate::interop::{
    actor::Player,
    peer::{Column, KEY},
    scene::Scene,
    wire::Operation,
};

pub(super) async fn cancel_too_late(scene: &mut Scene) -> Result<()> {
    let words = format!("quick {}", scene.word);
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line("completed")?;
    scene.actor.cancel(&shown.task).await?;
    // Over HTTP+JSON the code of JSON-RPC is what the reason stands for.
    let refused =
        |line: &str| line.contains("Agent \"peer\" refused: ") && line.contains("(-32002)");
    scene.actor.line("the refusal", refused).map(drop)?;
    scene.actor.exits(1)?;
    scene.sent(&words)?.is(&shown)?;
    let call = scene.call_of(&Operation::CancelTask)?;
    let error = call.error().context("the cancellation was not refused")?;
    let wanted = match scene.column {
        Column::PythonRpc | Column::Python03Rpc | Column::RustRpc => "-32002",
        Column::PythonRest | Column::RustRest => "TASK_NOT_CANCELABLE",
    };
    ensure!(error == wanted, "the agent refused with {error} instead of {wanted}");
    Ok(())
}

/// The right key opens, the wrong one does not, and neither is shown.
pub(super) async fn wrong_key(scene: &mut Scene) -> Result<()> {
    let words = format!("quick {}", scene.word);
    scene.actor.send(&words).await?;
    let shown = scene.actor.task_line("completed")?;
    scene.sent(&words)?.is(&shown)?;
    let mut said = scene.actor.shown();

    let words = format!("quick again {}", scene.word);
    scene.actor.send_to("stranger", &words).await?;
    said.push_str(&scene.actor.shown());
    let rejected = |line: &str| line.contains("Agent \"stranger\" rejected the key (401).");
    scene.actor.line("that the key was rejected", rejected).map(drop)?;
    scene.actor.exits(4)?;
    let wrong = scene.wrong_key();
    ensure!(!said.contains(KEY) && !said.contains(&wrong), "a key was shown:\n{said}");

    let call = scene.sent_over(&Operation::SendMessage, &words)?;
    ensure!(call.status() == Some(401), "the wrong key was answered with {:?}", call.status());
    ensure!(call.header("x-api-key") == Some(wrong.as_str()), "the wrong key was not sent");
    for call in scene.calls() {
        let key = call.header("x-api-key");
        match call.operation {
            Operation::Card => ensure!(key.is_none(), "a key was sent for a card"),
            _ => ensure!(key.is_some(), "{} carried no key", call.target()),
        }
        ensure!(call.header("authorization").is_none(), "a key went into another header");
    }
    if scene.actor.player == Player::Tool {
        scene.actor.agents().await?;
        let shown = scene.actor.shown();
        ensure!(!shown.contains(KEY) && !shown.contains(&wrong), "a key was listed:\n{shown}");
    }
    Ok(())
}

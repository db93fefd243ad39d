//! The model adapter against a model server that nobody here wrote.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use volcanic_testkit::{Program, RecordingProxy};

use super::{
    InteropPlan,
    actor::Player,
    peer::{Column, Peers, Port, await_listener},
    scene::{Scene, word},
};

/// What it is called in the report.
pub(super) const NAME: &str = "a model server nobody here wrote: chat, tool call, answer";

/// A chat whose model calls the `a2a` tool, sees its result and answers: streamed over the OpenAI dialect.
pub(super) async fn round_trip(plan: &InteropPlan, peers: &Peers) -> Result<()> {
    let column = Column::PythonRpc;
    let address = peers.address(column.sdk(), false)?;
    let wait = Duration::from_secs(20);
    let scene = Scene::set(plan, column, Player::Tool, "open", wait, address).await?;
    let (word, answer) = (word(), word());
    let fixtures = json!({ "fixtures": [
        {
            "match": { "userMessage": word, "turnIndex": 0 },
            "response": { "toolCalls": [{
                "name": "a2a",
                "arguments": json!({ "action": "send", "agent": "peer", "message": format!("quick {word}") }).to_string()
            }] }
        },
        { "match": { "userMessage": word, "turnIndex": 1 }, "response": { "content": format!("It said {answer}.") } }
    ] });
    let file = scene.folder().join("fixtures.json");
    std::fs::write(&file, fixtures.to_string())?;
    let port = Port::reserve()?;
    let address = port.address();
    let _server =
        Program::new("the model server", plan.peers.join("aimock/node_modules/.bin/llmock"))
            .args(["-p", &address.port().to_string(), "-f"])
            .arg(&file)
            .quiet()
            .start()?;
    await_listener(address).await?;
    let wire = RecordingProxy::start(address).await?;

    let mut chat = Program::new("the assistant", &plan.volcanic)
        .args(["chat", "--model", "openai:gpt-4o-mini", "--workspace"])
        .arg(scene.actor.workspace())
        .env("VOLCANIC_HOME", scene.folder().join("home"))
        .env("OPENAI_BASE_URL", format!("http://{}/v1", wire.address()))
        .env("OPENAI_API_KEY", "no-real-key")
        .start()?;
    let played = async {
        chat.say(&format!("Please ask the peer about {word}")).await?;
        chat.line(Duration::from_secs(15), "the answer", |line| line.contains(&answer)).await?;
        scene.sent(&format!("quick {word}"))?;
        ensure!(
            wire.requested(&format!("quick: {word}")),
            "the tool's result did not reach the model"
        );
        ensure!(wire.requested("\"stream\":true"), "the reply was not streamed");
        anyhow::Ok(())
    };
    played.await.with_context(|| format!("the model exchange was:\n{}", wire.transcript()))
}

//! The bot, because only a host with a listener can be pushed to.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use volcanic_testkit::{BotApi, Program, RecordingProxy};

use super::{
    InteropPlan,
    peer::{Port, await_listener},
    scene::Scene,
    wire::Operation,
};

/// How long the bot may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// How long a pushed result may take. A watch that is pushed to reads by itself only after ten minutes.
const PUSHED: Duration = Duration::from_secs(12);

/// The owner.
const OWNER: i64 = 111_111_111;

/// A long task whose result is announced by a push.
pub(super) async fn play(plan: &InteropPlan, scene: &mut Scene) -> Result<()> {
    let word = scene.word.clone();
    let telegram = BotApi::start().await?;
    let port = Port::reserve()?;
    let listen = port.address();
    let route = RecordingProxy::start(listen).await?;
    let settings =
        scene.folder().join(format!("telegram-workspaces/{OWNER}")).join(".volcanic/a2a");
    std::fs::create_dir_all(&settings)?;
    let agents = Value::from(vec![scene.entry("peer")]);
    std::fs::write(settings.join("agents.json"), agents.to_string())?;
    let _bot = Program::new("the bot", &plan.bot)
        .env("VOLCANIC_HOME", scene.folder())
        .env("TELEGRAM_BOT_TOKEN", telegram.token())
        .env("TELEGRAM_ALLOWED_USER_IDS", OWNER.to_string())
        .env("Telegram__ApiUrl", telegram.url())
        .env("Telegram__Model", "scripted")
        .env("Ops__Log__Level", "warn")
        .env("A2AClient__Enabled", "true")
        .env("A2AClient__WaitSeconds", "1")
        .env("A2A__Enabled", "true")
        .env("A2A__Listen", listen.to_string())
        .env("A2A__PublicUrl", format!("http://{}", route.address()))
        .start()?;
    await_listener(listen).await?;
    let words = format!("slow 3 {word}");
    telegram.user_says(OWNER, &format!("ask peer: {words}"));
    telegram
        .await_message(OWNER, ANSWER, |message| message.text.contains("will be delivered"))
        .await?;
    telegram
        .await_message(OWNER, PUSHED, |message| message.text.contains(&format!("slow: {word}")))
        .await
        .context("no result was pushed")?;
    ensure!(route.requested("POST /a2a/push/"), "the result came, but not by a push");
    ensure!(
        telegram.violations().is_empty(),
        "the bot broke the Bot API: {:?}",
        telegram.violations()
    );
    let sent = scene.sent(&words)?;
    let config = scene.call_of(&Operation::CreatePushConfig)?;
    let asked = config.params.to_string();
    ensure!(
        asked.contains(&sent.task.id) || config.target().contains(&sent.task.id),
        "a push was asked for another task: {asked}"
    );
    ensure!(config.result() != json!(null), "the push config was refused");
    ensure!(
        asked.contains(&format!("http://{}/a2a/push/", route.address())),
        "the push config names another place: {asked}"
    );
    Ok(())
}

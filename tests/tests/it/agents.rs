use serde_json::json;

use crate::assistant::{Home, Setup, call, says};
use crate::remote::Remote;

async fn listed(home: &Home, remote: &Remote) -> String {
    let assistant =
        home.start(Setup::default(), [call(json!({"action": "agents"})), says("ok")]).await;
    assistant.say("who is there").await;
    let transcript = assistant.transcript(remote).await;
    assert_eq!(transcript.len(), 4, "{transcript:?}");
    assistant.stop().await;
    transcript[2].clone()
}

#[tokio::test]
async fn agents_lists_cards_and_skills() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    assert_eq!(
        listed(&home, &remote).await,
        "tool: bot: Follows a few fixed rules, so that what an assistant can do with a remote agent can be seen without a \
         model.\n  \
         card: demo agent (streams)\n  \
         skill echo (Echo): Answers with what it was sent. e.g. \"echo hello\"\n  \
         skill report (Report): Writes a text into a file. e.g. \"report all is well\"\n  \
         skill book (Book): Books something, after asking for the day. e.g. \"book a table\"\n  \
         skill slow (Slow work): Works so many seconds before it answers. e.g. \"slow 5s hello\"\n  \
         skill fail (Failure): Fails, or declines. e.g. \"fail out of paper\", \"reject this\""
    );
}

#[tokio::test]
async fn agents_unreachable_agent_listed() {
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    remote.stop().await;
    let text = listed(&home, &remote).await;
    assert!(
        text.starts_with("tool: bot\n  unreachable (failed to connect to 127.0.0.1:"),
        "{text}"
    );
}

#[tokio::test]
async fn agents_file_edited_applies_to_next_call() {
    let remote = Remote::new().await;
    let home = Home::new();
    home.write_agents("[]");
    let list = || call(json!({"action": "agents"}));
    let assistant = home.start(Setup::default(), [list(), says("none"), list(), says("one")]).await;
    assistant.say("first").await;
    home.write_agents(&format!(
        r#"[{{"name": "bot", "url": "{}", "description": "Mine."}}]"#,
        remote.url()
    ));
    assistant.say("second").await;
    let transcript = assistant.transcript(&remote).await;
    assert_eq!(
        transcript[2],
        "tool: No agents are configured. They stand in .volcanic/a2a/agents.json."
    );
    assert!(
        transcript[6].starts_with("tool: bot: Mine.\n  card: demo agent (streams)\n"),
        "{}",
        transcript[6]
    );
}

#[tokio::test]
async fn agents_malformed_file_reports_file() {
    let remote = Remote::new().await;
    let home = Home::new();
    home.write_agents("[{");
    let text = listed(&home, &remote).await;
    assert!(text.starts_with("error: ") && text.contains(".volcanic/a2a/agents.json"), "{text}");
    assert!(text.ends_with("No agents are known until that is mended."), "{text}");
}

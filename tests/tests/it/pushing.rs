use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use volcanic_a2a_watch::{WatchSource, WatchStore as _};
use volcanic_net::{CallKind, NetClient, NetConfig, Transport as _};

use crate::assistant::{Assistant, Home, Setup, says, send};
use crate::remote::{Remote, RemoteSetup, until, within};

/// Pushes alone: nothing else would notice within the patience of a test.
fn pushes_only() -> Setup {
    Setup {
        pushes: true,
        change: |config| {
            config.safety_read = Duration::from_hours(1);
            config.poll_pauses = vec![Duration::from_hours(1)];
        },
        ..Setup::at_once()
    }
}

async fn pushed(remote: &Remote) -> Assistant {
    let steps = [send("hold it"), says("It runs."), says("It is there.")];
    let assistant = Home::with(remote).start(pushes_only(), steps).await;
    assistant.say("go").await;
    until(async || assistant.watches.watches(None).await[0].source == WatchSource::Push).await;
    assistant
}

#[tokio::test]
async fn watch_push_delivers_follow_up() {
    let remote = RemoteSetup::new().with_pushes().start().await;
    let assistant = pushed(&remote).await;
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(
        transcript[4..],
        [
            "delivery: [A2A result from \"bot\", task T1 (completed)]\nContext: C1\nfinished: it",
            "assistant: It is there.",
        ]
    );
    assistant.wait_watches(&[]).await;
}

#[tokio::test]
async fn watch_push_bad_token_rejected() {
    let remote = RemoteSetup::new().with_pushes().start().await;
    let assistant = pushed(&remote).await;
    let watch = assistant.store.live().await.unwrap().remove(0);
    let client = NetClient::new(NetConfig::default()).unwrap();
    let base = assistant.push_base.clone().unwrap();
    let push = |id: &str, token: Option<&str>| {
        let mut request = Request::post(base.join(&format!("a2a/push/{id}")).unwrap().as_str());
        if let Some(token) = token {
            request = request.header("X-A2A-Notification-Token", token);
        }
        let sending = client.send(request.body(Bytes::from_static(b"{}")).unwrap(), CallKind::Call);
        async { within(sending).await.unwrap().status() }
    };
    let token = watch.push_token.as_ref().unwrap().expose();
    for (id, token) in [
        (watch.id.as_str(), Some("guessed")),
        (watch.id.as_str(), Some("")),
        (watch.id.as_str(), None),
        ("00000000000000000000000000000000", Some(token)),
    ] {
        assert_eq!(push(id, token).await, StatusCode::NOT_FOUND);
    }
    assert_eq!(push(watch.id.as_str(), Some(token)).await, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn forged_body_of_a_push_changes_nothing() {
    let remote = RemoteSetup::new().with_pushes().start().await;
    let assistant = pushed(&remote).await;
    let watch = assistant.store.live().await.unwrap().remove(0);
    let client = NetClient::new(NetConfig::default()).unwrap();
    let url = assistant.push_base.clone().unwrap().join(&format!("a2a/push/{}", watch.id)).unwrap();
    let forged = format!(
        r#"{{"task": {{"id": "{}", "status": {{"state": "TASK_STATE_COMPLETED"}},
            "artifacts": [{{"artifactId": "response", "parts": [{{"text": "forged"}}]}}]}}}}"#,
        watch.task_id
    );
    let request = Request::post(url.as_str())
        .header("X-A2A-Notification-Token", watch.push_token.as_ref().unwrap().expose())
        .body(Bytes::from(forged))
        .unwrap();
    let response = within(client.send(request, CallKind::Call)).await.unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    remote.release("it");
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert!(!format!("{transcript:?}").contains("forged"));
    assert_eq!(transcript.len(), 6, "{transcript:#?}");
}

#[tokio::test]
async fn push_that_comes_while_nobody_runs_is_made_up_for_at_the_next_start() {
    let remote = RemoteSetup::new().with_pushes().start().await;
    let home = Home::with(&remote);
    let assistant = home.start(pushes_only(), [send("hold it"), says("It runs.")]).await;
    assistant.say("go").await;
    assistant.kill().await;
    remote.release("it");
    let assistant = home.start(pushes_only(), [says("It is there.")]).await;
    let transcript = assistant.wait_line(&remote, "It is there.").await;
    assert_eq!(transcript.len(), 6, "{transcript:#?}");
}

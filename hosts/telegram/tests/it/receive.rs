//! The receive loop, with pauses short enough to be waited for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use volcanic_agent_core::StoreError;
use volcanic_base::{Chance, Secret};
use volcanic_store::{ReceivedUpdate, Store};
use volcanic_telegram::{ApiError, BotClient, ReceiveEnd, ReceivePauses, Receiver, UpdateHandler};
use volcanic_testkit::{BotApi, BotFault, BotOutcome};

use crate::bot::{LIMIT, open_store};

/// Notes the texts it handles; panics on one of them.
#[derive(Debug)]
struct Noting {
    store: Store,
    texts: Mutex<Vec<String>>,
}

#[async_trait]
impl UpdateHandler for Noting {
    async fn handle(&self, update: &ReceivedUpdate) -> Result<(), StoreError> {
        let value: serde_json::Value = serde_json::from_str(&update.raw).expect("JSON");
        let text = value["message"]["text"].as_str().unwrap_or_default().to_owned();
        assert_ne!(text, "poison");
        self.texts.lock().expect("unpoisoned").push(text);
        self.store.update_handled(update.update_id, None).await.map(drop)
    }
}

struct Loop {
    api: BotApi,
    handler: Arc<Noting>,
    stop: CancellationToken,
    tasks: TaskTracker,
    ended: tokio::sync::oneshot::Receiver<ReceiveEnd>,
    _home: tempfile::TempDir,
}

const POLL: Duration = Duration::from_secs(1);

async fn start(prepare: impl FnOnce(&BotApi)) -> Loop {
    let api = BotApi::start().await.expect("the Bot API starts");
    prepare(&api);
    let home = tempfile::tempdir().expect("a folder");
    let store = open_store(&home.path().join("state.db"));
    let handler = Arc::new(Noting { store: store.clone(), texts: Mutex::default() });
    let url = api.url().parse().expect("a URL");
    let client = BotClient::new(&Secret::new(api.token()), &url, POLL).expect("a client");
    let receiver = Receiver {
        api: client,
        store,
        handler: handler.clone(),
        chance: Arc::new(Chance::seeded(1)),
        pauses: ReceivePauses {
            retry: vec![Duration::from_millis(20)],
            conflict: Duration::from_millis(200),
            store: Duration::from_millis(20),
        },
    };
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let (tell, ended) = tokio::sync::oneshot::channel();
    let cancel = stop.clone();
    tasks.spawn(async move {
        let _ = tell.send(receiver.run(cancel).await);
    });
    Loop { api, handler, stop, tasks, ended, _home: home }
}

impl Loop {
    async fn finish(self) -> (ReceiveEnd, Vec<String>) {
        self.api.await_acknowledged(LIMIT).await.expect("acknowledged");
        self.stop.cancel();
        self.tasks.close();
        let end = tokio::time::timeout(LIMIT, self.ended)
            .await
            .expect("it ends")
            .expect("its end is told");
        let texts = self.handler.texts.lock().expect("unpoisoned").clone();
        (end, texts)
    }
}

#[tokio::test]
async fn updates_are_handled_once_and_in_order() {
    let running = start(|_| ()).await;
    for text in ["a", "b", "c"] {
        running.api.user_says(5, text);
    }
    running.api.await_acknowledged(LIMIT).await.expect("acknowledged");
    running.api.user_says(5, "d");
    assert_eq!(
        running.finish().await,
        (ReceiveEnd::Stopped, ["a", "b", "c", "d"].map(str::to_owned).to_vec())
    );
}

#[tokio::test]
async fn an_update_that_cannot_be_handled_blocks_nothing() {
    let running = start(|_| ()).await;
    for text in ["a", "poison", "b"] {
        running.api.user_says(5, text);
    }
    assert_eq!(running.finish().await.1, ["a", "b"]);
}

#[tokio::test]
async fn a_poll_that_hangs_is_given_up() {
    let running = start(|api| api.fail_next("getUpdates", &BotFault::Hang, 1)).await;
    running.api.user_says(5, "a");
    assert_eq!(running.finish().await.1, ["a"]);
}

#[tokio::test]
async fn a_poll_whose_answer_is_cut_loses_nothing() {
    let running = start(|api| {
        api.user_says(5, "a");
        api.fail_next("getUpdates", &BotFault::CutAfter, 2);
    })
    .await;
    running.api.user_says(5, "b");
    assert_eq!(running.finish().await.1, ["a", "b"]);
}

#[tokio::test]
async fn another_instance_is_given_room() {
    let conflict = BotFault::Refuse {
        code: 409,
        description: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
            .to_owned(),
    };
    let running = start(|api| api.fail_next("getUpdates", &conflict, 1)).await;
    let refused = |call: &volcanic_testkit::BotCall| {
        matches!(call.outcome, BotOutcome::Refused { code: 409, .. })
    };
    running.api.await_call(LIMIT, refused).await.expect("refused");
    let refused_at = tokio::time::Instant::now();
    running
        .api
        .await_call(LIMIT, |call| call.is("getUpdates") && !refused(call))
        .await
        .expect("a second poll");
    assert!(refused_at.elapsed() >= POLL, "it polled again after {:?}", refused_at.elapsed());
    running.api.user_says(5, "a");
    assert_eq!(running.finish().await.1, ["a"]);
}

#[tokio::test]
async fn a_refused_token_ends_the_loop() {
    let refusal = BotFault::Refuse { code: 401, description: "Unauthorized".to_owned() };
    let running = start(|api| api.fail_next("getUpdates", &refusal, 1)).await;
    let end = tokio::time::timeout(LIMIT, running.ended)
        .await
        .expect("it ends")
        .expect("its end is told");
    assert_eq!(end, ReceiveEnd::TokenRefused);
}

#[tokio::test]
async fn only_messages_are_asked_for() {
    let running = start(|_| ()).await;
    let poll = running.api.await_call(LIMIT, |call| call.is("getUpdates")).await.expect("a poll");
    assert_eq!(poll.params["allowed_updates"], json!(["message"]));
}

/// Has the next `times` polls answered with this.
fn say(api: &BotApi, text: &str, times: usize) {
    api.fail_next("getUpdates", &BotFault::Say(text.to_owned()), times);
}

#[tokio::test]
async fn polls_that_bring_nothing_usable_at_once_are_not_repeated_at_once() {
    for useless in [
        r#"{"ok":true,"result":[{"no":"id"}]}"#,
        r#"{"ok":true,"result":[{"update_id":"5"},7,null]}"#,
        r#"{"ok":true,"result":[]}"#,
        r#"{"ok":true,"result":{"shape":"of tomorrow"}}"#,
    ] {
        let began = tokio::time::Instant::now();
        let running = start(|api| say(api, useless, 20)).await;
        let api = &running.api;
        api.await_call(LIMIT, |_| api.calls_of("getUpdates").len() > 20).await.expect("polls");
        // Twenty pauses of at least 18 ms.
        assert!(began.elapsed() >= Duration::from_millis(360), "{useless}: {:?}", began.elapsed());
        running.api.user_says(5, "a");
        assert_eq!(running.finish().await.1, ["a"], "{useless}");
    }
}

#[tokio::test]
async fn the_same_updates_over_and_over_are_not_asked_for_at_once() {
    let again =
        r#"{"ok":true,"result":[{"update_id":9223372036854775807,"message":{"text":"x"}}]}"#;
    let began = tokio::time::Instant::now();
    let running = start(|api| say(api, again, 20)).await;
    let api = &running.api;
    api.await_call(LIMIT, |_| api.calls_of("getUpdates").len() > 20).await.expect("polls");
    assert!(began.elapsed() >= Duration::from_millis(340), "{:?}", began.elapsed());
    assert_eq!(running.handler.texts.lock().expect("unpoisoned").as_slice(), ["x"]);
    running.stop.cancel();
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_asked_for_one_by_one() {
    let huge = format!(r#"{{"ok":true,"result":["{}"]}}"#, "x".repeat(17 << 20));
    let running = start(|api| say(api, &huge, 1)).await;
    for text in ["a", "b"] {
        running.api.user_says(5, text);
    }
    let limits = |api: &BotApi| -> Vec<_> {
        api.calls_of("getUpdates").iter().map(|call| call.params["limit"].clone()).collect()
    };
    running.api.await_acknowledged(LIMIT).await.expect("acknowledged");
    let asked = limits(&running.api);
    assert_eq!(asked[..3], [json!(100), json!(1), json!(100)], "{asked:?}");
    assert_eq!(running.finish().await.1, ["a", "b"]);
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let api = BotApi::start().await.expect("the Bot API starts");
    let endless = format!(r#"{{"ok":true,"result":{{"username":"{}"#, "x".repeat(2 << 20));
    api.fail_next("getMe", &BotFault::Say(endless), 1);
    let url = api.url().parse().expect("a URL");
    let client = BotClient::new(&Secret::new(api.token()), &url, POLL).expect("a client");
    assert_eq!(client.user_name().await, Err(ApiError::TooLarge(1 << 20)));
}

#[tokio::test]
async fn a_token_that_the_bot_api_repeats_is_in_no_error() {
    let api = BotApi::start().await.expect("the Bot API starts");
    let url = api.url().parse().expect("a URL");
    let client = BotClient::new(&Secret::new(api.token()), &url, POLL).expect("a client");
    let (_, secret) = api.token().split_once(':').expect("a token");
    for description in ["Bad Request: ", "Forbidden: ", "Bad Request: entities ", ""] {
        let description = format!("{description}{}", api.token());
        api.fail_next("getMe", &BotFault::Refuse { code: 400, description }, 1);
        let error = client.user_name().await.expect_err("refused");
        let seen = format!("{error} {error:?}");
        assert!(seen.contains("***") && !seen.contains(secret), "{seen}");
    }
}

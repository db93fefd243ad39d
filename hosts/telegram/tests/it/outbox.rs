//! The sender, with pauses short enough to be waited for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use volcanic_agent_core::{Commit, SessionEvent, SessionStore as _, TargetId};
use volcanic_base::{Chance, Secret};
use volcanic_store::Store;
use volcanic_telegram::{BotClient, OutboxSender, SenderPauses, answer_rows, render_markdown};
use volcanic_testkit::{BotApi, BotFault};

use crate::bot::{LIMIT, open_store};

const CHAT: i64 = 5;

struct Sending {
    api: BotApi,
    store: Store,
    events: broadcast::Sender<SessionEvent>,
    drain: CancellationToken,
    tasks: TaskTracker,
    _home: tempfile::TempDir,
}

async fn start() -> Sending {
    let api = BotApi::start().await.expect("the Bot API starts");
    api.user_says(CHAT, "hello");
    let home = tempfile::tempdir().expect("a folder");
    let store = open_store(&home.path().join("state.db"));
    let url = api.url().parse().expect("a URL");
    let client =
        BotClient::new(&Secret::new(api.token()), &url, Duration::from_secs(1)).expect("a client");
    let sender = OutboxSender {
        chat: CHAT,
        target: TargetId::new(CHAT.to_string()),
        store: Arc::new(store.clone()),
        api: client,
        wake: Arc::new(Notify::new()),
        chance: Arc::new(Chance::seeded(1)),
        pauses: SenderPauses {
            retry: vec![Duration::from_millis(20)],
            store: Duration::from_millis(20),
        },
    };
    let (events, listener) = broadcast::channel(8);
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    tasks.spawn(sender.run(listener, drain.clone(), CancellationToken::new()));
    tasks.close();
    Sending { api, store, events, drain, tasks, _home: home }
}

impl Sending {
    async fn put(&self, key: &str, text: &str) {
        let outbox = answer_rows(key, &render_markdown(text), None);
        let target = TargetId::new(CHAT.to_string());
        let commit = Commit { target, consume: Vec::new(), entries: Vec::new(), outbox };
        self.store.commit(commit).await.expect("kept");
        let _ = self.events.send(SessionEvent::OutboxReady);
    }

    /// Lets it send everything, and says what the person sees.
    async fn texts(self) -> Vec<String> {
        self.drain.cancel();
        tokio::time::timeout(LIMIT, self.tasks.wait()).await.expect("everything is sent");
        assert_eq!(self.api.violations(), Vec::<String>::new());
        self.api.sent_to(CHAT).into_iter().map(|message| message.text).collect()
    }
}

#[tokio::test]
async fn rows_are_sent_once_and_in_order() {
    let sending = start().await;
    for key in ["a", "b", "c", "a"] {
        sending.put(key, key).await;
    }
    assert_eq!(sending.texts().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_rate_limit_is_waited_for() {
    let sending = start().await;
    sending.api.fail_next("sendMessage", &BotFault::TooManyRequests { retry_after: 1 }, 1);
    let begun = tokio::time::Instant::now();
    sending.put("a", "text").await;
    assert_eq!(sending.texts().await, ["text"]);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_cut_after_the_send_leads_to_a_labelled_repeat() {
    let sending = start().await;
    sending.api.fail_next("sendMessage", &BotFault::CutAfter, 1);
    sending.put("a", "text").await;
    assert_eq!(sending.texts().await, ["text", "(may be a repeat)\ntext"]);
}

#[tokio::test]
async fn refused_formatting_falls_back_to_the_same_text() {
    let sending = start().await;
    let refusal = BotFault::Refuse {
        code: 400,
        description: "Bad Request: can't parse entities: odd".to_owned(),
    };
    sending.api.fail_next("sendMessage", &refusal, 1);
    sending.put("a", "some **bold** text").await;
    let calls = |sending: &Sending| sending.api.calls_of("sendMessage");
    sending.api.await_message(CHAT, LIMIT, |_| true).await.expect("sent");
    assert_eq!(
        calls(&sending)[0].params["entities"],
        json!([{"type": "bold", "offset": 5, "length": 4}])
    );
    assert_eq!(calls(&sending)[1].params.get("entities"), None);
    assert_eq!(sending.texts().await, ["some bold text"]);
}

#[tokio::test]
async fn a_rate_limit_is_not_taken_for_bad_formatting() {
    let sending = start().await;
    sending.api.fail_next("sendMessage", &BotFault::TooManyRequests { retry_after: 1 }, 1);
    sending.put("a", "some **bold** text").await;
    let sent = sending.api.await_message(CHAT, LIMIT, |_| true).await.expect("sent");
    assert_eq!(sent.entities.len(), 1);
    assert_eq!(sending.texts().await.len(), 1);
}

#[tokio::test]
async fn a_message_that_is_refused_for_good_blocks_nothing() {
    let sending = start().await;
    for refusal in
        [(400, "Bad Request: message is too long"), (403, "Forbidden: bot was blocked by the user")]
    {
        let (code, description) = (refusal.0, refusal.1.to_owned());
        sending.api.fail_next("sendMessage", &BotFault::Refuse { code, description }, 1);
    }
    for key in ["a", "b", "c"] {
        sending.put(key, key).await;
    }
    assert_eq!(sending.texts().await, ["c"]);
}

//! A Bot API server in the test process: strict where Telegram is strict, able to fail on command, and with a journal.
//!
//! The server outlives the bots that talk to it, so a test can kill a bot, start another one, and read from one journal
//! what the two of them did together. Whatever a bot does that Telegram would refuse is refused with Telegram's own code
//! and text; what a bot should never do at all (an unknown method, a wrong token) is kept in [`BotApi::violations`].

mod call;
mod check;
mod fault;
mod methods;
mod serve;
mod state;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use call::{BotCall, BotOutcome};
pub use fault::BotFault;
pub use state::SentMessage;

use state::State;

/// The running fake. Stops when it is dropped.
#[derive(Debug)]
pub struct BotApi {
    shared: Arc<Shared>,
    address: SocketAddr,
    token: String,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What the handle and the request handlers share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

/// Nothing that fits was seen in time; `seen` is the journal, for the failure's message.
#[derive(Debug, thiserror::Error)]
#[error("waited {waited:?} for {what}; the journal:\n{seen}")]
pub struct NotSeen {
    /// What was waited for.
    pub what: &'static str,
    /// How long.
    pub waited: Duration,
    /// Everything that happened, one call per line.
    pub seen: String,
}

impl Shared {
    /// The state, whatever became of an earlier holder.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everybody who waits for something to happen.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|version| *version += 1);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl BotApi {
    /// Starts a server on a free loopback port with the token `123456:TEST…`.
    ///
    /// # Errors
    /// When no loopback port can be bound.
    pub async fn start() -> std::io::Result<Self> {
        let token = "123456:TEST-token-of-the-fake-bot-api-00000".to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(token.clone())),
            changes: watch::channel(0).0,
        });
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tasks.spawn(serve::run(listener, Arc::clone(&shared), stop.clone()));
        tasks.close();
        Ok(Self { shared, address, token, stop, tasks })
    }

    /// The base URL a bot is given instead of Telegram's.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The only token that is let in.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// A person writes `text` to the bot in their private chat (whose id is the person's); returns the message id.
    pub fn user_says(&self, user: i64, text: &str) -> i64 {
        self.user_sends(user, json!({ "text": text }))
    }

    /// Like [`Self::user_says`] with any content: the members of `content` are put into the message.
    pub fn user_sends(&self, user: i64, content: Value) -> i64 {
        let chat = json!({ "id": user, "type": "private", "first_name": "Test" });
        let from = json!({ "id": user, "is_bot": false, "first_name": "Test" });
        self.message_in(&chat, &from, content)
    }

    /// A message in any chat from anybody; returns the message id.
    pub fn message_in(&self, chat: &Value, from: &Value, content: Value) -> i64 {
        let id = self.shared.lock().receive_message(chat, from, content);
        self.shared.changed();
        id
    }

    /// Queues an update exactly as given, its `update_id` apart; returns that id.
    pub fn push_update(&self, update: Value) -> i64 {
        let id = self.shared.lock().queue_update(update);
        self.shared.changed();
        id
    }

    /// A person presses a button under message `message`; returns the callback id.
    pub fn press_button(&self, user: i64, message: i64, data: &str) -> String {
        let id = self.shared.lock().press_button(user, message, data);
        self.shared.changed();
        id
    }

    /// Puts a file on the server that a person may attach; returns its file id.
    pub fn add_file(&self, name: &str, bytes: impl Into<bytes::Bytes>) -> String {
        self.shared.lock().add_file(name, bytes.into())
    }

    /// The person blocks the bot, or takes it back.
    pub fn set_blocked(&self, chat: i64, blocked: bool) {
        self.shared.lock().set_blocked(chat, blocked);
    }

    /// The next `times` calls of `method` meet `fault`. Faults of one method are met in the order they were set.
    pub fn fail_next(&self, method: &str, fault: &BotFault, times: usize) {
        let mut state = self.shared.lock();
        for _ in 0..times {
            state.push_fault(method, fault.clone());
        }
    }

    /// Ends every call that hangs because of [`BotFault::Hang`].
    pub fn release_hung(&self) {
        self.shared.lock().release_hung();
        self.shared.changed();
    }

    /// Everything bots asked for, oldest first.
    pub fn calls(&self) -> Vec<BotCall> {
        self.shared.lock().journal.clone()
    }

    /// The calls of one method, oldest first.
    pub fn calls_of(&self, method: &str) -> Vec<BotCall> {
        self.calls().into_iter().filter(|call| call.method.eq_ignore_ascii_case(method)).collect()
    }

    /// What the person of `chat` sees of the bot, oldest first.
    pub fn sent_to(&self, chat: i64) -> Vec<SentMessage> {
        self.shared.lock().sent_to(chat)
    }

    /// Updates that no bot has acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.shared.lock().pending_len()
    }

    /// What a bot did that no bot should do: unknown methods, wrong tokens, unusable parameters.
    pub fn violations(&self) -> Vec<String> {
        self.shared.lock().violations.clone()
    }

    /// The commands in the bot's menu.
    pub fn commands(&self) -> Vec<String> {
        self.shared.lock().command_names()
    }

    /// Waits until the bot's side of `chat` holds a message for which `fits` is true, and returns the first such one.
    ///
    /// # Errors
    /// [`NotSeen`] with the whole journal after `limit`.
    pub async fn await_message(
        &self,
        chat: i64,
        limit: Duration,
        fits: impl Fn(&SentMessage) -> bool,
    ) -> Result<SentMessage, NotSeen> {
        self.await_in("a message", limit, || self.sent_to(chat).into_iter().find(&fits)).await
    }

    /// Waits until a call for which `fits` is true was answered or met its fault, and returns the first such one.
    ///
    /// # Errors
    /// [`NotSeen`] with the whole journal after `limit`.
    pub async fn await_call(
        &self,
        limit: Duration,
        fits: impl Fn(&BotCall) -> bool,
    ) -> Result<BotCall, NotSeen> {
        self.await_in("a call", limit, || self.calls().into_iter().find(&fits)).await
    }

    /// Waits until every update was acknowledged.
    ///
    /// # Errors
    /// [`NotSeen`] with the whole journal after `limit`.
    pub async fn await_acknowledged(&self, limit: Duration) -> Result<(), NotSeen> {
        self.await_in("acknowledged updates", limit, || (self.unacknowledged() == 0).then_some(()))
            .await
    }

    async fn await_in<T>(
        &self,
        what: &'static str,
        limit: Duration,
        find: impl Fn() -> Option<T>,
    ) -> Result<T, NotSeen> {
        let mut changes = self.shared.subscribe();
        let search = async {
            loop {
                changes.borrow_and_update();
                // Without the lock: what looks may use this server, too.
                if let Some(found) = find() {
                    return found;
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(limit, search).await.map_err(|_| NotSeen {
            what,
            waited: limit,
            seen: self.shared.lock().describe(),
        })
    }
}

impl Drop for BotApi {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.close();
    }
}

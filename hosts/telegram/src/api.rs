//! The Bot API: the few methods the bot calls, and what their failures mean for it.
//!
//! Transport and the words of refusals are teloxide's. Answers are read up to a limit, which teloxide's requests do not
//! have, and as narrowly as possible, because newer servers send content that its types cannot hold: an update that only
//! half parses must not be lost, a sent message not be taken for unsent.

mod answer;
mod error;
mod payload;
mod upload;

use std::fmt;
use std::time::Duration;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use teloxide::net::default_reqwest_settings;
use teloxide::requests::Payload;
use teloxide::{Bot, RequestError};
use url::Url;
use volcanic_base::Secret;

use crate::markdown::FormattedText;

pub use error::ApiError;

use answer::read_answer;
use payload::{DeleteWebhook, GetMe, GetUpdates, SendChatAction, SendMessage, SetMyCommands};

/// How long any call but a poll may take. Uploads of 50 MB need most of it.
const CALL_TIMEOUT: Duration = Duration::from_mins(2);

/// The largest answer to any call but a poll, in bytes. The longest message has a tenth of it.
const MAX_ANSWER: usize = 1 << 20;

/// The largest answer to a poll, in bytes. A hundred long messages that answer long messages have half of it.
const MAX_UPDATES: usize = 16 << 20;

/// The Bot API under one token.
#[derive(Clone)]
pub struct BotClient {
    bot: Bot,
    poller: Bot,
    poll: Duration,
}

impl fmt::Debug for BotClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BotClient")
            .field("url", &self.bot.api_url().as_str())
            .finish_non_exhaustive()
    }
}

/// A command in the bot's menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct MenuCommand {
    /// Its name, without the slash.
    pub command: &'static str,
    /// What the menu says.
    pub description: &'static str,
}

impl BotClient {
    /// Builds the client for `url`. A poll waits for `poll` and counts as hung half as long again.
    ///
    /// # Errors
    /// [`ApiError::NotReached`] when the TLS set-up fails.
    pub fn new(token: &Secret, url: &Url, poll: Duration) -> Result<Self, ApiError> {
        let bot = |timeout| {
            let client = default_reqwest_settings()
                .timeout(timeout)
                // It would be a URL with the token in it.
                .referer(false)
                .build()
                .map_err(|_| ApiError::NotReached("the HTTP client cannot be set up".to_owned()))?;
            Ok::<_, ApiError>(Bot::with_client(token.expose(), client).set_api_url(url.clone()))
        };
        Ok(Self { bot: bot(CALL_TIMEOUT)?, poller: bot(poll + poll / 2)?, poll })
    }

    /// How long a poll waits for updates.
    pub fn poll_length(&self) -> Duration {
        self.poll
    }

    /// The bot's own user name.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn user_name(&self) -> Result<String, ApiError> {
        Ok(self.call(GetMe {}).await?.username)
    }

    /// Takes back a webhook, which excludes polling; waiting updates stay.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn delete_webhook(&self) -> Result<(), ApiError> {
        self.call(DeleteWebhook { drop_pending_updates: false }).await.map(drop)
    }

    /// Waits for updates from `offset` on, `limit` (1 to 100) at most, and acknowledges those before it.
    ///
    /// # Errors
    /// [`ApiError`]; after [`ApiError::TooLarge`] fewer updates may fit.
    ///
    /// # Cancel safety
    /// Nothing is acknowledged by an answer that was not received.
    pub async fn updates(&self, offset: Option<i64>, limit: u8) -> Result<Vec<Value>, ApiError> {
        let payload = GetUpdates {
            offset,
            limit,
            timeout: self.poll.as_secs(),
            allowed_updates: ["message"],
        };
        call(&self.poller, MAX_UPDATES, payload).await
    }

    /// Sends a text; `reply_to` is dropped when that message is gone. Returns the message's id.
    ///
    /// # Errors
    /// [`ApiError`]; after [`ApiError::Unknown`] the text may be on the screen.
    pub async fn send_text(
        &self,
        chat: i64,
        text: &FormattedText,
        reply_to: Option<i64>,
    ) -> Result<i64, ApiError> {
        Ok(self.call(SendMessage::new(chat, text, reply_to)).await?.message_id)
    }

    /// Shows "typing" for five seconds or until the next message.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn send_typing(&self, chat: i64) -> Result<(), ApiError> {
        self.call(SendChatAction { chat_id: chat, action: "typing" }).await.map(drop)
    }

    /// Sets the bot's menu.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn set_commands(&self, commands: &[MenuCommand]) -> Result<(), ApiError> {
        self.call(SetMyCommands { commands: commands.to_vec() }).await.map(drop)
    }

    /// Sends a file with a caption of at most 1024 UTF-16 units.
    ///
    /// # Errors
    /// [`ApiError`]; after [`ApiError::Unknown`] the file may be on the screen.
    pub async fn send_document(
        &self,
        chat: i64,
        name: String,
        content: Vec<u8>,
        caption: Option<String>,
    ) -> Result<(), ApiError> {
        let form = upload::document(chat, &name, content, caption.as_deref());
        post::<IgnoredAny>(&self.bot, "SendDocument", MAX_ANSWER, &form.content_type, form.body)
            .await
            .map(drop)
    }

    async fn call<P>(&self, payload: P) -> Result<P::Output, ApiError>
    where
        P: Payload + serde::Serialize,
        P::Output: DeserializeOwned,
    {
        call(&self.bot, MAX_ANSWER, payload).await
    }
}

async fn call<P>(bot: &Bot, limit: usize, payload: P) -> Result<P::Output, ApiError>
where
    P: Payload + serde::Serialize,
    P::Output: DeserializeOwned,
{
    let body = serde_json::to_vec(&payload)
        .map_err(|_| ApiError::NotReached("the request cannot be written".to_owned()))?;
    post(bot, P::NAME, limit, "application/json", body).await
}

/// Calls a method and reads an answer of at most `limit` bytes.
async fn post<T: DeserializeOwned>(
    bot: &Bot,
    method: &str,
    limit: usize,
    content_type: &str,
    body: Vec<u8>,
) -> Result<T, ApiError> {
    let mut url = bot.api_url();
    url.path_segments_mut()
        .map_err(|()| ApiError::NotReached("the address of the Bot API is none".to_owned()))?
        .pop_if_empty()
        .extend([&format!("bot{}", bot.token()), method]);
    let request = bot.client().post(url).header("content-type", content_type).body(body);
    let failed = |error| ApiError::from(RequestError::from(error));
    let mut response = request.send().await.map_err(failed)?;
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if chunk.len() > limit - answer.len() {
            return Err(ApiError::TooLarge(limit));
        }
        answer.extend_from_slice(&chunk);
    }
    read_answer(&answer).map_err(|error| error.without(bot.token()))
}

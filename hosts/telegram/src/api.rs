//! The Bot API: the few methods the bot calls, and what their failures mean for it.
//!
//! Requests and transport are teloxide's. Answers are read as narrowly as possible, because newer servers send content
//! that its types cannot hold: an update that only half parses must not be lost, a sent message not be taken for unsent.

mod error;
mod payload;

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use teloxide::Bot;
use teloxide::net::default_reqwest_settings;
use teloxide::payloads::SendDocumentSetters as _;
use teloxide::requests::{JsonRequest, Request as _, Requester as _};
use teloxide::types::{ChatId, InputFile};
use url::Url;
use volcanic_base::Secret;

use crate::markdown::FormattedText;

pub use error::ApiError;

use payload::{DeleteWebhook, GetMe, GetUpdates, SendChatAction, SendMessage, SetMyCommands};

/// How long any call but a poll may take. Uploads of 50 MB need most of it.
const CALL_TIMEOUT: Duration = Duration::from_mins(2);

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

    /// Waits for updates from `offset` on, and acknowledges those before it.
    ///
    /// # Errors
    /// [`ApiError`].
    ///
    /// # Cancel safety
    /// Nothing is acknowledged by an answer that was not received.
    pub async fn updates(&self, offset: Option<i64>) -> Result<Vec<Value>, ApiError> {
        let payload = GetUpdates {
            offset,
            limit: 100,
            timeout: self.poll.as_secs(),
            allowed_updates: ["message"],
        };
        JsonRequest::new(self.poller.clone(), payload).send().await.map_err(ApiError::from)
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
        let document = InputFile::memory(content).file_name(name);
        let mut request = self.bot.send_document(ChatId(chat), document);
        if let Some(caption) = caption {
            request = request.caption(caption);
        }
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) if error::was_done(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn call<P>(&self, payload: P) -> Result<P::Output, ApiError>
    where
        P: teloxide::requests::Payload + serde::Serialize + Send + Sync + 'static,
        P::Output: serde::de::DeserializeOwned + Send,
    {
        JsonRequest::new(self.bot.clone(), payload).send().await.map_err(ApiError::from)
    }
}

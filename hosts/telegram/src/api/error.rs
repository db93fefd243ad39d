//! What a failed call means.

use std::time::Duration;

use teloxide::{ApiError as Refusal, RequestError};

/// Why a call failed. The texts hold neither the token nor any URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// Too many requests; nothing was done.
    #[error("Telegram asks to wait {} s", .0.as_secs())]
    RateLimited(Duration),
    /// Another process polls with the same token.
    #[error("another instance polls with this bot's token")]
    Conflict,
    /// The token is not valid.
    #[error("Telegram does not accept the bot's token")]
    Token,
    /// The person blocked the bot, or never opened the chat.
    #[error("the chat cannot be written to: {0}")]
    Closed(String),
    /// The entities of a text were refused.
    #[error("the formatting was refused: {0}")]
    Formatting(String),
    /// Refused for good.
    #[error("refused: {0}")]
    Refused(String),
    /// The request did not get there; nothing was done.
    #[error("Telegram cannot be reached: {0}")]
    NotReached(String),
    /// The answer is larger than this many bytes. The request may have been carried out.
    #[error("the answer of Telegram is larger than {0} bytes")]
    TooLarge(usize),
    /// The request may have been carried out.
    #[error("no clear answer from Telegram: {0}")]
    Unknown(String),
}

impl ApiError {
    /// The same, should the server, or something on the way to it, have repeated the token.
    pub(super) fn without(mut self, token: &str) -> Self {
        let secret = token.split_once(':').map_or(token, |(_, secret)| secret);
        match &mut self {
            Self::Closed(text)
            | Self::Formatting(text)
            | Self::Refused(text)
            | Self::NotReached(text)
            | Self::Unknown(text) => *text = text.replace(secret, "***"),
            Self::RateLimited(_) | Self::Conflict | Self::Token | Self::TooLarge(_) => {}
        }
        self
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::RetryAfter(seconds) => Self::RateLimited(seconds.duration()),
            RequestError::Api(refusal) => refused(refusal),
            RequestError::MigrateToChatId(_) => Self::Closed("the group has moved".to_owned()),
            RequestError::Network(source) => {
                let reason = innermost(source.as_ref());
                // Before a connection stands nothing can have been carried out.
                if source.is_connect() { Self::NotReached(reason) } else { Self::Unknown(reason) }
            }
            // An error page of something on the way; the raw text may hold what people wrote.
            RequestError::InvalidJson { .. } => {
                Self::Unknown("the answer cannot be read".to_owned())
            }
            RequestError::Io(source) => Self::NotReached(source.kind().to_string()),
        }
    }
}

/// What a refusal means.
pub(super) fn refused(refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::TerminatedByOtherGetUpdates | Refusal::CantGetUpdates => ApiError::Conflict,
        Refusal::InvalidToken => ApiError::Token,
        Refusal::BotBlocked
        | Refusal::UserDeactivated
        | Refusal::ChatNotFound
        | Refusal::BotKicked
        | Refusal::BotKickedFromSupergroup
        | Refusal::BotKickedFromChannel
        | Refusal::GroupDeactivated
        | Refusal::CantInitiateConversation => ApiError::Closed(refusal.to_string()),
        Refusal::CantParseEntities(text) => ApiError::Formatting(text),
        // teloxide drops the code, so these can be told apart by nothing but their text.
        Refusal::Unknown(text) if text.starts_with("Forbidden") => ApiError::Closed(text),
        Refusal::Unknown(text) if text.contains("entit") || text.contains("ENTIT") => {
            ApiError::Formatting(text)
        }
        Refusal::Unknown(text) if text.starts_with("Conflict") => ApiError::Conflict,
        Refusal::Unknown(text) if text.starts_with("Bad Request") => ApiError::Refused(text),
        Refusal::Unknown(text) => ApiError::Unknown(text),
        other => ApiError::Refused(other.to_string()),
    }
}

/// The text of the first cause. The outer ones quote the URL, and with it the token.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error.source();
    let mut text = None;
    while let Some(error) = cause {
        text = Some(error.to_string());
        cause = error.source();
    }
    text.unwrap_or_else(|| "the request failed".to_owned())
}

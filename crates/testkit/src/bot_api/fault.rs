//! What can be made to go wrong.

/// A fault that a call meets instead of its plain answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BotFault {
    /// 429; nothing is done.
    TooManyRequests {
        /// Seconds to wait.
        retry_after: u32,
    },
    /// A 5xx with a page that is no JSON; nothing is done.
    ServerError(u16),
    /// Any refusal of the Bot API; nothing is done.
    Refuse {
        /// The error code.
        code: u16,
        /// The description.
        description: String,
    },
    /// This text is the whole answer, with status 200; nothing is done.
    Say(String),
    /// The connection is cut; nothing is done.
    CutBefore,
    /// The call is done, then the connection is cut: the bot cannot know.
    CutAfter,
    /// Nothing is done and no answer comes, as on a half-open connection, until [`super::BotApi::release_hung`].
    Hang,
}

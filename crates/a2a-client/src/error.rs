//! What can go wrong between us and a remote agent.

use std::{error::Error, time::Duration};

use volcanic_a2a_types::{A2aErrorKind, ContextId, RpcError, Task, TaskState};
use volcanic_base::with_causes;
use volcanic_net::NetError;

use crate::{AGENTS_FILE, KeyError, frame::sanitize_remote_line, remote::scrub::Scrubber};

/// How much of an id is shown, in characters.
const MAX_ID: usize = 200;
/// How much of a state's name is shown, in characters.
const MAX_STATE: usize = 40;

/// An error of a call to a remote agent.
///
/// Its `Display` is a whole sentence for the model and the owner, unlike other errors here, and says the cause. No key, no
/// query of a URL and no header is in it; what the remote said is cut and escaped.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The request did not get through, or the connection broke.
    #[error("Could not reach agent \"{agent}\": {}", with_causes(.source))]
    Unreachable {
        /// The agent.
        agent: String,
        /// Why.
        #[source]
        source: NetError,
    },
    /// The answer was not there within the time of a call.
    #[error("Agent \"{agent}\" did not answer in time.")]
    TimedOut {
        /// The agent.
        agent: String,
    },
    /// The agent wants another key, or one at all.
    #[error("{}", .key.refusal(.agent, *.status))]
    KeyRejected {
        /// The agent.
        agent: String,
        /// 401 or 403.
        status: u16,
        /// Whether a key was sent.
        key: KeyUse,
    },
    /// The agent answered with an error of the protocol.
    #[error("Agent \"{agent}\" refused: {} ({})", .error.message, .error.code)]
    Refused {
        /// The agent.
        agent: String,
        /// Its error; the message is cut and escaped.
        error: Box<RpcError>,
        /// When it says to come back.
        retry_after: Option<Duration>,
    },
    /// The agent, or something before it, answered outside of the protocol.
    #[error("Agent \"{agent}\" answered with HTTP {status}{}.", meaning(*.status))]
    Http {
        /// The agent.
        agent: String,
        /// The status.
        status: u16,
        /// When it says to come back.
        retry_after: Option<Duration>,
    },
    /// The agent's card cannot be used.
    #[error("The card of agent \"{agent}\" cannot be used: {reason}.")]
    Card {
        /// The agent.
        agent: String,
        /// Why.
        reason: String,
    },
    /// The agent's key cannot be had or sent.
    #[error("The key of agent \"{agent}\" cannot be used: {source}.")]
    Key {
        /// The agent.
        agent: String,
        /// Why.
        #[source]
        source: KeyError,
    },
    /// The card leads to another origin, which may not have the key or lies in a private network.
    #[error(
        "Agent \"{agent}\" wants to be called at {origin}, which is not where its entry points. If that is right, add \
         \"trustedOrigins\": [\"{origin}\"] to its entry in {AGENTS_FILE}."
    )]
    Untrusted {
        /// The agent.
        agent: String,
        /// The other origin.
        origin: String,
    },
    /// The answer is not what was asked for.
    #[error("Agent \"{agent}\" gave an answer that cannot be used: {reason}.")]
    Unexpected {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The protocol that the agent speaks cannot say this; nothing was sent.
    #[error("Agent \"{agent}\" speaks A2A 0.3, which has no {operation}.")]
    Unsupported {
        /// The agent.
        agent: String,
        /// What it was to be asked, by its name in the specification.
        operation: &'static str,
    },
    /// The agent says where the task asked for stands, but the rest of its answer is not what was asked for.
    #[error(
        "Agent \"{agent}\" says that the task is {}, but the rest of its answer cannot be used: {reason}.",
        sanitize_remote_line(&.state.label(), MAX_STATE)
    )]
    UnreadableTask {
        /// The agent.
        agent: String,
        /// Where the task stands.
        state: TaskState,
        /// What is wrong with the rest.
        reason: String,
    },
    /// The agent took the message for a task, but the rest of its answer cannot be read.
    #[error(
        "Agent \"{agent}\" took the message as task {}, which is {}, but the rest of its answer cannot be used: {reason}.",
        sanitize_remote_line(.task.id.as_str(), MAX_ID),
        sanitize_remote_line(&.task.status.state.label(), MAX_STATE)
    )]
    UnreadableAnswer {
        /// The agent.
        agent: String,
        /// The task's ids and where it stands; the rest of it is empty.
        task: Box<Task>,
        /// What is wrong with the rest of the answer.
        reason: String,
    },
    /// The answer is larger than is read.
    #[error("The answer of agent \"{agent}\" is larger than {limit} bytes.")]
    TooLarge {
        /// The agent.
        agent: String,
        /// The largest size read, in bytes.
        limit: usize,
    },
}

/// What became of the key in a call whose caller the agent refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// There is none.
    None,
    /// It was sent.
    Sent,
    /// There is one, but none is sent for a public card.
    Withheld,
}

impl ClientError {
    pub(crate) fn from_net(agent: &str, error: NetError) -> Self {
        let agent = agent.to_owned();
        match error {
            NetError::TooLarge { limit } => Self::TooLarge { agent, limit },
            source => Self::Unreachable { agent, source },
        }
    }

    /// The same without our secrets in what the remote put into it.
    pub(crate) fn masked(self, scrubber: &Scrubber) -> Self {
        let text = |text| scrubber.text(text);
        match self {
            Self::Unreachable { agent, source } => {
                // What is left out of the text may still be in the details.
                let tell = |cause: &(dyn Error + 'static)| {
                    let shown = with_causes(cause);
                    let is_detail = scrubber.changed(&format!("{cause:?}")).is_some();
                    scrubber.changed(&shown).or_else(|| is_detail.then_some(shown))
                };
                Self::Unreachable { agent, source: source.retold(tell) }
            }
            Self::Refused { agent, mut error, retry_after } => {
                error.message = text(error.message);
                Self::Refused { agent, error, retry_after }
            }
            Self::Card { agent, reason } => Self::Card { agent, reason: text(reason) },
            Self::Untrusted { agent, origin } => Self::Untrusted { agent, origin: text(origin) },
            Self::Unexpected { agent, reason } => Self::Unexpected { agent, reason: text(reason) },
            Self::UnreadableTask { agent, state, reason } => {
                Self::UnreadableTask { agent, state, reason: text(reason) }
            }
            Self::UnreadableAnswer { agent, task, reason } => {
                let context = task.context_id.as_ref().map_or("", ContextId::as_str);
                let reason = text(reason);
                // With a masked id it could not be found again.
                if [task.id.as_str(), context].iter().any(|id| scrubber.changed(id).is_some()) {
                    Self::Unexpected { agent, reason }
                } else {
                    Self::UnreadableAnswer { agent, task, reason }
                }
            }
            Self::TimedOut { .. }
            | Self::KeyRejected { .. }
            | Self::Http { .. }
            | Self::Key { .. }
            | Self::Unsupported { .. }
            | Self::TooLarge { .. } => self,
        }
    }

    /// What went wrong, for where it is said already that the agent is unreachable.
    pub fn reason(&self) -> String {
        match self {
            Self::Unreachable { source, .. } => with_causes(source),
            error => error.to_string(),
        }
    }

    /// Whether the same call may succeed later without anybody changing something here.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => source.is_transient(),
            Self::Http { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
            Self::Refused { .. } => {
                matches!(self.rpc_kind(), None | Some(A2aErrorKind::Internal))
            }
            // The remote mends its card or its answers.
            Self::KeyRejected { key: KeyUse::Withheld, .. }
            | Self::TimedOut { .. }
            | Self::Card { .. }
            | Self::Unexpected { .. }
            | Self::UnreadableTask { .. }
            | Self::UnreadableAnswer { .. } => true,
            Self::KeyRejected { .. }
            | Self::Key { .. }
            | Self::Untrusted { .. }
            | Self::Unsupported { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// Whether the agent may have acted on the request although there is no answer to go by. If not, the request never
    /// left or was refused.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !source.never_left(),
            // A gateway that gave up says nothing about what stands behind it.
            Self::Http { status, .. } => matches!(status, 408 | 500 | 502 | 504 | 200..=299),
            // An agent that fails may have begun: some keep the failed task and answer with an error all the same. Of codes
            // that nobody has defined, nobody can say more.
            Self::Refused { .. } => matches!(
                self.rpc_kind(),
                None | Some(A2aErrorKind::Internal | A2aErrorKind::InvalidAgentResponse)
            ),
            Self::TimedOut { .. }
            | Self::Unexpected { .. }
            | Self::UnreadableTask { .. }
            | Self::UnreadableAnswer { .. }
            | Self::TooLarge { .. } => true,
            Self::KeyRejected { .. }
            | Self::Card { .. }
            | Self::Key { .. }
            | Self::Unsupported { .. }
            | Self::Untrusted { .. } => false,
        }
    }

    /// Which error of the protocol it is: by the reason in its details, else by its code. A bare HTTP status only tells
    /// who may call: a gateway's 404 says nothing about a task.
    pub fn rpc_kind(&self) -> Option<A2aErrorKind> {
        match self {
            Self::Refused { error, .. } => error.kind(),
            Self::KeyRejected { key: KeyUse::None | KeyUse::Sent, status, .. } => {
                A2aErrorKind::from_http_status(*status)
            }
            Self::Unsupported { .. } => Some(A2aErrorKind::UnsupportedOperation),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Http { .. }
            | Self::KeyRejected { key: KeyUse::Withheld, .. }
            | Self::Card { .. }
            | Self::Key { .. }
            | Self::Untrusted { .. }
            | Self::Unexpected { .. }
            | Self::UnreadableTask { .. }
            | Self::UnreadableAnswer { .. }
            | Self::TooLarge { .. } => None,
        }
    }

    /// When the agent says to come back. The caller has a cap.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } | Self::Http { retry_after, .. } => *retry_after,
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::KeyRejected { .. }
            | Self::Card { .. }
            | Self::Key { .. }
            | Self::Untrusted { .. }
            | Self::Unsupported { .. }
            | Self::Unexpected { .. }
            | Self::UnreadableTask { .. }
            | Self::UnreadableAnswer { .. }
            | Self::TooLarge { .. } => None,
        }
    }

    /// The limit that the answer exceeded, in bytes, if that is what went wrong.
    pub fn too_large(&self) -> Option<usize> {
        match self {
            Self::TooLarge { limit, .. } => Some(*limit),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::KeyRejected { .. }
            | Self::Refused { .. }
            | Self::Http { .. }
            | Self::Card { .. }
            | Self::Key { .. }
            | Self::Untrusted { .. }
            | Self::Unsupported { .. }
            | Self::Unexpected { .. }
            | Self::UnreadableTask { .. }
            | Self::UnreadableAnswer { .. } => None,
        }
    }

    /// Where the task stands and what is wrong with the rest of the answer, if only that much could be read.
    pub fn unreadable_task(&self) -> Option<(&TaskState, &str)> {
        match self {
            Self::UnreadableTask { state, reason, .. } => Some((state, reason)),
            Self::UnreadableAnswer { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::KeyRejected { .. }
            | Self::Refused { .. }
            | Self::Http { .. }
            | Self::Card { .. }
            | Self::Key { .. }
            | Self::Untrusted { .. }
            | Self::Unsupported { .. }
            | Self::Unexpected { .. }
            | Self::TooLarge { .. } => None,
        }
    }

    /// The task that a message led to although the answer to it cannot be read: its ids and where it stands, no more.
    pub fn begun_task(&self) -> Option<&Task> {
        match self {
            Self::UnreadableAnswer { task, .. } => Some(task),
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::KeyRejected { .. }
            | Self::Refused { .. }
            | Self::Http { .. }
            | Self::Card { .. }
            | Self::Key { .. }
            | Self::Untrusted { .. }
            | Self::Unsupported { .. }
            | Self::Unexpected { .. }
            | Self::UnreadableTask { .. }
            | Self::TooLarge { .. } => None,
        }
    }
}

impl KeyUse {
    /// What is told when access was refused with `status`.
    fn refusal(self, agent: &str, status: u16) -> String {
        match self {
            Self::None => format!(
                "Agent \"{agent}\" asks for a key ({status}). Give it a \"key\" in its entry in {AGENTS_FILE}."
            ),
            Self::Sent => format!(
                "Agent \"{agent}\" rejected the key ({status}). Check the \"key\" in its entry in {AGENTS_FILE}."
            ),
            Self::Withheld => format!(
                "The card of agent \"{agent}\" cannot be used: it is not public ({status}), and no key is sent for it."
            ),
        }
    }
}

/// What a status means for the reader, where that is of use.
fn meaning(status: u16) -> &'static str {
    match status {
        300..400 => ", a redirect, which is not followed",
        413 => ": the message is too large for it",
        429 => ": too many calls at once",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn http(status: u16) -> ClientError {
        ClientError::Http { agent: "a".to_owned(), status, retry_after: None }
    }

    fn refused(kind: A2aErrorKind) -> ClientError {
        let error = Box::new(RpcError::of(kind, "no"));
        ClientError::Refused { agent: "a".to_owned(), error, retry_after: None }
    }

    #[test]
    fn texts_are_readable() {
        let source = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = ClientError::from_net(
            "a",
            NetError::Connect { host: "x:1".to_owned(), source: Arc::new(source) },
        );
        let text = "Could not reach agent \"a\": failed to connect to x:1: connection refused";
        assert_eq!(error.to_string(), text);
        assert_eq!(
            refused(A2aErrorKind::TaskNotFound).to_string(),
            "Agent \"a\" refused: no (-32001)"
        );
        let text = "Agent \"a\" answered with HTTP 302, a redirect, which is not followed.";
        assert_eq!(http(302).to_string(), text);
        let text = "Agent \"a\" answered with HTTP 413: the message is too large for it.";
        assert_eq!((http(413).to_string().as_str(), http(413).may_have_arrived()), (text, false));
    }

    #[test]
    fn a_gateway_leaves_the_fate_of_a_request_open_and_a_refusal_does_not() {
        for (error, transient, may_have_arrived) in [
            (http(502), true, true),
            (http(503), true, false),
            (http(429), true, false),
            (http(404), false, false),
            (refused(A2aErrorKind::Internal), true, true),
            (refused(A2aErrorKind::InvalidAgentResponse), false, true),
            (refused(A2aErrorKind::InvalidParams), false, false),
            (refused(A2aErrorKind::TaskNotFound), false, false),
            (refused(A2aErrorKind::UnsupportedOperation), false, false),
            (ClientError::TimedOut { agent: "a".to_owned() }, true, true),
            (
                ClientError::Unsupported { agent: "a".to_owned(), operation: "ListTasks" },
                false,
                false,
            ),
            (ClientError::TooLarge { agent: "a".to_owned(), limit: 1 }, false, true),
        ] {
            let found = (error.is_transient(), error.may_have_arrived());
            assert_eq!(found, (transient, may_have_arrived), "{error}");
        }
    }

    #[test]
    fn code_that_nobody_defined_says_nothing_about_what_the_agent_did() {
        let mut error = RpcError::of(A2aErrorKind::Internal, "odd");
        (error.code, error.data) = (-32050, None);
        let error = ClientError::Refused {
            agent: "a".to_owned(),
            error: Box::new(error),
            retry_after: None,
        };
        assert_eq!((error.rpc_kind(), error.may_have_arrived()), (None, true));
    }

    #[test]
    fn kind_comes_from_the_reason_before_the_code() {
        let mut error = RpcError::of(A2aErrorKind::TaskNotFound, "gone");
        error.code = -32603;
        let error = ClientError::Refused {
            agent: "a".to_owned(),
            error: Box::new(error),
            retry_after: None,
        };
        assert_eq!(error.rpc_kind(), Some(A2aErrorKind::TaskNotFound));
        assert_eq!(http(404).rpc_kind(), None);
    }
}

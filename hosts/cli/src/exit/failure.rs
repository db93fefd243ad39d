//! Failures as people and programs are told of them.

use std::{error::Error, fmt};

use serde_json::{Map, Value, json};
use volcanic_a2a_client::ClientError;
use volcanic_a2a_types::A2aErrorKind;

use super::{Exit, UsageError};
use crate::{
    output::{is_gone, note, write_json},
    screen::visible,
};

/// Why a command came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// How the program ends.
    pub exit: Exit,
    /// What went wrong, by a name that stays.
    pub kind: &'static str,
    /// The same for people.
    pub message: String,
    /// Further values for programs: the agent, codes, ids.
    pub details: Map<String, Value>,
}

impl Failure {
    /// A failure without details.
    pub(crate) fn new(exit: Exit, kind: &'static str, message: impl Into<String>) -> Self {
        Self { exit, kind, message: message.into(), details: Map::new() }
    }

    /// Adds a value for programs.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a sentence on what can be done now.
    #[must_use]
    pub(crate) fn advising(mut self, advice: &str) -> Self {
        // Errors of libraries and words of agents end as they like.
        let ends = self.message.ends_with(['.', '!', '?']);
        self.message.push_str(if ends { " " } else { ". " });
        self.message.push_str(advice);
        self
    }

    /// What an error is, whatever stands around it.
    pub fn of(error: &anyhow::Error) -> Self {
        if let Some(failure) = error.downcast_ref::<Self>() {
            return failure.clone();
        }
        if let Some(error) = error.downcast_ref::<ClientError>() {
            return error.into();
        }
        let (exit, kind) = if error.is::<UsageError>() {
            (Exit::Usage, "usage")
        } else {
            (Exit::Failed, "failed")
        };
        Self::new(exit, kind, told(error))
    }

    /// The JSON of it.
    pub fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("kind".to_owned(), self.kind.into());
        error.insert("message".to_owned(), self.message.clone().into());
        error.insert("exitCode".to_owned(), self.exit.code().into());
        error.extend(self.details.clone());
        json!({ "error": error })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {}

impl From<&ClientError> for Failure {
    fn from(error: &ClientError) -> Self {
        let (exit, kind, agent) = match error {
            ClientError::Unreachable { agent, .. } => (Exit::Unreachable, "unreachable", agent),
            ClientError::TimedOut { agent } => (Exit::TimedOut, "timedOut", agent),
            ClientError::KeyRejected { agent, .. } => (Exit::KeyRefused, "keyRefused", agent),
            ClientError::Refused { agent, .. } => {
                let kind = error.rpc_kind();
                let is_about_key =
                    matches!(kind, Some(A2aErrorKind::Unauthenticated | A2aErrorKind::Forbidden));
                let exit = if is_about_key { Exit::KeyRefused } else { Exit::Failed };
                (exit, refusal(kind), agent)
            }
            // It never came to a call: what is named as the key is not there.
            ClientError::Key { agent, .. } => (Exit::Usage, "key", agent),
            ClientError::Http { agent, .. } => (Exit::Failed, "http", agent),
            ClientError::Card { agent, .. } => (Exit::Failed, "card", agent),
            ClientError::Untrusted { agent, .. } => (Exit::Failed, "untrusted", agent),
            ClientError::Unexpected { agent, .. }
            | ClientError::UnreadableTask { agent, .. }
            | ClientError::UnreadableAnswer { agent, .. } => {
                (Exit::Failed, "unexpectedAnswer", agent)
            }
            ClientError::Unsupported { agent, .. } => (Exit::Failed, "unsupportedOperation", agent),
            ClientError::TooLarge { agent, .. } => (Exit::Failed, "tooLarge", agent),
            _ => return Self::new(Exit::Failed, "failed", error.to_string()),
        };
        let mut failure = Self::new(exit, kind, error.to_string()).with("agent", agent.as_str());
        match error {
            ClientError::Refused { error, .. } => failure = failure.with("code", error.code),
            ClientError::Http { status, .. } | ClientError::KeyRejected { status, .. } => {
                failure = failure.with("status", *status);
            }
            ClientError::UnreadableTask { state, .. } => {
                failure = failure.with("state", state.as_str());
            }
            ClientError::UnreadableAnswer { task, .. } => {
                failure = failure.with("taskId", task.id.as_str());
                failure = failure.with("state", task.status.state.as_str());
            }
            _ => {}
        }
        if let Some(pause) = error.retry_after() {
            failure = failure.with("retryAfterSeconds", pause.as_secs());
        }
        failure
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        (&error).into()
    }
}

/// The name of what an agent refuses with.
fn refusal(kind: Option<A2aErrorKind>) -> &'static str {
    match kind {
        Some(A2aErrorKind::TaskNotFound) => "taskNotFound",
        Some(A2aErrorKind::TaskNotCancelable) => "taskNotCancelable",
        Some(A2aErrorKind::PushNotificationNotSupported) => "pushNotificationNotSupported",
        Some(A2aErrorKind::UnsupportedOperation) => "unsupportedOperation",
        Some(A2aErrorKind::ContentTypeNotSupported) => "contentTypeNotSupported",
        Some(A2aErrorKind::InvalidAgentResponse) => "invalidAgentResponse",
        Some(A2aErrorKind::ExtendedAgentCardNotConfigured) => "extendedAgentCardNotConfigured",
        Some(A2aErrorKind::ExtensionSupportRequired) => "extensionSupportRequired",
        Some(A2aErrorKind::VersionNotSupported) => "versionNotSupported",
        Some(A2aErrorKind::ParseError) => "parseError",
        Some(A2aErrorKind::InvalidRequest) => "invalidRequest",
        Some(A2aErrorKind::MethodNotFound) => "methodNotFound",
        Some(A2aErrorKind::InvalidParams) => "invalidParams",
        Some(A2aErrorKind::Internal) => "internalError",
        Some(A2aErrorKind::Unauthenticated | A2aErrorKind::Forbidden) => "keyRefused",
        Some(_) | None => "refused",
    }
}

/// Tells an error where its readers look for it, and returns how the program ends.
pub fn report(error: &anyhow::Error, as_json: bool) -> Exit {
    // Whoever read has had enough, and knows best.
    if is_gone(error) {
        return Exit::Done;
    }
    let failure = Failure::of(error);
    // Where the JSON finds no room, people may still see it.
    if !as_json || write_json(&failure.to_json()).is_err_and(|error| !is_gone(&error)) {
        note(&format!("volcanic: {}", visible(&failure.message)));
    }
    failure.exit
}

/// An error and its causes in one line, each said once: some errors tell their cause themselves.
pub fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use volcanic_a2a_types::RpcError;

    use super::*;
    use crate::exit::OrUsage as _;

    #[test]
    fn a_fault_of_the_users_is_told_apart_whatever_stands_around_it() {
        let wrong = Err::<(), _>(std::io::Error::other("no such thing")).context("the rules");
        let wrong = wrong.or_usage().context("the chat cannot start").unwrap_err();
        let text = "the chat cannot start: the rules: no such thing";
        assert_eq!(Failure::of(&wrong), Failure::new(Exit::Usage, "usage", text));
        let full = Failure::of(&anyhow::anyhow!("the disk is full"));
        assert_eq!((full.exit, full.kind), (Exit::Failed, "failed"));
    }

    #[test]
    fn advice_is_a_sentence_of_its_own() {
        for told in ["the connection broke", "the connection broke."] {
            let failure = Failure::new(Exit::Failed, "failed", told).advising("Look at its tasks.");
            assert_eq!(failure.message, "the connection broke. Look at its tasks.");
        }
    }

    #[test]
    fn what_agents_refuse_with_keeps_its_name_and_code() {
        let error = Box::new(RpcError::of(A2aErrorKind::TaskNotFound, "no such task"));
        let error = ClientError::Refused { agent: "a".to_owned(), error, retry_after: None };
        let error = anyhow::Error::from(error).context("around it");
        let wanted = json!({ "error": {
            "kind": "taskNotFound",
            "message": "Agent \"a\" refused: no such task (-32001)",
            "exitCode": 1,
            "agent": "a",
            "code": -32001,
        } });
        assert_eq!(Failure::of(&error).to_json(), wanted);
    }
}

//! The errors of the protocol, and how each binding spells them.

use serde_json::{Value, json};

use crate::JsonObject;

/// The domain of every [`ErrorInfo`] of the protocol.
pub const ERROR_DOMAIN: &str = "a2a-protocol.org";

const ERROR_INFO_TYPE: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST_TYPE: &str = "type.googleapis.com/google.rpc.BadRequest";

/// What went wrong, in the words of the protocol (specification: section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum A2aErrorKind {
    /// The task does not exist, or not for this caller.
    TaskNotFound,
    /// The task has ended and cannot be canceled.
    TaskNotCancelable,
    /// The agent calls no webhooks.
    PushNotificationNotSupported,
    /// The agent does not do this, or not in this state of the task.
    UnsupportedOperation,
    /// The agent does not take this media type.
    ContentTypeNotSupported,
    /// The agent's answer breaks the protocol.
    InvalidAgentResponse,
    /// The agent announces an extended card and has none.
    ExtendedAgentCardNotConfigured,
    /// The agent demands an extension that the client did not ask for.
    ExtensionSupportRequired,
    /// The agent does not speak this version.
    VersionNotSupported,
    /// The body is not JSON.
    ParseError,
    /// The body is not a request.
    InvalidRequest,
    /// There is no such method.
    MethodNotFound,
    /// The request's values are wrong.
    InvalidParams,
    /// The agent failed.
    Internal,
    /// The caller did not say who they are.
    Unauthenticated,
    /// The caller may not do this.
    Forbidden,
}

/// How one kind is spelled.
struct Spelling {
    rpc_code: Option<i64>,
    http_status: u16,
    status: &'static str,
    reason: Option<&'static str>,
}

impl A2aErrorKind {
    const ALL: [Self; 16] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedAgentCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::ParseError,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::Unauthenticated,
        Self::Forbidden,
    ];

    #[rustfmt::skip]
    const fn spelling(self) -> Spelling {
        let (rpc_code, http_status, status, reason) = match self {
            Self::TaskNotFound => (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => (-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"),
            Self::UnsupportedOperation => (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported => (-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::InvalidAgentResponse => (-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
            Self::ExtendedAgentCardNotConfigured => (-32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
            Self::ExtensionSupportRequired => (-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
            Self::VersionNotSupported => (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
            Self::ParseError => (-32700, 400, "INVALID_ARGUMENT", ""),
            Self::InvalidRequest => (-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            Self::MethodNotFound => (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
            Self::InvalidParams => (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            Self::Internal => (-32603, 500, "INTERNAL", "INTERNAL_ERROR"),
            Self::Unauthenticated => (0, 401, "UNAUTHENTICATED", ""),
            Self::Forbidden => (0, 403, "PERMISSION_DENIED", ""),
        };
        Spelling {
            rpc_code: if rpc_code == 0 { None } else { Some(rpc_code) },
            http_status,
            status,
            reason: if reason.is_empty() { None } else { Some(reason) },
        }
    }

    /// The code in JSON-RPC; none for what HTTP alone says.
    pub const fn rpc_code(self) -> Option<i64> {
        self.spelling().rpc_code
    }

    /// The status in HTTP+JSON.
    pub const fn http_status(self) -> u16 {
        self.spelling().http_status
    }

    /// The `status` string in HTTP+JSON, which is the code's name in gRPC.
    pub const fn status(self) -> &'static str {
        self.spelling().status
    }

    /// The `reason` in [`ErrorInfo`]. The specification gives one to its own errors; those of the general errors are
    /// what the SDKs write.
    pub const fn reason(self) -> Option<&'static str> {
        self.spelling().reason
    }

    /// The kind with this code in JSON-RPC.
    pub fn from_rpc_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.rpc_code() == Some(code))
    }

    /// The kind with this `reason`.
    pub fn from_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == Some(reason))
    }

    /// The kind that a bare HTTP status suggests, when the body says nothing.
    pub const fn from_http_status(status: u16) -> Option<Self> {
        match status {
            400 | 422 => Some(Self::InvalidRequest),
            401 => Some(Self::Unauthenticated),
            403 => Some(Self::Forbidden),
            404 => Some(Self::TaskNotFound),
            405 | 501 => Some(Self::UnsupportedOperation),
            409 => Some(Self::TaskNotCancelable),
            415 => Some(Self::ContentTypeNotSupported),
            500 => Some(Self::Internal),
            _ => None,
        }
    }
}

/// The detail that names an error beyond doubt (`google.rpc.ErrorInfo`).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ErrorInfo {
    /// The error's type in upper snake case.
    pub reason: String,
    /// Who defined the reason; [`ERROR_DOMAIN`] for those of the protocol.
    pub domain: String,
    /// Further values.
    pub metadata: JsonObject,
}

impl ErrorInfo {
    /// Creates the detail of a kind; none if the kind has no reason.
    pub fn of(kind: A2aErrorKind) -> Option<Self> {
        let reason = kind.reason()?.to_owned();
        Some(Self { reason, domain: ERROR_DOMAIN.to_owned(), metadata: JsonObject::new() })
    }

    /// Adds a further value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), Value::String(value.into()));
        self
    }

    /// Finds the detail in an error's `data` or `details`, whatever the peer made of that.
    pub fn find(details: &Value) -> Option<Self> {
        match details {
            Value::Array(details) => details.iter().find_map(Self::read),
            single @ Value::Object(_) => Self::read(single),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
    }

    fn read(detail: &Value) -> Option<Self> {
        let is_error_info = detail.get("@type")?.as_str()?.ends_with("google.rpc.ErrorInfo");
        let text = |name| detail.get(name).and_then(Value::as_str).map(str::to_owned);
        let metadata =
            detail.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let (reason, domain) = (text("reason")?, text("domain").unwrap_or_default());
        is_error_info.then_some(Self { reason, domain, metadata })
    }

    /// The kind, if the reason is one of the protocol's.
    pub fn kind(&self) -> Option<A2aErrorKind> {
        if self.domain == ERROR_DOMAIN { A2aErrorKind::from_reason(&self.reason) } else { None }
    }

    /// The detail as it stands in an error's `data` or `details`.
    pub fn to_value(&self) -> Value {
        let mut value =
            json!({"@type": ERROR_INFO_TYPE, "reason": self.reason, "domain": self.domain});
        if !self.metadata.is_empty() {
            value["metadata"] = Value::Object(self.metadata.clone());
        }
        value
    }
}

/// One wrong member of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// The path of the member, by its names on the wire.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

impl FieldViolation {
    /// Reads the place out of an error of this crate's objects, which begins with it (`` `message.parts`: … ``).
    pub fn from_decode_error(error: &serde_json::Error) -> Option<Self> {
        let text = error.to_string();
        let (field, description) = text.strip_prefix('`')?.split_once("`: ")?;
        Some(Self { field: field.to_owned(), description: description.to_owned() })
    }

    /// The detail (`google.rpc.BadRequest`) that lists violations in an error's `data` or `details`.
    pub fn to_detail(violations: &[Self]) -> Value {
        let entry = |violation: &Self| json!({"field": violation.field, "description": violation.description});
        json!({"@type": BAD_REQUEST_TYPE, "fieldViolations": violations.iter().map(entry).collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_reasons_lead_back_to_their_kind() {
        for kind in A2aErrorKind::ALL {
            if let Some(code) = kind.rpc_code() {
                assert_eq!(A2aErrorKind::from_rpc_code(code), Some(kind));
            }
            if let Some(reason) = kind.reason() {
                assert_eq!(A2aErrorKind::from_reason(reason), Some(kind));
            }
        }
        assert_eq!(A2aErrorKind::from_rpc_code(-32000), None);
        assert_eq!(A2aErrorKind::from_rpc_code(0), None);
        assert_eq!(A2aErrorKind::from_reason(""), None);
    }

    #[test]
    fn error_info_is_found_in_whatever_peers_send() {
        let info = ErrorInfo::of(A2aErrorKind::TaskNotFound).unwrap().with("taskId", "t1");
        let detail = info.to_value();
        assert_eq!(ErrorInfo::find(&json!([{"@type": "x"}, "odd", detail])), Some(info.clone()));
        assert_eq!(ErrorInfo::find(&detail), Some(info.clone()));
        assert_eq!(info.kind(), Some(A2aErrorKind::TaskNotFound));
        for odd in [
            json!(null),
            json!("text"),
            json!([]),
            json!({"reason": "TASK_NOT_FOUND"}),
            json!([[detail]]),
        ] {
            assert_eq!(ErrorInfo::find(&odd), None, "{odd}");
        }
    }

    #[test]
    fn reasons_of_another_domain_are_not_ours() {
        let mut info = ErrorInfo::of(A2aErrorKind::TaskNotFound).unwrap();
        info.domain = "example.com".to_owned();
        assert_eq!(info.kind(), None);
        assert_eq!(ErrorInfo::of(A2aErrorKind::Forbidden), None);
    }

    #[test]
    fn violations_name_the_member_on_the_wire() {
        let error = serde_json::from_str::<crate::SendMessageRequest>(
            r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"},{}]}}"#,
        )
        .unwrap_err();
        let violation = FieldViolation::from_decode_error(&error).unwrap();
        assert_eq!(violation.field, "message.parts[1]");
        let detail = FieldViolation::to_detail(&[violation]);
        assert_eq!(detail["fieldViolations"][0]["field"], "message.parts[1]");
    }
}

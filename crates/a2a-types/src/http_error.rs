//! The body of an error over HTTP+JSON.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{A2aErrorKind, ErrorInfo, FromWire as _, RpcError, WireLimits};

/// How the address of an error type begins where the specification still shows RFC 9457.
const PROBLEM_TYPES: &str = "https://a2a-protocol.org/errors/";

/// An error over HTTP+JSON (specification: section 11.6; the shape is `google.rpc.Status` in JSON).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({http_status})")]
#[non_exhaustive]
pub struct HttpError {
    /// The status of the response.
    pub http_status: u16,
    /// The name of its class, such as `NOT_FOUND`; empty if the peer gave none.
    pub status: String,
    /// What went wrong, for people.
    pub message: String,
    /// Typed objects that say more.
    pub details: Vec<Value>,
    shape: Shape,
}

/// How the body says which error it is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    /// As the specification does.
    Status,
    /// In another way, which may not say it at all.
    Other(Option<A2aErrorKind>),
}

impl HttpError {
    /// Creates the error of a kind, with its [`ErrorInfo`].
    pub fn of(kind: A2aErrorKind, message: impl Into<String>) -> Self {
        Self::with_details(kind, message, Vec::new())
    }

    /// Creates the error of a kind, with its [`ErrorInfo`] and further details after it.
    pub fn with_details(
        kind: A2aErrorKind,
        message: impl Into<String>,
        details: Vec<Value>,
    ) -> Self {
        let info = ErrorInfo::of(kind).map(|info| info.to_value());
        Self {
            http_status: kind.http_status(),
            status: kind.status().to_owned(),
            message: message.into(),
            details: info.into_iter().chain(details).collect(),
            shape: Shape::Status,
        }
    }

    /// Reads the body that came under `http_status`: the specification's shape, RFC 9457 (`title`, `detail`), or a bare
    /// `message` as in 0.3. None if it is none of these, which is what a gateway or a framework answers, or if it is too
    /// large to be kept in memory.
    pub fn decode(http_status: u16, body: &[u8]) -> Option<Self> {
        let body = str::from_utf8(body).ok()?;
        let body = Value::from_wire(body, WireLimits::Answer).ok()?;
        let text =
            |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        match body.get("error") {
            Some(error @ Value::Object(_)) => {
                // Of a stream the status was a success; only the body tells.
                let code = error.get("code").and_then(Value::as_u64);
                let code = code.and_then(|code| u16::try_from(code).ok());
                Some(Self {
                    http_status: code.filter(|code| *code >= 400).unwrap_or(http_status),
                    status: text(error, "status").unwrap_or_default(),
                    message: text(error, "message").unwrap_or_default(),
                    details: error
                        .get("details")
                        .and_then(Value::as_array)
                        .cloned()
                        .unwrap_or_default(),
                    shape: Shape::Status,
                })
            }
            Some(_) => None,
            None => {
                let is_problem = body.get("title").is_some() || body.get("type").is_some();
                let message = match text(&body, "message") {
                    Some(message) => message,
                    None if is_problem => text(&body, "detail").or_else(|| text(&body, "title"))?,
                    None => return None,
                };
                let named = text(&body, "type").and_then(|address| named(&address));
                Some(Self {
                    http_status,
                    status: String::new(),
                    message,
                    details: Vec::new(),
                    shape: Shape::Other(named),
                })
            }
        }
    }

    /// The body.
    ///
    /// # Errors
    ///
    /// If the details cannot be written as JSON.
    pub fn encode(&self) -> serde_json::Result<Bytes> {
        let mut error =
            json!({"code": self.http_status, "status": self.status, "message": self.message});
        if !self.details.is_empty() {
            error["details"] = Value::Array(self.details.clone());
        }
        serde_json::to_vec(&json!({ "error": error })).map(Bytes::from)
    }

    /// The detail that names the error beyond doubt.
    pub fn error_info(&self) -> Option<ErrorInfo> {
        self.details.iter().find_map(ErrorInfo::find)
    }

    /// Which error it is: by the reason in its details if there is one of the protocol, else by its HTTP status. The
    /// status counts only in a body of the specification's shape: a gateway's 404 says nothing about a task.
    pub fn kind(&self) -> Option<A2aErrorKind> {
        match self.shape {
            Shape::Status => self
                .error_info()
                .and_then(|info| info.kind())
                .or_else(|| A2aErrorKind::from_http_status(self.http_status)),
            Shape::Other(kind) => kind,
        }
    }
}

/// The kind that the address of a problem's type names, such as `…/errors/task-not-found`.
fn named(address: &str) -> Option<A2aErrorKind> {
    let name = address.strip_prefix(PROBLEM_TYPES)?.to_ascii_uppercase().replace('-', "_");
    A2aErrorKind::from_reason(name.strip_suffix("_ERROR").unwrap_or(&name))
}

/// The same error as JSON-RPC says it, so that callers see one kind of error whatever the binding. What has no code there
/// keeps its HTTP status.
impl From<HttpError> for RpcError {
    fn from(error: HttpError) -> Self {
        let code = error.kind().and_then(A2aErrorKind::rpc_code);
        let mut rpc = Self::new(code.unwrap_or_else(|| error.http_status.into()), error.message);
        rpc.data = (!error.details.is_empty()).then_some(Value::Array(error.details));
        rpc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(status: u16, body: &Value) -> Option<HttpError> {
        HttpError::decode(status, body.to_string().as_bytes())
    }

    #[test]
    fn errors_are_written_as_the_specification_shows() {
        let error = HttpError::of(A2aErrorKind::TaskNotFound, "Task not found");
        let body = error.encode().unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "Task not found", "details": [
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
                 "domain": "a2a-protocol.org"}]}})
        );
        assert_eq!(HttpError::decode(404, &body), Some(error));
        let bare = HttpError::of(A2aErrorKind::Forbidden, "no");
        assert_eq!((bare.details.len(), bare.http_status), (0, 403));
    }

    #[test]
    fn reason_wins_over_the_status() {
        let detail = |reason: &str, domain: &str| {
            json!({"error": {"code": 400, "message": "x", "details": [
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain}]}})
        };
        let kind = |status, body: &Value| decode(status, body).unwrap().kind();
        assert_eq!(
            kind(409, &detail("TASK_NOT_CANCELABLE", "a2a-protocol.org")),
            Some(A2aErrorKind::TaskNotCancelable)
        );
        assert_eq!(
            kind(404, &detail("GONE", "a2a-protocol.org")),
            Some(A2aErrorKind::InvalidRequest)
        );
        assert_eq!(
            kind(400, &detail("TASK_NOT_FOUND", "example.com")),
            Some(A2aErrorKind::InvalidRequest),
            "reasons of others are not ours"
        );
        assert_eq!(kind(500, &json!({"error": {"message": "x"}})), Some(A2aErrorKind::Internal));
        assert_eq!(kind(503, &json!({"error": {}})), None);
    }

    #[test]
    fn problems_and_old_bodies_are_read_too() {
        let problem = decode(
            404,
            &json!({"type": "https://a2a-protocol.org/errors/task-not-found", "title": "Task Not Found",
                    "status": 404, "detail": "There is no task t1"}),
        )
        .unwrap();
        assert_eq!(
            (problem.message.as_str(), problem.kind()),
            ("There is no task t1", Some(A2aErrorKind::TaskNotFound))
        );
        let problem = decode(
            400,
            &json!({"type": "https://a2a-protocol.org/errors/version-not-supported", "title": "No"}),
        )
        .unwrap();
        assert_eq!(
            (problem.message.as_str(), problem.kind()),
            ("No", Some(A2aErrorKind::VersionNotSupported))
        );
        let bare = decode(404, &json!({"message": "Not Found"})).unwrap();
        assert_eq!(
            (bare.message.as_str(), bare.kind()),
            ("Not Found", None),
            "gateways say that too"
        );
    }

    #[test]
    fn bodies_of_gateways_and_frameworks_are_no_errors_of_the_protocol() {
        assert_eq!(HttpError::decode(404, b"Not Found"), None);
        assert_eq!(HttpError::decode(404, b""), None);
        assert_eq!(decode(404, &json!({"detail": "Not Found"})), None);
        assert_eq!(decode(401, &json!({"error": "invalid_token"})), None);
        assert_eq!(decode(500, &json!([1])), None);
        assert_eq!(decode(500, &json!("x")), None);
    }

    #[test]
    fn both_bindings_say_the_same_error() {
        let http = HttpError::of(A2aErrorKind::UnsupportedOperation, "busy");
        assert_eq!(RpcError::from(http), RpcError::of(A2aErrorKind::UnsupportedOperation, "busy"));
        let busy = decode(503, &json!({"error": {"code": 503, "message": "later"}})).unwrap();
        assert_eq!(RpcError::from(busy), RpcError::new(503, "later"));
        let address = "https://a2a-protocol.org/errors/task-not-found";
        let problem = decode(404, &json!({"type": address, "title": "x"}));
        assert_eq!(RpcError::from(problem.unwrap()).kind(), Some(A2aErrorKind::TaskNotFound));
    }

    #[test]
    fn status_in_a_stream_is_that_of_the_body() {
        let error = decode(200, &json!({"error": {"code": 500, "message": "x"}})).unwrap();
        assert_eq!((error.http_status, error.kind()), (500, Some(A2aErrorKind::Internal)));
    }
}

//! The envelopes of JSON-RPC 2.0 and the names of the methods.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Error as _, Visitor},
};
use serde_json::{Number, Value, value::RawValue};

use crate::{A2aErrorKind, ErrorInfo, FromWire, WireLimits, from_wire::read_text};

pub(crate) mod result;

/// Sends a message and waits for the answer.
pub const METHOD_SEND_MESSAGE: &str = "SendMessage";
/// Sends a message and follows what comes of it.
pub const METHOD_SEND_STREAMING_MESSAGE: &str = "SendStreamingMessage";
/// Reads a task.
pub const METHOD_GET_TASK: &str = "GetTask";
/// Lists tasks.
pub const METHOD_LIST_TASKS: &str = "ListTasks";
/// Asks a task to stop.
pub const METHOD_CANCEL_TASK: &str = "CancelTask";
/// Follows a task.
pub const METHOD_SUBSCRIBE_TO_TASK: &str = "SubscribeToTask";
/// Registers a webhook for a task.
pub const METHOD_CREATE_PUSH_CONFIG: &str = "CreateTaskPushNotificationConfig";
/// Reads a webhook's configuration.
pub const METHOD_GET_PUSH_CONFIG: &str = "GetTaskPushNotificationConfig";
/// Lists a task's webhooks.
pub const METHOD_LIST_PUSH_CONFIGS: &str = "ListTaskPushNotificationConfigs";
/// Removes a webhook.
pub const METHOD_DELETE_PUSH_CONFIG: &str = "DeleteTaskPushNotificationConfig";
/// Reads the card for authenticated callers.
pub const METHOD_GET_EXTENDED_CARD: &str = "GetExtendedAgentCard";

const VERSION: &str = "2.0";

/// The longest id, method and version that are looked at, in bytes as they are written.
const MAX_NAME: usize = 4 << 10;

/// What ties a response to its request; echoed exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum RpcId {
    /// No id, or one that could not be read.
    #[default]
    Null,
    /// A number; whole in requests.
    Number(Number),
    /// A string.
    String(String),
}

/// Written by hand, as it is read for each event of a stream: what `untagged` derives tries one variant after the other,
/// and words an error for each that does not fit.
impl<'de> Deserialize<'de> for RpcId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;

        impl Visitor<'_> for IdVisitor {
            type Value = RpcId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number or null")
            }

            fn visit_unit<E: de::Error>(self) -> Result<RpcId, E> {
                Ok(RpcId::Null)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<RpcId, E> {
                Ok(RpcId::Number(number.into()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<RpcId, E> {
                Ok(RpcId::Number(number.into()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<RpcId, E> {
                let wrong = || E::invalid_value(de::Unexpected::Float(number), &self);
                Number::from_f64(number).map(RpcId::Number).ok_or_else(wrong)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RpcId, E> {
                Ok(text.into())
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<RpcId, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_any(IdVisitor)
    }
}

impl From<u64> for RpcId {
    fn from(id: u64) -> Self {
        Self::Number(id.into())
    }
}

impl From<String> for RpcId {
    fn from(id: String) -> Self {
        Self::String(id)
    }
}

impl From<&str> for RpcId {
    fn from(id: &str) -> Self {
        Self::String(id.to_owned())
    }
}

impl fmt::Display for RpcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Number(number) => number.fmt(f),
            Self::String(text) => f.pad(text),
        }
    }
}

/// An error in a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
#[non_exhaustive]
pub struct RpcError {
    /// The code; see [`A2aErrorKind::from_rpc_code`].
    pub code: i64,
    /// What went wrong, for people.
    #[serde(default)]
    pub message: String,
    /// Details: a list of typed objects in 1.0, anything in 0.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without details.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Creates the error of a kind, with its [`ErrorInfo`]. Kinds that only HTTP can say become an invalid request.
    pub fn of(kind: A2aErrorKind, message: impl Into<String>) -> Self {
        Self::with_details(kind, message, Vec::new())
    }

    /// Creates the error of a kind, with its [`ErrorInfo`] and further details after it.
    pub fn with_details(
        kind: A2aErrorKind,
        message: impl Into<String>,
        details: Vec<Value>,
    ) -> Self {
        let kind = if kind.rpc_code().is_some() { kind } else { A2aErrorKind::InvalidRequest };
        let info = ErrorInfo::of(kind).map(|info| info.to_value());
        let data: Vec<Value> = info.into_iter().chain(details).collect();
        Self {
            code: kind.rpc_code().unwrap_or_default(),
            message: message.into(),
            data: (!data.is_empty()).then_some(Value::Array(data)),
        }
    }

    /// Which error it is: by the reason in its details if there is one of the protocol, else by its code.
    pub fn kind(&self) -> Option<A2aErrorKind> {
        self.error_info()
            .and_then(|info| info.kind())
            .or_else(|| A2aErrorKind::from_rpc_code(self.code))
    }

    /// The detail that names the error beyond doubt.
    pub fn error_info(&self) -> Option<ErrorInfo> {
        self.data.as_ref().and_then(ErrorInfo::find)
    }
}

/// A request as a server receives it. Method and parameters are borrowed from the body where that is possible.
#[derive(Debug)]
#[non_exhaustive]
pub struct RpcRequest<'a> {
    /// What to echo; [`RpcId::Null`] too when the caller gave none, since peers expect an answer even then.
    pub id: RpcId,
    /// The name of the method.
    pub method: Cow<'a, str>,
    params: Option<&'a RawValue>,
}

/// A body that is no request, with the error to answer and the id to answer it to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct RpcRejection {
    /// The id, as far as it could be read.
    pub id: RpcId,
    /// The error; boxed, since it is rare and large.
    pub error: Box<RpcError>,
}

/// A request or response as its outermost members show it.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// An error as its members show it.
#[derive(Deserialize)]
struct ErrorEnvelope<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// Reads an error from outside. Details that are too large to keep are left out, and its words are cut.
impl FromWire for RpcError {
    fn from_wire(json: &str, limits: WireLimits) -> serde_json::Result<Self> {
        if !json.starts_with('{') {
            return Err(serde_json::Error::custom("invalid type: expected an object"));
        }
        let ErrorEnvelope { code, message, data } = serde_json::from_str(json)?;
        let code = code.filter(|code| !is_absurd(code));
        let code = code.ok_or_else(|| serde_json::Error::custom("`code`: required but missing"))?;
        let code = serde_json::from_str(code.get())?;
        let message = message.map(|message| read_text(message.get(), limits)).transpose()?;
        let data = data.and_then(|data| Value::from_wire(data.get(), limits).ok());
        Ok(Self {
            code,
            message: message.unwrap_or_default(),
            data: data.filter(|data| !data.is_null()),
        })
    }
}

/// A string, borrowed unless it has escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> RpcRequest<'a> {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// The error to answer: not JSON (-32700), not one request of version 2.0 with a method and a whole number, string
    /// or null as id (-32600), parameters that are no object (-32602).
    pub fn decode(body: &'a [u8]) -> Result<Self, RpcRejection> {
        let reject = |id: RpcId, kind, message: &str| RpcRejection {
            id,
            error: Box::new(RpcError::of(kind, message)),
        };
        let invalid = |id, message: &str| reject(id, A2aErrorKind::InvalidRequest, message);

        let whole: &RawValue = serde_json::from_slice(body)
            .map_err(|_| reject(RpcId::Null, A2aErrorKind::ParseError, "Invalid JSON payload"))?;
        if !whole.get().starts_with('{') {
            let message = if whole.get().starts_with('[') {
                "Batches are not supported"
            } else {
                "The request must be an object"
            };
            return Err(invalid(RpcId::Null, message));
        }
        let envelope: Envelope<'a> = serde_json::from_str(whole.get())
            .map_err(|_| invalid(RpcId::Null, "A member of the request is given twice"))?;

        if envelope.id.is_some_and(is_absurd) {
            return Err(invalid(RpcId::Null, "The id is longer than 4096 bytes"));
        }
        let id = match envelope.id.map(|id| serde_json::from_str(id.get())) {
            None => RpcId::Null,
            Some(Ok(RpcId::Number(number))) if number.is_f64() => {
                return Err(invalid(
                    RpcId::Null,
                    "The id must be a string, a whole number or null",
                ));
            }
            Some(Ok(id)) => id,
            Some(Err(_)) => {
                return Err(invalid(
                    RpcId::Null,
                    "The id must be a string, a whole number or null",
                ));
            }
        };
        if text(envelope.jsonrpc).as_deref() != Some(VERSION) {
            return Err(invalid(id, "The member jsonrpc must be \"2.0\""));
        }
        let Some(method) = text(envelope.method) else {
            return Err(invalid(id, "The member method must be a string"));
        };
        match envelope.params {
            Some(params) if !params.get().starts_with('{') => {
                Err(reject(id, A2aErrorKind::InvalidParams, "The parameters must be an object"))
            }
            params => Ok(Self { id, method, params }),
        }
    }

    /// Reads the parameters, within [`WireLimits::Request`]; none at all read as an empty object.
    ///
    /// # Errors
    ///
    /// The error to answer (-32602), naming the member that is wrong.
    pub fn params<T: FromWire>(&self) -> Result<T, RpcError> {
        let params = self.params.map_or("{}", RawValue::get);
        T::from_wire(params, WireLimits::Request).map_err(|error| {
            let violations: Vec<_> =
                crate::FieldViolation::from_decode_error(&error).into_iter().collect();
            let details = if violations.is_empty() {
                Vec::new()
            } else {
                vec![crate::FieldViolation::to_detail(&violations)]
            };
            RpcError::with_details(
                A2aErrorKind::InvalidParams,
                format!("Invalid parameters: {error}"),
                details,
            )
        })
    }

    /// Writes a request.
    ///
    /// # Errors
    ///
    /// If `params` cannot be written as JSON.
    pub fn encode<T: Serialize>(id: &RpcId, method: &str, params: &T) -> serde_json::Result<Bytes> {
        #[derive(Serialize)]
        struct Request<'r, T> {
            jsonrpc: &'static str,
            id: &'r RpcId,
            method: &'r str,
            params: &'r T,
        }
        serde_json::to_vec(&Request { jsonrpc: VERSION, id, method, params }).map(Bytes::from)
    }
}

/// A response as a client receives it; the result is borrowed from the body.
#[derive(Debug)]
#[non_exhaustive]
pub struct RpcResponse<'a> {
    /// The id of the request.
    pub id: RpcId,
    /// What came of it.
    pub outcome: RpcOutcome<'a>,
}

/// What a response says.
#[derive(Debug)]
pub enum RpcOutcome<'a> {
    /// It worked; the result is not yet read, and is `null` where the peer said nothing else.
    Result(&'a RawValue),
    /// It did not.
    Error(RpcError),
}

/// Why a body is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RpcDecodeError {
    /// The body is not one object of JSON.
    #[error("the response is not a JSON-RPC object")]
    NotAnObject(#[source] serde_json::Error),
    /// The body lacks what a response of version 2.0 must have.
    #[error("the response has a wrong member `{0}`")]
    Member(&'static str),
}

impl<'a> RpcResponse<'a> {
    /// Reads a response. Result and error may both be missing: that is how 0.3 answers some calls.
    ///
    /// # Errors
    ///
    /// [`RpcDecodeError::NotAnObject`] or [`RpcDecodeError::Member`].
    pub fn decode(body: &'a [u8]) -> Result<Self, RpcDecodeError> {
        if !body.trim_ascii_start().starts_with(b"{") {
            // The parser's own error would hold whatever is there instead.
            let error = serde_json::Error::custom("invalid type: expected an object");
            return Err(RpcDecodeError::NotAnObject(error));
        }
        let envelope: Envelope<'a> =
            serde_json::from_slice(body).map_err(RpcDecodeError::NotAnObject)?;
        if text(envelope.jsonrpc).as_deref() != Some(VERSION) {
            return Err(RpcDecodeError::Member("jsonrpc"));
        }
        let id = match envelope.id {
            Some(id) if is_absurd(id) => return Err(RpcDecodeError::Member("id")),
            Some(id) => serde_json::from_str(id.get()).map_err(|_| RpcDecodeError::Member("id"))?,
            None => RpcId::Null,
        };
        let outcome = match (envelope.error, envelope.result) {
            (Some(error), _) => RpcOutcome::Error(
                RpcError::from_wire(error.get(), WireLimits::Answer)
                    .map_err(|_| RpcDecodeError::Member("error"))?,
            ),
            (None, Some(result)) => RpcOutcome::Result(result),
            (None, None) => RpcOutcome::Result(RawValue::NULL),
        };
        Ok(Self { id, outcome })
    }

    /// Writes a response that carries a result.
    ///
    /// # Errors
    ///
    /// If `result` cannot be written as JSON.
    pub fn encode_result<T: Serialize>(id: &RpcId, result: &T) -> serde_json::Result<Bytes> {
        #[derive(Serialize)]
        struct Response<'r, T> {
            jsonrpc: &'static str,
            id: &'r RpcId,
            result: &'r T,
        }
        serde_json::to_vec(&Response { jsonrpc: VERSION, id, result }).map(Bytes::from)
    }

    /// Writes a response that carries an error.
    ///
    /// # Errors
    ///
    /// If the error's details cannot be written as JSON.
    pub fn encode_error(id: &RpcId, error: &RpcError) -> serde_json::Result<Bytes> {
        #[derive(Serialize)]
        struct Response<'r> {
            jsonrpc: &'static str,
            id: &'r RpcId,
            error: &'r RpcError,
        }
        serde_json::to_vec(&Response { jsonrpc: VERSION, id, error }).map(Bytes::from)
    }
}

/// Whether a name is so long that nobody meant it.
fn is_absurd(name: &RawValue) -> bool {
    name.get().len() > MAX_NAME
}

fn text(member: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let member = member.filter(|member| !is_absurd(member))?;
    serde_json::from_str::<Text<'_>>(member.get()).ok().map(|Text(text)| text)
}

#[cfg(test)]
mod tests;

//! JSON-RPC over HTTP, a thin codec around the operations.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    extract::{RawQuery, State},
    response::{IntoResponse as _, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use tokio::time::Instant;
use url::form_urlencoded;
use volcanic_a2a_types::{
    A2aErrorKind, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, FieldViolation,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTasksRequest, MEDIA_TYPE_A2A_JSON, MEDIA_TYPE_EVENT_STREAM, MEDIA_TYPE_JSON,
    METHOD_CANCEL_TASK, METHOD_CREATE_PUSH_CONFIG, METHOD_DELETE_PUSH_CONFIG,
    METHOD_GET_EXTENDED_CARD, METHOD_GET_PUSH_CONFIG, METHOD_GET_TASK, METHOD_LIST_PUSH_CONFIGS,
    METHOD_LIST_TASKS, METHOD_SEND_MESSAGE, METHOD_SEND_STREAMING_MESSAGE,
    METHOD_SUBSCRIBE_TO_TASK, ProtocolVersion, RpcError, RpcId, RpcRequest, RpcResponse,
    SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig, VERSION_HEADER,
    encode_sse_comment, encode_sse_event,
};

use crate::{
    caller::{AuthError, Caller},
    error::OperationError,
    http_routes::Served,
    operations::EventStream,
};

/// What a method comes to.
enum Outcome {
    Json(Bytes),
    Events(EventStream),
}

/// An error on its way out, with what HTTP has to say about it.
struct RpcFailure {
    error: RpcError,
    retry_after: Option<Duration>,
}

/// Handles `POST /a2a`: who is calling, then what they want.
pub(crate) async fn handle(
    State(served): State<Arc<Served>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let caller = match served.auth.authenticate(&headers) {
        Ok(caller) => caller,
        Err(error) => return refuse(error),
    };
    if !takes_json(&headers) {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json\n")
            .into_response();
    }
    let reading = to_bytes(body, served.config.max_body_bytes);
    let body = match tokio::time::timeout(served.config.body_timeout, reading).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return unread(&error),
        Err(_) => {
            return (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time\n")
                .into_response();
        }
    };
    let (id, method, call) = match RpcRequest::decode(&body) {
        Ok(request) => {
            let checked = check_version(&headers, query.as_deref(), &request.method);
            let call = checked.map_err(RpcFailure::from).and_then(|()| Call::read(&request));
            (request.id, request.method.into_owned(), call)
        }
        Err(rejection) => return failure(&rejection.id, &(*rejection.error).into()),
    };
    // It may be large, and what follows may take long.
    drop(body);
    let began = Instant::now();
    let outcome = match call {
        Ok(call) => call.run(&served, &caller, &id).await,
        Err(error) => Err(error),
    };
    tracing::debug!(
        rpc.method = method,
        ok = outcome.is_ok(),
        elapsed_ms = began.elapsed().as_millis(),
        "rpc answered"
    );
    match outcome {
        Ok(Outcome::Json(body)) => json(StatusCode::OK, body),
        Ok(Outcome::Events(events)) => event_stream(events, &id, served.config.keep_alive),
        Err(error) => failure(&id, &error),
    }
}

/// What a request asks for.
enum Call {
    Send(SendMessageRequest),
    Stream(SendMessageRequest),
    Get(GetTaskRequest),
    List(ListTasksRequest),
    Cancel(CancelTaskRequest),
    Subscribe(SubscribeToTaskRequest),
    CreatePushConfig(TaskPushNotificationConfig),
    GetPushConfig(GetTaskPushNotificationConfigRequest),
    ListPushConfigs(ListTaskPushNotificationConfigsRequest),
    DeletePushConfig(DeleteTaskPushNotificationConfigRequest),
}

impl Call {
    /// Reads method and parameters.
    fn read(request: &RpcRequest<'_>) -> Result<Self, RpcFailure> {
        let call = match &*request.method {
            METHOD_SEND_MESSAGE => Self::Send(request.params()?),
            METHOD_SEND_STREAMING_MESSAGE => Self::Stream(request.params()?),
            METHOD_GET_TASK => Self::Get(request.params()?),
            METHOD_LIST_TASKS => Self::List(request.params()?),
            METHOD_CANCEL_TASK => Self::Cancel(request.params()?),
            METHOD_SUBSCRIBE_TO_TASK => Self::Subscribe(request.params()?),
            METHOD_CREATE_PUSH_CONFIG => Self::CreatePushConfig(request.params()?),
            METHOD_GET_PUSH_CONFIG => Self::GetPushConfig(request.params()?),
            METHOD_LIST_PUSH_CONFIGS => Self::ListPushConfigs(request.params()?),
            METHOD_DELETE_PUSH_CONFIG => Self::DeletePushConfig(request.params()?),
            METHOD_GET_EXTENDED_CARD => {
                let error = OperationError::unsupported("this agent has no extended card");
                return Err(error.into());
            }
            // The names of version 0.3 are told apart so that an old client learns what is wrong.
            old if old.contains('/') => {
                let asked = "0.3".to_owned();
                return Err(OperationError::VersionNotSupported { asked }.into());
            }
            _ => return Err(RpcError::of(A2aErrorKind::MethodNotFound, "Method not found").into()),
        };
        Ok(call)
    }

    async fn run(
        self,
        served: &Served,
        caller: &Caller,
        id: &RpcId,
    ) -> Result<Outcome, RpcFailure> {
        let operations = &served.operations;
        match self {
            Self::Send(request) => result(id, &operations.send(caller, request).await?),
            Self::Stream(request) => Ok(Outcome::Events(operations.stream(caller, request).await?)),
            Self::Get(request) => result(id, &operations.get(caller, request).await?),
            Self::List(request) => result(id, &operations.list(caller, request).await?),
            Self::Cancel(request) => result(id, &operations.cancel(caller, request).await?),
            Self::Subscribe(request) => {
                Ok(Outcome::Events(operations.subscribe(caller, request).await?))
            }
            Self::CreatePushConfig(config) => {
                result(id, &operations.create_push_config(caller, config).await?)
            }
            Self::GetPushConfig(request) => {
                result(id, &operations.get_push_config(caller, request).await?)
            }
            Self::ListPushConfigs(request) => {
                result(id, &operations.list_push_configs(caller, request).await?)
            }
            Self::DeletePushConfig(request) => {
                operations.delete_push_config(caller, request).await?;
                result(id, &serde_json::Value::Null)
            }
        }
    }
}

fn result<T: Serialize>(id: &RpcId, result: &T) -> Result<Outcome, RpcFailure> {
    RpcResponse::encode_result(id, result).map(Outcome::Json).map_err(|error| {
        tracing::error!(%error, "failed to encode a result");
        RpcError::of(A2aErrorKind::Internal, "Internal error").into()
    })
}

/// Without a version the method's name decides; one that is named must be spoken here.
fn check_version(
    headers: &HeaderMap,
    query: Option<&str>,
    method: &str,
) -> Result<(), OperationError> {
    let in_header =
        headers.get(VERSION_HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let in_query = || {
        let mut pairs = form_urlencoded::parse(query?.as_bytes());
        pairs.find(|(name, _)| name.eq_ignore_ascii_case(VERSION_HEADER)).map(|(_, value)| value)
    };
    let asked = in_header.filter(|version| !version.trim().is_empty()).or_else(in_query);
    let Some(asked) = asked.filter(|version| !version.trim().is_empty()) else { return Ok(()) };
    if asked.parse() == Ok(ProtocolVersion::V1_0) {
        return Ok(());
    }
    tracing::debug!(rpc.method = method, "unknown protocol version");
    Err(OperationError::VersionNotSupported { asked: asked.chars().take(20).collect() })
}

/// A web page can make a browser send any other type without asking first.
fn takes_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    [MEDIA_TYPE_JSON, MEDIA_TYPE_A2A_JSON].iter().any(|known| essence.eq_ignore_ascii_case(known))
}

impl From<RpcError> for RpcFailure {
    fn from(error: RpcError) -> Self {
        Self { error, retry_after: None }
    }
}

impl From<OperationError> for RpcFailure {
    fn from(error: OperationError) -> Self {
        let details = match &error {
            OperationError::InvalidParams { field, problem } => {
                vec![FieldViolation::to_detail(&[FieldViolation {
                    field: field.clone(),
                    description: problem.clone(),
                }])]
            }
            OperationError::Store(source) => {
                tracing::error!(error = %source, "task store failed");
                Vec::new()
            }
            _ => Vec::new(),
        };
        let retry_after = error.retry_after();
        Self { error: RpcError::with_details(error.kind(), sentence(&error), details), retry_after }
    }
}

/// The message of an error as peers write theirs: beginning with a capital.
fn sentence(error: &OperationError) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn failure(id: &RpcId, failure: &RpcFailure) -> Response {
    let body = RpcResponse::encode_error(id, &failure.error).unwrap_or_default();
    let Some(wait) = failure.retry_after else { return json(StatusCode::OK, body) };
    let mut response = json(StatusCode::SERVICE_UNAVAILABLE, body);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
    response
}

fn json(status: StatusCode, body: Bytes) -> Response {
    (status, [(header::CONTENT_TYPE, MEDIA_TYPE_JSON)], body).into_response()
}

fn refuse(error: AuthError) -> Response {
    let (status, kind) = match error {
        AuthError::Missing | AuthError::Refused => (StatusCode::UNAUTHORIZED, "Unauthorized"),
        AuthError::Forbidden => (StatusCode::FORBIDDEN, "Forbidden"),
    };
    tracing::debug!(%error, "caller refused");
    let mut response = (status, format!("{kind}: {error}\n")).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer realm=\"a2a\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

fn unread(error: &axum::Error) -> Response {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if current.is::<http_body_util::LengthLimitError>() {
            return (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large\n").into_response();
        }
        cause = current.source();
    }
    (StatusCode::BAD_REQUEST, "the body could not be read\n").into_response()
}

fn event_stream(mut events: EventStream, id: &RpcId, keep_alive: Duration) -> Response {
    let id = serde_json::to_string(id).unwrap_or_else(|_| "null".to_owned());
    let frames = async_stream::stream! {
        loop {
            match tokio::time::timeout(keep_alive, events.next()).await {
                Err(_) => yield Ok::<_, Infallible>(encode_sse_comment("keep-alive")),
                Ok(Some(Ok(event))) => yield Ok(event_frame(&id, &event)),
                Ok(Some(Err(error))) => {
                    let error = RpcError::of(A2aErrorKind::Internal, error.to_string());
                    yield Ok(error_frame(&id, &error));
                    return;
                }
                Ok(None) => return,
            }
        }
    };
    let headers = [
        (header::CONTENT_TYPE, MEDIA_TYPE_EVENT_STREAM),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(frames)).into_response()
}

/// One event: a response whose result was encoded before, for all streams at once.
fn event_frame(id: &str, result: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(result.len() + id.len() + 48);
    frame.put_slice(b"data: {\"jsonrpc\":\"2.0\",\"id\":");
    frame.put_slice(id.as_bytes());
    frame.put_slice(b",\"result\":");
    frame.put_slice(result);
    frame.put_slice(b"}\n\n");
    frame.freeze()
}

fn error_frame(id: &str, error: &RpcError) -> Bytes {
    let error = serde_json::to_string(error).unwrap_or_default();
    let data = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}");
    encode_sse_event(&data, Some("error"))
}

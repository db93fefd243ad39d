//! The JSON-RPC binding of A2A 1.0.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;
use volcanic_a2a_types::{
    AgentCard, MEDIA_TYPE_EVENT_STREAM, MEDIA_TYPE_JSON, RpcDecodeError, RpcError, RpcId,
    RpcOutcome, RpcRequest, RpcResponse, StreamResponse, Task, TaskId, VERSION_HEADER,
};
use volcanic_net::{CallKind, GuardPolicy, retry_after_by_date};

use super::{auth, card::CallTarget, glimpse, line::Line, stream};
use crate::{ClientError, KeyError, frame::sanitize_remote_line};

/// How much of a remote's error message is kept, in characters.
const MAX_MESSAGE: usize = 500;

/// Calls of one agent over JSON-RPC.
pub(super) struct JsonRpc {
    line: Arc<Line>,
    uri: Uri,
    tenant: Option<String>,
    policy: GuardPolicy,
    /// What every request carries, the key among it.
    headers: HeaderMap,
    last_id: AtomicU64,
}

/// One request on its way.
struct Exchange {
    id: RpcId,
    request: Request<Bytes>,
}

/// A whole answer to the request `id`.
struct Answer {
    id: RpcId,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl JsonRpc {
    pub(super) fn new(
        line: Arc<Line>,
        card: &AgentCard,
        target: CallTarget,
    ) -> Result<Self, ClientError> {
        let CallTarget { url, tenant, policy, is_trusted } = target;
        let uri = url
            .as_str()
            .parse()
            .map_err(|_| line.card_error("its interface has an address that cannot be used"))?;
        let mut headers = HeaderMap::new();
        if is_trusted {
            line.add_headers(&mut headers);
            if let Some(key) = line.key() {
                let (name, value) = auth::key_header(card, key).map_err(|reason| {
                    ClientError::Key { agent: line.agent.clone(), source: KeyError::new(reason) }
                })?;
                headers.insert(name, value);
            }
        }
        headers.insert(VERSION_HEADER, HeaderValue::from_static("1.0"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE_JSON));
        Ok(Self { line, uri, tenant, policy, headers, last_id: AtomicU64::new(0) })
    }

    pub(super) fn tenant(&self) -> Option<String> {
        self.tenant.clone()
    }

    /// Calls a method and reads its result.
    pub(super) async fn call<P: Serialize + Sync, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
    ) -> Result<R, ClientError> {
        let config = &self.line.config;
        self.call_within(method, params, config.call_timeout, config.answer_limit).await
    }

    /// The same under the limits of a card.
    pub(super) async fn call_for_card<P: Serialize + Sync, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
    ) -> Result<R, ClientError> {
        let config = &self.line.config;
        self.call_within(method, params, config.card_timeout, config.card_limit).await
    }

    /// Calls a method whose result is the task `asked`. Of a task that cannot be read its state still is, if it says so.
    pub(super) async fn call_for_task<P: Serialize + Sync>(
        &self,
        method: &'static str,
        params: &P,
        asked: &TaskId,
    ) -> Result<Task, ClientError> {
        let config = &self.line.config;
        let answer = self.answer(method, params, config.call_timeout, config.answer_limit).await?;
        match self.decode(method, &answer) {
            Err(ClientError::Unexpected { agent, reason }) if answer.status.is_success() => {
                Err(match glimpse::state_of(&answer.body, &answer.id, asked) {
                    Some(state) => ClientError::UnreadableTask { agent, state, reason },
                    None => ClientError::Unexpected { agent, reason },
                })
            }
            read => read,
        }
    }

    async fn call_within<P: Serialize + Sync, R: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &P,
        timeout: Duration,
        limit: usize,
    ) -> Result<R, ClientError> {
        let answer = self.answer(method, params, timeout, limit).await?;
        self.decode(method, &answer)
    }

    async fn answer<P: Serialize + Sync>(
        &self,
        method: &'static str,
        params: &P,
        timeout: Duration,
        limit: usize,
    ) -> Result<Answer, ClientError> {
        let exchange = self.exchange(method, params, MEDIA_TYPE_JSON)?;
        let deadline = Instant::now() + timeout;
        let response = self.line.open(exchange.request, CallKind::Call, deadline).await?;
        let (head, body) = response.into_parts();
        if matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.line.status_error(head.status, &head.headers));
        }
        let body = self.line.read(body, limit, deadline).await?;
        Ok(Answer { id: exchange.id, status: head.status, headers: head.headers, body })
    }

    /// Calls a method that answers with a stream.
    pub(super) async fn open_stream<P: Serialize + Sync>(
        &self,
        method: &'static str,
        params: &P,
    ) -> Result<BoxStream<'static, Result<StreamResponse, ClientError>>, ClientError> {
        let exchange = self.exchange(method, params, MEDIA_TYPE_EVENT_STREAM)?;
        let line = &self.line;
        let deadline = Instant::now() + line.config.call_timeout;
        let response = line.open(exchange.request, CallKind::Stream, deadline).await?;
        let (head, body) = response.into_parts();
        if head.status.is_success() && is_event_stream(&head.headers) {
            return Ok(stream::events(Arc::clone(line), method, exchange.id, body));
        }
        if matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(line.status_error(head.status, &head.headers));
        }
        let body = line.read(body, line.config.answer_limit, deadline).await?;
        let answer = Answer { id: exchange.id, status: head.status, headers: head.headers, body };
        let _: serde::de::IgnoredAny = self.decode(method, &answer)?;
        Err(line.unexpected("it is not a stream of events"))
    }

    fn exchange<P: Serialize>(
        &self,
        method: &'static str,
        params: &P,
        accept: &'static str,
    ) -> Result<Exchange, ClientError> {
        let id = RpcId::from(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let body = RpcRequest::encode(&id, method, params)
            .map_err(|_| self.line.unexpected("the request cannot be written as JSON"))?;
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(accept));
        request.extensions_mut().insert(self.policy);
        Ok(Exchange { id, request })
    }

    /// Reads the answer to a call. Errors of JSON-RPC are understood under any status.
    fn decode<R: DeserializeOwned>(
        &self,
        method: &str,
        Answer { id, status, headers, body }: &Answer,
    ) -> Result<R, ClientError> {
        let line = &self.line;
        let response = match RpcResponse::decode(body) {
            Ok(response) => response,
            Err(_) if !status.is_success() => return Err(line.status_error(*status, headers)),
            Err(error) => return Err(unreadable(line, &error)),
        };
        match read_response(line, method, id, response) {
            Err(ClientError::Refused { agent, error, retry_after: _ }) => {
                Err(ClientError::Refused {
                    agent,
                    error,
                    retry_after: retry_after_by_date(headers),
                })
            }
            Ok(_) if !status.is_success() => Err(line.status_error(*status, headers)),
            read => read,
        }
    }
}

/// Reads one response to the request `id`.
pub(super) fn read_response<R: DeserializeOwned>(
    line: &Line,
    method: &str,
    id: &RpcId,
    response: RpcResponse<'_>,
) -> Result<R, ClientError> {
    let is_error = matches!(response.outcome, RpcOutcome::Error(_));
    // An error may come without the id, if the agent could not read so far.
    if response.id != *id && !(is_error && response.id == RpcId::Null) {
        return Err(line.unexpected("it belongs to another request"));
    }
    match response.result(method) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(refused(line, error)),
        Err(error) => Err(unreadable(line, &error)),
    }
}

fn refused(line: &Line, mut error: RpcError) -> ClientError {
    error.message = sanitize_remote_line(&error.message, MAX_MESSAGE);
    ClientError::Refused { agent: line.agent.clone(), error: Box::new(error), retry_after: None }
}

pub(super) fn unreadable(line: &Line, error: &RpcDecodeError) -> ClientError {
    let reason = match error {
        RpcDecodeError::NotAnObject(_) => "it is not JSON-RPC".to_owned(),
        RpcDecodeError::Result { source, .. } => source.to_string(),
        other => other.to_string(),
    };
    line.unexpected(sanitize_remote_line(&reason, MAX_MESSAGE))
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|essence| essence.trim().eq_ignore_ascii_case(MEDIA_TYPE_EVENT_STREAM))
}

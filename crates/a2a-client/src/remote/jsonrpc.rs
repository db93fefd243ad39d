//! The JSON-RPC binding, of A2A 1.0 and in the dialect of 0.3.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use serde_json::value::RawValue;
use volcanic_a2a_types::{
    FromWire, MEDIA_TYPE_EVENT_STREAM, MEDIA_TYPE_JSON, RpcDecodeError, RpcError, RpcId,
    RpcOutcome, RpcRequest, RpcResponse, StreamResponse, WireLimits, v03,
};
use volcanic_net::{CallKind, retry_after_by_date};

use super::{
    endpoint::{AnswerLimits, Endpoint, MAX_MESSAGE, is_event_stream},
    glimpse,
    line::Line,
    operation::Operation,
    stream::{Events, ReadEvent},
};
use crate::{AgentProtocol, ClientError, frame::sanitize_remote_line};

/// Calls of one agent over JSON-RPC.
pub(super) struct JsonRpc {
    pub(super) endpoint: Endpoint,
    uri: Uri,
    dialect: AgentProtocol,
    last_id: AtomicU64,
    /// What requests carry whose answer is one object.
    call_headers: HeaderMap,
    /// What requests carry whose answer is a stream.
    stream_headers: HeaderMap,
}

/// One request on its way.
struct Exchange {
    id: RpcId,
    request: Request<Bytes>,
}

impl JsonRpc {
    pub(super) fn new(endpoint: Endpoint, dialect: AgentProtocol) -> Result<Self, ClientError> {
        let uri = endpoint.url.as_str().parse().map_err(|_| {
            endpoint.line.card_error("its interface has an address that cannot be used")
        })?;
        let headers = |accept| endpoint.headers(accept, Some(MEDIA_TYPE_JSON));
        let (call_headers, stream_headers) =
            (headers(MEDIA_TYPE_JSON), headers(MEDIA_TYPE_EVENT_STREAM));
        let last_id = AtomicU64::new(0);
        Ok(Self { endpoint, uri, dialect, last_id, call_headers, stream_headers })
    }

    pub(super) fn dialect(&self) -> AgentProtocol {
        self.dialect
    }

    /// Calls a method and reads its result.
    pub(super) async fn call<O: Operation>(
        &self,
        operation: &O,
        limits: AnswerLimits,
    ) -> Result<O::Answer, ClientError> {
        let line = &self.endpoint.line;
        let Exchange { id, request } = self.exchange(operation, &self.call_headers)?;
        let answer = pin!(line.ask(request, limits.size));
        let (head, body) = line.within(limits.timeout, answer).await?;
        if self.dialect == AgentProtocol::V1
            && head.status.is_success()
            && let Ok(response) = str::from_utf8(&body)
        {
            let mut answer = None;
            O::Answer::fill_from_response(&mut answer, response, &id);
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        let answer = self.decode(O::METHOD, &id, head.status, &head.headers, &body)?;
        read_result(line, self.dialect, answer)
            .map_err(|error| glimpse::beside(error, self.dialect, answer.get(), &operation.asked()))
    }

    /// Calls a method that answers with a stream.
    pub(super) async fn open_stream<O: Operation<Answer = StreamResponse>>(
        &self,
        operation: &O,
    ) -> Result<Events, ClientError> {
        let Exchange { id, request } = self.exchange(operation, &self.stream_headers)?;
        let (line, dialect) = (&self.endpoint.line, self.dialect);
        let limits = self.endpoint.call_limits();
        let opening = pin!(async {
            let (head, body) = line.open(request, CallKind::Stream).await?.into_parts();
            if head.status.is_success() && is_event_stream(&head.headers) {
                return Ok(Events::new(Arc::clone(line), body, move |line, _, data, read| {
                    read_event(line, dialect, O::METHOD, &id, data, read)
                }));
            }
            let body = line.read_answer(&head, body, limits.size).await?;
            self.decode(O::METHOD, &id, head.status, &head.headers, &body)?;
            Err(line.unexpected("it is not a stream of events"))
        });
        line.within(limits.timeout, opening).await
    }

    fn exchange<O: Operation>(
        &self,
        operation: &O,
        headers: &HeaderMap,
    ) -> Result<Exchange, ClientError> {
        let line = &self.endpoint.line;
        let id = RpcId::from(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let body = match self.dialect {
            AgentProtocol::V1 => RpcRequest::encode(&id, O::METHOD, operation),
            AgentProtocol::V03 => {
                let method = v03::method_name(O::METHOD).ok_or_else(|| {
                    ClientError::Unsupported { agent: line.agent.clone(), operation: O::METHOD }
                })?;
                v03::write_params(O::METHOD, operation)
                    .and_then(|params| RpcRequest::encode(&id, method, &params))
            }
        };
        let body = body.map_err(|_| line.unwritable())?;
        let headers = headers.clone();
        let request = self.endpoint.request(Method::POST, self.uri.clone(), headers, body);
        Ok(Exchange { id, request })
    }

    /// Finds the result in the answer to a call. Errors of JSON-RPC are understood under any status.
    fn decode<'b>(
        &self,
        method: &str,
        id: &RpcId,
        status: StatusCode,
        headers: &HeaderMap,
        body: &'b [u8],
    ) -> Result<&'b RawValue, ClientError> {
        let line = &self.endpoint.line;
        let response = match RpcResponse::decode(body) {
            Ok(response) => response,
            Err(_) if !status.is_success() => return Err(line.status_error(status, headers)),
            Err(error) => return Err(unreadable(line, &error)),
        };
        match read_outcome(line, self.dialect, method, id, response) {
            Err(ClientError::Refused { agent, error, retry_after: _ }) => {
                Err(ClientError::Refused {
                    agent,
                    error,
                    retry_after: retry_after_by_date(headers),
                })
            }
            Ok(_) if !status.is_success() => Err(line.status_error(status, headers)),
            read => read,
        }
    }
}

/// Errors come as an event named `error` or, from some agents, without a name; both hold a response.
fn read_event(
    line: &Line,
    dialect: AgentProtocol,
    method: &str,
    id: &RpcId,
    data: &str,
    read: &mut ReadEvent,
) -> Result<(), ClientError> {
    if dialect == AgentProtocol::V1 {
        StreamResponse::fill_from_response(&mut read.event, data, id);
        if read.event.is_some() {
            return Ok(());
        }
    }
    let response =
        RpcResponse::decode(data.as_bytes()).map_err(|error| unreadable(line, &error))?;
    let result = read_outcome(line, dialect, method, id, response)?;
    let (event, is_last) = match dialect {
        AgentProtocol::V1 => (read_result(line, dialect, result)?, false),
        AgentProtocol::V03 => {
            v03::read_event(result.get()).map_err(|error| line.unreadable(&error))?
        }
    };
    *read = ReadEvent { event: Some(event), is_last };
    Ok(())
}

/// Takes one response to the request `id` apart.
fn read_outcome<'b>(
    line: &Line,
    dialect: AgentProtocol,
    method: &str,
    id: &RpcId,
    response: RpcResponse<'b>,
) -> Result<&'b RawValue, ClientError> {
    let is_error = matches!(response.outcome, RpcOutcome::Error(_));
    // An error may come without the id, if the agent could not read so far.
    if response.id != *id && !(is_error && response.id == RpcId::Null) {
        return Err(line.unexpected("it belongs to another request"));
    }
    match response.outcome {
        RpcOutcome::Result(result) => Ok(result),
        RpcOutcome::Error(error) => Err(line.refused(translated(dialect, method, error), None)),
    }
}

fn translated(dialect: AgentProtocol, method: &str, error: RpcError) -> RpcError {
    match dialect {
        AgentProtocol::V1 => error,
        AgentProtocol::V03 => v03::read_error(method, error),
    }
}

fn read_result<R: FromWire>(
    line: &Line,
    dialect: AgentProtocol,
    result: &RawValue,
) -> Result<R, ClientError> {
    match dialect {
        AgentProtocol::V1 => R::from_wire(result.get(), WireLimits::Answer),
        AgentProtocol::V03 => v03::read_result(result.get()),
    }
    .map_err(|error| line.unreadable(&error))
}

fn unreadable(line: &Line, error: &RpcDecodeError) -> ClientError {
    let reason = match error {
        RpcDecodeError::NotAnObject(_) => "it is not JSON-RPC".to_owned(),
        other => other.to_string(),
    };
    line.unexpected(sanitize_remote_line(&reason, MAX_MESSAGE))
}

//! The HTTP+JSON binding of A2A 1.0.

use std::{pin::pin, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, response};
use serde::de::Error as _;
use volcanic_a2a_types::{
    A2aErrorKind, FromWire, HttpError, HttpVerb, MEDIA_TYPE_A2A_JSON, MEDIA_TYPE_EVENT_STREAM,
    Route, StreamResponse, WireLimits,
};
use volcanic_net::{CallKind, NetBody, retry_after_by_date};

use super::{
    endpoint::{AnswerLimits, Endpoint, is_event_stream},
    glimpse,
    line::Line,
    operation::Operation,
    stream::Events,
};
use crate::{AgentProtocol, ClientError};

/// Agents answer with either type.
const ACCEPT_JSON: &str = "application/a2a+json, application/json";
/// How an event is named that reports an error.
const ERROR_EVENT: &str = "error";

/// Calls of one agent over HTTP+JSON.
pub(super) struct HttpJson {
    pub(super) endpoint: Endpoint,
}

impl HttpJson {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// Makes a call and reads its answer.
    pub(super) async fn call<O: Operation>(
        &self,
        operation: &O,
        limits: AnswerLimits,
    ) -> Result<O::Answer, ClientError> {
        let line = &self.endpoint.line;
        let route = operation.route();
        let request = self.request(operation, &route, method(route.verb()), ACCEPT_JSON)?;
        let answer = pin!(line.ask(request, limits.size));
        let (head, body) = line.within(limits.timeout, answer).await?;
        if head.status.is_success() {
            read_answer(line, &body).map_err(|error| {
                let answer = str::from_utf8(&body).unwrap_or_default();
                glimpse::beside(error, AgentProtocol::V1, answer, &operation.asked())
            })
        } else {
            Err(read_error(line, head.status, &head.headers, &body))
        }
    }

    /// Makes a call that answers with a stream.
    ///
    /// The specification names `POST` and `GET` for a subscription, and some agents know only one of them.
    pub(super) async fn open_stream<O: Operation<Answer = StreamResponse>>(
        &self,
        operation: &O,
    ) -> Result<Events, ClientError> {
        let route = operation.route();
        let limits = self.endpoint.call_limits();
        let opening = pin!(async {
            let posted = self.try_stream(operation, &route, Method::POST, limits).await;
            let Err(refusal) = posted else { return posted };
            if !(matches!(route, Route::SubscribeToTask(_)) && is_of_the_verb(&refusal)) {
                return Err(refusal);
            }
            match self.try_stream(operation, &route, Method::GET, limits).await {
                Err(error) if is_of_the_verb(&error) => Err(refusal),
                got => got,
            }
        });
        self.endpoint.line.within(limits.timeout, opening).await
    }

    async fn try_stream<O: Operation>(
        &self,
        operation: &O,
        route: &Route,
        method: Method,
        limits: AnswerLimits,
    ) -> Result<Events, ClientError> {
        let line = &self.endpoint.line;
        let request = self.request(operation, route, method, MEDIA_TYPE_EVENT_STREAM)?;
        let (head, body) = line.open(request, CallKind::Stream).await?.into_parts();
        if head.status.is_success() && is_event_stream(&head.headers) {
            return Ok(Events::new(Arc::clone(line), body, |line, name, data, read| {
                read.event = Some(read_event(line, name, data)?);
                Ok(())
            }));
        }
        Err(self.no_stream(&head, body, limits).await)
    }

    async fn no_stream(
        &self,
        head: &response::Parts,
        body: NetBody,
        limits: AnswerLimits,
    ) -> ClientError {
        let line = &self.endpoint.line;
        match line.read_answer(head, body, limits.size).await {
            Err(error) => error,
            Ok(body) if !head.status.is_success() => {
                read_error(line, head.status, &head.headers, &body)
            }
            Ok(_) => line.unexpected("it is not a stream of events"),
        }
    }

    fn request<O: Operation>(
        &self,
        operation: &O,
        route: &Route,
        method: Method,
        accept: &'static str,
    ) -> Result<Request<Bytes>, ClientError> {
        let line = &self.endpoint.line;
        let uri = self
            .uri(route, &operation.query())
            .ok_or_else(|| line.unexpected("it cannot be called at its address"))?;
        let has_body = method == Method::POST && !matches!(route, Route::SubscribeToTask(_));
        if !has_body {
            let headers = self.endpoint.headers(accept, None);
            return Ok(self.endpoint.request(method, uri, headers, Bytes::new()));
        }
        let body = serde_json::to_vec(operation).map_err(|_| line.unwritable())?;
        let headers = self.endpoint.headers(accept, Some(MEDIA_TYPE_A2A_JSON));
        Ok(self.endpoint.request(method, uri, headers, body.into()))
    }

    /// The interface's own query, which may be part of how the agent is reached, stays in front.
    fn uri(&self, route: &Route, query: &str) -> Option<Uri> {
        let url = &self.endpoint.url;
        let origin = url.origin().ascii_serialization();
        let base = url.path().trim_end_matches('/');
        let path = route.path(self.endpoint.tenant.as_deref());
        let queries: Vec<&str> =
            url.query().into_iter().chain([query]).filter(|query| !query.is_empty()).collect();
        let mark = if queries.is_empty() { "" } else { "?" };
        format!("{origin}{base}{path}{mark}{}", queries.join("&")).parse().ok()
    }
}

/// Whether a refusal may be about the verb: 404 or 405, and not in the words of the protocol.
fn is_of_the_verb(error: &ClientError) -> bool {
    match error {
        ClientError::Http { status, .. } => matches!(status, 404 | 405),
        ClientError::Refused { error, .. } => {
            let is_named = error.error_info().is_some_and(|info| info.kind().is_some());
            // By its status alone a 404 reads as the one and a 405 as the other.
            let kinds = [A2aErrorKind::TaskNotFound, A2aErrorKind::UnsupportedOperation];
            !is_named && error.kind().is_some_and(|kind| kinds.contains(&kind))
        }
        ClientError::Unreachable { .. }
        | ClientError::TimedOut { .. }
        | ClientError::KeyRejected { .. }
        | ClientError::Card { .. }
        | ClientError::Key { .. }
        | ClientError::Untrusted { .. }
        | ClientError::Unexpected { .. }
        | ClientError::UnreadableTask { .. }
        | ClientError::UnreadableAnswer { .. }
        | ClientError::Unsupported { .. }
        | ClientError::TooLarge { .. } => false,
    }
}

fn method(verb: HttpVerb) -> Method {
    match verb {
        HttpVerb::Get => Method::GET,
        HttpVerb::Post => Method::POST,
        HttpVerb::Delete => Method::DELETE,
    }
}

fn read_answer<R: FromWire>(line: &Line, body: &[u8]) -> Result<R, ClientError> {
    // What deletes may say nothing at all.
    let body = if body.is_empty() { b"null" } else { body };
    from_utf8(body).map_err(|error| match HttpError::decode(200, body) {
        Some(refusal) if refusal.kind().is_some() => line.refused(refusal.into(), None),
        Some(_) | None => line.unreadable(&error),
    })
}

fn from_utf8<R: FromWire>(json: &[u8]) -> serde_json::Result<R> {
    let json = str::from_utf8(json).map_err(serde_json::Error::custom)?;
    R::from_wire(json, WireLimits::Answer)
}

/// What stands behind a status that is no success. Where the body says nothing of the protocol there is only the status:
/// a gateway says nothing about a task.
fn read_error(line: &Line, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ClientError {
    match HttpError::decode(status.as_u16(), body) {
        Some(error) if error.kind().is_some() => {
            line.refused(error.into(), retry_after_by_date(headers))
        }
        Some(_) | None => line.status_error(status, headers),
    }
}

fn read_event(line: &Line, name: Option<&str>, data: &str) -> Result<StreamResponse, ClientError> {
    let refusal =
        || HttpError::decode(500, data.as_bytes()).map(|error| line.refused(error.into(), None));
    if name == Some(ERROR_EVENT) {
        let unnamed = || line.unexpected("it reports an error without saying which");
        return Err(refusal().unwrap_or_else(unnamed));
    }
    StreamResponse::from_wire(data, WireLimits::Answer)
        .map_err(|error| refusal().unwrap_or_else(|| line.unreadable(&error)))
}

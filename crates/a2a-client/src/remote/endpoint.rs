//! The interface that an agent is called at, whatever the binding.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use url::Url;
use volcanic_a2a_types::{
    AgentCard, MEDIA_TYPE_EVENT_STREAM, RpcError, VERSION_HEADER, media_type_essence,
};
use volcanic_net::GuardPolicy;

use super::{
    auth::{self, KeyHeaderFault},
    card::CallTarget,
    line::Line,
};
use crate::{AgentProtocol, ClientError, KeyError, frame::sanitize_remote_line};

/// How much of a remote's error message is kept, in characters.
pub(super) const MAX_MESSAGE: usize = 500;

/// The interface that an agent is called at.
pub(super) struct Endpoint {
    pub(super) line: Arc<Line>,
    pub(super) url: Url,
    pub(super) tenant: Option<String>,
    policy: GuardPolicy,
    /// What every request carries, the key among it.
    headers: HeaderMap,
}

/// How long an answer may take and how large it may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerLimits {
    pub(super) timeout: Duration,
    /// In bytes.
    pub(super) size: usize,
}

impl Endpoint {
    pub(super) fn new(
        line: Arc<Line>,
        card: &AgentCard,
        target: CallTarget,
    ) -> Result<Self, ClientError> {
        let CallTarget { mut url, tenant, policy, is_trusted, protocol, .. } = target;
        url.set_fragment(None);
        let mut headers = HeaderMap::new();
        if is_trusted {
            line.add_headers(&mut headers);
            if let Some(key) = line.key() {
                let (name, value) = auth::key_header(card, key).map_err(|fault| match fault {
                    KeyHeaderFault::Card => {
                        line.card_error("it names a header for the key that cannot be used")
                    }
                    KeyHeaderFault::Key(reason) => {
                        let source = KeyError::new(reason);
                        ClientError::Key { agent: line.agent.clone(), source }
                    }
                })?;
                headers.insert(name, value);
            }
        }
        let version = match protocol {
            AgentProtocol::V1 => "1.0",
            AgentProtocol::V03 => "0.3",
        };
        headers.insert(VERSION_HEADER, HeaderValue::from_static(version));
        Ok(Self { line, url, tenant, policy, headers })
    }

    /// The limits of an ordinary call.
    pub(super) fn call_limits(&self) -> AnswerLimits {
        let config = &self.line.config;
        AnswerLimits { timeout: config.call_timeout, size: config.answer_limit }
    }

    /// The limits of a card.
    pub(super) fn card_limits(&self) -> AnswerLimits {
        let config = &self.line.config;
        AnswerLimits { timeout: config.card_timeout, size: config.card_limit }
    }

    /// The headers of a request.
    pub(super) fn headers(
        &self,
        accept: &'static str,
        content_type: Option<&'static str>,
    ) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        if let Some(content_type) = content_type {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        headers
    }

    /// A request with its [headers](Self::headers) that goes only where this endpoint may be.
    pub(super) fn request(
        &self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Request<Bytes> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        if self.policy != GuardPolicy::default() {
            request.extensions_mut().insert(self.policy);
        }
        request
    }
}

impl Line {
    /// The agent's own error, with its words cut and escaped.
    pub(super) fn refused(
        &self,
        mut error: RpcError,
        retry_after: Option<Duration>,
    ) -> ClientError {
        error.message = sanitize_remote_line(&error.message, MAX_MESSAGE);
        ClientError::Refused { agent: self.agent.clone(), error: Box::new(error), retry_after }
    }

    /// An answer that is not what it should be, with what reading it said.
    pub(super) fn unreadable(&self, error: &serde_json::Error) -> ClientError {
        self.unexpected(sanitize_remote_line(&error.to_string(), MAX_MESSAGE))
    }

    pub(super) fn unwritable(&self) -> ClientError {
        self.unexpected("the request cannot be written as JSON")
    }
}

pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| {
        media_type_essence(value).eq_ignore_ascii_case(MEDIA_TYPE_EVENT_STREAM)
    })
}

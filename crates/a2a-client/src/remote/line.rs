//! The way to one agent: transport, limits, and what is sent along to the origin it is configured for.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header, response};
use tokio::time::timeout;
use url::Url;
use volcanic_base::Secret;
use volcanic_net::{CallKind, NetBody, Transport, retry_after_by_date};

use super::{auth, scrub::Scrubber};
use crate::{
    AgentEntry, ClientConfig, ClientError, KeyError, KeyResolver, KeyUse,
    frame::sanitize_remote_line,
};

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How much of the name of a compression is shown, in characters.
const MAX_CODING: usize = 40;

/// The way to one agent.
pub(super) struct Line {
    pub(super) agent: String,
    pub(super) config: ClientConfig,
    transport: Arc<dyn Transport>,
    key: Option<Secret>,
    /// The entry's own headers; as secret as the key.
    headers: Vec<(HeaderName, HeaderValue)>,
    scrubber: Scrubber,
    /// The same for the key and the headers alone; `None` if there is nothing else to take out.
    without_query: Option<Scrubber>,
}

impl Line {
    pub(super) fn new(
        entry: &AgentEntry,
        transport: Arc<dyn Transport>,
        keys: &KeyResolver,
        config: &ClientConfig,
    ) -> Result<Self, ClientError> {
        let agent = entry.name.to_string();
        let unusable = |source| ClientError::Key { agent: agent.clone(), source };
        let key = entry.key.as_ref().map(|key| keys(key)).transpose().map_err(unusable)?;
        let mut secrets: Vec<Secret> = key.iter().cloned().collect();
        let mut headers = Vec::with_capacity(entry.headers.len());
        for (name, source) in &entry.headers {
            let value = keys(source).map_err(unusable)?;
            let header = auth::header_value(value.expose())
                .map_err(|reason| unusable(KeyError::new(format!("header {name}: {reason}"))))?;
            headers.push((name.clone(), header));
            secrets.push(value);
        }
        let mut query = secrets_of(&entry.url).peekable();
        let has_query = query.peek().is_some();
        let without_query = has_query.then(|| scrubber(secrets.clone(), config));
        secrets.extend(query);
        let scrubber = scrubber(secrets, config);
        let config = config.clone();
        Ok(Self { agent, config, transport, key, headers, scrubber, without_query })
    }

    /// Whether requests over both carry the same key and headers.
    pub(super) fn carries_the_same(&self, other: &Self) -> bool {
        self.key == other.key && self.headers == other.headers
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    pub(super) fn key(&self) -> Option<&Secret> {
        self.key.as_ref()
    }

    /// Whether requests carry something that only trusted origins may have.
    pub(super) fn has_secrets(&self) -> bool {
        self.has_key() || !self.headers.is_empty()
    }

    /// Adds the entry's own headers.
    pub(super) fn add_headers(&self, headers: &mut HeaderMap) {
        headers.extend(self.headers.iter().cloned());
    }

    /// What takes our secrets out of what the agent says.
    pub(super) fn scrubber(&self) -> &Scrubber {
        &self.scrubber
    }

    /// The same error without our secrets, which the remote may have put into it past every body: into the name of a
    /// certificate, or in a writing that we undo.
    pub(super) fn masked(&self, error: ClientError) -> ClientError {
        error.masked(&self.scrubber)
    }

    /// Does what may take so long at most. It is pinned already, since it is large and each layer would move it.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        work: Pin<&mut impl Future<Output = Result<T, ClientError>>>,
    ) -> Result<T, ClientError> {
        timeout(limit, work).await.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Sends a request and waits for the head of the answer, [within](Self::within) a time.
    pub(super) async fn open(
        &self,
        request: Request<Bytes>,
        kind: CallKind,
    ) -> Result<Response<NetBody>, ClientError> {
        // Of what is shared: that a shared transport is one too would put another box around the future.
        let transport = &*self.transport;
        match transport.send(request, kind).await {
            Ok(response) => self.uncompressed(response),
            Err(error) => Err(ClientError::from_net(&self.agent, error)),
        }
    }

    /// An answer as it is, unless it is compressed: nobody asked for that, and nothing here unpacks it. One that is no
    /// success still has its status to tell.
    fn uncompressed(&self, response: Response<NetBody>) -> Result<Response<NetBody>, ClientError> {
        let coding = response.headers().get(header::CONTENT_ENCODING);
        let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
        match coding.filter(|coding| response.status().is_success() && !is_plain(coding)) {
            Some(coding) => {
                let coding = String::from_utf8_lossy(coding.as_bytes());
                let coding = sanitize_remote_line(&coding, MAX_CODING);
                let reason = format!("it is compressed ({coding}), which was not asked for");
                Err(self.masked(self.unexpected(reason)))
            }
            None => Ok(response),
        }
    }

    /// Sends a request and reads its whole answer, without our secrets, [within](Self::within) a time.
    pub(super) async fn ask(
        &self,
        request: Request<Bytes>,
        limit: usize,
    ) -> Result<(response::Parts, Bytes), ClientError> {
        let (head, body) = self.open(request, CallKind::Call).await?.into_parts();
        let body = self.read_answer(&head, body, limit).await?;
        Ok((head, body))
    }

    /// Reads a whole body, without our secrets, [within](Self::within) a time.
    pub(super) async fn read(&self, body: NetBody, limit: usize) -> Result<Bytes, ClientError> {
        Ok(self.scrubber.scrub(self.collect(body, limit).await?))
    }

    /// As [`Self::read`], and with it the same as it was said but for the key and the headers, if there is more of ours in it:
    /// the agent may name itself by what stands in the query of its address.
    pub(super) async fn read_as_said(
        &self,
        body: NetBody,
        limit: usize,
    ) -> Result<(Bytes, Option<Bytes>), ClientError> {
        let body = self.collect(body, limit).await?;
        let said = self.without_query.as_ref().map(|scrubber| scrubber.scrub(body.clone()));
        let read = self.scrubber.scrub(body);
        let said = said.filter(|said| *said != read);
        Ok((read, said))
    }

    async fn collect(&self, body: NetBody, limit: usize) -> Result<Bytes, ClientError> {
        match body.collect(limit).await {
            Ok(bytes) => Ok(unmarked(bytes)),
            Err(error) => Err(ClientError::from_net(&self.agent, error)),
        }
    }

    /// Reads the whole body of an answer, without our secrets, [within](Self::within) a time. What stands behind a refused key
    /// is not read. Of what is no success either there may be more than is read; its status tells enough then.
    pub(super) async fn read_answer(
        &self,
        head: &response::Parts,
        body: NetBody,
        limit: usize,
    ) -> Result<Bytes, ClientError> {
        if matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.status_error(head.status, &head.headers));
        }
        match self.read(body, limit).await {
            Err(ClientError::TooLarge { .. }) if !head.status.is_success() => {
                Err(self.status_error(head.status, &head.headers))
            }
            read => read,
        }
    }

    pub(super) fn timed_out(&self) -> ClientError {
        ClientError::TimedOut { agent: self.agent.clone() }
    }

    pub(super) fn unexpected(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Unexpected { agent: self.agent.clone(), reason: reason.into() }
    }

    pub(super) fn card_error(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Card { agent: self.agent.clone(), reason: reason.into() }
    }

    /// The error behind a status that is no success.
    pub(super) fn status_error(&self, status: StatusCode, headers: &HeaderMap) -> ClientError {
        let agent = self.agent.clone();
        let key = if self.has_key() { KeyUse::Sent } else { KeyUse::None };
        match status.as_u16() {
            status @ (401 | 403) => ClientError::KeyRejected { agent, status, key },
            status => {
                ClientError::Http { agent, status, retry_after: retry_after_by_date(headers) }
            }
        }
    }
}

/// A body without the byte order mark that some servers put before JSON, and that no reader of JSON takes.
fn unmarked(body: Bytes) -> Bytes {
    if body.starts_with(BYTE_ORDER_MARK) { body.slice(BYTE_ORDER_MARK.len()..) } else { body }
}

/// What may be secret in the address of an agent: every value of its query.
pub(super) fn secrets_of(url: &Url) -> impl Iterator<Item = Secret> + '_ {
    url.query_pairs().map(|(_, value)| Secret::new(value))
}

#[cfg(feature = "test-util")]
fn scrubber(secrets: Vec<Secret>, config: &ClientConfig) -> Scrubber {
    if config.shows_secrets { Scrubber::pass_through() } else { Scrubber::new(secrets) }
}

#[cfg(not(feature = "test-util"))]
fn scrubber(secrets: Vec<Secret>, _: &ClientConfig) -> Scrubber {
    Scrubber::new(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_before_a_body_is_left_out_once() {
        for (body, wanted) in [
            (&b"\xef\xbb\xbf{}"[..], &b"{}"[..]),
            (b"{}", b"{}"),
            (b"\xef\xbb", b"\xef\xbb"),
            (b"\xef\xbb\xbf\xef\xbb\xbf", b"\xef\xbb\xbf"),
            (b"", b""),
        ] {
            assert_eq!(unmarked(Bytes::from_static(body)), wanted);
        }
    }
}

//! Streams of events, whatever the binding.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use tokio::time::timeout;
use volcanic_a2a_types::{SseDecoder, SseError, SseEvent, SseLimits, StreamResponse};
use volcanic_net::NetBody;

use super::line::Line;
use crate::ClientError;

/// One event, and whether the agent says that it is the last one.
pub(super) struct Event {
    pub(super) event: StreamResponse,
    pub(super) is_last: bool,
}

/// Reads events until the agent closes the stream, says that it has ended, or something is wrong. `read` gets the name
/// and the data of each, without our secrets.
pub(super) fn events(
    line: Arc<Line>,
    body: NetBody,
    read: impl Fn(&Line, Option<&str>, &[u8]) -> Result<Event, ClientError> + Send + Sync + 'static,
) -> BoxStream<'static, Result<StreamResponse, ClientError>> {
    async_stream::try_stream! {
        let mut reader = Reader::new(line, body);
        while let Some(event) = reader.next().await? {
            // What was read of it may be as large again, so it is let go before that is handed out.
            let Event { event, is_last } = {
                let data = reader.line.scrubber().scrub(Bytes::from(event.data));
                read(&reader.line, event.name.as_deref(), &data)?
            };
            yield event;
            if is_last {
                break;
            }
        }
    }
    .boxed()
}

struct Reader {
    line: Arc<Line>,
    body: Option<NetBody>,
    decoder: SseDecoder,
    received: usize,
}

impl Reader {
    fn new(line: Arc<Line>, body: NetBody) -> Self {
        let limits = SseLimits {
            max_event: line.config.answer_limit,
            max_line: line.config.answer_limit,
            max_comment: line.config.comment_limit,
        };
        Self { line, body: Some(body), decoder: SseDecoder::new(limits), received: 0 }
    }

    /// The next event; `None` when the agent has closed the stream.
    async fn next(&mut self) -> Result<Option<SseEvent>, ClientError> {
        loop {
            match self.decoder.next_event() {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(error) => return Err(self.broken(error)),
            }
            if self.body.is_none() {
                return Ok(None);
            }
            if let Some(chunk) = self.chunk().await? {
                self.take(&chunk)?;
            } else {
                self.body = None;
                self.decoder.finish();
            }
        }
    }

    /// Waits for more: for ever between events, not long inside one.
    async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        let Some(body) = &mut self.body else { return Ok(None) };
        let chunk = if self.decoder.is_inside_event() {
            match timeout(self.line.config.event_pause, body.next_chunk()).await {
                Ok(chunk) => chunk,
                Err(_) => return Err(self.line.timed_out()),
            }
        } else {
            body.next_chunk().await
        };
        chunk.transpose().map_err(|error| ClientError::from_net(&self.line.agent, error))
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), ClientError> {
        self.received = self.received.saturating_add(chunk.len());
        let limit = self.line.config.stream_limit;
        if self.received > limit {
            return Err(self.too_large(limit));
        }
        self.decoder.push(chunk);
        Ok(())
    }

    fn broken(&self, error: SseError) -> ClientError {
        match error {
            SseError::LineTooLong { limit }
            | SseError::EventTooLarge { limit }
            | SseError::CommentTooLong { limit } => self.too_large(limit),
            other => self.line.unexpected(other.to_string()),
        }
    }

    fn too_large(&self, limit: usize) -> ClientError {
        ClientError::TooLarge { agent: self.line.agent.clone(), limit }
    }
}

//! Streams of events, whatever the binding.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::Stream;
use tokio::{
    task::coop,
    time::{Sleep, sleep},
};
use volcanic_a2a_types::{SseDecoder, SseError, SseEvent, SseLimits, StreamResponse};
use volcanic_net::NetBody;

use super::line::Line;
use crate::ClientError;

/// One event, and whether the agent says that it is the last one.
pub(super) struct Event {
    pub(super) event: StreamResponse,
    pub(super) is_last: bool,
}

/// Makes an event of its name and its data, which are without our secrets.
type Read = dyn Fn(&Line, Option<&str>, &str) -> Result<Event, ClientError> + Send + Sync;

/// Reads events until the agent closes the stream, says that it has ended, or something is wrong. Errors are without our
/// secrets too.
///
/// It is written by hand: an event is large, and each layer of combinators would move it again.
pub(super) struct Events {
    line: Arc<Line>,
    /// `None` once the agent has closed the stream.
    body: Option<NetBody>,
    decoder: SseDecoder,
    /// In bytes.
    received: usize,
    /// How long the agent may still be silent inside an event, while it is.
    pause: Option<Pin<Box<Sleep>>>,
    read: Box<Read>,
    is_over: bool,
}

impl Events {
    pub(super) fn new(
        line: Arc<Line>,
        body: NetBody,
        read: impl Fn(&Line, Option<&str>, &str) -> Result<Event, ClientError> + Send + Sync + 'static,
    ) -> Self {
        let decoder = SseDecoder::new(limits(&line, line.config.answer_limit));
        let (body, read) = (Some(body), Box::new(read));
        Self { line, body, decoder, received: 0, pause: None, read, is_over: false }
    }

    /// The same for who only wants to know of events: of one with more than so many bytes nothing is kept.
    pub(super) fn keeping_at_most(mut self, bytes: usize) -> Self {
        self.decoder = SseDecoder::new(limits(&self.line, bytes));
        self
    }

    /// The next event; `None` in its place if it is larger than is kept.
    pub(super) fn poll_hint(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Option<StreamResponse>, ClientError>>> {
        let event = match ready!(self.poll_turn(context)) {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        };
        let read = if event.is_cut { Ok(None) } else { self.read(event).map(Some) };
        Poll::Ready(Some(read.map_err(|error| self.end(error))))
    }

    /// The next event as it came, or the end.
    fn poll_turn(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<SseEvent, ClientError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // Thousands of events may have come together. Whoever listens for a limited time must get to look at the clock.
        let turn = ready!(coop::poll_proceed(context));
        let event = ready!(self.poll_event(context));
        turn.made_progress();
        Poll::Ready(match event {
            Ok(Some(event)) => Some(Ok(event)),
            Ok(None) => {
                self.is_over = true;
                None
            }
            Err(error) => Some(Err(self.end(error))),
        })
    }

    /// The same, without a look at whether others want their turn; `None` when the agent has closed the stream.
    fn poll_event(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<SseEvent>, ClientError>> {
        loop {
            match self.decoder.next_event() {
                Ok(Some(event)) => return Poll::Ready(Ok(Some(event))),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(self.broken(error))),
            }
            let Some(body) = &mut self.body else { return Poll::Ready(Ok(None)) };
            let Poll::Ready(chunk) = body.poll_chunk(context) else {
                return self.poll_pause(context).map(Err);
            };
            self.pause = None;
            match chunk {
                Some(Ok(chunk)) => self.take(&chunk)?,
                Some(Err(error)) => {
                    return Poll::Ready(Err(ClientError::from_net(&self.line.agent, error)));
                }
                None => {
                    self.body = None;
                    self.decoder.finish();
                }
            }
        }
    }

    /// Waits for more: for ever between events, not long inside one.
    fn poll_pause(&mut self, context: &mut Context<'_>) -> Poll<ClientError> {
        if !self.decoder.is_inside_event() {
            return Poll::Pending;
        }
        let longest = self.line.config.event_pause;
        let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(longest)));
        pause.as_mut().poll(context).map(|()| self.line.timed_out())
    }

    fn read(&mut self, event: SseEvent) -> Result<StreamResponse, ClientError> {
        let SseEvent { name, data, .. } = event;
        let data = self.line.scrubber().scrub_text(data);
        let Event { event, is_last } = (self.read)(&self.line, name.as_deref(), &data)?;
        self.is_over = is_last;
        Ok(event)
    }

    fn end(&mut self, error: ClientError) -> ClientError {
        self.is_over = true;
        self.line.masked(error)
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

fn limits(line: &Line, max_kept: usize) -> SseLimits {
    SseLimits {
        max_event: line.config.answer_limit,
        max_line: line.config.answer_limit,
        max_comment: line.config.comment_limit,
        max_kept,
    }
}

impl Stream for Events {
    type Item = Result<StreamResponse, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = match ready!(self.poll_turn(context)) {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        };
        Poll::Ready(Some(self.read(event).map_err(|error| self.end(error))))
    }
}

//! Streams of events, whatever the binding.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures::Stream;
use tokio::{
    task::coop,
    time::{Sleep, sleep},
};
use volcanic_a2a_types::{SseDecoder, SseError, SseEvent, SseLimits, StreamResponse};
use volcanic_net::NetBody;

use super::line::Line;
use super::scrub::Concealed;
use crate::ClientError;

/// Makes an event of its name and its data, which are without our secrets.
type Read =
    dyn Fn(&Line, Option<&str>, &str, &mut ReadEvent) -> Result<(), ClientError> + Send + Sync;

/// What a reader of events found. It is put in place, as events are large.
#[derive(Default)]
pub(super) struct ReadEvent {
    pub(super) event: Option<StreamResponse>,
    /// Whether the agent says that it is the last one.
    pub(super) is_last: bool,
}

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
    /// Secrets that count as long as the stream does.
    _concealed: Concealed,
}

impl Events {
    pub(super) fn new(
        line: Arc<Line>,
        body: NetBody,
        read: impl Fn(&Line, Option<&str>, &str, &mut ReadEvent) -> Result<(), ClientError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let decoder = SseDecoder::new(limits(&line, line.config.answer_limit));
        let (body, read) = (Some(body), Box::new(read));
        Self {
            line,
            body,
            decoder,
            received: 0,
            pause: None,
            read,
            is_over: false,
            _concealed: Concealed::default(),
        }
    }

    /// The same, which holds secrets that the agent may repeat.
    pub(super) fn concealing(self, concealed: Concealed) -> Self {
        Self { _concealed: concealed, ..self }
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
        Poll::Ready(match ready!(self.poll_turn(context)) {
            Some(Ok(())) => {
                let mut read = ReadEvent::default();
                Some(self.read(&mut read).map(|()| read.event))
            }
            Some(Err(error)) => Some(Err(error)),
            None => None,
        })
    }

    /// Waits until the decoder has an event, or for the end.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<(), ClientError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // Thousands of events may have come together. Whoever listens for a limited time must get to look at the clock.
        let turn = ready!(coop::poll_proceed(context));
        let has_event = ready!(self.poll_event(context));
        turn.made_progress();
        Poll::Ready(match has_event {
            Ok(true) => Some(Ok(())),
            Ok(false) => {
                self.is_over = true;
                None
            }
            Err(error) => Some(Err(self.end(error))),
        })
    }

    /// The same, without a look at whether others want their turn; `false` when the agent has closed the stream.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, ClientError>> {
        loop {
            match self.decoder.has_event() {
                Ok(true) => return Poll::Ready(Ok(true)),
                Ok(false) => {}
                Err(error) => return Poll::Ready(Err(broken(&self.line, error))),
            }
            let Some(body) = &mut self.body else { return Poll::Ready(Ok(false)) };
            let Poll::Ready(chunk) = body.poll_chunk(context) else {
                return self.poll_pause(context).map(Err);
            };
            self.pause = None;
            match chunk {
                Some(Ok(chunk)) => self.take(chunk)?,
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

    /// Reads the event that the decoder has; nothing if it is larger than is kept.
    fn read(&mut self, read: &mut ReadEvent) -> Result<(), ClientError> {
        let result = match self.decoder.next_event() {
            Ok(Some(SseEvent { name, data, is_cut: false, .. })) => {
                let data = self.line.scrubber().scrub_text(data);
                (self.read)(&self.line, name.as_deref(), &data, read)
            }
            Ok(Some(_) | None) => Ok(()),
            Err(error) => Err(broken(&self.line, error)),
        };
        self.is_over |= read.is_last;
        result.map_err(|error| self.end(error))
    }

    fn end(&mut self, error: ClientError) -> ClientError {
        self.is_over = true;
        self.line.masked(error)
    }

    fn take(&mut self, chunk: Bytes) -> Result<(), ClientError> {
        self.received = self.received.saturating_add(chunk.len());
        let limit = self.line.config.stream_limit;
        if self.received > limit {
            return Err(too_large(&self.line, limit));
        }
        self.decoder.push(chunk);
        Ok(())
    }
}

fn broken(line: &Line, error: SseError) -> ClientError {
    match error {
        SseError::LineTooLong { limit }
        | SseError::EventTooLarge { limit }
        | SseError::CommentTooLong { limit } => too_large(line, limit),
        other => line.unexpected(other.to_string()),
    }
}

fn too_large(line: &Line, limit: usize) -> ClientError {
    ClientError::TooLarge { agent: line.agent.clone(), limit }
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
        match ready!(self.poll_turn(context)) {
            Some(Ok(())) => {}
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
        let mut read = ReadEvent::default();
        match self.read(&mut read) {
            // As much is kept as an event may have, so there is none that is cut.
            Ok(()) => match read.event {
                Some(event) => Poll::Ready(Some(Ok(event))),
                None => Poll::Ready(None),
            },
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

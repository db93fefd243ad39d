//! What a stream carries, whatever the binding.

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use volcanic_a2a_types::{Message, StreamResponse};

use crate::{
    fanout::{CutOff, EventEnd, EventReader, LoggedEvent},
    tasks::{TaskCell, encode},
};

/// The events of a stream, each the JSON of a `StreamResponse`.
#[derive(Debug)]
pub struct EventStream {
    first: Option<LoggedEvent>,
    source: Option<Source>,
    /// What ends the stream.
    until: EventEnd,
}

#[derive(Debug)]
struct Source {
    reader: EventReader,
    /// Keeps the task's events in one place while somebody listens.
    _cell: Arc<TaskCell>,
    cancel: CancellationToken,
}

/// Why a stream ended before its task did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The reader was too slow.
    #[error("the stream was read too slowly, subscribe again")]
    TooSlow,
}

impl EventStream {
    pub(super) fn of_message(message: Message) -> Self {
        let first = encode(&StreamResponse::Message(message), EventEnd::Terminal);
        Self { first: Some(first), source: None, until: EventEnd::Terminal }
    }

    pub(super) fn of_turn(
        snapshot: Option<LoggedEvent>,
        reader: EventReader,
        cell: Arc<TaskCell>,
        cancel: CancellationToken,
    ) -> Self {
        let source = Source { reader, _cell: cell, cancel };
        Self { first: snapshot, source: Some(source), until: EventEnd::Input }
    }

    pub(super) fn subscription(
        snapshot: LoggedEvent,
        reader: EventReader,
        cell: Arc<TaskCell>,
        cancel: CancellationToken,
    ) -> Self {
        let source = Source { reader, _cell: cell, cancel };
        Self { first: Some(snapshot), source: Some(source), until: EventEnd::Terminal }
    }

    /// Waits for the next event; `None` when the stream is over or the server stops.
    ///
    /// # Cancel safety
    ///
    /// Safe: an event is taken only when it is returned.
    pub async fn next(&mut self) -> Option<Result<Bytes, StreamError>> {
        let event = if let Some(event) = self.first.take() {
            event
        } else if let Ok(event) = self.source.as_mut()?.next().await? {
            event
        } else {
            self.source = None;
            return Some(Err(StreamError::TooSlow));
        };
        let over = match event.end {
            EventEnd::Open => false,
            EventEnd::Input => self.until == EventEnd::Input,
            EventEnd::Terminal => true,
        };
        if over {
            self.source = None;
        }
        Some(Ok(event.json))
    }
}

impl Source {
    async fn next(&mut self) -> Option<Result<LoggedEvent, CutOff>> {
        tokio::select! {
            biased;
            event = self.reader.next() => Some(event.map(|event| event.as_ref().clone())),
            () = self.cancel.cancelled() => None,
        }
    }
}

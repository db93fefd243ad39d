//! The body of an answer that drives its own connection.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{Line, Place, Shelf};

/// The body of an answer over HTTP/1. Once it was read to its end the connection goes back to the shelf; dropped before
/// that, it is closed.
pub(super) struct Answer {
    incoming: Incoming,
    /// `None` once the connection has ended or went back.
    line: Option<Line>,
    home: (Arc<Shelf>, Place),
    /// How the connection ended, if that was no good end.
    failure: Option<hyper::Error>,
}

impl Answer {
    pub(super) fn new(incoming: Incoming, line: Option<Line>, home: (Arc<Shelf>, Place)) -> Self {
        Self { incoming, line, home, failure: None }
    }

    /// Lets the connection do what it can, and takes what that brings.
    fn poll_driven(
        &mut self,
        mut line: Line,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { incoming, failure, .. } = self;
        let Line { connection, quiet, .. } = &mut line;
        let mut is_open = true;
        let polled = quiet.poll(context, |context| {
            let mut drive = |context: &mut Context<'_>| {
                if is_open && let Poll::Ready(ended) = Pin::new(&mut *connection).poll(context) {
                    is_open = false;
                    *failure = ended.err();
                }
            };
            // First what the connection has read, so that the body finds it there and need not be woken for it.
            drive(context);
            match Pin::new(&mut *incoming).poll_frame(context) {
                Poll::Ready(frame) => Poll::Ready(frame),
                Poll::Pending => {
                    // Only now the connection knows that more is wanted.
                    drive(context);
                    Pin::new(&mut *incoming).poll_frame(context)
                }
            }
        });
        self.line = is_open.then_some(line);
        polled
    }

    fn put_back(&mut self) {
        if let Some(mut line) = self.line.take()
            && line.is_usable()
        {
            let (shelf, place) = &self.home;
            shelf.put_back(place, line);
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = match self.line.take() {
            Some(line) => ready!(self.poll_driven(line, context)),
            None => ready!(Pin::new(&mut self.incoming).poll_frame(context)),
        };
        if frame.is_some() {
            return Poll::Ready(frame);
        }
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        self.put_back();
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream() && self.line.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

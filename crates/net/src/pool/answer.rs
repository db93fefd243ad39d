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

    /// Lets the connection do what it can.
    fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(line) = &mut self.line
            && let Poll::Ready(ended) = Pin::new(&mut line.connection).poll(context)
        {
            self.line = None;
            self.failure = ended.err();
        }
    }

    fn poll_incoming(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // First what the connection has read, so that the body finds it there and need not be woken for it.
        self.drive(context);
        match Pin::new(&mut self.incoming).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(frame),
            Poll::Pending => {
                // Only now the connection knows that more is wanted.
                self.drive(context);
                Pin::new(&mut self.incoming).poll_frame(context)
            }
        }
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
        let frame = match self.line.as_ref().map(|line| Arc::clone(&line.quiet)) {
            Some(quiet) => ready!(quiet.poll(context, |context| self.poll_incoming(context))),
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

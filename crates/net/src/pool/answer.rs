//! The body of an answer that drives its own connection.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;

use super::{Line, Place, Shelf};
use crate::{NetError, http1::Rest};

/// The body of an answer over HTTP/1. Once all of it has come the connection goes back to the shelf; dropped before that, it
/// is closed.
pub(crate) struct Answer {
    rest: Rest,
    /// `None` once the connection has ended or went back.
    line: Option<Box<Line>>,
    home: (Arc<Shelf>, Place),
}

impl Answer {
    pub(super) fn new(rest: Rest, line: Box<Line>, home: (Arc<Shelf>, Place)) -> Self {
        let mut answer = Self { rest, line: Some(line), home };
        answer.put_back();
        answer
    }

    /// Waits for the next piece; `None` at the end.
    pub(crate) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, NetError>>> {
        let Some(line) = &mut self.line else { return Poll::Ready(None) };
        match ready!(line.connection.poll_body(&mut self.rest, context)) {
            Ok(data) => {
                self.put_back();
                Poll::Ready(if data.is_empty() { None } else { Some(Ok(data)) })
            }
            Err(error) => {
                self.line = None;
                Poll::Ready(Some(Err(NetError::closed(error))))
            }
        }
    }

    /// Whether nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        self.line.is_none()
    }

    /// How many bytes are still announced, at least.
    pub(crate) fn announced(&self) -> u64 {
        self.rest.announced()
    }

    /// Gives the connection away once the body has come.
    fn put_back(&mut self) {
        let Some(mut line) = self.line.take_if(|_| self.rest.is_over()) else { return };
        if self.rest.keeps() && line.connection.lay_down() {
            let (shelf, place) = &self.home;
            shelf.put_back(place, line);
        }
    }
}

//! The body of an answer, read piece by piece.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};

use crate::{NetError, pool::Answer};

/// Room taken at once for a body that says how long it is; a lie costs no more than this.
const FIRST_RESERVE: usize = 1 << 20;

/// The body of an answer. Nothing of it is read before it is asked for, and dropping it ends the exchange.
pub struct NetBody {
    frames: Frames,
}

/// Where a body comes from.
enum Frames {
    /// From a connection of its own.
    Answer(Answer),
    /// From anything else.
    Any(UnsyncBoxBody<Bytes, NetError>),
}

impl NetBody {
    /// Wraps any HTTP body. Its errors become [`NetError::Closed`].
    pub fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let frames = body
            .map_err(|error| NetError::Closed { source: std::sync::Arc::from(error.into()) })
            .boxed_unsync();
        Self { frames: Frames::Any(frames) }
    }

    pub(crate) fn of_answer(answer: Answer) -> Self {
        Self { frames: Frames::Answer(answer) }
    }

    /// Waits for the next piece; `None` at the end. Trailers are passed over.
    ///
    /// # Errors
    ///
    /// [`NetError::Closed`] if the connection broke before the end.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub async fn next_chunk(&mut self) -> Option<Result<Bytes, NetError>> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// The same for those who poll.
    ///
    /// # Errors
    ///
    /// [`NetError::Closed`] if the connection broke before the end.
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, NetError>>> {
        let frames = match &mut self.frames {
            Frames::Answer(answer) => return answer.poll_chunk(context),
            Frames::Any(frames) => frames,
        };
        loop {
            match ready!(Pin::new(&mut *frames).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    /// Reads the whole body into one buffer of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`NetError::TooLarge`] as soon as more is announced or comes, [`NetError::Closed`] if the connection broke.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, NetError> {
        let announced = usize::try_from(self.announced()).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(NetError::TooLarge { limit });
        }
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.next_chunk().await {
            let chunk = chunk?;
            if chunk.len() > limit - whole.len() {
                return Err(NetError::TooLarge { limit });
            }
            if whole.is_empty() {
                // Most answers come in one piece.
                if self.is_over() {
                    return Ok(chunk);
                }
                whole.reserve(announced.min(FIRST_RESERVE));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// How many bytes are still announced, at least.
    fn announced(&self) -> u64 {
        match &self.frames {
            Frames::Answer(answer) => answer.announced(),
            Frames::Any(frames) => frames.size_hint().lower(),
        }
    }

    /// Whether it is known that nothing more comes.
    fn is_over(&self) -> bool {
        match &self.frames {
            Frames::Answer(answer) => answer.is_over(),
            Frames::Any(frames) => frames.is_end_stream(),
        }
    }
}

/// Shows no content.
impl fmt::Debug for NetBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetBody").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, StreamBody};

    use super::*;

    fn chunked(chunks: &'static [&'static str]) -> NetBody {
        let frames = chunks.iter().map(|chunk| {
            Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from_static(chunk.as_bytes())))
        });
        NetBody::new(StreamBody::new(futures::stream::iter(frames)))
    }

    #[tokio::test]
    async fn body_at_the_limit_is_read_whole() {
        assert_eq!(chunked(&["ab", "c"]).collect(3).await.unwrap(), "abc");
    }

    #[tokio::test]
    async fn body_over_the_limit_is_refused_while_it_comes() {
        let error = chunked(&["ab", "cd", "never read"]).collect(3).await.unwrap_err();
        assert!(matches!(error, NetError::TooLarge { limit: 3 }), "{error:?}");
    }

    #[tokio::test]
    async fn announced_excess_is_refused_before_reading() {
        let error = NetBody::new(Full::from("abcd")).collect(3).await.unwrap_err();
        assert!(matches!(error, NetError::TooLarge { limit: 3 }), "{error:?}");
    }

    #[tokio::test]
    async fn chunks_come_one_by_one() {
        let mut body = chunked(&["a", "b"]);
        assert_eq!(body.next_chunk().await.unwrap().unwrap(), "a");
        assert_eq!(body.next_chunk().await.unwrap().unwrap(), "b");
        assert!(body.next_chunk().await.is_none());
    }
}

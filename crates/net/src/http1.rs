//! HTTP/1 exchanges (RFC 9112), one after the other over a connection.
//!
//! A connection is driven by whoever waits for the answer, in the same task, without a channel or a lock between. Heads are
//! taken apart by `httparse`; what there is here is what the exchange of a client needs, and no more: requests whose body
//! is at hand, no upgrades, no pipelining.

use std::{
    fmt,
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes, BytesMut};
use futures::FutureExt as _;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf},
    task::{coop::has_budget_remaining, yield_now},
};

mod framing;
mod head;

use framing::Framing;
use head::{Head, MAX_HEAD};

/// How many interim answers may come before the answer; servers that use them send one or two.
const MAX_INTERIM: usize = 100;
/// How much is read at once while little comes, in bytes.
const SMALL_READ: usize = 16 << 10;
/// And how much where that was not enough: just less than what the C library maps anew each time.
const LARGE_READ: usize = 120 << 10;

/// Why an exchange came to no good end. Nothing in it is said by the other side.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Http1Error {
    #[error("the connection was closed before an answer came")]
    NoAnswer,
    #[error("the connection was closed in the middle of the answer")]
    Cut,
    #[error("what came is not HTTP")]
    NotHttp(#[source] httparse::Error),
    #[error("the status is none")]
    Status,
    #[error("the headers of the answer are larger than {MAX_HEAD} bytes")]
    LargeHead,
    #[error("too many interim answers")]
    Interim,
    #[error("the answer wants another protocol")]
    Upgrade,
    #[error("the length of the answer is not clear")]
    Length,
    #[error("the answer is not in chunks as it says")]
    Chunk,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A connection over which one exchange at a time goes.
pub(crate) struct Connection<S> {
    stream: S,
    /// What has come and nobody has taken.
    buffer: BytesMut,
    /// Whether the last read brought more than a little.
    is_flooded: bool,
}

/// What is left of an answer after its head.
#[derive(Debug)]
pub(crate) struct Rest {
    framing: Framing,
    /// Whether the other side keeps the connection.
    keeps: bool,
    /// What of the request has not left yet: an answer may begin before that.
    outgoing: Option<Outgoing>,
}

/// A request on its way out.
struct Outgoing {
    head: Vec<u8>,
    written: usize,
    body: Bytes,
    is_flushed: bool,
    failure: Option<io::Error>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, buffer: BytesMut::new(), is_flooded: false }
    }

    /// Whether the other side has left the connection as an exchange has to find it: open, and without a word.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        if !self.buffer.is_empty() {
            return false;
        }
        // Without a share in this turn of the task there would be no look.
        while !has_budget_remaining() {
            yield_now().await;
        }
        let look = poll_fn(|context| self.poll_fill(context));
        // The whole share is used up when there is no end of records that say nothing.
        look.now_or_never().is_none() && has_budget_remaining()
    }

    /// Gives up the room for what may come, as nothing will for a while. `false` if something came behind the last answer: no
    /// exchange can follow.
    pub(crate) fn lay_down(&mut self) -> bool {
        let is_empty = self.buffer.is_empty();
        if is_empty {
            self.buffer = BytesMut::new();
        }
        is_empty
    }

    /// Sends a request and waits for the head of the answer. The body is read by [`Connection::poll_body`].
    ///
    /// Of its URL the path alone is sent. `host` is what the header of that name says, and `defaults` are others, unless the
    /// request has them itself.
    ///
    /// # Errors
    ///
    /// [`Http1Error`]; the connection cannot be used again then.
    pub(crate) async fn exchange(
        &mut self,
        request: &Request<Bytes>,
        host: Option<&HeaderValue>,
        defaults: &[(HeaderName, HeaderValue)],
    ) -> Result<(Response<()>, Rest), Http1Error> {
        let (head, body) = head::write(request, host, defaults);
        let mut outgoing = Outgoing { head, written: 0, body, is_flushed: false, failure: None };
        let (mut seen, mut interim) = (0, 0);
        let head = poll_fn(|context| {
            self.poll_write(&mut outgoing, context);
            loop {
                if let Some(head) = self.next_head(&mut seen, &mut interim, request.method())? {
                    return Poll::Ready(Ok(head));
                }
                // An answer that came before the connection went counts, and may be read later than that is noticed.
                let end = match ready!(self.poll_fill(context)) {
                    Ok(0) if self.buffer.is_empty() => Http1Error::NoAnswer,
                    Ok(0) => Http1Error::Cut,
                    Ok(_) => continue,
                    Err(error) => error.into(),
                };
                return Poll::Ready(Err(outgoing.failure.take().map_or(end, Http1Error::Io)));
            }
        })
        .await?;
        let Head { status, version, headers, framing, keeps } = head;
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = version;
        *response.headers_mut() = headers;
        let outgoing = Some(outgoing).filter(|outgoing| !outgoing.is_flushed);
        Ok((response, Rest { framing, keeps, outgoing }))
    }

    /// The next piece of a body; empty at its end.
    ///
    /// # Errors
    ///
    /// [`Http1Error`]; the connection cannot be used again then.
    pub(crate) fn poll_body(
        &mut self,
        rest: &mut Rest,
        context: &mut Context<'_>,
    ) -> Poll<Result<Bytes, Http1Error>> {
        if let Some(outgoing) = &mut rest.outgoing {
            self.poll_write(outgoing, context);
            rest.outgoing.take_if(|outgoing| outgoing.is_flushed);
        }
        loop {
            let data = rest.framing.take(&mut self.buffer)?;
            if !data.is_empty() || rest.framing.is_over() {
                return Poll::Ready(Ok(data));
            }
            if ready!(self.poll_fill(context))? == 0 {
                if rest.framing != Framing::UntilClosed {
                    return Poll::Ready(Err(Http1Error::Cut));
                }
                rest.framing = Framing::Length(0);
            }
        }
    }

    /// Writes as much as the connection takes.
    fn poll_write(&mut self, outgoing: &mut Outgoing, context: &mut Context<'_>) {
        while outgoing.failure.is_none() && !outgoing.is_flushed {
            let head = outgoing.head.get(outgoing.written..).unwrap_or_default();
            let is_written = head.is_empty() && outgoing.body.is_empty();
            let stream = Pin::new(&mut self.stream);
            let polled = if is_written {
                stream.poll_flush(context).map_ok(|()| 0)
            } else if outgoing.body.is_empty() {
                stream.poll_write(context, head)
            } else {
                let pieces = [io::IoSlice::new(head), io::IoSlice::new(&outgoing.body)];
                let first = usize::from(head.is_empty());
                stream.poll_write_vectored(context, pieces.get(first..).unwrap_or_default())
            };
            match polled {
                Poll::Pending => return,
                Poll::Ready(Ok(_)) if is_written => outgoing.is_flushed = true,
                Poll::Ready(Ok(0)) => outgoing.failure = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => {
                    let of_head = written.min(head.len());
                    outgoing.written += of_head;
                    outgoing.body.advance(written - of_head);
                }
                Poll::Ready(Err(failure)) => outgoing.failure = Some(failure),
            }
        }
    }

    /// The head of the answer, if it is there. Interim ones are passed over.
    fn next_head(
        &mut self,
        seen: &mut usize,
        interim: &mut usize,
        method: &Method,
    ) -> Result<Option<Head>, Http1Error> {
        while self.buffer.len() > *seen {
            match head::read(&mut self.buffer, *seen, method)? {
                Some(head) if head.status == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(Http1Error::Upgrade);
                }
                Some(head) if head.status.is_informational() => *interim += 1,
                Some(head) => return Ok(Some(head)),
                None => {
                    *seen = self.buffer.len();
                    return Ok(None);
                }
            }
            if *interim > MAX_INTERIM {
                return Err(Http1Error::Interim);
            }
            *seen = 0;
        }
        Ok(None)
    }

    /// Reads more into the buffer; 0 bytes at the end of what comes.
    ///
    /// Most answers are small, and connections wait for long: there is no room in memory for what may come, until it comes.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let polled =
            if self.is_flooded { self.poll_much(context) } else { self.poll_little(context) };
        if polled.is_pending() && self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
        polled
    }

    /// Reads a little, and makes as much room for it as it takes.
    fn poll_little(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut space = [MaybeUninit::uninit(); SMALL_READ];
        let mut read = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
        let read = read.filled();
        self.is_flooded = read.len() == SMALL_READ;
        self.buffer.extend_from_slice(read);
        Poll::Ready(Ok(read.len()))
    }

    /// Makes room for much, and reads into it.
    fn poll_much(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.buffer.reserve(LARGE_READ);
        let read = ready!(pin!(self.stream.read_buf(&mut self.buffer)).poll(context))?;
        self.is_flooded = read >= SMALL_READ;
        Poll::Ready(Ok(read))
    }
}

impl Rest {
    /// Whether the whole body has come.
    pub(crate) fn is_over(&self) -> bool {
        self.framing.is_over()
    }

    /// Whether the connection can be used again once the body has come.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps && self.outgoing.is_none()
    }

    /// How many bytes are still announced, at least.
    pub(crate) fn announced(&self) -> u64 {
        self.framing.announced()
    }
}

/// Shows nothing of what is sent: keys are in it.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

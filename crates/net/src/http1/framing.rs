//! Where the body of an answer ends, and what of the bytes on the wire belongs to it.

use bytes::{Buf as _, Bytes, BytesMut};
use http::HeaderName;

use super::Http1Error;

/// What the lines between chunks may hold besides sizes, in bytes for the whole body. Nobody needs any of it.
const MAX_EXTRAS: usize = 16 << 10;
/// The longest line with a size that has no extras: sixteen digits and the line's end.
const MAX_SIZE_LINE: usize = 18;

/// How a body ends (RFC 9112, section 6.3).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many more bytes.
    Length(u64),
    /// With the last of its chunks.
    Chunked(Chunks),
    /// With the connection.
    UntilClosed,
}

/// Where a body that comes in chunks stands (RFC 9112, section 7.1).
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chunks {
    next: Next,
    /// How many bytes stood beside sizes and data.
    extras: usize,
}

/// What comes next of a body in chunks.
#[derive(Debug, Default, PartialEq, Eq)]
enum Next {
    /// The line with a size.
    #[default]
    Size,
    /// So many bytes more of a chunk.
    Data(u64),
    /// The line end after a chunk.
    DataEnd,
    /// The lines after the last chunk.
    Trailers,
    Nothing,
}

impl Framing {
    /// Whether nothing more belongs to the body.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.next == Next::Nothing,
            Self::UntilClosed => false,
        }
    }

    /// How many bytes are still announced, at least.
    pub(super) fn announced(&self) -> u64 {
        match self {
            Self::Length(left) | Self::Chunked(Chunks { next: Next::Data(left), .. }) => *left,
            Self::Chunked(_) | Self::UntilClosed => 0,
        }
    }

    /// Takes out of the buffer what of the body is there; nothing if all of it was something else. What does not belong to
    /// the body stays.
    ///
    /// # Errors
    ///
    /// [`Http1Error`] if there is no telling what belongs to it.
    pub(super) fn take(&mut self, buffer: &mut BytesMut) -> Result<Bytes, Http1Error> {
        match self {
            Self::Length(left) => {
                let taken = within(*left, buffer.len());
                *left -= taken as u64;
                Ok(front(buffer, taken))
            }
            Self::Chunked(chunks) => chunks.take(buffer),
            Self::UntilClosed => Ok(front(buffer, buffer.len())),
        }
    }
}

impl Chunks {
    /// The data of all chunks in the buffer, as one. Events come in a chunk each, often many of them at once: they are moved
    /// together where they lie, which takes less than handing on each.
    fn take(&mut self, buffer: &mut BytesMut) -> Result<Bytes, Http1Error> {
        // The data lies between `start` and `end`, and is looked for from `at` on.
        let (mut start, mut end, mut at) = (0, 0, 0);
        loop {
            let rest = buffer.get(at..).unwrap_or_default();
            let Next::Data(left) = &mut self.next else {
                match self.pass(rest) {
                    Ok(Some(length)) => at += length,
                    Ok(None) => break,
                    // What came before the fault counts; the fault is still there the next time.
                    Err(_) if start < end => break,
                    Err(error) => return Err(error),
                }
                continue;
            };
            let taken = within(*left, rest.len());
            if taken == 0 {
                break;
            }
            if start == end {
                (start, end) = (at, at + taken);
            } else {
                buffer.copy_within(at..at + taken, end);
                end += taken;
            }
            at += taken;
            *left -= taken as u64;
            if *left == 0 {
                self.next = Next::DataEnd;
            }
        }
        buffer.advance(start);
        let data = front(buffer, end - start);
        buffer.advance(at - end);
        Ok(data)
    }

    /// Passes over what stands next beside the data: how long it is, or `None` if it is not whole.
    fn pass(&mut self, rest: &[u8]) -> Result<Option<usize>, Http1Error> {
        match self.next {
            Next::Size => {
                let Some((length, size)) = size_line(rest)? else { return Ok(None) };
                self.extras += length.saturating_sub(MAX_SIZE_LINE);
                if self.extras > MAX_EXTRAS {
                    return Err(Http1Error::Chunk);
                }
                self.next = if size == 0 { Next::Trailers } else { Next::Data(size) };
                Ok(Some(length))
            }
            Next::DataEnd => match rest {
                [] | [b'\r'] => Ok(None),
                [b'\r', b'\n', ..] => {
                    self.next = Next::Size;
                    Ok(Some(2))
                }
                _ => Err(Http1Error::Chunk),
            },
            Next::Trailers => {
                let end = line_end(rest);
                if self.extras + end.unwrap_or(rest.len()) > MAX_EXTRAS {
                    return Err(Http1Error::Chunk);
                }
                let Some(length) = end else { return Ok(None) };
                match rest.get(..length) {
                    Some(b"\r\n") => self.next = Next::Nothing,
                    Some([line @ .., b'\r', b'\n']) if is_field(line) => self.extras += length,
                    Some(_) | None => return Err(Http1Error::Chunk),
                }
                Ok(Some(length))
            }
            Next::Data(_) | Next::Nothing => Ok(None),
        }
    }
}

/// Where the first line ends, with its line feed.
fn line_end(rest: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', rest).map(|at| at + 1)
}

/// Whether a line after the last chunk may stand there. It is not read, but anything else shows that the chunks are not what
/// they seem.
fn is_field(line: &[u8]) -> bool {
    let name = memchr::memchr(b':', line).and_then(|colon| line.get(..colon));
    name.is_some_and(|name| HeaderName::from_bytes(name).is_ok())
}

/// The line with the size of a chunk: how long it is, and the size. `None` if it is not whole.
fn size_line(rest: &[u8]) -> Result<Option<(usize, u64)>, Http1Error> {
    match rest.first() {
        None => return Ok(None),
        // The parser takes no digits for a zero.
        Some(first) if !first.is_ascii_hexdigit() => return Err(Http1Error::Chunk),
        Some(_) => {}
    }
    match httparse::parse_chunk_size(rest) {
        // Beside the size the parser takes a line feed alone for any other character; another reader ends the line there.
        Ok(httparse::Status::Complete((length, size))) if line_end(rest) == Some(length) => {
            Ok(Some((length, size)))
        }
        Ok(httparse::Status::Partial)
            if line_end(rest).is_none() && rest.len() <= MAX_SIZE_LINE + MAX_EXTRAS =>
        {
            Ok(None)
        }
        Ok(httparse::Status::Complete(_) | httparse::Status::Partial) | Err(_) => {
            Err(Http1Error::Chunk)
        }
    }
}

/// How many of `there` bytes belong to the `left` ones.
fn within(left: u64, there: usize) -> usize {
    usize::try_from(left).map_or(there, |left| left.min(there))
}

/// Takes the first bytes out of a buffer. One that has no room left for more is given away rather than shared.
fn front(buffer: &mut BytesMut, length: usize) -> Bytes {
    if length == 0 {
        Bytes::new()
    } else if length == buffer.capacity() {
        std::mem::take(buffer).freeze()
    } else {
        buffer.split_to(length).freeze()
    }
}

#[cfg(test)]
mod tests;

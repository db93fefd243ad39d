//! Server-sent events: an incremental decoder with limits, and a writer.
//!
//! The decoder is fed whatever arrives, in pieces of any size. Each byte is looked at a fixed number of times, and
//! what is kept is the piece and the event that are being read and nothing else. An event that is one line of data in one
//! piece, as nearly all are, is lent out of that.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use memchr::{memchr, memchr2};

const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// How large the parts of a stream may grow. How long the stream may be is its reader's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseLimits {
    /// The lines of one event together, without their ends, in bytes.
    pub max_event: usize,
    /// One line that is no comment, in bytes.
    pub max_line: usize,
    /// What comes between two events with data and says nothing, in bytes: comments, which keep-alives are, blank lines, and
    /// events without data.
    pub max_comment: usize,
    /// How much of an event is kept, in bytes. One with more comes [cut](SseEvent::is_cut): for those who need to know of an
    /// event and not what is in it.
    pub max_kept: usize,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'d> {
    /// The name, if it has one; `error` for the errors of A2A.
    pub name: Option<String>,
    /// The data lines, joined by line feeds.
    pub data: Cow<'d, str>,
    /// Whether it was larger than is kept. Name and data are empty then.
    pub is_cut: bool,
}

impl SseEvent<'_> {
    /// The event for those who keep it.
    #[must_use]
    pub fn into_owned(self) -> SseEvent<'static> {
        let Self { name, data, is_cut } = self;
        SseEvent { name, data: Cow::Owned(data.into_owned()), is_cut }
    }
}

/// Why a stream cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// A line is too long.
    #[error("a line of the event stream is longer than {limit} bytes")]
    LineTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The lines of an event are too long together.
    #[error("an event of the stream is larger than {limit} bytes")]
    EventTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Comments, blank lines and events without data are too long together.
    #[error("the event stream brings nothing but comments for more than {limit} bytes")]
    CommentTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// An event is no UTF-8.
    #[error("an event of the stream is not UTF-8")]
    NotUtf8,
}

/// Turns the bytes of a stream into events.
#[derive(Debug)]
pub struct SseDecoder {
    limits: SseLimits,
    line: Line,
    /// Bytes of the line so far.
    line_length: usize,
    /// Bytes of the event's lines so far.
    event_length: usize,
    /// Bytes that said nothing since the last event with data.
    idle_length: usize,
    /// How much of a byte order mark was seen; past its end once that question is settled.
    bom_seen: usize,
    /// The last byte was a carriage return, so a line feed next belongs to it.
    after_return: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// What came last.
    piece: Bytes,
    /// How much of it was read.
    read: usize,
    is_finished: bool,
    found: Option<Found>,
    failure: Option<SseError>,
}

/// An event that nobody has taken yet.
#[derive(Debug)]
enum Found {
    /// Where its data lies in the piece; it has no name.
    InPiece(Range<usize>),
    Apart(SseEvent<'static>),
}

/// What the line that is being read is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Nothing of it was seen.
    Empty,
    /// A comment.
    Comment,
    /// The name of a field; as much as tells the fields apart.
    Field(FieldName),
    /// After the colon, where one space is dropped.
    AfterColon(Field),
    /// The value of a field.
    Value(Field),
}

/// The fields that are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Data,
    Name,
    Other,
}

/// The first bytes of a field's name; no name we care for is longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FieldName {
    bytes: [u8; 6],
    length: usize,
}

impl FieldName {
    const EMPTY: Self = Self { bytes: [0; 6], length: 0 };

    fn extended(mut self, more: &[u8]) -> Self {
        for (slot, byte) in self.bytes.iter_mut().skip(self.length).zip(more) {
            *slot = *byte;
        }
        self.length = self.length.saturating_add(more.len());
        self
    }

    fn field(self) -> Field {
        match self.bytes.get(..self.length) {
            Some(b"data") => Field::Data,
            Some(b"event") => Field::Name,
            Some(_) | None => Field::Other,
        }
    }
}

impl SseDecoder {
    /// Creates a decoder at the start of a stream.
    pub fn new(limits: SseLimits) -> Self {
        Self {
            limits,
            line: Line::Empty,
            line_length: 0,
            event_length: 0,
            idle_length: 0,
            bom_seen: 0,
            after_return: false,
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            piece: Bytes::new(),
            read: 0,
            is_finished: false,
            found: None,
            failure: None,
        }
    }

    /// Takes the next bytes. What they complete is had by [`SseDecoder::next_event`]; if that has not been asked for
    /// everything before, the bytes are copied.
    pub fn push(&mut self, bytes: Bytes) {
        if self.failure.is_some() {
            return;
        }
        if self.piece.is_empty() {
            self.piece = bytes;
        } else {
            self.piece = [&self.piece, &bytes].into_iter().flatten().copied().collect();
        }
    }

    /// Takes the end of the stream: what was begun counts as complete, although its blank line is missing.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Whether there is an event, which [`SseDecoder::next_event`] gives then; if not, more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`SseError`] once everything before it was given, and from then on always.
    pub fn has_event(&mut self) -> Result<bool, SseError> {
        if self.found.is_none() {
            if let Some(failure) = self.failure {
                return Err(failure);
            }
            self.find().inspect_err(|failure| {
                self.failure = Some(*failure);
                self.forget_event();
            })?;
        }
        Ok(self.found.is_some())
    }

    /// Gives the next event, or `None` until more bytes come.
    ///
    /// # Errors
    ///
    /// [`SseError`] once everything before it was given, and from then on always.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseError> {
        self.has_event()?;
        match self.found.take() {
            None => return Ok(None),
            Some(Found::Apart(event)) => return Ok(Some(event)),
            Some(Found::InPiece(data)) => {
                if let Ok(data) = str::from_utf8(&self.piece[data]) {
                    return Ok(Some(SseEvent { name: None, data: data.into(), is_cut: false }));
                }
            }
        }
        self.failure = Some(SseError::NotUtf8);
        Err(SseError::NotUtf8)
    }

    /// Whether an event has begun and is not complete, which is when a silent peer is stuck rather than idle.
    pub fn is_inside_event(&self) -> bool {
        self.event_length > 0 || self.line != Line::Empty
    }

    /// Looks for the next event in what is there.
    fn find(&mut self) -> Result<(), SseError> {
        if let Some((data, end)) = self.simple_event() {
            self.idle_length = 0;
            self.found = Some(Found::InPiece(data));
            self.read = end;
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        self.read_lines(&piece)?;
        if self.read < piece.len() {
            self.piece = piece;
            return Ok(());
        }
        self.read = 0;
        if self.is_finished && self.found.is_none() { self.end_stream() } else { Ok(()) }
    }

    /// Where the data of an event lies that begins here, has nothing but one line of data, and is there to its end; and where
    /// that is.
    fn simple_event(&self) -> Option<(Range<usize>, usize)> {
        const FIELD: &[u8] = b"data:";
        let is_between = self.line == Line::Empty && self.event_length == 0 && !self.after_return;
        if !is_between || self.bom_seen < BOM.len() {
            return None;
        }
        let line = self.piece.get(self.read..)?;
        let value = line.strip_prefix(FIELD)?;
        let length = memchr2(b'\r', b'\n', value)?;
        let end = match &value[length..] {
            [b'\n', b'\n', ..] => length + 2,
            [b'\r', b'\n', b'\r', b'\n', ..] => length + 4,
            _ => return None,
        };
        let SseLimits { max_event, max_line, max_comment: _, max_kept } = self.limits;
        if FIELD.len() + length > max_event.min(max_line).min(max_kept) {
            return None;
        }
        let begin = self.read + FIELD.len();
        let space = usize::from(value[0] == b' ');
        Some((begin + space..begin + length, begin + end))
    }

    /// Reads lines until one ends an event.
    fn read_lines(&mut self, piece: &[u8]) -> Result<(), SseError> {
        self.skip_bom(piece)?;
        while let Some(rest) = piece.get(self.read..).filter(|rest| !rest.is_empty()) {
            if std::mem::take(&mut self.after_return) && rest[0] == b'\n' {
                self.read += 1;
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', rest) else {
                self.read = piece.len();
                return self.extend_line(rest);
            };
            self.read += end + 1;
            self.after_return = rest[end] == b'\r';
            self.extend_line(&rest[..end])?;
            self.end_line()?;
            if self.found.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn end_stream(&mut self) -> Result<(), SseError> {
        if self.bom_seen < BOM.len() {
            let seen = std::mem::replace(&mut self.bom_seen, BOM.len());
            self.extend_line(&BOM[..seen])?;
        }
        if self.line != Line::Empty {
            self.end_line()?;
        }
        if self.has_data { self.end_event() } else { Ok(()) }
    }

    /// Drops a byte order mark at the start, also one that comes in pieces.
    fn skip_bom(&mut self, piece: &[u8]) -> Result<(), SseError> {
        while let (Some(expected), Some(byte)) = (BOM.get(self.bom_seen), piece.get(self.read)) {
            if byte != expected {
                let seen = std::mem::replace(&mut self.bom_seen, BOM.len());
                return self.extend_line(&BOM[..seen]);
            }
            self.bom_seen += 1;
            self.read += 1;
        }
        Ok(())
    }

    fn extend_line(&mut self, mut bytes: &[u8]) -> Result<(), SseError> {
        let Some(first) = bytes.first() else { return Ok(()) };
        if self.line == Line::Empty {
            self.line = if *first == b':' { Line::Comment } else { Line::Field(FieldName::EMPTY) };
        }
        self.count(bytes.len())?;
        if let Line::Field(name) = self.line {
            let colon = memchr(b':', bytes);
            let name = name.extended(&bytes[..colon.unwrap_or(bytes.len())]);
            self.line = colon.map_or(Line::Field(name), |_| Line::AfterColon(name.field()));
            bytes = colon.map_or(&[][..], |colon| &bytes[colon + 1..]);
        }
        if let (Line::AfterColon(field), Some(first)) = (self.line, bytes.first()) {
            self.line = Line::Value(field);
            bytes = if *first == b' ' { &bytes[1..] } else { bytes };
            if field == Field::Name {
                self.name.clear();
            }
        }
        if self.is_cut() {
            (self.name, self.data) = (Vec::new(), Vec::new());
            return Ok(());
        }
        match self.line {
            Line::Value(Field::Data) => {
                // With room for the line's end: most events are one line, and have their size from the start.
                self.data.reserve(bytes.len() + 1);
                self.data.extend_from_slice(bytes);
            }
            Line::Value(Field::Name) => self.name.extend_from_slice(bytes),
            Line::Value(Field::Other)
            | Line::Empty
            | Line::Comment
            | Line::Field(_)
            | Line::AfterColon(_) => {}
        }
        Ok(())
    }

    /// Counts bytes of a line against the limits, before any is kept. Of two limits passed at once the one passed first
    /// is told, so that the error does not depend on how the bytes were cut.
    fn count(&mut self, more: usize) -> Result<(), SseError> {
        let SseLimits { max_event, max_line, max_comment: _, max_kept: _ } = self.limits;
        if self.line == Line::Comment {
            return self.count_idle(more);
        }
        let room_in_line = max_line.saturating_sub(self.line_length);
        let room_in_event = max_event.saturating_sub(self.event_length);
        if more > room_in_line.min(room_in_event) {
            return Err(if room_in_line <= room_in_event {
                SseError::LineTooLong { limit: max_line }
            } else {
                SseError::EventTooLarge { limit: max_event }
            });
        }
        self.line_length += more;
        self.event_length += more;
        Ok(())
    }

    /// Counts bytes that say nothing.
    fn count_idle(&mut self, more: usize) -> Result<(), SseError> {
        let limit = self.limits.max_comment;
        self.idle_length = self.idle_length.saturating_add(more);
        if self.idle_length > limit { Err(SseError::CommentTooLong { limit }) } else { Ok(()) }
    }

    /// Whether the event is larger than is kept.
    fn is_cut(&self) -> bool {
        self.event_length > self.limits.max_kept
    }

    fn end_line(&mut self) -> Result<(), SseError> {
        let line = std::mem::replace(&mut self.line, Line::Empty);
        self.line_length = 0;
        let field = match line {
            Line::Empty => return self.end_event(),
            Line::Comment => return Ok(()),
            Line::Field(name) => name.field(),
            Line::AfterColon(field) | Line::Value(field) => field,
        };
        match (field, line) {
            (Field::Data, _) => {
                self.has_data = true;
                if !self.is_cut() {
                    self.data.push(b'\n');
                }
            }
            (Field::Name, Line::Field(_) | Line::AfterColon(_)) => self.name.clear(),
            (Field::Name, Line::Value(_) | Line::Empty | Line::Comment) | (Field::Other, _) => {}
        }
        Ok(())
    }

    fn end_event(&mut self) -> Result<(), SseError> {
        let is_cut = self.is_cut();
        let length = std::mem::take(&mut self.event_length);
        let name = std::mem::take(&mut self.name);
        if !std::mem::take(&mut self.has_data) {
            return self.count_idle(length.saturating_add(1));
        }
        self.idle_length = 0;
        let mut data = std::mem::take(&mut self.data);
        data.pop();
        let data = String::from_utf8(data).map_err(|_| SseError::NotUtf8)?;
        let name = String::from_utf8(name).map_err(|_| SseError::NotUtf8)?;
        let name = (!name.is_empty()).then_some(name);
        self.found = Some(Found::Apart(SseEvent { name, data: data.into(), is_cut }));
        Ok(())
    }

    fn forget_event(&mut self) {
        self.line = Line::Empty;
        self.event_length = 0;
        self.has_data = false;
        self.name = Vec::new();
        self.data = Vec::new();
    }
}

/// Writes one event: `data` line by line, and before it the name if there is one.
///
/// A line end in `name` would begin a new field, so the name goes only as far as that.
pub fn encode_sse_event(data: &str, name: Option<&str>) -> Bytes {
    let mut written = String::with_capacity(data.len() + 32);
    if let Some(name) = name {
        push_field(&mut written, "event", name.split(['\r', '\n']).next().unwrap_or_default());
    }
    for line in lines(data) {
        push_field(&mut written, "data", line);
    }
    written.push('\n');
    written.into()
}

/// Writes a comment, which readers pass over: a sign of life.
pub fn encode_sse_comment(text: &str) -> Bytes {
    let mut written = String::with_capacity(text.len() + 4);
    for line in lines(text) {
        push_field(&mut written, "", line);
    }
    written.push('\n');
    written.into()
}

fn push_field(written: &mut String, field: &str, value: &str) {
    for piece in [field, ": ", value, "\n"] {
        written.push_str(piece);
    }
}

/// Splits at every line end that a reader knows: CRLF, CR and LF.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\r', '\n']) else { return rest.take() };
        let after = &text[end..];
        rest = after.strip_prefix("\r\n").or_else(|| after.get(1..));
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests;

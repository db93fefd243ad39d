//! How a document is read: in which dialect, and how much of it is kept.
//!
//! What comes from outside may be small on the wire and large in memory: an empty part takes eleven bytes there and
//! hundreds here. So a document has rooms, which what is kept of it is charged to at what it costs in memory at most.
//! Text is not charged in answers: it is no larger here than it was on the wire.

use std::{cell::Cell, mem::size_of};

use serde::de;

const MIB: usize = 1 << 20;
/// What a document and everything kept of it beside its text may come to, if that leaves [`LEAST_ROOM`].
const WHOLE: usize = 32 * MIB;
/// The room that even the largest document has, and the most that any has.
const LEAST_ROOM: usize = 2 * MIB;
const MOST_ROOM: usize = 16 * MIB;
/// Documents beyond this are read so that no text of theirs is in memory three times.
const LARGE: usize = 8 * MIB;
/// The longest string that is no content, in bytes: names, ids, media types, unknown members.
const MAX_STRING: usize = 64 << 10;
/// How many entries a list of a request may have.
pub(super) const MAX_REQUEST_ENTRIES: usize = 1000;
/// How much text and data a request may bring beside its files, in bytes.
const MAX_REQUEST_TEXT: usize = 4 * MIB;
/// What the objects of a request may take in memory, in bytes. The lists of one object stay far below.
const REQUEST_CONTENT: usize = 4 * MIB;
/// What the unknown and the free-form members of a request may take in memory, in bytes.
const REQUEST_VALUES: usize = MIB;
/// What an allocation costs beside what it was asked for, and what the short strings of one object come to.
pub(super) const ALLOCATION: usize = 32;
const SHORT_STRINGS: usize = 8 * ALLOCATION;

/// What an answer held beyond what is kept of one. The text of what is left out is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omitted {
    /// Files.
    pub files: usize,
    /// Links.
    pub links: usize,
    /// Messages of a history, tasks of a list, and members that are not content.
    pub others: usize,
}

/// What happens to what has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// There is no limit: the document is our own, or no larger than what it is made of.
    Whole,
    /// It is left out and counted: an answer must not be lost for it.
    Answer,
    /// It is an error: whoever sent it can send less.
    Request,
}

/// Whose names a document has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    V1,
    V03,
}

/// What something is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Objects of the protocol.
    Content,
    /// Free-form values.
    Values,
    /// Text, data and links.
    Text,
}

/// One document that is being read.
#[derive(Debug)]
pub(crate) struct Reading {
    mode: Mode,
    dialect: Dialect,
    is_large: bool,
    content: Cell<usize>,
    aside: Cell<usize>,
    values: Cell<usize>,
    text: Cell<usize>,
    is_aside: Cell<bool>,
    omitted: Cell<Omitted>,
    is_final: Cell<bool>,
}

impl Reading {
    fn new(mode: Mode, dialect: Dialect) -> Self {
        let all = || Cell::new(usize::MAX);
        Self {
            mode,
            dialect,
            is_large: false,
            content: all(),
            aside: all(),
            values: all(),
            text: all(),
            is_aside: Cell::new(false),
            omitted: Cell::default(),
            is_final: Cell::new(false),
        }
    }

    /// Without limits.
    pub(crate) fn whole() -> Self {
        Self::new(Mode::Whole, Dialect::V1)
    }

    /// An answer of `length` bytes, read from text.
    pub(crate) fn answer(length: usize, dialect: Dialect) -> Self {
        let room = WHOLE.saturating_sub(length).clamp(LEAST_ROOM, MOST_ROOM);
        let mut reading = Self::new(Mode::Answer, dialect);
        reading.is_large = length > LARGE;
        reading.content = Cell::new(room / 2);
        reading.aside = Cell::new(room / 4);
        reading.values = Cell::new(room / 4);
        // No text is longer here than it is in the document.
        reading.text = Cell::new(length);
        reading
    }

    /// A request of `length` bytes, read from text.
    pub(crate) fn request(length: usize) -> Self {
        let mut reading = Self::new(Mode::Request, Dialect::V1);
        reading.is_large = length > LARGE;
        reading.content = Cell::new(REQUEST_CONTENT);
        reading.values = Cell::new(REQUEST_VALUES);
        reading.text = Cell::new(MAX_REQUEST_TEXT);
        reading
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.mode == Mode::Whole
    }

    pub(crate) fn is_request(&self) -> bool {
        self.mode == Mode::Request
    }

    pub(crate) fn is_old(&self) -> bool {
        self.dialect == Dialect::V03
    }

    /// Whether strings are to be read without the parser's own copy; only text is read so, no `Value`.
    pub(crate) fn is_large(&self) -> bool {
        self.is_large
    }

    /// How long a string that is no content may be, in bytes.
    pub(crate) fn max_string(&self) -> usize {
        if self.is_whole() { usize::MAX } else { MAX_STRING }
    }

    /// Takes `cost` bytes of a room, if they are there.
    pub(crate) fn takes(&self, room: Room, cost: usize) -> bool {
        let room = match room {
            Room::Content if self.is_aside.get() => &self.aside,
            Room::Content => &self.content,
            Room::Values => &self.values,
            Room::Text => &self.text,
        };
        let left = room.get().checked_sub(cost);
        if let Some(left) = left {
            room.set(left);
        }
        left.is_some()
    }

    /// How much text may still come, in bytes.
    pub(crate) fn text_left(&self) -> usize {
        self.text.get()
    }

    /// Takes bytes of the room for text; in answers there always is enough.
    pub(crate) fn take_text<E: de::Error>(&self, length: usize) -> Result<(), E> {
        if self.takes(Room::Text, length) || !self.is_request() {
            return Ok(());
        }
        Err(E::custom(format_args!(
            "with this the request has more than {MAX_REQUEST_TEXT} bytes of text and data"
        )))
    }

    /// What becomes of a free-form value without room: nothing, or an error.
    pub(crate) fn no_room<T, E: de::Error>(&self) -> Result<Option<T>, E> {
        if self.is_request() {
            return Err(E::custom(format_args!(
                "with this the request has more values than {REQUEST_VALUES} bytes of memory hold"
            )));
        }
        Ok(None)
    }

    /// The error of a list of a request that has no room.
    pub(crate) fn too_many<E: de::Error>() -> E {
        E::custom(format_args!("at most {MAX_REQUEST_ENTRIES} entries are taken"))
    }

    /// Counts what is left out.
    pub(crate) fn omit(&self, add: impl FnOnce(&mut Omitted)) {
        let mut omitted = self.omitted.get();
        add(&mut omitted);
        self.omitted.set(omitted);
    }

    /// Begins to count for another object; what was counted so far comes back.
    pub(crate) fn replace_omitted(&self, omitted: Omitted) -> Omitted {
        self.omitted.replace(omitted)
    }

    /// Charges what is read by `read` to a room of its own, so that it takes none of what matters more.
    pub(crate) fn aside<T>(&self, read: impl FnOnce() -> T) -> T {
        let before = self.is_aside.replace(true);
        let value = read();
        self.is_aside.set(before);
        value
    }

    /// Notes that an event of 0.3 is the last one of its stream.
    pub(crate) fn set_final(&self) {
        self.is_final.set(true);
    }

    pub(crate) fn is_final(&self) -> bool {
        self.is_final.get()
    }
}

/// What an entry of a list costs: its place in a list that has just grown, and its short strings.
pub(crate) const fn entry_cost<T>() -> usize {
    2 * size_of::<T>() + SHORT_STRINGS
}

/// What a member of a map costs beside what its value has allocated: the first one takes a whole node, further ones leave
/// nodes half empty.
pub(crate) const fn member_cost<T>(is_first: bool) -> usize {
    let pair = size_of::<String>() + size_of::<T>();
    if is_first { 12 * pair } else { 2 * pair + ALLOCATION }
}

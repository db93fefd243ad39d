//! The kinds of members: what absence means, what counts as absent, and when a member is written.

use std::{fmt, marker::PhantomData};

use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::{
    ItemSeed, Reading, WireItem, WireValue, at, not_text,
    quick::{self, Quick, Unusual},
    reading::{MAX_REQUEST_ENTRIES, Room, entry_cost},
};
use crate::Message;

/// The rules for one kind of member with values of type `T`.
pub(crate) trait Kind<'de, T> {
    /// Whether an object without it is an error.
    const IS_REQUIRED: bool = false;

    /// Reads a value that is not `null`; `None` if it says "absent" in another way.
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<T>, D::Error>;

    /// Does the same with the quick parser of an answer, in place; `false`, and nothing put there, in place of `None`.
    fn fill(place: &mut T, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        let value = quick.hand_on(|parser| Self::read(parser, reading))?;
        Ok(value.map(|value| *place = value).is_some())
    }

    /// What stands for an absent member; `None` if it must be there.
    fn absent() -> Option<T>;

    /// Whether the member is written.
    fn is_written(value: &T) -> bool;
}

/// Must be there, always written.
#[derive(Debug)]
pub(crate) enum Required {}

impl<'de, T: WireValue<'de>> Kind<'de, T> for Required {
    const IS_REQUIRED: bool = true;

    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<T>, D::Error> {
        T::read(deserializer, reading)
    }

    fn fill(place: &mut T, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        place.fill(quick, reading)
    }

    fn absent() -> Option<T> {
        None
    }

    fn is_written(_: &T) -> bool {
        true
    }
}

/// May be there; written when set, also when set to zero or false.
#[derive(Debug)]
pub(crate) enum Optional {}

impl<'de, T: WireValue<'de>> Kind<'de, Option<T>> for Optional {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Option<T>>, D::Error> {
        T::read(deserializer, reading).map(Some)
    }

    fn fill(
        place: &mut Option<T>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<bool> {
        T::fill_option(place, quick, reading)?;
        Ok(true)
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }

    fn is_written(value: &Option<T>) -> bool {
        value.is_some()
    }
}

/// The default stands for absence and is not written.
#[derive(Debug)]
pub(crate) enum Plain {}

impl<'de, T: WireValue<'de> + Default + PartialEq> Kind<'de, T> for Plain {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<T>, D::Error> {
        T::read(deserializer, reading)
    }

    fn fill(place: &mut T, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        place.fill(quick, reading)
    }

    fn absent() -> Option<T> {
        Some(T::default())
    }

    fn is_written(value: &T) -> bool {
        *value != T::default()
    }
}

/// The specification requires it, but peers leave the default out: read like [`Plain`], always written.
#[derive(Debug)]
pub(crate) enum Always {}

impl<'de, T: WireValue<'de> + Default> Kind<'de, T> for Always {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<T>, D::Error> {
        T::read(deserializer, reading)
    }

    fn fill(place: &mut T, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        place.fill(quick, reading)
    }

    fn absent() -> Option<T> {
        Some(T::default())
    }

    fn is_written(_: &T) -> bool {
        true
    }
}

/// A list that is not written while empty.
#[derive(Debug)]
pub(crate) enum List {}

impl<'de, T: WireItem<'de>> Kind<'de, Vec<T>> for List {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Vec<T>>, D::Error> {
        read_list(deserializer, reading).map(Some)
    }

    fn fill(place: &mut Vec<T>, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        fill_list(place, quick, reading)?;
        Ok(true)
    }

    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }

    fn is_written(value: &Vec<T>) -> bool {
        !value.is_empty()
    }
}

/// A list the specification requires; peers leave it out while empty, we write it always.
#[derive(Debug)]
pub(crate) enum Array {}

impl<'de, T: WireItem<'de>> Kind<'de, Vec<T>> for Array {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Vec<T>>, D::Error> {
        read_list(deserializer, reading).map(Some)
    }

    fn fill(place: &mut Vec<T>, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        fill_list(place, quick, reading)?;
        Ok(true)
    }

    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }

    fn is_written(_: &Vec<T>) -> bool {
        true
    }
}

/// What was said before, a list that is not written while empty. It has a room of its own: it must not take that of what
/// the task has brought forth.
#[derive(Debug)]
pub(crate) enum History {}

impl<'de, T: WireItem<'de>> Kind<'de, Vec<T>> for History {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Vec<T>>, D::Error> {
        reading.aside(|| read_list(deserializer, reading)).map(Some)
    }

    fn fill(place: &mut Vec<T>, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        reading.aside(|| fill_list(place, quick, reading))?;
        Ok(true)
    }

    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }

    fn is_written(value: &Vec<T>) -> bool {
        !value.is_empty()
    }
}

/// A list the specification requires, in the room of [`History`]: however many there are, the other members are read.
#[derive(Debug)]
pub(crate) enum Skills {}

impl<'de, T: WireItem<'de>> Kind<'de, Vec<T>> for Skills {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Vec<T>>, D::Error> {
        reading.aside(|| read_list(deserializer, reading)).map(Some)
    }

    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }

    fn is_written(_: &Vec<T>) -> bool {
        true
    }
}

/// A message that somebody sends us, which unlike one that an agent reports must have parts, and each of them content.
#[derive(Debug)]
pub(crate) enum Sent {}

impl<'de> Kind<'de, Message> for Sent {
    const IS_REQUIRED: bool = true;

    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Message>, D::Error> {
        let message = Message::read_item(deserializer, reading)?;
        if message.parts.is_empty() {
            return Err(at("parts", "required but missing or empty"));
        }
        for (index, part) in message.parts.iter().enumerate() {
            part.check().map_err(|error: D::Error| at(&format!("parts[{index}]"), error))?;
        }
        Ok(Some(message))
    }

    fn absent() -> Option<Message> {
        None
    }

    fn is_written(_: &Message) -> bool {
        true
    }
}

/// Reads a list; an error names the index.
fn read_list<'de, T: WireItem<'de>, D: Deserializer<'de>>(
    deserializer: D,
    reading: &Reading,
) -> Result<Vec<T>, D::Error> {
    struct ListVisitor<'r, T>(&'r Reading, PhantomData<T>);

    impl<'de, T: WireItem<'de>> Visitor<'de> for ListVisitor<'_, T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Err(not_text(text, &self))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let Self(reading, _) = self;
            let mut items = Vec::new();
            loop {
                let is_full = reading.is_request() && items.len() >= MAX_REQUEST_ENTRIES;
                if is_full || !reading.takes(Room::Content, entry_cost::<T>()) {
                    break;
                }
                let item = seq
                    .next_element_seed(ItemSeed::new(reading))
                    .map_err(|error| at(&format!("[{}]", items.len()), error))?;
                let Some(item) = item else { return Ok(items) };
                items.push(item);
            }
            if !reading.is_request() {
                T::spill(&mut items, seq, reading)?;
            } else if seq.next_element::<IgnoredAny>()?.is_some() {
                return Err(Reading::too_many());
            }
            Ok(items)
        }
    }

    deserializer.deserialize_any(ListVisitor(reading, PhantomData))
}

/// Does the same with the quick parser, which leaves a list without room to the other one.
fn fill_list<'de, T: WireItem<'de>>(
    items: &mut Vec<T>,
    quick: &mut Quick<'de>,
    reading: &Reading,
) -> quick::Result<()> {
    quick.open(b'[')?;
    while quick.next_item()? {
        if !reading.takes(Room::Content, entry_cost::<T>()) {
            return Err(Unusual);
        }
        if items.is_empty() {
            // Most lists have one entry, and entries are large.
            items.reserve_exact(1);
        }
        T::push_item(items, quick, reading)?;
    }
    Ok(())
}

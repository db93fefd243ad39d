//! Values that may say "absent" in their own way, and the liberal readings of numbers.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    ItemSeed, KeySeed, MAX_SHOWN, Reading,
    json::ObjectSeed,
    not_text,
    quick::{self, Quick},
    reading::{Room, entry_cost, member_cost},
    text::{cut, read_short},
};
use crate::JsonObject;

/// A value of a member.
pub(crate) trait WireValue<'de>: Sized {
    /// Reads a value that is not `null`; `None` if it stands for absence, as `""` does.
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Self>, D::Error>;

    /// Does the same with the quick parser of an answer, in place; `false`, and nothing put there, in place of `None`.
    fn fill(&mut self, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        let value = quick.hand_on(|parser| Self::read(parser, reading))?;
        Ok(value.map(|value| *self = value).is_some())
    }

    /// Does the same where nothing lies yet.
    fn fill_option(
        place: &mut Option<Self>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()> {
        *place = quick.hand_on(|parser| Self::read(parser, reading))?;
        Ok(())
    }
}

/// What lies in a place that is about to be filled.
pub(crate) trait Blank {
    /// Makes one.
    fn blank() -> Self;
}

impl<T: Default> Blank for T {
    fn blank() -> Self {
        Self::default()
    }
}

/// An entry of a list or a map, where an empty string is a value too.
pub(crate) trait WireItem<'de>: Sized {
    /// Reads an entry.
    fn read_item<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Self, D::Error>;

    /// Does the same with the quick parser of an answer, in place.
    fn fill_item(
        place: &mut Option<Self>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()> {
        *place = Some(quick.hand_on(|parser| Self::read_item(parser, reading))?);
        Ok(())
    }

    /// Does the same at the end of a list.
    fn push_item(
        items: &mut Vec<Self>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()> {
        items.push(quick.hand_on(|parser| Self::read_item(parser, reading))?);
        Ok(())
    }

    /// Reads the rest of a list in an answer for which there is no room.
    fn spill<A: SeqAccess<'de>>(
        _items: &mut Vec<Self>,
        mut list: A,
        reading: &Reading,
    ) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {
            reading.omit(|omitted| omitted.others += 1);
        }
        Ok(())
    }
}

impl<'de> WireItem<'de> for String {
    fn read_item<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Self, D::Error> {
        read_short(deserializer, reading)
    }

    fn push_item(
        items: &mut Vec<Self>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()> {
        items.push(quick.short(reading)?);
        Ok(())
    }
}

impl<'de> WireValue<'de> for String {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Self>, D::Error> {
        Ok(Some(read_short(deserializer, reading)?).filter(|text| !text.is_empty()))
    }

    fn fill(&mut self, quick: &mut Quick<'de>, reading: &Reading) -> quick::Result<bool> {
        *self = quick.short(reading)?;
        Ok(!self.is_empty())
    }

    fn fill_option(
        place: &mut Option<Self>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()> {
        *place = Some(quick.short(reading)?).filter(|text| !text.is_empty());
        Ok(())
    }
}

impl<'de> WireValue<'de> for bool {
    fn read<D: Deserializer<'de>>(deserializer: D, _: &Reading) -> Result<Option<Self>, D::Error> {
        struct BoolVisitor;

        impl Visitor<'_> for BoolVisitor {
            type Value = bool;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a boolean")
            }

            fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
                Ok(value)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<bool, E> {
                Err(not_text(text, &self))
            }
        }

        deserializer.deserialize_any(BoolVisitor).map(Some)
    }

    fn fill(&mut self, quick: &mut Quick<'de>, _: &Reading) -> quick::Result<bool> {
        *self = quick.boolean()?;
        Ok(true)
    }
}

impl<'de> WireValue<'de> for JsonObject {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Self>, D::Error> {
        if reading.is_whole() {
            return Self::deserialize(deserializer).map(Some);
        }
        deserializer.deserialize_any(ObjectSeed(reading)).map(Some)
    }
}

impl<'de, T: WireItem<'de>> WireValue<'de> for BTreeMap<String, T> {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Self>, D::Error> {
        struct MapVisitor<'r, T>(&'r Reading, PhantomData<T>);

        impl<'de, T: WireItem<'de>> Visitor<'de> for MapVisitor<'_, T> {
            type Value = BTreeMap<String, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Err(not_text(text, &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let Self(reading, _) = self;
                let mut entries = BTreeMap::new();
                while let Some(key) = map.next_key_seed(KeySeed(reading))? {
                    let cost =
                        member_cost::<T>(entries.is_empty()) + key.0.len() + entry_cost::<()>();
                    if reading.takes(Room::Content, cost) {
                        let value = map
                            .next_value_seed(ItemSeed::new(reading))
                            .map_err(|error| super::at(&key.0, error))?;
                        entries.insert(key.0.into_owned(), value);
                    } else if reading.is_request() {
                        return Err(super::at(&key.0, Reading::too_many::<A::Error>()));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                        reading.omit(|omitted| omitted.others += 1);
                    }
                }
                Ok(entries)
            }
        }

        deserializer.deserialize_any(MapVisitor(reading, PhantomData)).map(Some)
    }
}

/// Reads a number, a number with a zero fraction, or decimal digits in a string.
impl<'de> WireValue<'de> for i32 {
    fn read<D: Deserializer<'de>>(deserializer: D, _: &Reading) -> Result<Option<Self>, D::Error> {
        struct IntegerVisitor;

        impl Visitor<'_> for IntegerVisitor {
            type Value = Option<i32>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of 32 bits")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<i32>, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
                i32::try_from(number).map(Some).map_err(wrong)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<i32>, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(number), &self);
                i32::try_from(number).map(Some).map_err(wrong)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Option<i32>, E> {
                let is_whole = number.fract() == 0.0 && number.abs() <= f64::from(i32::MAX);
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "whole and in range, as just checked"
                )]
                let whole = is_whole.then_some(number as i32);
                whole
                    .map(Some)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<i32>, E> {
                if text.is_empty() {
                    return Ok(None);
                }
                text.parse()
                    .map(Some)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(cut(text, MAX_SHOWN)), &self))
            }
        }

        deserializer.deserialize_any(IntegerVisitor)
    }
}

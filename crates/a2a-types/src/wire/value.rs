//! Values that may say "absent" in their own way, and the liberal readings of numbers.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    ItemSeed, KeySeed, MAX_SHOWN, Reading,
    json::ObjectSeed,
    not_text,
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
}

/// An entry of a list or a map, where an empty string is a value too.
pub(crate) trait WireItem<'de>: Sized {
    /// Reads an entry.
    fn read_item<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Self, D::Error>;

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
}

impl<'de> WireValue<'de> for String {
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Self>, D::Error> {
        Ok(Some(read_short(deserializer, reading)?).filter(|text| !text.is_empty()))
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

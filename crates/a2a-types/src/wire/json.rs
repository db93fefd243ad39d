//! Free-form values, as far as there is room for them.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Number, Value};

use super::{
    KeySeed, not_text,
    quick::{self, Quick},
    reading::{ALLOCATION, Reading, Room, member_cost},
    text::cut,
};
use crate::{JsonObject, JsonText};

/// Reads a value; `None` if there is no room for it.
pub(crate) struct ValueSeed<'r>(pub(crate) &'r Reading);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Value>, D::Error> {
        if self.0.is_whole() {
            return Value::deserialize(deserializer).map(Some);
        }
        deserializer.deserialize_any(ValueVisitor(self.0))
    }
}

struct ValueVisitor<'r>(&'r Reading);

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        Ok(Some(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Option<Value>, E> {
        Ok(Some(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Option<Value>, E> {
        Ok(Some(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<Value>, E> {
        if self.0.takes(Room::Values, text.len() + ALLOCATION) {
            Ok(Some(text.into()))
        } else {
            self.0.no_room()
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Value>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(ValueSeed(self.0))? {
            match item {
                Some(item) if self.0.takes(Room::Values, 2 * size_of::<Value>()) => {
                    items.push(item);
                }
                Some(_) | None => {
                    let nothing = self.0.no_room()?;
                    while seq.next_element::<IgnoredAny>()?.is_some() {}
                    return Ok(nothing);
                }
            }
        }
        Ok(Some(Value::Array(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Value>, A::Error> {
        let mut members = JsonObject::new();
        while let Some(key) = map.next_key_seed(KeySeed(self.0))? {
            let cost = member_cost::<Value>(members.is_empty()) + key.0.len();
            match map.next_value_seed(ValueSeed(self.0))? {
                Some(value) if self.0.takes(Room::Values, cost) => {
                    members.insert(key.0.into_owned(), value);
                }
                Some(_) | None => {
                    let nothing = self.0.no_room()?;
                    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                    return Ok(nothing);
                }
            }
        }
        Ok(Some(Value::Object(members)))
    }
}

/// The tree of a value, if there is room for it.
pub(crate) fn tree<E: de::Error>(json: &JsonText, reading: &Reading) -> Result<Option<Value>, E> {
    let mut deserializer = serde_json::Deserializer::from_str(json.as_str());
    ValueSeed(reading).deserialize(&mut deserializer).map_err(E::custom)
}

/// Adds a member to an object, or counts it as left out.
pub(crate) fn insert<E: de::Error>(
    members: &mut JsonObject,
    key: &str,
    value: Option<Value>,
    reading: &Reading,
) -> Result<(), E> {
    let cost = member_cost::<Value>(members.is_empty()) + key.len();
    if let Some(value) = value.filter(|_| reading.takes(Room::Values, cost)) {
        members.insert(key.to_owned(), value);
    } else {
        let _: Option<()> = reading.no_room().map_err(|error: E| super::at(key, error))?;
        reading.omit(|omitted| omitted.others += 1);
    }
    Ok(())
}

/// Reads the value of a member and adds it to an object, or counts it as left out.
pub(crate) fn read_into<'de, A: MapAccess<'de>>(
    members: &mut JsonObject,
    key: &str,
    map: &mut A,
    reading: &Reading,
) -> Result<(), A::Error> {
    let value = map.next_value_seed(ValueSeed(reading)).map_err(|error| super::at(key, error))?;
    insert(members, key, value, reading)
}

/// Does the same with the quick parser.
pub(crate) fn fill_into(
    members: &mut JsonObject,
    key: &str,
    quick: &mut Quick<'_>,
    reading: &Reading,
) -> quick::Result<()> {
    let value = quick.hand_on(|parser| ValueSeed(reading).deserialize(parser))?;
    insert(members, cut(key, reading.max_string()), value, reading)
}

/// Reads an object, member by member.
pub(crate) struct ObjectSeed<'r>(pub(crate) &'r Reading);

impl<'de> Visitor<'de> for ObjectSeed<'_> {
    type Value = JsonObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(not_text(text, &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonObject, A::Error> {
        let mut members = JsonObject::new();
        while let Some(key) = map.next_key_seed(KeySeed(self.0))? {
            read_into(&mut members, &key.0, &mut map, self.0)?;
        }
        Ok(members)
    }
}

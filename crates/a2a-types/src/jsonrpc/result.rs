//! The result of a response in one go.
//!
//! [`RpcResponse::decode`](crate::RpcResponse::decode) passes over the result and leaves it to be read afterwards, which is
//! to go through the longest part of a response twice. What is usual is read at once here; for anything else there is
//! nothing, and the long way tells what is wrong.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::RpcId;
use crate::wire::{Dialect, ItemSeed, KeySeed, Reading, WireItem};

/// The version of the protocol as it is written.
const QUOTED_VERSION: &str = "\"2.0\"";

/// Reads the result of the response to the request `id`, as an answer of A2A 1.0.
pub(crate) fn read_result<'de, T: WireItem<'de>>(json: &'de str, id: &RpcId) -> Option<T> {
    let reading = Reading::answer(json.len(), Dialect::V1);
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let mut result = None;
    let seed = ResponseSeed { id, reading: &reading, result: &mut result };
    seed.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    result
}

struct ResponseSeed<'r, T> {
    id: &'r RpcId,
    reading: &'r Reading,
    /// Filled in place, as it is large.
    result: &'r mut Option<T>,
}

impl<'de, T: WireItem<'de>> DeserializeSeed<'de> for ResponseSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: WireItem<'de>> Visitor<'de> for ResponseSeed<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a response")
    }

    /// The parser's own error would hold all of it.
    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<(), E> {
        Err(E::custom("no response"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut is_version, mut is_id) = (None, None);
        while let Some(key) = map.next_key_seed(KeySeed(self.reading))? {
            match &*key.0 {
                "jsonrpc" if is_version.is_none() => {
                    is_version = Some(map.next_value::<&RawValue>()?.get() == QUOTED_VERSION);
                }
                "id" if is_id.is_none() => {
                    is_id = Some(is_written_as(self.id, map.next_value()?));
                }
                "result" if self.result.is_none() => {
                    *self.result = Some(map.next_value_seed(ItemSeed::new(self.reading))?);
                }
                "jsonrpc" | "id" | "result" | "error" | "method" | "params" => {
                    return Err(A::Error::custom("nothing usual"));
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (is_version, is_id) {
            (Some(true), Some(true)) => Ok(()),
            _ => Err(A::Error::custom("another response")),
        }
    }
}

/// Whether an id is written the way we write ours.
fn is_written_as(id: &RpcId, written: &RawValue) -> bool {
    let written = written.get();
    match id {
        RpcId::Number(number) => written.parse().is_ok_and(|found| number.as_u64() == Some(found)),
        RpcId::String(text) => {
            let inside = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            inside == Some(text) && !text.contains('\\')
        }
        RpcId::Null => false,
    }
}

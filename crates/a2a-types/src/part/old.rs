//! What parts are like in 0.3: a file is an object of its own, and data is always an object.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::{Base64Seed, Found, FromBase64, Part, PartContent, note};
use crate::{
    JsonText,
    v03::WRAPPED_DATA,
    wire::{Key, KeySeed, Reading, WireValue as _, not_text, text::TextSeed},
};

/// The `file` of a part.
#[derive(Default)]
pub(super) struct File {
    raw: Option<FromBase64>,
    url: Option<String>,
    name: Option<String>,
    media_type: Option<String>,
}

impl File {
    /// Makes the part that of the file. What the part says itself counts more.
    pub(super) fn describe(self, found: &mut Found, part: &mut Part) {
        found.raw = found.raw.take().or(self.raw);
        found.url = found.url.take().or(self.url);
        part.filename = part.filename.take().or(self.name);
        part.media_type = part.media_type.take().or(self.media_type);
    }
}

/// Reads the `file` of a part; `None` for `null`.
pub(super) struct FileSeed<'r>(pub(super) &'r Reading);

impl<'de> DeserializeSeed<'de> for FileSeed<'_> {
    type Value = Option<File>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<File>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FileSeed<'_> {
    type Value = Option<File>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object of a file")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(not_text(text, &self))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        struct Short<'r>(&'r Reading);

        impl<'de> DeserializeSeed<'de> for Short<'_> {
            type Value = Option<String>;

            fn deserialize<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Self::Value, D::Error> {
                deserializer.deserialize_option(self)
            }
        }

        impl<'de> Visitor<'de> for Short<'_> {
            type Value = Option<String>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or null")
            }

            fn visit_none<E>(self) -> Result<Option<String>, E> {
                Ok(None)
            }

            fn visit_unit<E>(self) -> Result<Option<String>, E> {
                Ok(None)
            }

            fn visit_some<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Self::Value, D::Error> {
                String::read(deserializer, self.0)
            }
        }

        let Self(reading) = self;
        let mut file = File::default();
        while let Some(Key(key)) = map.next_key_seed(KeySeed(reading))? {
            match &*key {
                "bytes" | "fileWithBytes" => {
                    note(&mut file.raw, "file.bytes", map.next_value_seed(Base64Seed(reading)))?;
                }
                "uri" | "fileWithUri" => {
                    note(&mut file.url, "file.uri", map.next_value_seed(TextSeed(reading)))?;
                }
                "name" => note(&mut file.name, "file.name", map.next_value_seed(Short(reading)))?,
                "mimeType" => {
                    note(
                        &mut file.media_type,
                        "file.mimeType",
                        map.next_value_seed(Short(reading)),
                    )?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Some(file))
    }
}

/// Takes data out of the object that it was wrapped into for 0.3.
pub(super) fn unwrap_data(part: &mut Part) {
    let Some(metadata) = &mut part.metadata else { return };
    let PartContent::Data(data) = &mut part.content else { return };
    if metadata.get(WRAPPED_DATA) != Some(&Value::Bool(true)) {
        return;
    }
    match std::mem::replace(data, JsonText::from(Value::Null)).into_only_member("value") {
        Ok(value) => *data = value,
        Err(whole) => {
            *data = whole;
            return;
        }
    }
    metadata.remove(WRAPPED_DATA);
    if metadata.is_empty() {
        part.metadata = None;
    }
}

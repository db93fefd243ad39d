//! A piece of content: text, bytes, a link, or data.

use std::fmt;

use base64::{
    DecodeError, Engine as _, alphabet,
    display::Base64Display,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, Visitor},
    ser::SerializeMap as _,
};
use serde_json::Value;

use crate::{
    JsonObject,
    wire::{self, Key, Slot, kind},
};

const LIBERAL: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const LIBERAL_STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LIBERAL);
const LIBERAL_URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LIBERAL);

/// A piece of a message or artifact (specification: `Part`).
///
/// On the wire exactly one of `text`, `raw`, `url` and `data` is present, and presence is what counts:
/// `{"text": ""}` and `{"data": null}` are content.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// What it holds.
    pub content: PartContent,
    /// The name of the file it stands for; may come with every kind of content.
    pub filename: Option<String>,
    /// The media type of the content.
    pub media_type: Option<String>,
    /// Further values, keyed by extension.
    pub metadata: Option<JsonObject>,
    /// Members this version does not know, kept as they came.
    pub extra: JsonObject,
}

/// What a [`Part`] holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PartContent {
    /// Text, possibly empty.
    Text(String),
    /// The bytes of a file; base64 on the wire.
    Raw(Bytes),
    /// Where a file can be fetched.
    Url(String),
    /// Any JSON value, also `null`.
    Data(Value),
}

impl PartContent {
    /// The name of the member that carries it.
    pub fn member_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Raw(_) => "raw",
            Self::Url(_) => "url",
            Self::Data(_) => "data",
        }
    }
}

impl Part {
    /// Creates a part that holds `content` and says no more about it.
    pub fn new(content: PartContent) -> Self {
        Self { content, filename: None, media_type: None, metadata: None, extra: JsonObject::new() }
    }

    /// Creates a part of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// Creates a part of a file's bytes.
    pub fn raw(
        bytes: impl Into<Bytes>,
        media_type: impl Into<String>,
        filename: impl Into<String>,
    ) -> Self {
        Self::new(PartContent::Raw(bytes.into()))
            .with_media_type(media_type)
            .with_filename(filename)
    }

    /// Creates a part that says where a file is.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(PartContent::Url(url.into()))
    }

    /// Creates a part of structured data.
    pub fn data(value: impl Into<Value>) -> Self {
        Self::new(PartContent::Data(value.into()))
    }

    /// Sets the name of the file.
    #[must_use]
    pub fn with_filename(mut self, filename: impl Into<String>) -> Self {
        self.filename = Some(filename.into());
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// The text, if that is what it holds.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => None,
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let name = self.content.member_name();
        match &self.content {
            PartContent::Text(text) | PartContent::Url(text) => map.serialize_entry(name, text)?,
            PartContent::Raw(bytes) => map.serialize_entry(name, &AsBase64(bytes))?,
            PartContent::Data(value) => map.serialize_entry(name, value)?,
        }
        if let Some(filename) = &self.filename {
            map.serialize_entry("filename", filename)?;
        }
        if let Some(media_type) = &self.media_type {
            map.serialize_entry("mediaType", media_type)?;
        }
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object Part")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
        let mut content: Option<PartContent> = None;
        let (mut filename, mut media_type, mut metadata) =
            (Slot::Unseen, Slot::Unseen, Slot::Unseen);
        let mut extra = JsonObject::new();
        while let Some(Key(key)) = map.next_key()? {
            let value = match &*key {
                "text" => next(&mut map, "text")?.map(PartContent::Text),
                "url" => next(&mut map, "url")?.map(PartContent::Url),
                "raw" => next(&mut map, "raw")?.map(|FromBase64(bytes)| PartContent::Raw(bytes)),
                // Here alone null is a value.
                "data" => Some(PartContent::Data(
                    map.next_value().map_err(|error| wire::at("data", error))?,
                )),
                "filename" => {
                    wire::read_member::<kind::Optional, _, A>(&mut filename, "filename", &mut map)?;
                    None
                }
                "mediaType" | "media_type" => {
                    wire::read_member::<kind::Optional, _, A>(
                        &mut media_type,
                        "mediaType",
                        &mut map,
                    )?;
                    None
                }
                "metadata" => {
                    wire::read_member::<kind::Optional, _, A>(&mut metadata, "metadata", &mut map)?;
                    None
                }
                _ => {
                    let value = map.next_value().map_err(|error| wire::at(&key, error))?;
                    extra.insert(key.into_owned(), value);
                    None
                }
            };
            if let Some(value) = value {
                if let Some(other) = &content {
                    return Err(wire::two_members(other.member_name(), value.member_name()));
                }
                content = Some(value);
            }
        }
        let content = content.ok_or_else(|| wire::no_member(&["text", "raw", "url", "data"]))?;
        Ok(Part {
            content,
            filename: wire::finish_member::<kind::Optional, _, A::Error>(filename, "filename")?,
            media_type: wire::finish_member::<kind::Optional, _, A::Error>(
                media_type,
                "mediaType",
            )?,
            metadata: wire::finish_member::<kind::Optional, _, A::Error>(metadata, "metadata")?,
            extra,
        })
    }
}

/// Reads the value of a member of which `null` says that it is not there.
fn next<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
    name: &'static str,
) -> Result<Option<T>, A::Error> {
    map.next_value().map_err(|error| wire::at(name, error))
}

/// Decodes base64 as peers write it: either alphabet, padded or not.
fn decode_base64(text: &str) -> Result<Vec<u8>, DecodeError> {
    let is_url_safe = text.bytes().any(|byte| matches!(byte, b'-' | b'_'));
    if is_url_safe { LIBERAL_URL_SAFE.decode(text) } else { LIBERAL_STANDARD.decode(text) }
}

/// Writes bytes as base64 without building the text first.
struct AsBase64<'a>(&'a [u8]);

impl Serialize for AsBase64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// Reads base64 straight from the input, without a copy of the text where the input allows it.
struct FromBase64(Bytes);

impl<'de> Deserialize<'de> for FromBase64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Base64Visitor;

        impl Visitor<'_> for Base64Visitor {
            type Value = FromBase64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 in a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<FromBase64, E> {
                decode_base64(text).map(|bytes| FromBase64(bytes.into())).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Base64Visitor)
    }
}

#[cfg(test)]
mod tests;

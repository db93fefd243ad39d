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
/// `{"text": ""}` and `{"data": null}` are content. Reading accepts none and more than one, as some agents report such
/// parts and one of them must not make the outcome of a whole task unreadable: the first in that order counts, and the
/// others are kept in `extra`. [`SendMessageRequest`](crate::SendMessageRequest) takes exactly one.
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
    /// None of those, or bytes in broken base64; what came instead is in [`Part::extra`].
    Unknown,
}

/// The names of the members that carry content.
const CONTENT: [&str; 4] = ["text", "raw", "url", "data"];

impl PartContent {
    /// The name of the member that carries it.
    fn member_name(&self) -> Option<&'static str> {
        match self {
            Self::Text(_) => Some("text"),
            Self::Raw(_) => Some("raw"),
            Self::Url(_) => Some("url"),
            Self::Data(_) => Some("data"),
            Self::Unknown => None,
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
            PartContent::Raw(_)
            | PartContent::Url(_)
            | PartContent::Data(_)
            | PartContent::Unknown => None,
        }
    }

    /// What forbids to send the part, if anything does: it holds no content, more than one, or broken base64.
    pub(crate) fn check<E: de::Error>(&self) -> Result<(), E> {
        let other = CONTENT.into_iter().find(|name| self.extra.contains_key(*name));
        match (self.content.member_name(), other) {
            (Some(_), None) => Ok(()),
            (Some(name), Some(other)) => Err(wire::two_members(name, other)),
            (None, None) => Err(wire::no_member(&CONTENT)),
            (None, Some(other)) => {
                let text = self.extra.get(other).and_then(Value::as_str).unwrap_or_default();
                Err(match decode_base64(text) {
                    Err(error) => wire::at(other, error),
                    Ok(_) => wire::no_member(&CONTENT),
                })
            }
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.content {
            PartContent::Text(text) => map.serialize_entry("text", text)?,
            PartContent::Raw(bytes) => map.serialize_entry("raw", &AsBase64(bytes))?,
            PartContent::Url(url) => map.serialize_entry("url", url)?,
            PartContent::Data(value) => map.serialize_entry("data", value)?,
            PartContent::Unknown => {}
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
        let mut found = Found::default();
        let (mut filename, mut media_type, mut metadata) =
            (Slot::Unseen, Slot::Unseen, Slot::Unseen);
        let mut extra = JsonObject::new();
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                "text" => note(&mut found.text, "text", map.next_value())?,
                "raw" => note(&mut found.raw, "raw", map.next_value())?,
                "url" => note(&mut found.url, "url", map.next_value())?,
                // Here alone null is a value.
                "data" => note(&mut found.data, "data", map.next_value().map(Some))?,
                "filename" => {
                    wire::read_member::<kind::Optional, _, A>(&mut filename, "filename", &mut map)?;
                }
                "mediaType" | "media_type" => {
                    wire::read_member::<kind::Optional, _, A>(
                        &mut media_type,
                        "mediaType",
                        &mut map,
                    )?;
                }
                "metadata" => {
                    wire::read_member::<kind::Optional, _, A>(&mut metadata, "metadata", &mut map)?;
                }
                _ => {
                    let value = map.next_value().map_err(|error| wire::at(&key, error))?;
                    extra.insert(key.into_owned(), value);
                }
            }
        }
        Ok(Part {
            content: found.choose(&mut extra),
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

/// The content a part came with.
#[derive(Default)]
struct Found {
    text: Option<String>,
    raw: Option<FromBase64>,
    url: Option<String>,
    data: Option<Value>,
}

impl Found {
    /// Takes the first kind there is; the others go to `extra`, whatever their order on the wire was.
    fn choose(self, extra: &mut JsonObject) -> PartContent {
        let raw = match self.raw {
            Some(FromBase64(Ok(bytes))) => Some(PartContent::Raw(bytes)),
            Some(FromBase64(Err(text))) => {
                extra.insert("raw".to_owned(), Value::String(text));
                None
            }
            None => None,
        };
        let kinds = [
            self.text.map(PartContent::Text),
            raw,
            self.url.map(PartContent::Url),
            self.data.map(PartContent::Data),
        ];
        let mut kinds = kinds.into_iter().flatten();
        let first = kinds.next().unwrap_or(PartContent::Unknown);
        for other in kinds {
            let (name, value) = match other {
                PartContent::Text(text) => ("text", Value::String(text)),
                PartContent::Raw(bytes) => ("raw", Value::String(STANDARD.encode(bytes))),
                PartContent::Url(url) => ("url", Value::String(url)),
                PartContent::Data(value) => ("data", value),
                PartContent::Unknown => continue,
            };
            extra.insert(name.to_owned(), value);
        }
        first
    }
}

/// Notes the value of a member, unless that says "absent".
fn note<T, E: de::Error>(
    found: &mut Option<T>,
    name: &'static str,
    value: Result<Option<T>, E>,
) -> Result<(), E> {
    let value = value.map_err(|error| wire::at(name, error))?;
    if found.is_some() && value.is_some() {
        return Err(wire::at(name, "given twice"));
    }
    *found = found.take().or(value);
    Ok(())
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

/// Reads base64 straight from the input, without a copy of the text where the input allows it. Text that is no base64
/// stays text.
struct FromBase64(Result<Bytes, String>);

impl<'de> Deserialize<'de> for FromBase64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Base64Visitor;

        impl Visitor<'_> for Base64Visitor {
            type Value = FromBase64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 in a string")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<FromBase64, E> {
                let decoded = decode_base64(text).map(Bytes::from);
                Ok(FromBase64(decoded.map_err(|_| text.to_owned())))
            }
        }

        deserializer.deserialize_str(Base64Visitor)
    }
}

#[cfg(test)]
mod tests;

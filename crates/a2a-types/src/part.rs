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
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap as _,
};
use serde_json::{Value, value::RawValue};

use crate::{
    JsonObject, JsonText,
    json_text::compact_length,
    wire::{
        self, Key, KeySeed, Member, Reading, Slot, WireItem, json, kind,
        quick::{self, Quick, Unusual},
        text::{TextSeed, read_quoted, unescape},
    },
};

mod old;
pub(crate) mod spill;

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
    Data(JsonText),
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
        Self::new(PartContent::Data(value.into().into()))
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
        Self::read_item(deserializer, &Reading::whole())
    }
}

impl<'de> WireItem<'de> for Part {
    fn read_item<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PartVisitor(reading))
    }

    fn push_item(
        items: &mut Vec<Self>,
        quick: &mut Quick<'de>,
        reading: &Reading,
    ) -> quick::Result<()> {
        items.push(Self::new(PartContent::Unknown));
        items.last_mut().map_or(Ok(()), |part| part.fill(quick, reading))
    }

    fn spill<A: SeqAccess<'de>>(
        items: &mut Vec<Self>,
        list: A,
        reading: &Reading,
    ) -> Result<(), A::Error> {
        spill::parts(items, list, reading)
    }
}

impl Part {
    /// Reads the part with the quick parser, into one that holds nothing. One with two contents, or with broken base64, is
    /// unusual.
    fn fill(&mut self, quick: &mut Quick<'_>, reading: &Reading) -> quick::Result<()> {
        let mut filename = Member::<kind::Optional, _>::new();
        let mut media_type = Member::<kind::Optional, _>::new();
        let mut metadata = Member::<kind::Optional, _>::new();
        quick.open(b'{')?;
        loop {
            let key = quick.next_key()?;
            let name = match key {
                "" => break,
                "filename" => {
                    filename.fill(&mut self.filename, quick, reading)?;
                    continue;
                }
                "mediaType" | "media_type" => {
                    media_type.fill(&mut self.media_type, quick, reading)?;
                    continue;
                }
                "metadata" => {
                    metadata.fill(&mut self.metadata, quick, reading)?;
                    continue;
                }
                name => name,
            };
            let is_content = CONTENT.contains(&name);
            if !is_content {
                json::fill_into(&mut self.extra, name, quick, reading)?;
                continue;
            }
            if name != "data" && quick.null() {
                continue;
            }
            if self.content != PartContent::Unknown {
                return Err(Unusual);
            }
            self.content = fill_content(name, quick, reading)?;
        }
        Ok(())
    }
}

/// Reads the content that a member of this name carries.
fn fill_content(
    name: &str,
    quick: &mut Quick<'_>,
    reading: &Reading,
) -> quick::Result<PartContent> {
    if name == "data" {
        let data = quick.hand_on(|parser| JsonText::deserialize(parser))?;
        reading.take_text::<Unusual>(data.as_str().len())?;
        return Ok(PartContent::Data(data));
    }
    if name == "raw" {
        let text = quick.plain_string()?;
        return decode_base64(text)
            .map(|bytes| PartContent::Raw(bytes.into()))
            .map_err(|_| Unusual);
    }
    let text = quick.string()?.into_owned();
    reading.take_text::<Unusual>(text.len())?;
    Ok(if name == "url" { PartContent::Url(text) } else { PartContent::Text(text) })
}

struct PartVisitor<'r>(&'r Reading);

impl<'de> Visitor<'de> for PartVisitor<'_> {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object Part")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(wire::not_text(text, &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
        let Self(reading) = self;
        let mut found = Found::default();
        let (mut filename, mut media_type, mut metadata) =
            (Slot::Unseen, Slot::Unseen, Slot::Unseen);
        let mut extra = JsonObject::new();
        let mut file = None;
        while let Some(Key(key)) = map.next_key_seed(KeySeed(reading))? {
            match &*key {
                "text" => note(&mut found.text, "text", map.next_value_seed(TextSeed(reading)))?,
                "raw" => note(&mut found.raw, "raw", map.next_value_seed(Base64Seed(reading)))?,
                "url" => note(&mut found.url, "url", map.next_value_seed(TextSeed(reading)))?,
                // Here alone null is a value.
                "data" => note(&mut found.data, "data", read_data(&mut map, reading).map(Some))?,
                "filename" => {
                    let name = "filename";
                    wire::read_member::<kind::Optional, _, A>(
                        &mut filename,
                        name,
                        &mut map,
                        reading,
                    )?;
                }
                "mediaType" | "media_type" => {
                    let (slot, name) = (&mut media_type, "mediaType");
                    wire::read_member::<kind::Optional, _, A>(slot, name, &mut map, reading)?;
                }
                "metadata" => {
                    let (slot, name) = (&mut metadata, "metadata");
                    wire::read_member::<kind::Optional, _, A>(slot, name, &mut map, reading)?;
                }
                "kind" if reading.is_old() => {
                    map.next_value::<IgnoredAny>()?;
                }
                "file" if reading.is_old() => file = map.next_value_seed(old::FileSeed(reading))?,
                _ => json::read_into(&mut extra, &key, &mut map, reading)?,
            }
        }
        let mut part = Part {
            content: PartContent::Unknown,
            filename: wire::finish_member::<kind::Optional, _, A::Error>(filename, "filename")?,
            media_type: wire::finish_member::<kind::Optional, _, A::Error>(
                media_type,
                "mediaType",
            )?,
            metadata: wire::finish_member::<kind::Optional, _, A::Error>(metadata, "metadata")?,
            extra,
        };
        if let Some(file) = file {
            file.describe(&mut found, &mut part);
        }
        part.content = found.choose(&mut part.extra, reading)?;
        if reading.is_old() {
            old::unwrap_data(&mut part);
        }
        Ok(part)
    }
}

/// Reads any value as its JSON.
fn read_data<'de, A: MapAccess<'de>>(map: &mut A, reading: &Reading) -> Result<JsonText, A::Error> {
    if reading.is_request() {
        // Data that a request may not have is not copied.
        let raw: &'de RawValue = map.next_value()?;
        let length = compact_length(raw.get());
        reading.take_text(length)?;
        return serde_json::from_str(raw.get()).map_err(de::Error::custom);
    }
    let data: JsonText = map.next_value()?;
    reading.take_text(data.as_str().len())?;
    Ok(data)
}

/// The content a part came with.
#[derive(Default)]
struct Found {
    text: Option<String>,
    raw: Option<FromBase64>,
    url: Option<String>,
    data: Option<JsonText>,
}

impl Found {
    /// Takes the first kind there is; the others go to `extra`, whatever their order on the wire was.
    fn choose<E: de::Error>(
        self,
        extra: &mut JsonObject,
        reading: &Reading,
    ) -> Result<PartContent, E> {
        let raw = match self.raw {
            Some(FromBase64(Ok(bytes))) => Some(PartContent::Raw(bytes)),
            Some(FromBase64(Err(text))) => {
                json::insert(extra, "raw", Some(Value::String(text)), reading)?;
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
                PartContent::Text(text) => ("text", Some(Value::String(text))),
                PartContent::Raw(bytes) => ("raw", Some(Value::String(STANDARD.encode(bytes)))),
                PartContent::Url(url) => ("url", Some(Value::String(url))),
                PartContent::Data(data) => ("data", json::tree(&data, reading)?),
                PartContent::Unknown => continue,
            };
            json::insert(extra, name, value, reading)?;
        }
        Ok(first)
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

/// What base64 decodes to. Text that is no base64 stays text.
struct FromBase64(Result<Bytes, String>);

/// Reads base64 straight from the input, without a copy of the text where the input allows it; `None` for `null`.
struct Base64Seed<'r>(&'r Reading);

impl<'de> DeserializeSeed<'de> for Base64Seed<'_> {
    type Value = Option<FromBase64>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Option<FromBase64>, D::Error> {
        if !self.0.is_large() {
            return Option::<FromBase64>::deserialize(deserializer);
        }
        let Some(inside) = read_quoted(deserializer)? else { return Ok(None) };
        let decoded = if inside.contains('\\') {
            decode_escaped(inside).map_err(de::Error::custom)?
        } else {
            decode_base64(inside).ok()
        };
        if let Some(bytes) = decoded {
            return Ok(Some(FromBase64(Ok(bytes.into()))));
        }
        let mut text = String::with_capacity(inside.len());
        unescape(inside, |piece| text.push_str(piece)).map_err(de::Error::custom)?;
        Ok(Some(FromBase64(Err(text))))
    }
}

/// Decodes base64 in a string with escapes, of which PHP's slash is the common one, without a copy of the whole text.
fn decode_escaped(inside: &str) -> Result<Option<Vec<u8>>, &'static str> {
    /// A multiple of four.
    const PIECE: usize = 64 << 10;
    let mut decoded = Some(Vec::with_capacity(inside.len() / 4 * 3));
    let is_url_safe = inside.contains(['-', '_']);
    let engine = if is_url_safe { &LIBERAL_URL_SAFE } else { &LIBERAL_STANDARD };
    let mut waiting = String::with_capacity(2 * PIECE);
    let mut decode = |piece: &str, is_last: bool| {
        let is_whole = is_last || !piece.contains('=');
        let taken = decoded.as_mut().filter(|_| is_whole);
        let is_valid = taken.is_some_and(|decoded| engine.decode_vec(piece, decoded).is_ok());
        decoded = decoded.take().filter(|_| is_valid);
    };
    unescape(inside, |mut piece| {
        while !piece.is_empty() {
            let (first, rest) = piece.split_at(piece.floor_char_boundary(PIECE));
            waiting.push_str(first);
            piece = rest;
            // The last four characters may be padded, so they wait for the end. Where a character is more than a byte, it is no
            // base64 whatever is cut.
            let ahead = waiting.floor_char_boundary((waiting.len() / 4).saturating_sub(1) * 4);
            if ahead >= PIECE {
                decode(waiting.get(..ahead).unwrap_or_default(), false);
                waiting.drain(..ahead);
            }
        }
    })?;
    decode(&waiting, true);
    Ok(decoded)
}

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

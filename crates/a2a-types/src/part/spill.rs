//! What becomes of the parts of an answer that there is no room for: their text goes to the end of the last text that has
//! a place, files and links are counted.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Part, PartContent};
use crate::{
    Artifact,
    json_text::append_compact,
    wire::{
        Key, KeySeed, Reading, WireItem, not_text,
        text::{AppendSeed, make_room},
    },
};

/// Reads the rest of a list of parts.
pub(super) fn parts<'de, A: SeqAccess<'de>>(
    parts: &mut Vec<Part>,
    mut list: A,
    reading: &Reading,
) -> Result<(), A::Error> {
    let mut tail = take_tail(parts);
    while list.next_element_seed(PartSeed { tail: &mut tail, reading })?.is_some() {}
    put_tail(parts, tail);
    Ok(())
}

/// Reads the rest of a list of artifacts. The first of them has a place, and takes the text of all others, each on lines of
/// its own.
pub(crate) fn artifacts<'de, A: SeqAccess<'de>>(
    artifacts: &mut Vec<Artifact>,
    mut list: A,
    reading: &Reading,
) -> Result<(), A::Error> {
    struct First<'r>(&'r Reading);

    impl<'de> DeserializeSeed<'de> for First<'_> {
        type Value = Artifact;

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Artifact, D::Error> {
            Artifact::read_item(deserializer, self.0)
        }
    }

    let Some(mut all) = list.next_element_seed(First(reading))? else { return Ok(()) };
    let mut tail = take_tail(&mut all.parts);
    while list.next_element_seed(ArtifactSeed { tail: &mut tail, reading })?.is_some() {}
    put_tail(&mut all.parts, tail);
    artifacts.push(all);
    Ok(())
}

fn take_tail(parts: &mut [Part]) -> String {
    match parts.last_mut().map(|part| &mut part.content) {
        Some(PartContent::Text(text)) => std::mem::take(text),
        Some(_) | None => String::new(),
    }
}

fn put_tail(parts: &mut Vec<Part>, mut tail: String) {
    tail.shrink_to_fit();
    match parts.last_mut().map(|part| &mut part.content) {
        Some(PartContent::Text(text)) => *text = tail,
        Some(_) | None if !tail.is_empty() => parts.push(Part::text(tail)),
        Some(_) | None => {}
    }
}

/// Adds the text of an artifact on lines of its own.
struct ArtifactSeed<'s> {
    tail: &'s mut String,
    reading: &'s Reading,
}

impl<'de> DeserializeSeed<'de> for ArtifactSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ArtifactSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object Artifact")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(not_text(text, &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { tail, reading } = self;
        let before = tail.len();
        if !tail.is_empty() && !tail.ends_with('\n') {
            tail.push('\n');
        }
        let begin = tail.len();
        while let Some(Key(key)) = map.next_key_seed(KeySeed(reading))? {
            if &*key == "parts" {
                map.next_value_seed(PartsSeed { tail, reading })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if tail.len() == begin {
            tail.truncate(before);
        }
        Ok(())
    }
}

/// Adds the text of a list of parts.
struct PartsSeed<'s> {
    tail: &'s mut String,
    reading: &'s Reading,
}

impl<'de> DeserializeSeed<'de> for PartsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for PartsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_none<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(not_text(text, &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { tail, reading } = self;
        while list.next_element_seed(PartSeed { tail, reading })?.is_some() {}
        Ok(())
    }
}

/// Adds the text or data of a part, or counts its file or link.
struct PartSeed<'s> {
    tail: &'s mut String,
    reading: &'s Reading,
}

impl<'de> DeserializeSeed<'de> for PartSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PartSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object Part")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(not_text(text, &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { tail, reading } = self;
        let (mut has_file, mut has_link) = (false, false);
        let mut data: Option<&'de RawValue> = None;
        let before = tail.len();
        while let Some(Key(key)) = map.next_key_seed(KeySeed(reading))? {
            match &*key {
                "text" => map.next_value_seed(AppendSeed { end: tail, reading })?,
                "raw" => has_file |= map.next_value::<Option<IgnoredAny>>()?.is_some(),
                "file" if reading.is_old() => {
                    has_file |= map.next_value::<Option<IgnoredAny>>()?.is_some();
                }
                "url" => has_link |= map.next_value::<Option<IgnoredAny>>()?.is_some(),
                "data" => data = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if tail.len() > before {
            return Ok(());
        }
        if let Some(data) = data.filter(|_| !has_file && !has_link) {
            if !tail.is_empty() && !tail.ends_with('\n') {
                tail.push('\n');
            }
            make_room(tail, data.get().len(), reading);
            append_compact(data.get(), tail).map_err(de::Error::custom)?;
            reading.take_text(data.get().len())?;
        }
        reading.omit(|omitted| {
            omitted.files += usize::from(has_file);
            omitted.links += usize::from(has_link && !has_file);
        });
        Ok(())
    }
}

//! Splitting a text into messages.

use unicode_segmentation::GraphemeCursor;

use super::entity::{Entity, EntityKind, FormattedText};

/// The longest message, in UTF-16 code units.
pub const MAX_MESSAGE_UNITS: usize = 4096;
/// Telegram drops entities past this many.
const MAX_ENTITIES: usize = 100;

/// Splits `text` into pieces of at most `limit` UTF-16 units which, put together again, are the text.
///
/// A cut stands after a blank line outside code if one is near the end, else after a line, else after a space, else
/// between two letters, never inside a surrogate pair or (unless one alone is over the limit) a grapheme. A look that is
/// cut goes on in the next piece. `limit` under 2 counts as 2.
pub fn split_text(text: &FormattedText, limit: usize) -> Vec<FormattedText> {
    let limit = limit.max(2);
    let source = text.text.as_str();
    let mut pieces = Vec::new();
    let mut from = Place::default();
    while from.byte < source.len() {
        let to = next_cut(text, from, limit);
        pieces.push(FormattedText {
            text: source[from.byte..to.byte].to_owned(),
            entities: entities_within(&text.entities, from.unit, to.unit),
        });
        from = to;
    }
    pieces
}

/// A position, in bytes and in UTF-16 units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    byte: usize,
    unit: usize,
}

/// The latest good places seen so far.
#[derive(Debug, Default)]
struct Candidates {
    blank_line: Option<Place>,
    line: Option<Place>,
    code_line: Option<Place>,
    space: Option<Place>,
}

fn next_cut(text: &FormattedText, from: Place, limit: usize) -> Place {
    let source = text.text.as_str();
    let mut seen = Candidates::default();
    let mut here = from;
    let mut before = '\0';
    for character in source[from.byte..].chars() {
        let next = Place {
            byte: here.byte + character.len_utf8(),
            unit: here.unit + character.len_utf16(),
        };
        if next.unit - from.unit > limit {
            return choose(source, from, here, limit, &seen);
        }
        here = next;
        note(&mut seen, &text.entities, character, before, here);
        before = character;
    }
    here
}

fn note(seen: &mut Candidates, entities: &[Entity], character: char, before: char, here: Place) {
    if character == '\n' {
        let in_code = entities.iter().any(|entity| {
            entity.kind == EntityKind::Pre && entity.offset < here.unit && here.unit < entity.end()
        });
        if in_code {
            seen.code_line = Some(here);
        } else {
            seen.line = Some(here);
            if before == '\n' {
                seen.blank_line = Some(here);
            }
        }
    } else if character.is_whitespace() {
        seen.space = Some(here);
    }
}

fn choose(source: &str, from: Place, end: Place, limit: usize, seen: &Candidates) -> Place {
    // A cut far from the end would make many small messages, so the better places have to be near enough.
    let near = |place: Option<Place>, share: usize| {
        place.filter(|place| {
            (place.unit - from.unit) * share >= limit && is_grapheme_boundary(source, place.byte)
        })
    };
    near(seen.blank_line, 2)
        .or_else(|| near(seen.line, 2))
        .or_else(|| near(seen.code_line, 2))
        .or_else(|| near(seen.line.max_by_unit(seen.code_line), 4))
        .or_else(|| near(seen.space, 4))
        .unwrap_or_else(|| between_letters(source, from, end))
}

trait Later {
    fn max_by_unit(self, other: Self) -> Self;
}

impl Later for Option<Place> {
    fn max_by_unit(self, other: Self) -> Self {
        match (self, other) {
            (Some(one), Some(two)) => Some(if one.unit >= two.unit { one } else { two }),
            (one, two) => one.or(two),
        }
    }
}

fn is_grapheme_boundary(source: &str, byte: usize) -> bool {
    GraphemeCursor::new(byte, source.len(), true).is_boundary(source, 0).unwrap_or(true)
}

fn between_letters(source: &str, from: Place, end: Place) -> Place {
    if is_grapheme_boundary(source, end.byte) {
        return end;
    }
    let mut cursor = GraphemeCursor::new(end.byte, source.len(), true);
    match cursor.prev_boundary(source, 0) {
        Ok(Some(byte)) if byte > from.byte => {
            let cut = source[byte..end.byte].encode_utf16().count();
            Place { byte, unit: end.unit - cut }
        }
        // One grapheme fills the whole message: then between its characters.
        _ => end,
    }
}

fn entities_within(entities: &[Entity], from: usize, to: usize) -> Vec<Entity> {
    let mut inside: Vec<Entity> = entities
        .iter()
        .filter_map(|entity| {
            let start = entity.offset.max(from);
            let end = entity.end().min(to);
            (start < end).then(|| Entity {
                offset: start - from,
                length: end - start,
                ..entity.clone()
            })
        })
        .collect();
    inside.truncate(MAX_ENTITIES);
    inside
}

//! Text with entities, as the Bot API takes it.

use serde::{Deserialize, Serialize};

/// How a piece of text looks. Offsets and lengths count UTF-16 code units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// The look.
    #[serde(rename = "type")]
    pub kind: EntityKind,
    /// Where it begins.
    pub offset: usize,
    /// How long it is; never 0.
    pub length: usize,
    /// Where a link leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The language of a code block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// The looks that Markdown needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    /// `**strong**`, and headings.
    Bold,
    /// `*emphasis*`.
    Italic,
    /// `~~struck~~`.
    Strikethrough,
    /// `code` in a line.
    Code,
    /// A code block, and tables.
    Pre,
    /// A link.
    TextLink,
    /// A quotation.
    Blockquote,
}

impl EntityKind {
    /// Whether Telegram lets it share text with nothing but a quotation.
    pub fn is_code(self) -> bool {
        match self {
            Self::Code | Self::Pre => true,
            Self::Bold | Self::Italic | Self::Strikethrough | Self::TextLink | Self::Blockquote => {
                false
            }
        }
    }
}

impl Entity {
    /// Where it ends, exclusive.
    pub fn end(&self) -> usize {
        self.offset + self.length
    }
}

/// A text and how its pieces look.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FormattedText {
    /// The text.
    pub text: String,
    /// The looks, nested or disjoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<Entity>,
}

impl FormattedText {
    /// A text without looks.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), entities: Vec::new() }
    }
}

/// Makes entities acceptable to Telegram: code shares text with nothing but quotations, and nothing is empty.
///
/// Around code the other looks are cut; inside a link the code look gives way, because the link is worth more.
pub(super) fn untangle(entities: Vec<Entity>) -> Vec<Entity> {
    let (mut codes, others): (Vec<_>, Vec<_>) =
        entities.into_iter().partition(|entity| entity.kind.is_code());
    codes.retain(|code| {
        !others.iter().any(|other| other.kind == EntityKind::TextLink && overlap(code, other))
    });
    codes.sort_by_key(|code| code.offset);
    let mut whole = Vec::with_capacity(codes.len() + others.len());
    for other in others {
        if other.kind == EntityKind::Blockquote {
            whole.push(other);
        } else {
            whole.extend(cut_around(other, &codes));
        }
    }
    whole.extend(codes);
    whole.retain(|entity| entity.length > 0);
    // The outer entity first, as Telegram itself orders them.
    whole.sort_by_key(|entity| (entity.offset, usize::MAX - entity.length));
    whole
}

fn overlap(one: &Entity, other: &Entity) -> bool {
    one.offset < other.end() && other.offset < one.end()
}

fn cut_around(mut entity: Entity, codes: &[Entity]) -> Vec<Entity> {
    let mut pieces = Vec::new();
    for code in codes {
        if !overlap(code, &entity) {
            continue;
        }
        let before = code.offset.saturating_sub(entity.offset);
        pieces.push(Entity { length: before, ..entity.clone() });
        let rest = entity.end().saturating_sub(code.end());
        entity.offset = code.end();
        entity.length = rest;
    }
    pieces.push(entity);
    pieces
}

//! Markdown as Telegram shows it: plain text with entities, in pieces of at most 4096 UTF-16 units.
//!
//! Entities need no escaping and cannot fail to parse, and the text is its own fallback.

mod entity;
mod render;
mod split;
#[cfg(test)]
mod tests;

pub use entity::{Entity, EntityKind, FormattedText};
pub use render::render_markdown;
pub use split::{MAX_MESSAGE_UNITS, split_text};

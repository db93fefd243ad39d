//! What Telegram checks in a text: its length and its entities, in UTF-16 code units.

use serde_json::Value;

/// The longest text of a message.
pub(crate) const MAX_TEXT: usize = 4096;
/// The longest caption of a document.
pub(crate) const MAX_CAPTION: usize = 1024;
/// Entities past this many are dropped by Telegram; the fake refuses them so that nobody counts on them.
const MAX_ENTITIES: usize = 100;

const KINDS: [&str; 13] = [
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "blockquote",
    "expandable_blockquote",
    "code",
    "pre",
    "text_link",
    "url",
    "mention",
    "custom_emoji",
];

/// Says why `text` with `entities` cannot be sent, if so.
pub(crate) fn refuse_text(text: &str, entities: Option<&Value>, limit: usize) -> Option<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    if units.len() > limit {
        return Some("Bad Request: message is too long".to_owned());
    }
    let Some(list) = entities?.as_array() else {
        return Some("Bad Request: can't parse entities: not an array".to_owned());
    };
    if list.len() > MAX_ENTITIES {
        return Some(format!(
            "Bad Request: can't parse entities: more than {MAX_ENTITIES} of them"
        ));
    }
    let mut spans = Vec::new();
    for entity in list {
        match span_of(entity, &units) {
            Ok(span) => spans.push(span),
            Err(reason) => return Some(format!("Bad Request: can't parse entities: {reason}")),
        }
    }
    crossing(&spans).map(|reason| format!("Bad Request: can't parse entities: {reason}"))
}

struct Span {
    start: usize,
    end: usize,
    kind: String,
}

fn span_of(entity: &Value, units: &[u16]) -> Result<Span, String> {
    let kind = entity.get("type").and_then(Value::as_str).unwrap_or_default();
    if !KINDS.contains(&kind) {
        return Err(format!("unsupported type \"{kind}\""));
    }
    let number = |name: &str| {
        entity
            .get(name)
            .and_then(Value::as_u64)
            .and_then(|value| usize::try_from(value).ok())
            .ok_or_else(|| format!("{name} is missing"))
    };
    let (start, length) = (number("offset")?, number("length")?);
    if length == 0 {
        return Err("an entity is empty".to_owned());
    }
    let end = start + length;
    if end > units.len() {
        return Err(format!("an entity ends at {end} of {} units", units.len()));
    }
    if splits_pair(units, start) || splits_pair(units, end) {
        return Err("an entity splits a surrogate pair".to_owned());
    }
    if kind == "text_link" && entity.get("url").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err("a link has no url".to_owned());
    }
    Ok(Span { start, end, kind: kind.to_owned() })
}

fn splits_pair(units: &[u16], at: usize) -> bool {
    at > 0 && at < units.len() && (0xDC00..0xE000).contains(&units[at])
}

fn crossing(spans: &[Span]) -> Option<String> {
    for (index, one) in spans.iter().enumerate() {
        for other in &spans[index + 1..] {
            if one.end <= other.start || other.end <= one.start {
                continue;
            }
            let nested = (one.start <= other.start && other.end <= one.end)
                || (other.start <= one.start && one.end <= other.end);
            if !nested {
                return Some(format!("{} and {} cross", one.kind, other.kind));
            }
            for (span, company) in [(one, other), (other, one)] {
                let quoted = company.kind.ends_with("blockquote")
                    && company.start <= span.start
                    && span.end <= company.end;
                if matches!(span.kind.as_str(), "pre" | "code") && !quoted {
                    return Some(format!("{} shares text with {}", span.kind, company.kind));
                }
            }
            if one.kind == other.kind {
                return Some(format!("{} stands inside itself", one.kind));
            }
        }
    }
    None
}

//! One message per outbox row.

use volcanic_agent_core::{Answer, AnswerFormat, AnswerKind, NewOutbox, Origin, SourceRef};

use crate::markdown::{Entity, FormattedText, MAX_MESSAGE_UNITS, render_markdown, split_text};

/// Stands before a message that may be on the screen already.
const REPEAT_LABEL: &str = "(may be a repeat)\n";
/// Room for that label in every message, in UTF-16 units.
const LABEL_UNITS: usize = 24;

/// Encodes answers as messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatAnswers;

impl AnswerFormat for ChatAnswers {
    fn outbox(&self, answer: &Answer<'_>) -> Vec<NewOutbox> {
        let text = match answer.kind {
            AnswerKind::Reply => render_markdown(answer.text),
            AnswerKind::Failure | AnswerKind::Unanswered => FormattedText::plain(answer.text),
        };
        // An answer to the owner stands right below the question. A late outcome does not: it replies to what began it.
        let source = match answer.origin {
            Origin::Owner => None,
            Origin::Delivery => answer.source.cloned(),
        };
        answer_rows(answer.id, &text, source)
    }
}

/// Splits `text` into rows under `key`, the first of which replies to `source`.
pub fn answer_rows(key: &str, text: &FormattedText, source: Option<SourceRef>) -> Vec<NewOutbox> {
    // A message of nothing but space would be refused.
    let pieces = split_text(text, MAX_MESSAGE_UNITS - LABEL_UNITS);
    let pieces = pieces.into_iter().filter(|piece| !piece.text.trim().is_empty());
    let mut source = source;
    pieces
        .enumerate()
        .filter_map(|(index, piece)| {
            let body = serde_json::to_string(&piece).ok()?;
            Some(NewOutbox { key: format!("{key}:{}", index + 1), body, source: source.take() })
        })
        .collect()
}

/// Reads a row's body. A body that cannot be read is shown as it is: the owner loses nothing.
pub(super) fn read_body(body: &str) -> FormattedText {
    serde_json::from_str(body).unwrap_or_else(|_| FormattedText::plain(body))
}

/// The same message, marked as one that may have been sent before.
pub(super) fn labelled(message: &FormattedText) -> FormattedText {
    let shift = REPEAT_LABEL.encode_utf16().count();
    let moved = |entity: &Entity| Entity { offset: entity.offset + shift, ..entity.clone() };
    FormattedText {
        text: format!("{REPEAT_LABEL}{}", message.text),
        entities: message.entities.iter().map(moved).collect(),
    }
}

/// The reply handle of a message of this chat.
pub(crate) fn source_of(message: i64) -> SourceRef {
    SourceRef::new(format!("tg:{message}"))
}

/// The message a reply handle names.
pub(super) fn message_of(source: &SourceRef) -> Option<i64> {
    source.as_str().strip_prefix("tg:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use volcanic_agent_core::PromptKey;

    use super::*;

    fn rows(origin: Origin, kind: AnswerKind, text: &str) -> Vec<NewOutbox> {
        let (key, source) = (PromptKey::new("tg:5:7"), source_of(7));
        ChatAnswers.outbox(&Answer {
            id: "a9",
            key: &key,
            origin,
            source: Some(&source),
            kind,
            text,
        })
    }

    #[test]
    fn long_answers_become_several_rows_with_room_for_the_label() {
        let rows = rows(Origin::Owner, AnswerKind::Reply, &"**word** ".repeat(2000));
        assert_eq!(
            rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(),
            ["a9:1", "a9:2", "a9:3"]
        );
        for row in rows {
            let message = labelled(&read_body(&row.body));
            assert!(message.text.encode_utf16().count() <= MAX_MESSAGE_UNITS);
            assert!(message.entities.iter().all(|entity| entity.end() <= MAX_MESSAGE_UNITS));
        }
    }

    #[test]
    fn only_the_first_message_of_a_late_outcome_is_a_reply() {
        let long = "word ".repeat(1000);
        let replies =
            |rows: Vec<NewOutbox>| rows.iter().map(|row| row.source.is_some()).collect::<Vec<_>>();
        assert_eq!(replies(rows(Origin::Delivery, AnswerKind::Reply, &long)), [true, false]);
        assert_eq!(replies(rows(Origin::Owner, AnswerKind::Reply, &long)), [false, false]);
        assert_eq!(message_of(&source_of(7)), Some(7));
    }

    #[test]
    fn text_from_outside_is_not_read_as_markdown() {
        let text = "**x** <y>";
        let plain = rows(Origin::Delivery, AnswerKind::Unanswered, text);
        assert_eq!(read_body(&plain[0].body), FormattedText::plain(text));
        let reply = rows(Origin::Owner, AnswerKind::Reply, text);
        assert_eq!(read_body(&reply[0].body).text, "x <y>");
    }

    #[test]
    fn a_body_of_another_shape_is_shown_as_it_is() {
        assert_eq!(read_body("plain"), FormattedText::plain("plain"));
    }
}

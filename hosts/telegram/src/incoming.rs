//! What an update says, read from the raw JSON and no further than needed.
//!
//! Telegram adds kinds of messages faster than any library knows them, so nothing here fails on what it does not know.

use serde_json::Value;

/// An update as the bot sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A message of a person in a private chat.
    Private(PrivateMessage),
    /// Anything else: groups, channels, edits, what has no sender.
    Other {
        /// The chat, for the log.
        chat: Option<i64>,
    },
}

/// A message of a person in their private chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrivateMessage {
    /// The chat.
    pub(crate) chat: i64,
    /// The message's id in it.
    pub(crate) message: i64,
    /// Who wrote it.
    pub(crate) from: i64,
    /// The text, or the caption of what it carries.
    pub(crate) text: Option<String>,
    /// What it carries beside text, in words.
    pub(crate) carries: Option<&'static str>,
    /// The album it is a part of.
    pub(crate) album: Option<String>,
}

/// What a message can carry that cannot be taken yet, with the words for it. The specific come before the general: an
/// animation is also a document.
const CARRIED: [(&str, &str); 18] = [
    ("photo", "a photo"),
    ("voice", "a voice message"),
    ("video_note", "a video message"),
    ("video", "a video"),
    ("animation", "an animation"),
    ("audio", "an audio file"),
    ("document", "a file"),
    ("sticker", "a sticker"),
    ("location", "a location"),
    ("venue", "a place"),
    ("contact", "a contact"),
    ("poll", "a poll"),
    ("checklist", "a checklist"),
    ("dice", "a dice"),
    ("game", "a game"),
    ("story", "a story"),
    ("paid_media", "paid media"),
    ("rich_message", "a rich message"),
];

/// Members that stand for events in a chat rather than for something a person wrote.
const SERVICE: [&str; 6] = [
    "pinned_message",
    "message_auto_delete_timer_changed",
    "write_access_allowed",
    "chat_background_set",
    "users_shared",
    "chat_shared",
];

impl Incoming {
    /// Reads an update.
    pub(crate) fn read(update: &Value) -> Self {
        let Some(message) = update.get("message") else { return Self::Other { chat: None } };
        let id_of = |member: &str| {
            message.get(member).and_then(|member| member.get("id")).and_then(Value::as_i64)
        };
        let chat = id_of("chat");
        let kind = message.get("chat").and_then(|chat| chat.get("type")).and_then(Value::as_str);
        let number = message.get("message_id").and_then(Value::as_i64);
        let is_bot = message.pointer("/from/is_bot").and_then(Value::as_bool).unwrap_or(false);
        let service = SERVICE.iter().any(|member| message.get(member).is_some());
        match (chat, number, id_of("from")) {
            (Some(chat), Some(number), Some(from))
                if kind == Some("private") && !is_bot && !service =>
            {
                Self::Private(PrivateMessage {
                    chat,
                    message: number,
                    from,
                    text: text_of(message),
                    carries: carried(message),
                    album: message.get("media_group_id").and_then(Value::as_str).map(str::to_owned),
                })
            }
            _ => Self::Other { chat },
        }
    }
}

fn text_of(message: &Value) -> Option<String> {
    let texts = ["text", "caption"]
        .into_iter()
        .filter_map(|member| message.get(member))
        .filter_map(Value::as_str);
    texts.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

fn carried(message: &Value) -> Option<&'static str> {
    let known =
        CARRIED.iter().find(|(member, _)| message.get(member).is_some()).map(|(_, words)| *words);
    match known {
        None if message.get("text").is_none() => Some("something this version does not know"),
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(content: &Value) -> Incoming {
        let mut message = json!({
            "message_id": 7, "date": 1, "chat": {"id": 5, "type": "private"}, "from": {"id": 5, "is_bot": false},
        });
        for (name, value) in content.as_object().expect("an object") {
            message[name] = value.clone();
        }
        Incoming::read(&json!({"update_id": 1, "message": message}))
    }

    #[track_caller]
    fn check(content: &Value, text: Option<&str>, carries: Option<&'static str>) {
        let wanted = PrivateMessage {
            chat: 5,
            message: 7,
            from: 5,
            text: text.map(str::to_owned),
            carries,
            album: None,
        };
        assert_eq!(read(content), Incoming::Private(wanted));
    }

    #[test]
    fn text_is_read_whatever_its_entities_are() {
        check(&json!({"text": " hi "}), Some("hi"), None);
        check(
            &json!({"text": "hi", "entities": [{"type": "of_tomorrow", "offset": 0}]}),
            Some("hi"),
            None,
        );
    }

    #[test]
    fn what_is_carried_has_a_name() {
        check(&json!({"photo": [], "caption": "look"}), Some("look"), Some("a photo"));
        check(&json!({"animation": {}, "document": {}}), None, Some("an animation"));
        check(&json!({"rich_message": {"blocks": []}}), None, Some("a rich message"));
        check(&json!({"hologram": {}}), None, Some("something this version does not know"));
    }

    #[test]
    fn only_people_in_private_chats_are_heard() {
        let other = Incoming::Other { chat: Some(-9) };
        assert_eq!(read(&json!({"text": "hi", "chat": {"id": -9, "type": "supergroup"}})), other);
        assert_eq!(read(&json!({"text": "hi", "chat": {"id": -9, "type": "of_tomorrow"}})), other);
        assert_eq!(
            read(&json!({"text": "hi", "from": {"id": 5, "is_bot": true}})),
            Incoming::Other { chat: Some(5) }
        );
        assert_eq!(read(&json!({"pinned_message": {}})), Incoming::Other { chat: Some(5) });
        assert_eq!(
            Incoming::read(&json!({"update_id": 3, "edited_message": {}})),
            Incoming::Other { chat: None }
        );
        assert_eq!(Incoming::read(&json!([1])), Incoming::Other { chat: None });
    }
}

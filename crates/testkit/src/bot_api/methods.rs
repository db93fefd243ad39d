//! The methods, as Telegram answers them. `getUpdates` is in `serve`, because it waits.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::check::{MAX_CAPTION, MAX_TEXT, refuse_text};
use super::state::{SentMessage, State, now_seconds};

/// The largest file a bot may download.
const MAX_DOWNLOAD: usize = 20 * 1024 * 1024;
/// The largest file a bot may upload.
const MAX_UPLOAD: usize = 50 * 1024 * 1024;

const ACTIONS: [&str; 11] = [
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
];

/// What a request carries: its parameters, and the uploaded files by part name.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) params: Value,
    pub(crate) uploads: HashMap<String, (String, Bytes)>,
}

/// An error answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) description: String,
    pub(crate) retry_after: Option<u32>,
}

impl Refusal {
    pub(crate) fn new(code: u16, description: impl Into<String>) -> Self {
        Self { code, description: description.into(), retry_after: None }
    }

    fn bad(description: &str) -> Self {
        Self::new(400, format!("Bad Request: {description}"))
    }
}

pub(crate) type Answer = Result<Value, Refusal>;

/// Runs `method` (lower case), except `getupdates`.
pub(crate) fn dispatch(state: &mut State, method: &str, request: &Request) -> Answer {
    match method {
        "getme" => Ok(me()),
        "deletewebhook" => Ok(json!(true)),
        "getwebhookinfo" => Ok(json!({
            "url": "", "has_custom_certificate": false, "pending_update_count": state.pending_len(),
            "allowed_updates": state.allowed_updates.clone().unwrap_or_default(),
        })),
        "setmycommands" => set_commands(state, request),
        "sendmessage" => send_message(state, request),
        "editmessagetext" => edit_message(state, request),
        "senddocument" => send_document(state, request),
        "sendchataction" => chat_action(state, request),
        "getfile" => get_file(state, request),
        "answercallbackquery" => answer_callback(state, request),
        _ => {
            state.violation(format!("unknown method `{method}`"));
            Err(Refusal::new(404, "Not Found"))
        }
    }
}

fn me() -> Value {
    json!({
        "id": 123_456, "is_bot": true, "first_name": "Fake", "username": "fake_volcanic_bot",
        "can_join_groups": false, "can_read_all_group_messages": false, "supports_inline_queries": false,
        "can_connect_to_business": false, "has_main_web_app": false,
    })
}

/// An integer parameter, also when it is written as text.
pub(crate) fn integer(params: &Value, name: &str) -> Option<i64> {
    match params.get(name)? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A structured parameter, also when it is written as JSON in a text.
pub(crate) fn structured(params: &Value, name: &str) -> Option<Value> {
    match params.get(name)? {
        Value::Null => None,
        Value::String(text) => serde_json::from_str(text).ok(),
        other => Some(other.clone()),
    }
}

fn text_of<'a>(params: &'a Value, name: &str) -> &'a str {
    params.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(params: &Value, name: &str) -> bool {
    matches!(params.get(name), Some(Value::Bool(true)))
        || matches!(params.get(name), Some(Value::String(text)) if text == "true")
}

fn open_chat(state: &State, params: &Value) -> Result<i64, Refusal> {
    let chat = integer(params, "chat_id").ok_or_else(|| Refusal::bad("chat_id is empty"))?;
    match state.may_write(chat) {
        None => Err(Refusal::bad("chat not found")),
        Some(false) => Err(Refusal::new(403, "Forbidden: bot was blocked by the user")),
        Some(true) => Ok(chat),
    }
}

fn reply_target(state: &State, params: &Value, chat: i64) -> Result<Option<i64>, Refusal> {
    let Some(reply) = structured(params, "reply_parameters") else { return Ok(None) };
    let target = integer(&reply, "message_id")
        .ok_or_else(|| Refusal::bad("message identifier is not specified"))?;
    if state.has_message(chat, target) {
        return Ok(Some(target));
    }
    if flag(&reply, "allow_sending_without_reply") {
        return Ok(None);
    }
    Err(Refusal::bad("message to be replied not found"))
}

fn checked_text(
    state: &mut State,
    params: &Value,
    text: &str,
    entities: &str,
    limit: usize,
) -> Result<Vec<Value>, Refusal> {
    if params.get("parse_mode").is_some_and(|mode| !mode.is_null()) {
        state.violation("parse_mode: the fake knows entities only".to_owned());
        return Err(Refusal::bad("unsupported parse_mode"));
    }
    let entities = structured(params, entities);
    if let Some(reason) = refuse_text(text, entities.as_ref(), limit) {
        return Err(Refusal::new(400, reason));
    }
    Ok(entities.and_then(|list| list.as_array().cloned()).unwrap_or_default())
}

fn send_message(state: &mut State, request: &Request) -> Answer {
    let params = &request.params;
    let chat = open_chat(state, params)?;
    let text = text_of(params, "text");
    if text.trim().is_empty() {
        return Err(Refusal::bad("message text is empty"));
    }
    let entities = checked_text(state, params, text, "entities", MAX_TEXT)?;
    let reply_to = reply_target(state, params, chat)?;
    let shown = state.show(SentMessage {
        chat,
        id: 0,
        text: text.to_owned(),
        entities,
        reply_to,
        silent: flag(params, "disable_notification"),
        edits: 0,
        document: None,
    });
    Ok(as_message(&shown))
}

fn edit_message(state: &mut State, request: &Request) -> Answer {
    let params = &request.params;
    let chat = open_chat(state, params)?;
    let text = text_of(params, "text");
    if text.trim().is_empty() {
        return Err(Refusal::bad("message text is empty"));
    }
    let entities = checked_text(state, params, text, "entities", MAX_TEXT)?;
    let id = integer(params, "message_id")
        .ok_or_else(|| Refusal::bad("message identifier is not specified"))?;
    let Some(message) = state.own_message(chat, id) else {
        return Err(Refusal::bad("message to edit not found"));
    };
    if message.text == text && message.entities == entities {
        return Err(Refusal::bad(
            "message is not modified: specified new message content and reply markup are exactly the same as a \
             current content and reply markup of the message",
        ));
    }
    text.clone_into(&mut message.text);
    message.entities = entities;
    message.edits += 1;
    Ok(as_message(message))
}

fn send_document(state: &mut State, request: &Request) -> Answer {
    let params = &request.params;
    let chat = open_chat(state, params)?;
    let caption = text_of(params, "caption");
    let entities = checked_text(state, params, caption, "caption_entities", MAX_CAPTION)?;
    let reference = text_of(params, "document");
    let part = reference.strip_prefix("attach://").unwrap_or("document");
    let document = request
        .uploads
        .get(part)
        .or_else(|| state.file(reference))
        .cloned()
        .ok_or_else(|| Refusal::bad("there is no document in the request"))?;
    if document.1.is_empty() {
        return Err(Refusal::bad("file must be non-empty"));
    }
    if document.1.len() > MAX_UPLOAD {
        return Err(Refusal::new(413, "Request Entity Too Large"));
    }
    let reply_to = reply_target(state, params, chat)?;
    let shown = state.show(SentMessage {
        chat,
        id: 0,
        text: caption.to_owned(),
        entities,
        reply_to,
        silent: flag(params, "disable_notification"),
        edits: 0,
        document: Some(document),
    });
    Ok(as_message(&shown))
}

fn chat_action(state: &State, request: &Request) -> Answer {
    open_chat(state, &request.params)?;
    if ACTIONS.contains(&text_of(&request.params, "action")) {
        return Ok(json!(true));
    }
    Err(Refusal::bad("wrong parameter action in request"))
}

fn set_commands(state: &mut State, request: &Request) -> Answer {
    let commands = structured(&request.params, "commands");
    let Some(commands) = commands.as_ref().and_then(Value::as_array) else {
        return Err(Refusal::bad("can't parse commands"));
    };
    if commands.len() > 100 {
        return Err(Refusal::bad("BOT_COMMANDS_TOO_MUCH"));
    }
    for command in commands {
        let name = text_of(command, "command");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
            return Err(Refusal::bad("BOT_COMMAND_INVALID"));
        }
        let length = text_of(command, "description").encode_utf16().count();
        if !(1..=256).contains(&length) {
            return Err(Refusal::bad("BOT_COMMAND_DESCRIPTION_INVALID"));
        }
    }
    state.commands.clone_from(commands);
    Ok(json!(true))
}

fn get_file(state: &State, request: &Request) -> Answer {
    let id = text_of(&request.params, "file_id");
    let Some((_, bytes)) = state.file(id) else {
        return Err(Refusal::bad("invalid file_id"));
    };
    if bytes.len() > MAX_DOWNLOAD {
        return Err(Refusal::bad("file is too big"));
    }
    Ok(json!({
        "file_id": id, "file_unique_id": format!("u-{id}"), "file_size": bytes.len(), "file_path": format!("documents/{id}"),
    }))
}

fn answer_callback(state: &mut State, request: &Request) -> Answer {
    match state.answer_callback(text_of(&request.params, "callback_query_id")) {
        Some(true) => Ok(json!(true)),
        Some(false) | None => Err(Refusal::bad(
            "query is too old and response timeout expired or query ID is invalid",
        )),
    }
}

fn as_message(message: &SentMessage) -> Value {
    let mut value = json!({
        "message_id": message.id, "date": now_seconds(),
        "chat": { "id": message.chat, "type": "private", "first_name": "Test" }, "from": me(),
    });
    let (text, entities) = match &message.document {
        None => ("text", "entities"),
        Some((name, bytes)) => {
            value["document"] = json!({
                "file_id": format!("sent-{}", message.id), "file_unique_id": format!("us-{}", message.id),
                "file_name": name, "file_size": bytes.len(),
            });
            ("caption", "caption_entities")
        }
    };
    if !message.text.is_empty() {
        value[text] = json!(message.text);
    }
    if !message.entities.is_empty() {
        value[entities] = json!(message.entities);
    }
    value
}

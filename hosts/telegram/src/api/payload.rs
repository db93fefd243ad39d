//! Requests with answers read no further than needed.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teloxide::requests::Payload;

use super::MenuCommand;
use crate::markdown::{Entity, FormattedText};

#[derive(Debug, Serialize)]
pub(super) struct GetMe {}

#[derive(Debug, Deserialize)]
pub(super) struct Me {
    #[serde(default)]
    pub(super) username: String,
}

impl Payload for GetMe {
    type Output = Me;
    const NAME: &'static str = "GetMe";
}

#[derive(Debug, Serialize)]
pub(super) struct DeleteWebhook {
    pub(super) drop_pending_updates: bool,
}

impl Payload for DeleteWebhook {
    type Output = Value;
    const NAME: &'static str = "DeleteWebhook";
}

#[derive(Debug, Serialize)]
pub(super) struct GetUpdates {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<i64>,
    pub(super) limit: u8,
    pub(super) timeout: u64,
    pub(super) allowed_updates: [&'static str; 1],
}

impl Payload for GetUpdates {
    type Output = Vec<Value>;
    const NAME: &'static str = "GetUpdates";
}

#[derive(Debug, Serialize)]
pub(super) struct SendMessage {
    chat_id: i64,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    entities: Vec<Entity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_parameters: Option<ReplyParameters>,
    link_preview_options: LinkPreview,
}

#[derive(Debug, Serialize)]
struct ReplyParameters {
    message_id: i64,
    allow_sending_without_reply: bool,
}

#[derive(Debug, Serialize)]
struct LinkPreview {
    is_disabled: bool,
}

impl SendMessage {
    pub(super) fn new(chat: i64, text: &FormattedText, reply_to: Option<i64>) -> Self {
        Self {
            chat_id: chat,
            text: text.text.clone(),
            entities: text.entities.clone(),
            reply_parameters: reply_to.map(|message_id| ReplyParameters {
                message_id,
                allow_sending_without_reply: true,
            }),
            // A preview makes Telegram fetch what an answer mentions; answers may hold text from outside.
            link_preview_options: LinkPreview { is_disabled: true },
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Sent {
    pub(super) message_id: i64,
}

impl Payload for SendMessage {
    type Output = Sent;
    const NAME: &'static str = "SendMessage";
}

#[derive(Debug, Serialize)]
pub(super) struct SendChatAction {
    pub(super) chat_id: i64,
    pub(super) action: &'static str,
}

impl Payload for SendChatAction {
    type Output = Value;
    const NAME: &'static str = "SendChatAction";
}

#[derive(Debug, Serialize)]
pub(super) struct SetMyCommands {
    pub(super) commands: Vec<MenuCommand>,
}

impl Payload for SetMyCommands {
    type Output = Value;
    const NAME: &'static str = "SetMyCommands";
}

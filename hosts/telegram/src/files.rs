//! Files of a workspace on their way to the person.

use std::io::Read as _;

use async_trait::async_trait;
use volcanic_agent_core::TargetId;
use volcanic_agent_tools::{FileSender, OutgoingFile};

use crate::api::{ApiError, BotClient};
use crate::markdown::{FormattedText, split_text};

/// The largest file Telegram takes from a bot, in bytes.
const MAX_UPLOAD: u64 = 50_000_000;
/// The longest caption, in UTF-16 units.
const MAX_CAPTION: usize = 1024;

/// Sends files as documents.
#[derive(Debug)]
pub(crate) struct ChatFiles {
    api: BotClient,
}

impl ChatFiles {
    /// Sends through `api`.
    pub(crate) fn new(api: BotClient) -> Self {
        Self { api }
    }
}

#[async_trait]
impl FileSender for ChatFiles {
    async fn send_file(
        &self,
        target: &TargetId,
        file: OutgoingFile,
        caption: Option<&str>,
    ) -> Result<(), String> {
        let chat: i64 =
            target.as_str().parse().map_err(|_| "this conversation has no chat".to_owned())?;
        let OutgoingFile { name, file, .. } = file;
        let content = tokio::task::spawn_blocking(move || {
            let mut content = Vec::new();
            file.take(MAX_UPLOAD + 1).read_to_end(&mut content).map(|_| content)
        });
        let content = content
            .await
            .map_err(|_| "the file could not be read".to_owned())?
            .map_err(|error| format!("the file could not be read: {}", error.kind()))?;
        if content.is_empty() {
            return Err("Telegram takes no empty files".to_owned());
        }
        if u64::try_from(content.len()).is_ok_and(|length| length > MAX_UPLOAD) {
            return Err(format!("Telegram takes files of up to {MAX_UPLOAD} bytes"));
        }
        let caption = caption.map(str::trim).filter(|caption| !caption.is_empty());
        let caption = caption.and_then(|caption| {
            let pieces = split_text(&FormattedText::plain(caption), MAX_CAPTION);
            pieces.into_iter().next().map(|piece| piece.text)
        });
        self.api.send_document(chat, name, content, caption).await.map_err(|error| match error {
            ApiError::Unknown(_) | ApiError::TooLarge(_) => {
                format!("{error}; the file may have arrived")
            }
            error => error.to_string(),
        })
    }
}

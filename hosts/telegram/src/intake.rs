//! What is done with an update: who is heard, what becomes a prompt, what is answered at once.

use std::sync::Arc;

use async_trait::async_trait;
use volcanic_agent_core::{NewPrompt, Origin, PromptKey, StoreError};
use volcanic_store::{ReceivedUpdate, Store};

use crate::chats::{Chat, Chats};
use crate::command::ChatCommand;
use crate::incoming::{Incoming, PrivateMessage};
use crate::outbox::source_of;
use crate::receive::UpdateHandler;

/// Takes updates to the chats they are for.
#[derive(Debug)]
pub(crate) struct Intake {
    store: Store,
    chats: Arc<Chats>,
}

impl Intake {
    /// Lets in the people of `chats` and nobody else.
    pub(crate) fn new(store: Store, chats: Arc<Chats>) -> Self {
        Self { store, chats }
    }

    async fn on_message(
        &self,
        update: i64,
        chat: &Chat,
        message: &PrivateMessage,
    ) -> Result<(), StoreError> {
        // A repeat after a crash says nothing twice, and an album is answered once. Not by the update's id: Telegram uses
        // those anew after a quiet week.
        let key = match &message.album {
            Some(album) => format!("reply:album:{album}"),
            None => format!("reply:{}", message.message),
        };
        let command = message.text.as_deref().and_then(ChatCommand::parse);
        match (command, &message.text) {
            (Some(command), _) => {
                // Straight from here: a command never waits behind a run.
                let reply = chat.run_command(command).await;
                chat.say(&key, &reply).await?;
                self.store.update_handled(update, None).await?;
            }
            (None, Some(text)) => {
                if let Some(carries) = message.carries {
                    chat.say(
                        &key,
                        &format!("I cannot take {carries} yet, so I go by the text alone."),
                    )
                    .await?;
                }
                let prompt = prompt(chat, message, text);
                self.store.update_handled(update, Some(prompt)).await?;
                chat.wake();
            }
            (None, None) => {
                let carries = message.carries.unwrap_or("an empty message");
                chat.say(&key, &format!("I cannot take {carries} yet. Please write it as text."))
                    .await?;
                self.store.update_handled(update, None).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl UpdateHandler for Intake {
    async fn handle(&self, update: &ReceivedUpdate) -> Result<(), StoreError> {
        let id = update.update_id;
        let incoming = serde_json::from_str(&update.raw).map(|value| Incoming::read(&value));
        match incoming {
            Ok(Incoming::Private(message)) if message.chat == message.from => {
                if let Some(chat) = self.chats.get(message.from) {
                    return self.on_message(id, chat, &message).await;
                }
                // No answer: a bot that answers strangers tells them that it is there.
                tracing::debug!(user.id = message.from, "a stranger's message was dropped");
            }
            Ok(Incoming::Private(PrivateMessage { chat, .. })) => {
                tracing::debug!(chat.id = chat, "a message from elsewhere was dropped");
            }
            Ok(Incoming::Other { chat }) => {
                tracing::debug!(chat.id = chat, "an update was dropped");
            }
            Err(error) => tracing::error!(update.id = id, %error, "an update cannot be read"),
        }
        self.store.update_handled(id, None).await.map(drop)
    }
}

fn prompt(chat: &Chat, message: &PrivateMessage, text: &str) -> NewPrompt {
    let text = match message.carries {
        Some(carries) => {
            format!("{text}\n[The message carries {carries}, which cannot be opened here.]")
        }
        None => text.to_owned(),
    };
    NewPrompt {
        target: chat.target().clone(),
        key: PromptKey::new(format!("tg:{}:{}", message.chat, message.message)),
        origin: Origin::Owner,
        hops: 0,
        source: Some(source_of(message.message)),
        text,
    }
}

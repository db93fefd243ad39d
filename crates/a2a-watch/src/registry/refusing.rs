//! What becomes of messages that did not leave: told to their callers, or to the conversation when those left.

use std::sync::Arc;

use volcanic_a2a_types::MessageId;

use super::Registry;
use super::closing::{OpenSend, end_if_kept, end_unsent, keep_to_tell, keep_unsent};
use super::handle::{Command, SendCommand};
use super::jobs::JobEnd;
use super::sending::record;
use crate::order::SendError;
use crate::record::SendRecord;

impl Registry {
    /// Tells why a message was not sent: the caller, or the conversation when the caller left, for it was told there that
    /// the message goes on its way.
    pub(super) fn answer_failed(
        &mut self,
        command: SendCommand,
        message_id: &MessageId,
        error: SendError,
        kept: bool,
    ) {
        let is_unclear = matches!(error, SendError::Store(_));
        let (send, heard) = self.refuse_send(command, message_id, error);
        if !heard || kept {
            return self.tell_unsent(send, !heard, kept);
        }
        if is_unclear {
            return self.spawn_end_if_kept(send);
        }
        self.open_sends.remove(message_id);
    }

    /// Ends a send that could not be kept, if it is on disk all the same.
    fn spawn_end_if_kept(&mut self, send: SendRecord) {
        let context = Arc::clone(&self.context);
        self.jobs.set.spawn(async move {
            end_if_kept(&context, &send).await;
            JobEnd::SendClosed { message_id: send.message_id }
        });
    }

    /// Closes a send that did not leave, after telling so if `tell`.
    pub(super) fn tell_unsent(&mut self, send: SendRecord, tell: bool, kept: bool) {
        let open = OpenSend::unsent(&send);
        if kept {
            return self.spawn_close(open, tell);
        }
        self.spawn_closing(open, tell, move |context| async move {
            keep_to_tell(&context, &send).await;
        });
    }

    /// Says `error` to the caller of a message that did not leave. Returns the message as it is kept, and whether there
    /// was anybody to hear it.
    fn refuse_send(
        &self,
        command: SendCommand,
        message_id: &MessageId,
        error: SendError,
    ) -> (SendRecord, bool) {
        let mut send = record(&self.context, &command.order, message_id, String::new());
        send.end_reason = Some(error.to_string());
        // What did not leave does not count.
        send.unattended = None;
        (send, command.reply.send(Err(error)).is_ok())
    }

    /// Tells those whose messages did not leave so, when the registry ends.
    pub(super) async fn refuse_waiting(&mut self) {
        let waiting: Vec<_> =
            self.watches.values_mut().flat_map(|followed| followed.waiting.drain(..)).collect();
        for command in waiting {
            self.refuse(command);
        }
        while let Some(command) = self.commands.recv().await {
            self.refuse(command);
        }
    }

    fn refuse(&mut self, command: Command) {
        if let Command::Send(command) = command {
            let message_id = self.context.new_message_id();
            self.refuse_late(*command, &message_id, SendError::Stopped, false);
        }
    }

    /// As [`Self::answer_failed`], when it is left to the next process to tell what nobody hears.
    pub(super) fn refuse_late(
        &mut self,
        command: SendCommand,
        message_id: &MessageId,
        error: SendError,
        kept: bool,
    ) {
        let is_unclear = matches!(error, SendError::Store(_));
        let (send, heard) = self.refuse_send(command, message_id, error);
        let context = Arc::clone(&self.context);
        match (heard, kept) {
            (true, true) => {
                self.jobs.set.spawn(async move {
                    end_unsent(&context, &send).await;
                    JobEnd::Done
                });
            }
            (false, false) => {
                self.jobs.set.spawn(async move {
                    keep_unsent(&context, &send).await;
                    JobEnd::Done
                });
            }
            (true, false) if is_unclear => self.spawn_end_if_kept(send),
            (true, false) | (false, true) => {}
        }
    }
}

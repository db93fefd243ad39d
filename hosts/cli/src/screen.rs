//! The place where answers end up: the outbox is emptied onto it. Nothing on it can steer a terminal.

use std::fmt;

use anyhow::{Context as _, Result};
use serde_json::json;
use volcanic_agent_core::{OutboxId, OutboxItem, SessionStore, StoreError, TargetId};

use crate::{
    held::Held,
    output::{Format, write_json, write_line},
    terminal::Terminal,
};

/// What is put before an answer that may be on the screen already.
const MAY_REPEAT: &str = "(may be a repeat) ";

/// Standard output.
#[derive(Debug)]
pub(crate) struct Screen {
    /// A person's terminal, on which text appears as it is written; a pipe gets whole answers.
    terminal: Option<Terminal>,
    format: Format,
    /// The text of the reply that was shown while it was being written, since the last answer.
    streamed: String,
    /// An answer that was shown and could not be marked as that.
    unmarked: Option<OutboxId>,
}

impl Screen {
    pub(crate) fn new(terminal: Option<Terminal>, format: Format) -> Self {
        Self { terminal, format, streamed: String::new(), unmarked: None }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.terminal.is_some()
    }

    /// Lets the person say the next thing; a pipe is read anyway.
    pub(crate) fn ask(&self) {
        if let Some(terminal) = &self.terminal {
            terminal.ask();
        }
    }

    /// Shows lines.
    pub(crate) async fn line(&mut self, text: &str) -> Result<()> {
        self.end_stream();
        if self.format == Format::Json {
            return write_json(&json!({ "note": text }));
        }
        let text = visible(text);
        let written = match &mut self.terminal {
            Some(terminal) => terminal.lines(&text).await,
            None => return write_line(&text),
        };
        written.context("failed to write to the screen")
    }

    /// Shows a line beside what is being written, which goes on after it.
    pub(crate) async fn note(&mut self, text: &str) -> Result<()> {
        let Some(terminal) = &mut self.terminal else { return Ok(()) };
        terminal.lines(&visible(text)).await.context("failed to write to the screen")
    }

    /// Gives the terminal back, and says a last thing to whoever still reads.
    pub(crate) fn leave(&mut self, text: &str) {
        self.terminal = None;
        let written = match self.format {
            Format::Json => write_json(&json!({ "note": text })),
            Format::Text => write_line(visible(text)),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "nobody reads any more");
        }
    }

    /// Shows text of the reply that is being written.
    pub(crate) async fn delta(&mut self, text: &str) -> Result<()> {
        let Some(terminal) = &mut self.terminal else { return Ok(()) };
        self.streamed.push_str(text);
        terminal.piece(&visible(text)).await.context("failed to write to the screen")
    }

    /// Shows what a tool call is about, to a person.
    pub(crate) async fn tool(&mut self, name: &str, summary: &str) -> Result<()> {
        if self.is_live() { self.line(&format!("[{name} {summary}]")).await } else { Ok(()) }
    }

    /// Ends the reply that was being written: whatever comes is another.
    pub(crate) fn end_stream(&mut self) {
        self.streamed.clear();
        if let Some(terminal) = &mut self.terminal {
            terminal.end_pieces();
        }
    }

    /// Shows everything that waits in the outbox, and marks it as shown once it was written out. A store that fails ends
    /// this for now; nothing is shown twice by calling it again.
    ///
    /// # Errors
    /// When nothing can be shown any more.
    pub(crate) async fn empty_outbox(
        &mut self,
        store: &dyn SessionStore,
        target: &TargetId,
        held: &mut Held,
    ) -> Result<Result<(), StoreError>> {
        loop {
            // First: that an answer was shown is worth more than another one.
            if let Err(error) = self.mark(store, held).await? {
                return Ok(Err(error));
            }
            let item = match held.meanwhile(self, store.next_outbox(target)).await? {
                Ok(Some(item)) => item,
                Ok(None) => return Ok(Ok(())),
                Err(error) => return Ok(Err(error)),
            };
            self.answer(&item).await?;
            self.unmarked = Some(item.id);
        }
    }

    /// Marks the answer that was shown last.
    async fn mark(
        &mut self,
        store: &dyn SessionStore,
        held: &mut Held,
    ) -> Result<Result<(), StoreError>> {
        let Some(id) = self.unmarked else { return Ok(Ok(())) };
        let marked = held.meanwhile(self, store.outbox_sent(id, None)).await?;
        if marked.is_ok() {
            self.unmarked = None;
        }
        Ok(marked)
    }

    async fn answer(&mut self, item: &OutboxItem) -> Result<()> {
        let body = item.body.trim_end();
        if self.format == Format::Json {
            return write_json(&json!({ "answer": body, "mayRepeat": item.may_repeat }));
        }
        if self.is_live() && self.streamed.trim_end() == body {
            self.end_stream();
        } else {
            let label = if item.may_repeat { MAY_REPEAT } else { "" };
            self.line(&format!("{label}{body}")).await?;
        }
        match &self.terminal {
            Some(terminal) => terminal.settle().await.context("failed to write to the screen"),
            None => Ok(()),
        }
    }
}

/// The text with everything escaped that a terminal would act upon or that turns the direction of writing. Carriage
/// returns are left out: they would let a line write over itself.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // Writing into a string cannot fail.
    let _ = write_visible(&mut shown, text);
    shown
}

/// As [`visible`], piece by piece.
pub(crate) fn write_visible(out: &mut dyn fmt::Write, text: &str) -> fmt::Result {
    let is_steering = |character: char| match character {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        character => character.is_control(),
    };
    let mut rest = text;
    while let Some(at) = rest.find(is_steering) {
        let (plain, from) = rest.split_at(at);
        out.write_str(plain)?;
        let mut characters = from.chars();
        if let Some(character) = characters.next().filter(|character| *character != '\r') {
            write!(out, "{}", character.escape_unicode())?;
        }
        rest = characters.as_str();
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_shown_instead() {
        assert_eq!(
            visible("a\r\n\tb\u{1b}]0;x\u{7}\u{9b}2J\u{7f}\u{202e}\u{2069}é漢"),
            "a\n\tb\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{7f}\\u{202e}\\u{2069}é漢"
        );
    }
}

//! The terminal as the place where answers end up: the outbox is emptied onto it.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result};
use volcanic_agent_core::{OutboxItem, SessionStore, TargetId};

/// What is put before an answer that may be on the screen already.
const MAY_REPEAT: &str = "(may be a repeat) ";

/// Standard output.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Whether a person looks at it, so that text may appear as it is written.
    pub(crate) live: bool,
    /// The text of the reply that was shown while it was being written, since the last answer.
    streamed: String,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let live = io::stdout().is_terminal() && io::stdin().is_terminal();
        Self { live, streamed: String::new() }
    }

    /// Shows a line of our own.
    pub(crate) fn line(&mut self, text: &str) -> Result<()> {
        self.end_stream()?;
        write(&format!("{text}\n"))
    }

    /// Asks for the next line.
    pub(crate) fn prompt(&mut self) -> Result<()> {
        if self.live { write("> ") } else { Ok(()) }
    }

    /// Leaves a line that was begun.
    pub(crate) fn break_line(&mut self) -> Result<()> {
        write("\n")
    }

    /// Shows text of the reply that is being written.
    pub(crate) fn delta(&mut self, text: &str) -> Result<()> {
        if !self.live {
            return Ok(());
        }
        self.streamed.push_str(text);
        write(text)
    }

    /// Shows what a tool call is about.
    pub(crate) fn tool(&mut self, name: &str, summary: &str) -> Result<()> {
        if !self.live {
            return Ok(());
        }
        self.end_stream()?;
        write(&format!("[{name} {summary}]\n"))
    }

    /// Forgets a reply that turned out to be a failed attempt.
    pub(crate) fn end_stream(&mut self) -> Result<()> {
        if !self.streamed.is_empty() {
            self.streamed.clear();
            write("\n")?;
        }
        Ok(())
    }

    /// Shows everything that waits in the outbox, and marks it as shown once it was written out.
    pub(crate) async fn empty_outbox(
        &mut self,
        store: &dyn SessionStore,
        target: &TargetId,
    ) -> Result<()> {
        while let Some(item) =
            store.next_outbox(target).await.context("failed to read the outbox")?
        {
            self.answer(&item)?;
            store.outbox_sent(item.id, None).await.context("failed to mark an answer as shown")?;
        }
        Ok(())
    }

    fn answer(&mut self, item: &OutboxItem) -> Result<()> {
        if self.live && self.streamed.trim_end() == item.body.trim_end() {
            return self.end_stream();
        }
        self.end_stream()?;
        let label = if item.may_repeat { MAY_REPEAT } else { "" };
        write(&format!("{label}{}\n", item.body.trim_end()))
    }
}

fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("failed to write to the screen")
}

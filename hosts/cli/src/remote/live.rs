//! A line at the bottom of a terminal that says what is being waited for, and for how long.

use std::{
    convert::Infallible,
    io::{IsTerminal as _, Write as _, stderr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::termios::tcgetwinsize;
use tokio::time::{Instant, sleep};
use unicode_width::UnicodeWidthChar as _;
use volcanic_a2a_client::sanitize_remote_line;

use crate::config::CliConfig;

/// What answers sooner needs no line.
const QUIET: Duration = Duration::from_millis(400);
/// Between two looks at the clock.
const TICK: Duration = Duration::from_secs(1);
/// How much of a text is kept, in characters; the rest would not fit.
const LONGEST: usize = 300;
/// Moves to the beginning of the row and empties it.
const EMPTY_ROW: &str = "\r\x1b[K";

/// The line. It is on standard error, and only there if that is a terminal.
pub(super) struct Live {
    row: Option<Mutex<Row>>,
}

struct Row {
    agent: String,
    text: String,
    since: Instant,
    /// Whether it may be seen by now.
    is_on: bool,
    is_drawn: bool,
}

impl Live {
    /// A line about waiting for an agent; it is not shown at once.
    pub(super) fn open(agent: &str, config: &CliConfig) -> Self {
        let is_plain = config
            .environment
            .shell
            .iter()
            .all(|(name, kind)| name != "TERM" || kind.is_empty() || kind == "dumb");
        let can_show = stderr().is_terminal() && !is_plain;
        let row = can_show.then(|| {
            Mutex::new(Row {
                agent: agent.to_owned(),
                text: String::new(),
                since: Instant::now(),
                is_on: false,
                is_drawn: false,
            })
        });
        Self { row }
    }

    /// None, whatever there is to say.
    pub(super) fn closed() -> Self {
        Self { row: None }
    }

    /// Says what is happening now, in a remote's words or ours.
    pub(super) fn says(&self, text: &str) {
        if let Some(mut row) = self.row() {
            row.text = sanitize_remote_line(text, LONGEST);
            if row.is_on {
                row.draw();
            }
        }
    }

    /// Makes room for something that is printed; the line comes back by itself while [`Live::tick`] runs.
    pub(super) fn clear(&self) {
        if let Some(mut row) = self.row() {
            row.clear();
        }
    }

    /// Keeps the line true for as long as it is polled.
    pub(super) async fn tick(&self) -> Infallible {
        sleep(QUIET).await;
        loop {
            if let Some(mut row) = self.row() {
                row.is_on = true;
                row.draw();
            }
            sleep(TICK).await;
        }
    }

    fn row(&self) -> Option<MutexGuard<'_, Row>> {
        self.row.as_ref().map(|row| row.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Row {
    fn draw(&mut self) {
        let columns = tcgetwinsize(stderr()).map_or(80, |size| usize::from(size.ws_col));
        let line = format!("{} s  {}: {}", self.since.elapsed().as_secs(), self.agent, self.text);
        // In the last column some terminals have wrapped already. With nobody looking nothing is lost.
        let line = fitting(&line, columns.saturating_sub(1));
        let _ = stderr().write_all(format!("{EMPTY_ROW}{line}").as_bytes());
        self.is_drawn = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = stderr().write_all(EMPTY_ROW.as_bytes());
        }
    }
}

/// The beginning of a text that fits into so many columns.
fn fitting(text: &str, columns: usize) -> &str {
    let mut width = 0;
    let end = text.char_indices().find(|(_, character)| {
        width += character.width().unwrap_or(0);
        width > columns
    });
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_the_row_ends() {
        assert_eq!(fitting("abc", 3), "abc");
        assert_eq!(fitting("abcd", 3), "abc");
        assert_eq!(fitting("a漢字", 4), "a漢");
        assert_eq!(fitting("e\u{301}e\u{301}", 1), "e\u{301}");
        assert_eq!(fitting("abc", 0), "");
    }
}

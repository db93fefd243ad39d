//! What is said: lines of a pipe, or of a person at a terminal. Both come through a bounded channel.

use std::{
    io::{BufRead, Read as _},
    thread,
};

use tokio::sync::mpsc;

/// Lines that may wait while the chat is busy; a pipe that gives more is simply read later.
pub(crate) const LINES: usize = 16;

/// The longest line taken, in bytes: what people say is shorter, and what programs hand over belongs into a file.
const LONGEST: usize = 1 << 20;

/// One thing said. The end of the input is the end of the channel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A line, or several that were pasted together.
    Line(String),
    /// A line that is over the limit; it is read away.
    TooLong,
    /// Ctrl-C at a terminal.
    Interrupted,
}

impl Input {
    pub(crate) fn of(line: String) -> Self {
        if line.len() > LONGEST { Self::TooLong } else { Self::Line(line) }
    }
}

/// Starts to read standard input as lines; the channel ends with it.
///
/// The thread cannot be joined: nothing wakes a blocked read. It holds nothing but the channel, and ends with the process.
pub(crate) fn lines() -> mpsc::Receiver<Input> {
    let (sender, receiver) = mpsc::channel(LINES);
    thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        while let Some(said) = next(&mut input) {
            if sender.blocking_send(said).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The next line; bytes that are no text are replaced, and a broken input has ended.
fn next(input: &mut impl BufRead) -> Option<Input> {
    let mut line = Vec::new();
    let most = u64::try_from(LONGEST).unwrap_or(u64::MAX).saturating_add(1);
    let read = input.by_ref().take(most).read_until(b'\n', &mut line).ok()?;
    if read == 0 {
        return None;
    }
    if line.len() > LONGEST && line.last() != Some(&b'\n') {
        input.skip_until(b'\n').ok()?;
        return Some(Input::TooLong);
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    Some(Input::Line(String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_anyhow_and_long_ones_are_read_away() {
        let mut bytes = b"one\r\n\ntw\xffo\n".to_vec();
        bytes.resize(bytes.len() + LONGEST + 7, b'x');
        bytes.extend(b"\nlast");
        let mut input = bytes.as_slice();
        let line = |text: &str| Some(Input::Line(text.to_owned()));
        let said: Vec<_> = std::iter::from_fn(|| Some(next(&mut input))).take(6).collect();
        assert_eq!(
            said,
            [line("one"), line(""), line("tw\u{fffd}o"), Some(Input::TooLong), line("last"), None]
        );
    }

    #[test]
    fn a_line_of_just_the_limit_is_taken() {
        let mut bytes = vec![b'x'; LONGEST];
        bytes.push(b'\n');
        assert_eq!(next(&mut bytes.as_slice()), Some(Input::Line("x".repeat(LONGEST))));
    }
}

//! Lines from standard input, as a bounded channel.

use std::{io::BufRead as _, thread};

use tokio::sync::mpsc;

/// Lines that may wait while the chat is busy; a pipe that gives more is simply read later.
const LINES: usize = 16;

/// The longest line taken as it is, in bytes; what is longer is cut by whoever pipes it, not by us: it is refused.
pub(crate) const LONGEST: usize = 1 << 20;

/// Starts to read standard input; the channel ends with it.
///
/// The thread cannot be joined: nothing wakes a blocked read of a terminal. It holds nothing but the channel, and ends
/// with the process.
pub(crate) fn lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES);
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

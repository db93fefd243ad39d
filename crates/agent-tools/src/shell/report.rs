//! What the model is told about a command.

use std::fmt::Write as _;
use std::time::Duration;

use super::{End, Kept, Ran};
use crate::truncate::{keep_tail, plain};

/// A command's result in words.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) text: String,
    /// Anything but a plain success.
    pub(crate) is_error: bool,
}

impl Report {
    /// Puts together the end of the output and what there is to say about it.
    pub(crate) async fn new(ran: Ran, limit: Duration) -> Self {
        let Ran { end, output, held_open } = ran;
        let (total_lines, total_bytes) = (output.lines(), output.bytes());
        let (tail, cut) = output.tail();
        let tail = plain(&tail);
        // When something before it is missing, the first line is only the end of one.
        let (whole, cut_first) = match tail.split_once('\n') {
            Some((_, rest)) if cut && !rest.is_empty() => (rest, false),
            _ => (tail.as_str(), cut),
        };
        let shown = keep_tail(whole);
        let cut_line = shown.cut_line || (cut_first && shown.lines == 1);
        let truncated = cut || cut_line || shown.text.len() < whole.trim_end_matches('\n').len();
        let kept = output.finish(truncated).await;

        let mut text = shown.text.to_owned();
        if text.is_empty() && total_bytes == 0 {
            text.push_str("(no output)");
        }
        if truncated {
            let last = total_lines.max(1);
            let first = last.saturating_sub(shown.lines as u64 - 1).max(1);
            let range = if cut_line {
                format!("the end of line {last} of {last}")
            } else {
                format!("lines {first}-{last} of {last}")
            };
            let _ = write!(
                text,
                "\n\n[Shown: {range}; {total_bytes} bytes in all. {}]",
                whereabouts(&kept)
            );
        }
        if held_open {
            text.push_str(
                "\n\n[A background process still holds the output; what it writes from now on is lost. Start such \
                 processes with their output in a file.]",
            );
        }
        let is_error = match end {
            End::Exited(0) => false,
            End::Exited(code) => {
                let _ = write!(text, "\n\n[Exit code {code}]");
                true
            }
            End::TimedOut => {
                let seconds = limit.as_secs_f64();
                let _ = write!(
                    text,
                    "\n\n[Stopped after {seconds} s, with everything it had started. A longer limit can be asked for with \
                     timeout.]"
                );
                true
            }
            End::Aborted => {
                text.push_str("\n\n[Stopped with the run, with everything it had started.]");
                true
            }
        };
        Self { text, is_error }
    }
}

fn whereabouts(kept: &Kept) -> String {
    match kept {
        Kept::File { path, full: false, .. } => {
            format!("Everything: {} (for bash)", path.display())
        }
        Kept::File { path, written, full: true, .. } => {
            format!("The first {written} bytes: {} (for bash)", path.display())
        }
        Kept::Failed(error) => format!("The rest could not be kept: {error}"),
        Kept::Nowhere => "The rest was not kept".to_owned(),
    }
}

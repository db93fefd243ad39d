//! A watch as people see it, in a chat and on the command line.

use std::{fmt, time::Duration};

use volcanic_a2a_client::sanitize_remote_line;
use volcanic_a2a_watch::{WatchSource, WatchState};

/// How much of a remote's id is shown, in characters: all of any that is not absurd, as people have to say it.
const MAX_ID: usize = 80;
/// How much of what was seen last is shown, in characters.
const MAX_SEEN: usize = 160;

/// A watch in three short lines, for narrow screens.
#[derive(Debug, Clone)]
pub struct WatchLines<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// The task, in the agent's words.
    pub task_id: &'a str,
    /// How news of it comes.
    pub source: WatchSource,
    /// Where the watch stands.
    pub state: WatchState,
    /// For how long it has been followed.
    pub age: Duration,
    /// When the task is looked at next, if that is known.
    pub next_check_in: Option<Duration>,
    /// What was seen when it was looked at last; may be in the agent's words.
    pub last_seen: Option<&'a str>,
}

impl fmt::Display for WatchLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = sanitize_remote_line(self.task_id, MAX_ID);
        write!(f, "- {}: task {task}", self.agent)?;
        let (state, source) = (self.state.as_str(), self.source.as_str());
        write!(f, "\n  {state} ({source}) for {}", span(self.age))?;
        match self.next_check_in {
            None => {}
            Some(left) if left.as_secs() == 0 => f.write_str(", next check now")?,
            Some(left) => write!(f, ", next check in {}", span(left))?,
        }
        match self.last_seen {
            Some(seen) => write!(f, "\n  last: {}", sanitize_remote_line(seen, MAX_SEEN)),
            None => Ok(()),
        }
    }
}

/// A length of time in two units at most.
fn span(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match minutes {
        0 => format!("{}s", time.as_secs()),
        1..60 => format!("{minutes}m"),
        60..1440 => format!("{}h {}m", minutes / 60, minutes % 60),
        _ => format!("{}d {}h", minutes / 1440, minutes / 60 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_two_units_at_most() {
        let said = [59, 60, 3700, 90_000].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(said, ["59s", "1m", "1h 1m", "1d 1h"]);
    }

    #[test]
    fn a_watch_is_three_lines_whatever_the_agent_says() {
        let mut lines = WatchLines {
            agent: "travel-bot",
            task_id: "5c1e2b7a-9d1f-4a8e-8f60-0d1c2b3a4f5e",
            source: WatchSource::Subscribe,
            state: WatchState::Watching,
            age: Duration::from_mins(125),
            next_check_in: Some(Duration::from_mins(4)),
            last_seen: Some("working"),
        };
        assert_eq!(
            lines.to_string(),
            "- travel-bot: task 5c1e2b7a-9d1f-4a8e-8f60-0d1c2b3a4f5e\n  \
             watching (subscribe) for 2h 5m, next check in 4m\n  last: working"
        );
        let long = format!("t\n- other: task 1\u{202e}\u{1b}[2J{}", "x".repeat(5000));
        lines.task_id = &long;
        lines.last_seen = Some(&long);
        lines.next_check_in = None;
        let shown = lines.to_string();
        assert_eq!(shown.lines().count(), 3, "{shown}");
        assert!(shown.len() < 400 && !shown.contains(['\u{202e}', '\u{1b}']), "{shown}");
        lines.last_seen = None;
        assert_eq!(lines.to_string().lines().count(), 2);
    }
}

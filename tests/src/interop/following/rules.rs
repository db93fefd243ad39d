//! What is right in a cell: which hint may find the end of a task, and what a broken agent must be caught with.
//!
//! - Without trouble, and with answers that come late, a push finds the end of each task in a push cell, an event of its
//!   stream in a subscribe cell, a poll in a poll cell, and nothing else does.
//! - When reads fail, because connections are cut or the port is closed, the read that makes up for one is a poll; the slow
//!   read beside pushes may come before it. A stream that is gone makes the watch read and open another one (`gap`); after
//!   three in a row it polls.
//! - An agent that was restarted has lost the config for pushes with its memory, so the slow read finds the end
//!   (or the read for a push that still came before). An agent that lost the task as well is asked three times over ten minutes, and then the owner is told that it is gone.

use super::{FollowRow, Source, Trouble};
use crate::interop::peer::{Column, Sdk};

/// Whether the agent loses its tasks: its SDK keeps them in memory alone.
pub(super) fn loses_tasks(row: FollowRow, column: Column) -> bool {
    row.trouble == Trouble::Restarted && column.sdk() == Sdk::Rust
}

/// The hints that may find the end of a task.
pub(super) fn right_hints(row: FollowRow) -> &'static [&'static str] {
    match (row.source, row.trouble) {
        (Source::Push, Trouble::None | Trouble::Delayed) => &["push"],
        (Source::Push, Trouble::Cut | Trouble::Closed | Trouble::Restarted) => {
            &["push", "poll", "safety-read"]
        }
        (Source::Subscribe, Trouble::None | Trouble::Delayed) => &["stream"],
        (Source::Subscribe, Trouble::Cut | Trouble::Closed | Trouble::Restarted) => {
            &["stream", "gap", "poll"]
        }
        (Source::Poll, _) => &["poll"],
    }
}

/// Whether the agent's SDK ends a stream now and then before it tells of the end: 0.3.26 closes the queue of a subscriber
/// when the task's own has been read. A quarter of a cell's tasks is excused for it, if the record shows it.
pub(super) fn ends_streams_early(column: Column) -> bool {
    column.sdk() == Sdk::Python03
}

/// What a task is asked for: by `follow`, a broken agent does not push and ends its streams before the end; by `tale`, it
/// tells of another word.
pub(super) fn verb(row: FollowRow) -> &'static str {
    match (row.source, row.trouble) {
        (Source::Push | Source::Subscribe, Trouble::None | Trouble::Delayed) => "follow",
        _ => "tale",
    }
}

/// What the report of a broken agent must say.
pub(super) fn fault_when_broken(row: FollowRow, column: Column) -> &'static str {
    match (verb(row), row.source) {
        _ if loses_tasks(row, column) => "it is not told that the task is gone",
        ("follow", Source::Push) => "found by safety-read",
        ("follow", _) => "found by gap",
        _ => "the conversation does not hold the tale of",
    }
}

//! What is known to be wrong with an agent's SDK, each with what its record must show.

use std::fmt;

use super::{
    actor::Player,
    peer::Column,
    scenario::{Row, Scenario},
    wire::{Call, Operation, WireEvent},
};

/// A fault of an agent's SDK.
#[derive(Debug)]
pub(super) struct Blame {
    /// What it does.
    pub(super) what: &'static str,
    /// What the specification says.
    rule: &'static str,
    row: Row,
    column: Column,
    /// Whether the record shows the fault.
    is_shown: fn(&[Call]) -> bool,
}

const STREAMING_03: &str = "while a task is both worked on in the background and subscribed to, it applies every artifact \
                            chunk twice, so that GetTask returns pieces doubled which its stream brought once";
const APPEND_03: &str = "A2A 0.3, TaskArtifactUpdateEvent.append: \"If true, the content of this artifact should be appended to \
                         a previously sent artifact with the same ID.\"";

const KNOWN: [Blame; 2] = [
    Blame {
        what: STREAMING_03,
        rule: APPEND_03,
        row: Row { scenario: Scenario::Streaming, player: Player::Tool },
        column: Column::Python03Rpc,
        is_shown: pieces_are_doubled,
    },
    Blame {
        what: STREAMING_03,
        rule: APPEND_03,
        row: Row { scenario: Scenario::Streaming, player: Player::CommandLine },
        column: Column::Python03Rpc,
        is_shown: pieces_are_doubled,
    },
];

/// Whether a fault of the agent is known that shows in the row.
pub(super) fn is_known(row: Row, column: Column) -> bool {
    KNOWN.iter().any(|blame| blame.row == row && blame.column == column)
}

/// The known fault of the agent that the record shows.
pub(super) fn peer(row: Row, column: Column, calls: &[Call]) -> Option<&'static Blame> {
    KNOWN.iter().find(|blame| blame.row == row && blame.column == column && (blame.is_shown)(calls))
}

/// Some known fault.
#[cfg(test)]
pub(super) fn example() -> &'static Blame {
    &KNOWN[0]
}

/// Whether the stream brought each piece once, and the task that was read has one twice.
fn pieces_are_doubled(calls: &[Call]) -> bool {
    let of = |operation: Operation| calls.iter().rfind(move |call| call.operation == operation);
    let (Some(stream), Some(read)) = (of(Operation::SubscribeToTask), of(Operation::GetTask))
    else {
        return false;
    };
    let mut pieces: Vec<String> = Vec::new();
    for event in stream.events() {
        if let WireEvent::Artifact(text) = event {
            if pieces.contains(&text) {
                return false;
            }
            pieces.push(text);
        }
    }
    let read = read.result()["artifacts"].to_string();
    pieces.iter().any(|piece| read.matches(piece.trim()).count() > 1)
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. The rule: {}", self.what, self.rule)
    }
}

#[cfg(test)]
mod tests {
    use volcanic_testkit::Exchange;

    use super::*;
    use crate::interop::wire;

    fn streamed_and_read(read: &str) -> Vec<Call> {
        let event = |text: &str| {
            format!(
                "data: {{\"result\":{{\"kind\":\"artifact-update\",\"artifact\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}}}}}\n\n"
            )
        };
        let exchange = |method: &str, media: &str, answer: &str| {
            let body = format!("{{\"method\":\"{method}\"}}");
            let request =
                format!("POST /open/rpc HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            );
            Exchange { request: request.into_bytes(), response: response.into_bytes() }
        };
        let stream = event("step 1") + &event("step 2");
        wire::calls(&[
            exchange("tasks/resubscribe", "text/event-stream", &stream),
            exchange("tasks/get", "application/json", read),
        ])
    }

    #[test]
    fn pieces_are_doubled_only_if_the_task_has_twice_what_the_stream_brought_once() {
        let task =
            |parts: &str| format!("{{\"result\":{{\"artifacts\":[{{\"parts\":[{parts}]}}]}}}}");
        let (one, two) = ("{\"text\":\"step 1\"}", "{\"text\":\"step 2\"}");
        let row = KNOWN[0].row;
        let blamed =
            |read: &str| peer(row, Column::Python03Rpc, &streamed_and_read(read)).is_some();
        assert!(blamed(&task(&[one, two, two].join(","))));
        assert!(!blamed(&task(&[one, two].join(","))));
        let doubled = streamed_and_read(&task(&[one, two, two].join(",")));
        assert!(peer(row, Column::PythonRpc, &doubled).is_none());
        assert!(peer(row, Column::Python03Rpc, &[]).is_none());
    }
}

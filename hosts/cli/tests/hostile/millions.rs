//! What is there in millions, or millions of bytes long, within an answer that is just small enough to be read. Each is
//! tried once or twice: a build without optimisation takes its time to read thirty mebibytes.

use std::time::Duration;

use volcanic_testkit::{HostileProtocol, HostileTrick, StreamFault, TaskFault};

use crate::table::{Row, SEND, STATUS, SUBSCRIBE, TASKS, WEBHOOKS, check};

const NEW: HostileProtocol = HostileProtocol::JsonRpc;
const REST: HostileProtocol = HostileProtocol::HttpJson;
const OLD: HostileProtocol = HostileProtocol::OldJsonRpc;

/// How long reading one may take.
const PATIENCE: Duration = Duration::from_mins(1);

const DONE: &str = " is completed.";

/// Held to the same memory as all, but not to their time.
fn row(
    fault: TaskFault,
    command: &'static [&'static str],
    protocol: HostileProtocol,
    code: i32,
    told: &str,
) -> Row {
    let row = Row::new(HostileTrick::Task(fault), command, code, told).over(protocol);
    Row { in_time: PATIENCE, ..row }
}

#[tokio::test]
async fn millions_of_parts_and_artifacts_cost_little() {
    check([
        row(TaskFault::EmptyParts(2_000_000), SEND, NEW, 0, DONE),
        row(TaskFault::EmptyArtifacts(400_000), STATUS, OLD, 0, DONE),
        row(TaskFault::Links(500_000), SEND, REST, 0, DONE),
    ])
    .await;
}

#[tokio::test]
async fn a_giant_history_and_giant_metadata_cost_little() {
    check([
        row(TaskFault::History(400_000), STATUS, NEW, 0, "done"),
        row(TaskFault::Metadata(1_500_000), STATUS, OLD, 0, "done"),
        row(TaskFault::UnknownMembers(1_500_000), STATUS, REST, 0, "done"),
    ])
    .await;
}

#[tokio::test]
async fn data_of_millions_costs_little() {
    check([
        row(TaskFault::DataItems(14_000_000), SEND, NEW, 0, DONE),
        row(TaskFault::DataObjects(5_000_000), STATUS, OLD, 0, DONE),
    ])
    .await;
}

#[tokio::test]
async fn giant_errors_and_lists_cost_little() {
    check([
        row(TaskFault::ErrorDetails(2_000_000), SEND, NEW, 1, "out of plums"),
        // Without the details that A2A defines, the status is all there is to go by.
        row(TaskFault::ErrorDetails(2_000_000), STATUS, REST, 1, "answered with HTTP 400."),
        row(TaskFault::LongError(20 << 20), SEND, NEW, 1, "refused: plum plum"),
        row(TaskFault::ListItems(400_000), TASKS, NEW, 0, "t  working"),
        row(TaskFault::ListItems(100_000), TASKS, REST, 0, "t  working"),
        row(TaskFault::ListItems(400_000), WEBHOOKS, NEW, 0, "c  https://plum.example/"),
        row(TaskFault::Repeated(100_000), SEND, NEW, 1, "cannot be used"),
    ])
    .await;
}

#[tokio::test]
async fn a_giant_text_or_id_costs_little() {
    check([
        row(TaskFault::LongText(20 << 20), SEND, NEW, 0, "inbox/a2a/demo/answer.txt"),
        row(TaskFault::LongId(20 << 20), SEND, NEW, 0, DONE),
        row(TaskFault::LongId(20 << 20), STATUS, REST, 1, "it is about another task"),
    ])
    .await;
}

#[tokio::test]
async fn a_text_as_long_as_is_read_costs_little_over_each_binding_and_when_it_cannot_be_saved() {
    let inbox = |row| Row { blocks_inbox: true, ..row };
    check([
        row(TaskFault::LongText(24 << 20), STATUS, OLD, 0, "inbox/a2a/demo/answer.txt"),
        row(TaskFault::LongText(24 << 20), STATUS, REST, 0, "inbox/a2a/demo/answer.txt"),
        inbox(row(TaskFault::LongText(24 << 20), SEND, NEW, 1, DONE)),
    ])
    .await;
}

#[tokio::test]
async fn a_giant_event_costs_little() {
    let event = |fault, command| {
        let row = Row::new(HostileTrick::Stream(fault), command, 0, "task task-1").or(5);
        Row { in_time: PATIENCE, ..row }
    };
    let told = Row {
        told: "\n  plum\n  plum\n".to_owned(),
        ..event(StreamFault::LongText(24 << 20), SUBSCRIBE)
    };
    check([event(StreamFault::EmptyParts(2_000_000), SEND), told]).await;
}

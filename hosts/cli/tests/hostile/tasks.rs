//! Answers to calls that hold something bad.

use volcanic_testkit::{HostileProtocol, HostileTrick, TaskFault};

use crate::table::{CANCEL, Row, SEND, STATUS, check};

const PROTOCOLS: [HostileProtocol; 3] =
    [HostileProtocol::JsonRpc, HostileProtocol::HttpJson, HostileProtocol::OldJsonRpc];

/// The same for a sent message and for a task that is asked about, over every protocol.
fn everywhere(fault: &TaskFault, code: i32, told: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for protocol in PROTOCOLS {
        for command in [SEND, STATUS] {
            let trick = HostileTrick::Task(fault.clone());
            rows.push(Row::new(trick, command, code, told).over(protocol));
        }
    }
    rows
}

fn all(faults: &[(TaskFault, i32, &str)]) -> Vec<Row> {
    faults.iter().flat_map(|(fault, code, told)| everywhere(fault, *code, told)).collect()
}

#[tokio::test]
async fn an_answer_about_something_else_is_refused() {
    let mut rows = Vec::new();
    for command in [STATUS, CANCEL] {
        for protocol in PROTOCOLS {
            let other = HostileTrick::Task(TaskFault::OtherTask);
            rows.push(Row::new(other, command, 1, "it is about another task").over(protocol));
        }
    }
    for protocol in PROTOCOLS {
        const ANSWER: &[&str] =
            &["send", "demo", "plum", "--task", "task-1", "--context", "context-1"];
        let other = |fault| HostileTrick::Task(fault);
        rows.push(
            Row::new(other(TaskFault::OtherTask), ANSWER, 1, "it is about another task")
                .over(protocol),
        );
        rows.push(
            Row::new(other(TaskFault::OtherContext), ANSWER, 1, "it is about another context")
                .over(protocol),
        );
    }
    for protocol in [HostileProtocol::JsonRpc, HostileProtocol::OldJsonRpc] {
        for command in [SEND, STATUS, CANCEL] {
            let other = HostileTrick::Task(TaskFault::OtherRequest);
            rows.push(Row::new(other, command, 1, "it belongs to another request").over(protocol));
        }
    }
    check(rows).await;
}

#[tokio::test]
async fn what_is_nested_too_deep_is_refused() {
    check(all(&[
        (TaskFault::DeepData(100_000), 1, "recursion limit exceeded"),
        (TaskFault::DeepUnknown(100_000), 1, "recursion limit exceeded"),
        (TaskFault::DeepData(1_000_000), 1, "recursion limit exceeded"),
    ]))
    .await;
}

#[tokio::test]
async fn of_many_files_the_first_twenty_are_saved_and_the_rest_counted() {
    check(all(&[(TaskFault::Files(10_000), 0, "Files skipped (9980 more)")])).await;
}

#[tokio::test]
async fn base64_that_lies_is_not_taken_for_a_file() {
    check(all(&[(TaskFault::LyingBase64, 0, "read what can be read")])).await;
}

fn row(fault: TaskFault, command: &'static [&'static str], code: i32, told: &str) -> Row {
    Row::new(HostileTrick::Task(fault), command, code, told)
}

#[tokio::test]
async fn a_large_file_is_saved_skipped_or_refused() {
    let saved = |protocol| {
        row(TaskFault::LargeFile((10 << 20) - 1), SEND, 0, "inbox/a2a/demo/large.bin")
            .over(protocol)
    };
    let refused =
        |protocol| row(TaskFault::LargeFile(40 << 20), STATUS, 1, "is larger than").over(protocol);
    check(PROTOCOLS.map(saved)).await;
    check(PROTOCOLS.map(refused)).await;
    check([row(
        TaskFault::LargeFile(11 << 20),
        SEND,
        0,
        "Files skipped (over 10485760 bytes): large.bin",
    )])
    .await;
}

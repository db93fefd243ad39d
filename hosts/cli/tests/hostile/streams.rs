//! Streams that go wrong: the task is read instead, or the user's time is up.

use volcanic_testkit::{HostileProtocol, HostileTrick, StreamFault};

use crate::table::{Row, SEND, SUBSCRIBE, WATCH, check};

/// The most that is read of a stream, and what the system buffers.
const MOST_SENT: u64 = 272 << 20;

/// What comes of a task whose stream goes wrong.
fn read_instead(fault: StreamFault) -> Row {
    let row = Row::new(HostileTrick::Stream(fault), SEND, 0, " is completed.\ndone");
    Row { most_sent: MOST_SENT, ..row }
}

fn everywhere(fault: &StreamFault) -> [Row; 3] {
    [HostileProtocol::JsonRpc, HostileProtocol::HttpJson, HostileProtocol::OldJsonRpc]
        .map(|protocol| read_instead(fault.clone()).over(protocol))
}

#[tokio::test]
async fn an_endless_line_comment_or_event_costs_little() {
    check([
        read_instead(StreamFault::EndlessLine),
        read_instead(StreamFault::EndlessComments),
        read_instead(StreamFault::EndlessBlankLines),
        read_instead(StreamFault::HugeEvent(1 << 30)),
        read_instead(StreamFault::LongId(30 << 20)),
        read_instead(StreamFault::LongName(30 << 20)),
        read_instead(StreamFault::LongId(1 << 30)),
        read_instead(StreamFault::LongName(1 << 30)),
    ])
    .await;
}

fn followed(fault: StreamFault) -> Row {
    let row = Row::new(HostileTrick::Stream(fault), SEND, 0, "task task-1 (context context-1) is ");
    Row { most_sent: MOST_SENT, ..row.or(5) }
}

#[tokio::test]
async fn a_million_events_cost_little() {
    check([
        read_instead(StreamFault::EmptyEvents(1_000_000)),
        // How far it gets in the time of the user depends on the machine.
        followed(StreamFault::TinyEvents(1_000_000)),
        followed(StreamFault::Artifacts(1_000_000)),
    ])
    .await;
}

/// Who asks for the stream itself is told why it ended.
fn told(fault: &StreamFault, reason: &str) -> [Row; 2] {
    [HostileProtocol::JsonRpc, HostileProtocol::HttpJson].map(|protocol| {
        let row = Row::new(HostileTrick::Stream(fault.clone()), SUBSCRIBE, 1, reason);
        Row { most_sent: MOST_SENT, ..row.over(protocol) }
    })
}

#[tokio::test]
async fn who_follows_a_stream_is_told_why_it_ended() {
    let too_large = "is larger than 32156330 bytes";
    let silent = "is larger than 65536 bytes";
    check(
        [
            told(&StreamFault::EndlessLine, too_large),
            told(&StreamFault::HugeEvent(1 << 30), too_large),
            told(&StreamFault::LongName(1 << 30), too_large),
            told(&StreamFault::LongId(1 << 30), too_large),
            told(&StreamFault::EndlessComments, silent),
            told(&StreamFault::EndlessBlankLines, silent),
            told(&StreamFault::EmptyEvents(1_000_000), silent),
            told(&StreamFault::OtherTask, "it is about another task"),
            told(&StreamFault::NotText, "is not UTF-8"),
            told(&StreamFault::Deep(100_000), "cannot be used"),
            told(&StreamFault::CutInEvent, "cannot be used"),
        ]
        .into_iter()
        .flatten(),
    )
    .await;
    let other = HostileTrick::Stream(StreamFault::OtherRequest);
    check([Row::new(other, SUBSCRIBE, 1, "it belongs to another request")]).await;
}

#[tokio::test]
async fn a_watch_reads_the_task_whatever_its_stream_does() {
    check(
        [
            StreamFault::HugeEvent(1 << 30),
            StreamFault::EndlessComments,
            StreamFault::OtherTask,
            StreamFault::CutInEvent,
        ]
        .map(|fault| Row::new(HostileTrick::Stream(fault), WATCH, 0, "done")),
    )
    .await;
}

#[tokio::test]
async fn events_of_others_and_broken_ones_end_the_stream() {
    check(
        [
            StreamFault::OtherTask,
            StreamFault::OtherRequest,
            StreamFault::NotText,
            StreamFault::CutInEvent,
            StreamFault::Deep(100_000),
        ]
        .iter()
        .flat_map(everywhere),
    )
    .await;
}

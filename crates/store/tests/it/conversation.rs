//! Entries: what is written comes back, in order, from the last reset on.

use std::time::Duration;

use volcanic_agent_core::{
    Block, Entry, EntryBody, Replay, SessionStore as _, StopReason, ToolCall, Usage,
};

use crate::fixture::{Fixture, answer, call, chat, start, step, tool, user};

#[tokio::test]
async fn every_kind_of_entry_comes_back_as_it_was_written() {
    let fixture = Fixture::new();
    let replay = Replay {
        api: "a".to_owned(),
        provider: "p".to_owned(),
        model: "m".to_owned(),
        value: serde_json::json!([1, null]),
    };
    let blocks = vec![
        Block::Thinking { text: String::new(), replay: Some(replay.clone()) },
        Block::Text { text: "before\n".to_owned() },
        Block::ToolCall(ToolCall {
            id: "c1".to_owned(),
            name: "read".to_owned(),
            arguments: Err("{not json".to_owned()),
            replay: Some(replay),
        }),
    ];
    let bodies = vec![
        user("k"),
        EntryBody::Assistant {
            blocks: blocks.clone(),
            stop: StopReason::ToolUse,
            model: "m".to_owned(),
            usage: Usage::default(),
        },
        tool("c1", "result"),
        call("c2"),
        EntryBody::Failed { blocks, reason: "cut".to_owned(), aborted: false, last: false },
        EntryBody::Resumed,
        answer("\u{1F30B}"),
    ];
    let written = fixture.store.commit(step("1", bodies.clone())).await.unwrap();
    let expected: Vec<_> =
        (1..).zip(bodies).map(|(seq, body)| Entry { seq, at: start(), body }).collect();
    assert_eq!(written, expected);
    assert_eq!(fixture.store.entries(&chat("1")).await.unwrap(), expected);
    assert_eq!(fixture.crashed().store.entries(&chat("1")).await.unwrap(), expected);
}

#[tokio::test]
async fn places_run_without_gaps_per_conversation() {
    let fixture = Fixture::new();
    fixture.store.commit(step("1", vec![user("a"), answer("b")])).await.unwrap();
    fixture.store.commit(step("2", vec![user("c")])).await.unwrap();
    fixture.clock.advance(Duration::from_secs(5));
    let written = fixture.store.commit(step("1", vec![user("d")])).await.unwrap();
    let later = start() + Duration::from_secs(5);
    assert_eq!(written, [Entry { seq: 3, at: later, body: user("d") }]);
    let places: Vec<_> =
        fixture.store.entries(&chat("1")).await.unwrap().iter().map(|entry| entry.seq).collect();
    assert_eq!(places, [1, 2, 3]);
}

#[tokio::test]
async fn entries_before_the_last_reset_are_kept_but_not_read() {
    let fixture = Fixture::new();
    fixture.store.commit(step("1", vec![user("a"), EntryBody::Reset, answer("b")])).await.unwrap();
    fixture.store.commit(step("1", vec![EntryBody::Reset])).await.unwrap();
    assert_eq!(fixture.bodies(&chat("1")).await, []);
    let written = fixture.store.commit(step("1", vec![user("c")])).await.unwrap();
    assert_eq!(written[0].seq, 5);
    assert_eq!(fixture.bodies(&chat("1")).await, [user("c")]);
    let connection = rusqlite::Connection::open(fixture.path()).unwrap();
    let kept: i64 =
        connection.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 5);
}

#[tokio::test]
async fn empty_step_writes_nothing_and_succeeds() {
    let fixture = Fixture::new();
    assert_eq!(fixture.store.commit(step("1", vec![])).await.unwrap(), []);
    assert_eq!(fixture.store.entries(&chat("1")).await.unwrap(), []);
}

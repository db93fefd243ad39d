//! Streams that end well.

use serde_json::{Value, json};
use volcanic_agent_core::{Block, ModelEvent, StopReason, ToolCall};

use crate::server::{Answer, Server, ask, chunk, done, finish, usage};

fn started() -> ModelEvent {
    ModelEvent::Start { response_id: None }
}

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({ "tool_calls": [{
        "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": arguments }
    }]})
}

fn more(index: u64, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] })
}

fn blocks(events: &[ModelEvent]) -> Vec<(u32, Block)> {
    let mut blocks: Vec<(u32, Block)> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::BlockEnd { block, content } => Some((*block, content.clone())),
            _ => None,
        })
        .collect();
    blocks.sort_by_key(|(block, _)| *block);
    blocks
}

fn tool_call(id: &str, name: &str, arguments: Result<Value, &str>) -> Block {
    Block::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.map_err(str::to_owned),
        replay: None,
    })
}

#[tokio::test]
async fn text_arrives_piece_by_piece() {
    let server = Server::start([Answer::stream(&[
        chunk(&json!({ "role": "assistant", "content": "" })),
        chunk(&json!({ "content": "Hel" })),
        chunk(&json!({ "content": "lo" })),
        finish("stop"),
        usage(12, 3),
    ])
    .done()])
    .await;
    let text = |text: &str| ModelEvent::TextDelta { block: 0, text: text.to_owned() };
    let whole = Block::Text { text: "Hello".to_owned() };
    let expected = [
        started(),
        text("Hel"),
        text("lo"),
        ModelEvent::BlockEnd { block: 0, content: whole },
        done(StopReason::Stop, 12, 3),
    ];
    assert_eq!(ask(&server).await, expected);
}

#[tokio::test]
async fn parallel_calls_with_split_arguments_are_put_together() {
    let server = Server::start([Answer::stream(&[
        chunk(&json!({ "content": "Looking." })),
        chunk(&call(0, "call_a", "read", "")),
        chunk(&more(0, "{\"pa")),
        chunk(&call(1, "call_b", "ls", "{\"path\":")),
        chunk(&more(0, "th\":\"a\"}")),
        chunk(&more(1, "\".\"}")),
        finish("tool_calls"),
        usage(5, 7),
    ])
    .done()])
    .await;
    let events = ask(&server).await;
    let expected = [
        (0, Block::Text { text: "Looking.".to_owned() }),
        (1, tool_call("call_a", "read", Ok(json!({ "path": "a" })))),
        (2, tool_call("call_b", "ls", Ok(json!({ "path": "." })))),
    ];
    assert_eq!(blocks(&events), expected);
    assert_eq!(events.last(), Some(&done(StopReason::ToolUse, 5, 7)));
    let arguments: String = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::ToolArgsDelta { block: 1, json } => Some(json.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(arguments, r#"{"path":"a"}"#);
    assert!(events.contains(&ModelEvent::ToolCallStart { block: 2, name: "ls".to_owned() }));
}

#[tokio::test]
async fn call_without_index_is_not_lost() {
    let server = Server::start([Answer::stream(&[
        chunk(&json!({ "tool_calls": [{ "id": "call_a", "type": "function", "function": { "name": "ls", "arguments": "{\"path\":" } }] })),
        chunk(&json!({ "tool_calls": [{ "function": { "arguments": "\".\"}" } }] })),
        finish("tool_calls"),
    ])
    .done()])
    .await;
    let events = ask(&server).await;
    assert_eq!(blocks(&events), [(0, tool_call("call_a", "ls", Ok(json!({ "path": "." }))))]);
    assert_eq!(events.last(), Some(&done(StopReason::ToolUse, 0, 0)));
}

#[tokio::test]
async fn two_calls_under_one_index_stay_two() {
    let server = Server::start([Answer::stream(&[
        chunk(&call(0, "call_a", "ls", "{}")),
        chunk(&call(0, "call_b", "read", "{\"path\":\"x\"}")),
        finish("tool_calls"),
    ])
    .done()])
    .await;
    let calls: Vec<Block> =
        blocks(&ask(&server).await).into_iter().map(|(_, block)| block).collect();
    let expected = [
        tool_call("call_a", "ls", Ok(json!({}))),
        tool_call("call_b", "read", Ok(json!({ "path": "x" }))),
    ];
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn arguments_that_are_no_object_are_kept_apart() {
    for raw in ["{\"path\": ", "[1]", "not json"] {
        let server = Server::start([Answer::stream(&[
            chunk(&call(0, "call_a", "read", raw)),
            finish("tool_calls"),
        ])
        .done()])
        .await;
        let events = ask(&server).await;
        assert_eq!(blocks(&events), [(0, tool_call("call_a", "read", Err(raw)))]);
    }
}

#[tokio::test]
async fn reasoning_is_thinking_and_not_an_answer() {
    for field in ["reasoning_content", "reasoning"] {
        let server = Server::start([Answer::stream(&[
            chunk(&json!({ field: "Hmm, " })),
            chunk(&json!({ field: "yes." })),
            chunk(&json!({ "content": "Yes." })),
            finish("stop"),
        ])
        .done()])
        .await;
        let events = ask(&server).await;
        let thinking = |text: &str| ModelEvent::ThinkingDelta { block: 0, text: text.to_owned() };
        assert_eq!(events[1..3], [thinking("Hmm, "), thinking("yes.")]);
        let ended = blocks(&events);
        let [
            (0, Block::Thinking { text, replay: Some(replay) }),
            (1, Block::Text { text: answer }),
        ] = ended.as_slice()
        else {
            panic!("{ended:?}");
        };
        assert_eq!((text.as_str(), answer.as_str()), ("Hmm, yes.", "Yes."));
        assert_eq!(replay.value, json!({ field: "" }));
        let stamp = (replay.api.as_str(), replay.provider.as_str(), replay.model.as_str());
        assert_eq!(stamp, ("openai-chat", server.host().as_str(), "test-1"));
    }
}

#[tokio::test]
async fn reasons_to_stop_are_told_apart() {
    for (reason, expected) in [
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refusal),
        // Announced, but no call came.
        ("tool_calls", StopReason::Stop),
    ] {
        let server =
            Server::start([
                Answer::stream(&[chunk(&json!({ "content": "x" })), finish(reason)]).done()
            ])
            .await;
        assert_eq!(ask(&server).await.last(), Some(&done(expected, 0, 0)), "{reason}");
    }
}

#[tokio::test]
async fn call_cut_by_the_output_limit_says_so() {
    let server = Server::start([Answer::stream(&[
        chunk(&call(0, "call_a", "write", "{\"path\":\"a\",\"content\":\"hal")),
        finish("length"),
    ])
    .done()])
    .await;
    let events = ask(&server).await;
    let raw = "{\"path\":\"a\",\"content\":\"hal";
    assert_eq!(blocks(&events), [(0, tool_call("call_a", "write", Err(raw)))]);
    assert_eq!(events.last(), Some(&done(StopReason::Length, 0, 0)));
}

#[tokio::test]
async fn finished_stream_without_the_done_line_is_complete() {
    let server =
        Server::start([Answer::stream(&[chunk(&json!({ "content": "x" })), finish("stop")])]).await;
    assert_eq!(ask(&server).await.last(), Some(&done(StopReason::Stop, 0, 0)));
}

#[tokio::test]
async fn server_without_a_key_gets_none() {
    let answer = Answer::stream(&[chunk(&json!({ "content": "x" })), finish("stop")]).done();
    let server = Server::start_with([answer], false).await;
    assert_eq!(ask(&server).await.last(), Some(&done(StopReason::Stop, 0, 0)));
}

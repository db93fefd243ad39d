use serde_json::json;

use super::*;
use crate::{
    content::ToolCall,
    model::{StopReason, Usage},
    prompt::{Origin, PromptKey},
};

fn user(text: &str) -> EntryBody {
    EntryBody::User {
        text: text.to_owned(),
        origin: Origin::Owner,
        key: PromptKey::new("k"),
        hops: 0,
        source: None,
    }
}

fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "t".to_owned(),
        arguments: Ok(json!({})),
        replay: None,
    })
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn assistant(blocks: Vec<Block>) -> EntryBody {
    EntryBody::Assistant {
        blocks,
        stop: StopReason::Stop,
        model: "m".to_owned(),
        usage: Usage::default(),
    }
}

fn reply(id: &str, text: &str, is_error: bool) -> ToolReply {
    let (call_id, text) = (id.to_owned(), text.to_owned());
    ToolReply { call_id, name: "t".to_owned(), text, is_error, settles: false }
}

fn prompt(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

#[test]
fn failed_replies_and_marks_are_left_out() {
    let failed = EntryBody::Failed {
        blocks: vec![call("1")],
        reason: "r".to_owned(),
        aborted: true,
        last: true,
    };
    let entries = [user("a"), failed, EntryBody::Resumed, user("b"), assistant(vec![text("c")])];
    let expected = [prompt("a"), prompt("b"), Message::Assistant { blocks: vec![text("c")] }];
    assert_eq!(messages(&entries), expected);
}

#[test]
fn results_follow_their_calls_in_the_order_of_the_calls() {
    let entries = [
        user("a"),
        assistant(vec![call("1"), call("2")]),
        EntryBody::Tool(reply("2", "two", false)),
        user("b"),
        EntryBody::Tool(reply("1", "one", false)),
    ];
    let expected = [
        prompt("a"),
        Message::Assistant { blocks: vec![call("1"), call("2")] },
        Message::Tool(reply("1", "one", false)),
        Message::Tool(reply("2", "two", false)),
        prompt("b"),
    ];
    assert_eq!(messages(&entries), expected);
}

#[test]
fn call_without_a_result_gets_one() {
    let entries = [user("a"), assistant(vec![call("1")]), user("b")];
    let expected = [
        prompt("a"),
        Message::Assistant { blocks: vec![call("1")] },
        Message::Tool(reply("1", notice::NO_RESULT, true)),
        prompt("b"),
    ];
    assert_eq!(messages(&entries), expected);
}

#[test]
fn stray_results_and_empty_replies_are_left_out() {
    let empty = Block::Thinking { text: String::new(), replay: None };
    let entries = [
        user("a"),
        EntryBody::Tool(reply("9", "stray", false)),
        assistant(vec![]),
        assistant(vec![empty, text("")]),
    ];
    assert_eq!(messages(&entries), [prompt("a")]);
}

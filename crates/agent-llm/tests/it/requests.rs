//! What is sent, to the letter.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{
    Block, Capabilities, Message, ModelRequest, Replay, ToolCall, ToolReply, ToolSpec,
};
use volcanic_agent_llm::{OpenAiConfig, OpenAiConfigError, openai_chat};
use volcanic_base::Secret;

use crate::server::{Answer, KEY, Server, chunk, collect, finish, prompt};

fn fine() -> Answer {
    Answer::stream(&[chunk(&json!({ "content": "ok" })), finish("stop")]).done()
}

async fn sent(server: &Server, request: ModelRequest) -> Value {
    collect(&*server.model(), request, CancellationToken::new()).await;
    server.requests().pop().unwrap()
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

fn call(id: &str, name: &str, arguments: Result<Value, &str>, replay: Option<Replay>) -> Block {
    Block::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.map_err(str::to_owned),
        replay,
    })
}

fn result(call_id: &str, name: &str, text: &str, is_error: bool) -> Message {
    Message::Tool(ToolReply {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        text: text.to_owned(),
        is_error,
        settles: false,
    })
}

fn ls() -> ToolSpec {
    ToolSpec {
        name: "ls".to_owned(),
        description: "Lists.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
    }
}

#[tokio::test]
async fn smallest_request_has_nothing_extra() {
    let server = Server::start([fine()]).await;
    let expected = json!({
        "model": "test-1",
        "messages": [{ "role": "user", "content": "hi" }],
        "stream": true,
        "stream_options": { "include_usage": true }
    });
    assert_eq!(sent(&server, prompt("hi")).await, expected);
}

#[tokio::test]
async fn conversation_is_sent_in_order_with_results_after_their_calls() {
    let server = Server::start([fine()]).await;
    let request = ModelRequest {
        system: "Be brief.".to_owned(),
        messages: vec![
            user("look"),
            Message::Assistant {
                blocks: vec![
                    text("Looking."),
                    call("call_a", "ls", Ok(json!({ "path": "a" })), None),
                    call("call_b", "ls", Ok(json!({})), None),
                ],
            },
            result("call_a", "ls", "x\ny", false),
            result("call_b", "ls", "`.` does not exist", true),
            Message::Assistant { blocks: vec![text("Two files.")] },
            user("thanks"),
        ],
        tools: vec![ls()],
    };
    let function = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "ls", "arguments": arguments } });
    let expected = json!({
        "model": "test-1",
        "messages": [
            { "role": "system", "content": [{ "type": "text", "text": "Be brief." }] },
            { "role": "user", "content": "look" },
            {
                "role": "assistant", "content": "Looking.",
                "tool_calls": [function("call_a", "{\"path\":\"a\"}"), function("call_b", "{}")]
            },
            { "role": "tool", "tool_call_id": "call_a", "content": "x\ny" },
            { "role": "tool", "tool_call_id": "call_b", "content": "`.` does not exist" },
            { "role": "assistant", "content": "Two files." },
            { "role": "user", "content": "thanks" }
        ],
        "tools": [{ "type": "function", "function": {
            "name": "ls", "description": "Lists.",
            "parameters": { "type": "object", "properties": { "path": { "type": "string" } } }
        }}],
        "stream": true,
        "stream_options": { "include_usage": true }
    });
    assert_eq!(sent(&server, request).await, expected);
}

#[tokio::test]
async fn invalid_arguments_go_back_as_an_object() {
    let server = Server::start([fine()]).await;
    let request = ModelRequest {
        system: String::new(),
        messages: vec![
            user("look"),
            Message::Assistant { blocks: vec![call("call_a", "ls", Err("[1"), None)] },
            result("call_a", "ls", "the arguments are no object", true),
        ],
        tools: vec![ls()],
    };
    let messages = sent(&server, request).await["messages"].clone();
    assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], "{}");
    assert_eq!(messages[2]["tool_call_id"], "call_a");
}

#[tokio::test]
async fn reasoning_goes_back_only_to_the_model_that_made_it() {
    let server = Server::start([fine(), fine(), fine()]).await;
    let request = |replay: Option<Replay>| ModelRequest {
        system: String::new(),
        messages: vec![
            user("hi"),
            Message::Assistant {
                blocks: vec![Block::Thinking { text: "Hmm.".to_owned(), replay }, text("Hello.")],
            },
            user("again"),
        ],
        tools: vec![ls()],
    };
    let replay = |model: &str| Replay {
        api: "openai-chat".to_owned(),
        provider: server.host(),
        model: model.to_owned(),
        value: json!({ "reasoning_content": "" }),
    };
    let same = sent(&server, request(Some(replay("test-1")))).await;
    let expected = json!({ "role": "assistant", "content": "Hello.", "reasoning_content": "Hmm." });
    assert_eq!(same["messages"][1], expected);
    for other in [Some(replay("test-2")), None] {
        let sent = sent(&server, request(other)).await;
        assert_eq!(sent["messages"][1], json!({ "role": "assistant", "content": "Hello." }));
    }
}

#[tokio::test]
async fn what_a_vendor_put_beside_a_call_goes_back_with_it() {
    let signed = json!({
        "index": 0, "id": "call_a", "type": "function",
        "function": { "name": "ls", "arguments": "{\"path\":\".\"}" },
        "extra_content": { "google": { "thought_signature": "c2lnbmVk" } }
    });
    let server = Server::start([
        Answer::stream(&[chunk(&json!({ "tool_calls": [signed] })), finish("tool_calls")]).done(),
        fine(),
    ])
    .await;
    let model = server.model();
    let events = collect(&*model, prompt("hi"), CancellationToken::new()).await;
    let blocks: Vec<Block> = events
        .into_iter()
        .filter_map(|event| match event {
            volcanic_agent_core::ModelEvent::BlockEnd { content, .. } => Some(content),
            _ => None,
        })
        .collect();
    // As it would be after a restart.
    let blocks: Vec<Block> =
        serde_json::from_str(&serde_json::to_string(&blocks).unwrap()).unwrap();
    let request = ModelRequest {
        system: String::new(),
        messages: vec![
            user("hi"),
            Message::Assistant { blocks },
            result("call_a", "ls", "x", false),
        ],
        tools: vec![ls()],
    };
    let expected = json!({
        "role": "assistant",
        "tool_calls": [{
            "id": "call_a", "type": "function",
            "function": { "name": "ls", "arguments": "{\"path\":\".\"}" },
            "extra_content": { "google": { "thought_signature": "c2lnbmVk" } }
        }]
    });
    assert_eq!(sent(&server, request).await["messages"][1], expected);
}

#[tokio::test]
async fn request_without_tools_tells_earlier_calls_as_text() {
    let server = Server::start([fine()]).await;
    let request = ModelRequest {
        system: String::new(),
        messages: vec![
            user("look"),
            Message::Assistant { blocks: vec![call("call_a", "ls", Ok(json!({})), None)] },
            result("call_a", "ls", "x", false),
        ],
        tools: Vec::new(),
    };
    let sent = sent(&server, request).await;
    assert_eq!(sent.get("tools"), None);
    let text = sent["messages"].to_string();
    assert!(text.contains("[called tool ls with {}]") && !text.contains("tool_calls"), "{text}");
}

#[test]
fn model_says_who_it_is_and_hides_its_key() {
    let config = OpenAiConfig::new("https://models.example/v1", Some(Secret::new(KEY)), "big-1");
    assert!(!format!("{config:?}").contains(KEY));
    let model = openai_chat(OpenAiConfig { context_window: 9000, ..config }).unwrap();
    assert_eq!(model.id(), "openai:big-1");
    assert_eq!(model.capabilities(), Capabilities { tools: true, context_window: 9000 });
    assert!(!format!("{model:?}").contains(KEY), "{model:?}");
}

#[test]
fn configuration_that_cannot_work_is_refused_without_repeating_it() {
    let refused = |config| openai_chat(config).map(drop).unwrap_err();
    for (url, reason) in [
        ("models.example", "it is not a URL"),
        ("ftp://models.example", "it has to begin with http:// or https://"),
        ("https://me:pass@models.example", "it must not contain a user or password"),
        ("https://models.example/?key=pass", "it must not contain ? or #"),
    ] {
        let error = refused(OpenAiConfig::new(url, None, "m"));
        let expected = format!("the base URL of the model cannot be used: {reason}");
        assert_eq!(error.to_string(), expected);
        assert!(!format!("{error:?}").contains("pass@"), "{error:?}");
    }
    let url = "https://models.example/v1";
    assert!(matches!(refused(OpenAiConfig::new(url, None, "")), OpenAiConfigError::NoModel));
    let error = refused(OpenAiConfig::new(url, Some(Secret::new("a\nb")), "m"));
    assert!(matches!(error, OpenAiConfigError::Key), "{error:?}");
}

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{
    Message, Model as _, ModelErrorKind, ModelEvent, ModelRequest, Origin, ScriptedModel,
    ScriptedReply, ScriptedRules, StopReason, Tool, ToolContext, ToolOutput, ToolSpec,
};

use crate::kit::{Kit, accept, config, store, within};

fn request(text: &str) -> ModelRequest {
    let messages = vec![Message::User { text: text.to_owned() }];
    ModelRequest { system: String::new(), messages, tools: Vec::new() }
}

fn is_terminal(event: &ModelEvent) -> bool {
    matches!(event, ModelEvent::Done { .. } | ModelEvent::Failed { .. })
}

async fn play(model: &ScriptedModel, cancel: CancellationToken) -> Vec<ModelEvent> {
    let stream = model.stream(request("hi"), cancel).await;
    within(stream.collect()).await
}

#[tokio::test(start_paused = true)]
async fn every_stream_ends_with_one_terminal_event() {
    let replies = [
        ScriptedReply::say("one two"),
        ScriptedReply::say("").and_call("t", json!({})),
        ScriptedReply::say("cut").stopping(StopReason::Length),
        ScriptedReply::say("so").then_fail(ModelErrorKind::Truncated, "broke off"),
    ];
    let model = ScriptedModel::steps(replies);
    for _ in 0..5 {
        let events = play(&model, CancellationToken::new()).await;
        assert_eq!(events.iter().filter(|event| is_terminal(event)).count(), 1, "{events:?}");
        assert!(is_terminal(events.last().unwrap()), "{events:?}");
    }
    model.assert_finished();
    let last = play(&model, CancellationToken::new()).await.pop().unwrap();
    let ModelEvent::Failed { error, .. } = last else { panic!("{last:?}") };
    assert_eq!(error.message, "the script has no step for this request");
}

#[tokio::test(start_paused = true)]
async fn cancelled_stream_ends_as_aborted_with_what_was_said() {
    let model = ScriptedModel::steps([ScriptedReply::say("one two three").then_hang()])
        .with_delay(Duration::from_secs(1));
    let cancel = CancellationToken::new();
    let mut stream = model.stream(request("hi"), cancel.clone()).await;
    let before = Instant::now();
    for _ in 0..3 {
        assert!(!is_terminal(&within(stream.next()).await.unwrap()));
    }
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    cancel.cancel();
    let last = within(stream.next()).await.unwrap();
    let ModelEvent::Failed { error, partial } = last else { panic!("{last:?}") };
    assert_eq!(error.kind, ModelErrorKind::Aborted);
    assert_eq!(partial.blocks, [volcanic_agent_core::Block::Text { text: "one two ".to_owned() }]);
    assert_eq!(within(stream.next()).await, None);
}

/// Stands for the `a2a` tool and says what it was called with.
#[derive(Debug)]
struct A2a;

#[async_trait]
impl Tool for A2a {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({"type": "object"});
        ToolSpec { name: "a2a".to_owned(), description: String::new(), parameters }
    }

    async fn call(&self, arguments: Value, _: ToolContext) -> ToolOutput {
        ToolOutput::text(format!("{} of {}", arguments["action"], arguments["agent"]))
    }
}

#[tokio::test(start_paused = true)]
async fn built_in_rules_carry_a_session_from_prompt_to_tool_to_answer() {
    let kit = Kit::over(store(), ScriptedModel::built_in(), vec![Arc::new(A2a)], config());
    kit.ask("ask travel-bot: Rome?").await;
    accept(
        &kit.store,
        "d",
        Origin::Delivery,
        "[A2A result from \"x\", task 1 (completed)]\nContext: 2\nask x: y",
    )
    .await;
    kit.handle.wake();
    kit.idle().await;
    assert_eq!(kit.screen(), ["\"send\" of \"travel-bot\"", "News from x: ask x: y"]);
}

#[tokio::test(start_paused = true)]
async fn rules_for_people_carry_a_session() {
    let rules = r#"
        [[rule]]
        when = '^tell (?<who>\w+)$'
        call = { tool = "a2a", arguments = { action = "send", agent = "$who" } }
        [[rule]]
        after = "tool:a2a"
        say = "It said: $result"
        [[rule]]
        fail = "no rule for $prompt"
    "#;
    let model = ScriptedModel::rules(ScriptedRules::parse("mine.toml", rules).unwrap());
    let kit = Kit::over(store(), model, vec![Arc::new(A2a)], config());
    kit.ask("tell bob").await;
    kit.ask("dance").await;
    let expected =
        ["It said: \"send\" of \"bob\"", "The assistant could not answer: no rule for dance."];
    assert_eq!(kit.screen(), expected);
}

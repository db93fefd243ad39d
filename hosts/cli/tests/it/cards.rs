//! `volcanic card`: cards of agents and of files, shown and checked.

use axum::{Router, http::header, routing::get};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    keyed_agent::{Served, serve, with_key},
    odd_agent::{Answer, Odd},
    world::{World, nobody},
};

const KEY: &str = "right-key-0123456789";

fn good() -> Value {
    json!({
        "name": "Travel", "description": "Books \u{1b}[31mjourneys\u{202e}", "version": "2.1",
        "provider": {"organization": "Rome Ltd", "url": "https://rome.example/"},
        "supportedInterfaces": [
            {"url": "a.example:50051", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": "https://a.example/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "https://a.example/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": true, "extensions": [{"uri": "https://x.example/e", "required": true}]},
        "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}}},
        "securityRequirements": [{"schemes": {"key": {}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["application/pdf"],
        "skills": [{"id": "book", "name": "Book", "description": "Books", "tags": ["rome"], "examples": ["Rome in May"]}]
    })
}

/// An agent whose card is this text, and nothing else.
async fn serving(card: &'static str) -> Served {
    let card = move || async move { ([(header::CONTENT_TYPE, "text/plain")], card) };
    let routes = Router::new().route("/.well-known/agent-card.json", get(card));
    serve(routes, CancellationToken::new()).await
}

#[tokio::test]
async fn a_card_is_shown_with_the_interface_that_is_used() {
    let world = World::new();
    let remote = world.remote().await;
    let url = format!("{}/.well-known/agent-card.json", remote.url.trim_end_matches('/'));
    for agent in ["demo", &remote.url, &url] {
        let ran = world.run(&["card", agent]).await;
        ran.check(0, &["demo agent", "  * JSONRPC 1.0 at http", "(used: the first)", "streams"]);
        ran.check(0, &["  - echo: ", "Security: no key is asked for"]);
    }
    let card = world.run(&["card", "demo", "--json"]).await.json();
    assert_eq!(
        (&card["name"], card["supportedInterfaces"].is_array()),
        (&json!("demo agent"), true)
    );
    world.run(&["card", &nobody().url]).await.check(3, &["Could not reach"]);
    world.run(&["card", "unknown"]).await.check(2, &["there is no agent \"unknown\""]);
    world.run(&["card", "demo", "--no-card", "--binding", "rest"]).await.check(2, &["--extended"]);
}

#[tokio::test]
async fn a_card_of_a_file_or_a_pipe_is_shown_harmless() {
    let world = World::new();
    let text = format!("\u{feff}{}", good());
    world.write("workspace/card.json", &text);
    let file = world.run(&["card", "card.json"]).await;
    file.check(0, &["Travel, version 2.1\n  Books \\u{1b}[31mjourneys\\u{202e}\n"]);
    file.check(0, &[
        "provided by Rome Ltd (https://rome.example/)",
        "  - GRPC 1.0 at a.example:50051\n",
        "  * HTTP+JSON 1.0 at https://a.example/rest (used: the first that is spoken here, 1.0 before 0.3)",
        "Capabilities: streams\n  - extension https://x.example/e (required)",
        "Takes: text/plain\nGives: application/pdf",
        "  - book: Book\n    Books\n    tags: rome\n    for example: Rome in May",
        "  - key: a key in the header X-API-Key\n  needs key",
    ]);
    let piped = world.run_input(&["card", "-"], &text).await;
    assert_eq!((piped.code, &piped.out), (0, &file.out), "{piped:?}");
    let json = world.run(&["card", "card.json", "--json"]).await;
    assert_eq!((json.json(), json.out.lines().count()), (good(), 1));
    assert!(!json.out.contains('\u{202e}'), "{json:?}");
    let wanted = world.run(&["card", "card.json", "--protocol", "0.3"]).await;
    wanted.check(
        0,
        &["  * JSONRPC 0.3 at https://a.example/old (used: the first that is what was asked for)"],
    );
    let mut lone = good();
    lone["supportedInterfaces"].as_array_mut().unwrap().truncate(1);
    let lone = world.run_input(&["card", "-"], &lone.to_string()).await;
    lone.check(0, &["  - GRPC 1.0 at a.example:50051", "  None is used: "]);
}

#[tokio::test]
async fn what_is_wrong_with_a_card_is_told_with_its_place_and_rule() {
    let world = World::new();
    let ran = world.run_input(&["card", "-", "--validate"], &good().to_string()).await;
    ran.check(0, &["The card is valid: 0 errors, 0 warnings."]);
    let mut bad = good();
    bad["supportedInterfaces"][2]["url"] = json!("rest");
    bad["skills"][0]["id"] = json!(7);
    bad["defaultInputModes"] = json!(["\u{1b}[2J\u{202e}"]);
    world.write("workspace/bad.json", &bad.to_string());
    let ran = world.run(&["card", "bad.json", "--validate"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{ran:?}");
    for part in [
        "error: supportedInterfaces[2].url: it is not an absolute URL",
        "\n  4.4.6: ",
        "error: skills[0].id: it is a number, and must be text\n  4.4.5 and 5.7: ",
        "warning: defaultInputModes[0]: it is ",
        "The card is not valid: 2 errors, 1 warning.\n",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing: {ran:?}");
    }
    assert!(!ran.out.contains(['\u{1b}', '\u{202e}']), "{ran:?}");
    let json = world.run(&["card", "bad.json", "--validate", "--json"]).await;
    let found = json.json();
    assert_eq!((json.code, &found["card"]), (1, &bad), "{json:?}");
    assert_eq!((&found["errors"], &found["warnings"]), (&json!(2), &json!(1)));
    let first = &found["findings"][0];
    assert_eq!((&first["severity"], first["rule"].is_string()), (&json!("error"), true), "{first}");
    assert_eq!(found["findings"].as_array().unwrap().len(), 3);

    bad["skills"] = json!(vec![bad["skills"][0].clone(); 150]);
    let many = world.run_input(&["card", "-", "--validate"], &bad.to_string()).await;
    assert!(many.out.contains("\nand 52 more\n"), "{}", many.out);
}

#[tokio::test]
async fn a_card_that_is_refused_is_not_valid() {
    let world = World::new();
    let text = good().to_string();
    for (from, to) in [
        ("\"name\":\"Travel\"", "\"name\":\"Travel\",\"name\":\"Rome\""),
        ("\"name\":\"Travel\"", "\"name\":\"\""),
        ("\"protocolVersion\":\"0.3\"", "\"protocolVersion\":\"\""),
        ("\"url\":\"https://a.example/old\"", "\"url\":\"\""),
        ("\"protocolBinding\":\"GRPC\"", "\"protocolBinding\":\"\""),
    ] {
        assert!(text.contains(from), "{text}");
        let card = text.replacen(from, to, 1);
        world.run_input(&["card", "-"], &card).await.check(2, &["the card "]);
        let checked = world.run_input(&["card", "-", "--validate"], &card).await;
        assert_eq!((checked.code, checked.err.as_str()), (1, ""), "{to}: {checked:?}");
        assert!(
            checked.out.ends_with("The card is not valid: 1 error, 0 warnings.\n"),
            "{checked:?}"
        );
    }
}

#[tokio::test]
async fn text_that_is_no_card_is_told_wherever_it_is_from() {
    let world = World::new();
    let agent = serving("{\"name\": oops}").await;
    let shown = world.run(&["card", &agent.url]).await;
    shown.check(1, &["it is not valid: expected value", "With --validate all that is wrong"]);
    let json = world.run(&["card", &agent.url, "--json"]).await;
    assert_eq!((json.code, &json.json()["error"]["kind"]), (1, &json!("card")), "{json:?}");
    let checked = world.run(&["card", &agent.url, "--validate"]).await;
    assert_eq!(checked.code, 1, "{checked:?}");
    for part in [
        "error: the card: it is not JSON: expected value",
        "it is served as \"text/plain\"\n  8.2: ",
        "it has no ETag",
        "1 error, 3 warnings.",
    ] {
        assert!(checked.out.contains(part), "`{part}` is missing: {checked:?}");
    }
    let json = world.run(&["card", &agent.url, "--validate", "--json"]).await.json();
    assert_eq!((&json["card"], &json["errors"]), (&Value::Null, &json!(1)), "{json}");

    world.write("workspace/bad.json", "{}");
    world.run(&["card", "bad.json"]).await.check(2, &["the card cannot be used: ", "--validate"]);
    world.run(&["card", "gone.json", "--validate"]).await.check(2, &["No such file"]);
    let large = " ".repeat((1 << 20) + 1);
    let large = world.run_input(&["card", "-", "--validate"], &large).await;
    large.check(2, &["the card `-` cannot be used: it is larger than 1048576 bytes"]);
}

#[tokio::test]
async fn what_our_own_agent_serves_is_valid() {
    let world = World::new();
    let _remote = world.remote().await;
    let ran = world.run(&["card", "demo", "--validate"]).await;
    ran.check(0, &["The card is valid: 0 errors, 0 warnings."]);
}

#[tokio::test]
async fn the_extended_card_is_asked_for_with_the_key() {
    let world = World::new();
    let odd =
        Odd::start(false, |_, _| Answer::Result(json!({"name": "For you", "skills": 5}))).await;
    world.write("key", KEY);
    let arguments = ["card", &odd.url, "--extended", "--key-file", "../key"];
    let json = world.run(&[&arguments[..], &["--json"]].concat()).await;
    assert_eq!((json.code, json.json()), (0, json!({"name": "For you", "skills": 5})), "{json:?}");
    let checked = world.run(&[&arguments[..], &["--validate"]].concat()).await;
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(
        checked.out.contains("error: skills: it is a number, and must be a list"),
        "{checked:?}"
    );
    let interface = format!("{}rpc", odd.url);
    let alone = ["card", &interface, "--extended", "--no-card", "--binding", "jsonrpc", "--json"];
    assert_eq!(world.run(&alone).await.json()["name"], "For you");
    assert_eq!(odd.methods(), ["GetExtendedAgentCard"; 3]);
    let keys: Vec<_> =
        odd.asked().iter().map(|asked| asked.headers.contains_key("x-api-key")).collect();
    assert_eq!(keys, [true, true, false]);

    let keyed = with_key(KEY).await;
    let none = ["card", &keyed.url, "--extended", "--key-file", "../key"];
    world.run(&none).await.check(1, &["This agent has no extended card"]);
    world.run(&["card", &keyed.url, "--extended"]).await.check(4, &["--key-file or --key-env"]);
}

//! The interop agent on the official Rust SDK: JSON-RPC and HTTP+JSON, one agent per kind of card.
//!
//! The same kinds of card, scenarios and variables as `../python/interop_peer.py`, which says what each does, but that the SDK
//! keeps tasks in memory alone.

mod answers;
mod gates;
mod odd;

use std::{collections::HashMap, sync::Arc};

use a2a::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, ApiKeySecurityScheme, SecurityScheme,
    TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC,
};
use a2a_server::{
    DefaultRequestHandler, HttpPushSender, HttpPushSenderConfig, InMemoryPushConfigStore,
    InMemoryTaskStore, StaticAgentCard, WELL_KNOWN_AGENT_CARD_PATH,
};
use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use tower::ServiceExt;

use answers::Agent;
use odd::{Deaf, OddHandler};

/// The agents, by the first segment of their path.
const KINDS: [&str; 4] = ["open", "still", "quiet", "keyed"];

/// What messages may hold; the SDK refuses everything else.
const INPUT_MODES: [&str; 4] =
    ["text/plain", "application/octet-stream", "application/pdf", "application/json"];

fn card(kind: &str, base: &str, broken: bool) -> AgentCard {
    let interface =
        |path: &str, binding: &str| AgentInterface::new(format!("{base}/{kind}/{path}"), binding);
    let skill = AgentSkill {
        id: "interop".into(),
        name: "Interop".into(),
        description: "Answers, asks, files, waits".into(),
        tags: vec!["test".into()],
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    };
    let scheme = SecurityScheme::ApiKey(ApiKeySecurityScheme {
        location: "header".into(),
        name: "X-API-Key".into(),
        description: None,
    });
    let keyed = kind == "keyed";
    AgentCard {
        name: "rust peer".into(),
        description: "Interop agent on the official Rust SDK".into(),
        version: "1.0.0".into(),
        supported_interfaces: vec![
            interface("rpc", TRANSPORT_PROTOCOL_JSONRPC),
            interface("rest", TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: capabilities(kind, broken),
        default_input_modes: INPUT_MODES.map(str::to_owned).to_vec(),
        default_output_modes: vec!["text/plain".into()],
        skills: if broken { vec![] } else { vec![skill] },
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: keyed.then(|| HashMap::from([("key".to_owned(), scheme)])),
        security_requirements: keyed.then(|| vec![HashMap::from([("key".to_owned(), vec![])])]),
        signatures: None,
    }
}

fn capabilities(kind: &str, broken: bool) -> AgentCapabilities {
    AgentCapabilities {
        streaming: Some(matches!(kind, "open" | "keyed") || kind == "still" && broken),
        push_notifications: Some(true),
        extended_agent_card: Some(false),
        ..Default::default()
    }
}

/// The card that names the host which was asked, so that a proxy in front of this stays in front of it.
async fn serve_card(kind: &'static str, broken: bool, request: Request) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let card = card(kind, &format!("http://{}", host.unwrap_or_default()), broken);
    let router = a2a_server::agent_card::agent_card_router(Arc::new(StaticAgentCard::new(card)));
    let request =
        Request::get(WELL_KNOWN_AGENT_CARD_PATH).body(Body::empty()).expect("it is valid");
    router.oneshot(request).await.into_response()
}

fn agent(kind: &'static str, broken: bool) -> Router {
    let mut handler = DefaultRequestHandler::new(Agent { broken }, InMemoryTaskStore::new())
        .with_default_input_modes(INPUT_MODES.map(str::to_owned).to_vec())
        .with_capabilities(capabilities(kind, broken));
    if broken {
        handler = handler.with_push_config_store(Deaf::default());
    } else {
        // The webhook of the interop run is on loopback, which the SDK's guard refuses.
        let sender = HttpPushSender::new(Some(HttpPushSenderConfig {
            validate_urls: false,
            ..Default::default()
        }));
        handler = handler.with_push_notifications(InMemoryPushConfigStore::new(), sender);
    }
    let handler = Arc::new(OddHandler::new(handler, broken));
    Router::new()
        .route(
            &format!("/{kind}{WELL_KNOWN_AGENT_CARD_PATH}"),
            get(move |request| serve_card(kind, broken, request)),
        )
        .nest(&format!("/{kind}/rpc"), a2a_server::jsonrpc::jsonrpc_router(Arc::clone(&handler)))
        .nest(&format!("/{kind}/rest"), a2a_server::rest::rest_router(handler))
}

/// Lets nobody without the key to the agent that wants one; its card is open.
async fn check_key(key: String, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_kept = path.starts_with("/keyed/") && !path.contains("/.well-known/");
    let given = request.headers().get("x-api-key").and_then(|given| given.to_str().ok());
    if is_kept && given != Some(&key) {
        return (StatusCode::UNAUTHORIZED, "wrong key").into_response();
    }
    next.run(request).await
}

#[tokio::main]
async fn main() {
    let port: u16 = std::env::var("PORT").expect("PORT is set").parse().expect("PORT is a number");
    let broken = std::env::var("BREAK").is_ok_and(|value| !value.is_empty());
    let key = std::env::var("KEY").unwrap_or_default();
    let app = Router::new().route("/gates/{name}", post(gates::open));
    let mut app = KINDS.iter().fold(app, |app, kind| app.merge(agent(kind, broken)));
    if !broken {
        app = app
            .layer(middleware::from_fn(move |request, next| check_key(key.clone(), request, next)));
    }
    let listener =
        tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, app).await.expect("the server runs");
}

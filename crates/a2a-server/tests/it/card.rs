//! The card.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;
use volcanic_a2a_server::{ServerConfig, StaticKeys};
use volcanic_base::Secret;

use crate::remote::{Setup, header, json_of};

const PATH: &str = "/.well-known/agent-card.json";

#[tokio::test]
async fn card_names_the_host_that_was_called() {
    let remote = Setup::default().start().await;
    let card = json_of(remote.get(PATH, &[]).await).await;
    let url = format!("{}/a2a", remote.base);
    assert_eq!(
        card["supportedInterfaces"],
        json!([{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}])
    );
    assert_eq!(card["capabilities"], json!({"streaming": true, "pushNotifications": false}));
    assert_eq!(card["name"], "demo agent");
    assert_eq!(card.get("securitySchemes"), None);
    assert!(
        card["skills"].as_array().unwrap().iter().all(|skill| skill["examples"][0].is_string())
    );
    let response = remote.get(PATH, &[("host", "user@evil.example")]).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn configured_address_and_keys_stand_on_the_card() {
    let config = ServerConfig {
        public_url: Some("https://agents.example/sub/".parse().unwrap()),
        ..ServerConfig::default()
    };
    let auth = Arc::new(StaticKeys::new([("ann".to_owned(), Secret::new("k"))]));
    let remote = Setup { config, auth, pushes: true, ..Setup::default() }.start().await;
    let card = json_of(remote.get(PATH, &[]).await).await;
    assert_eq!(card["supportedInterfaces"][0]["url"], "https://agents.example/sub/a2a");
    assert_eq!(card["capabilities"]["pushNotifications"], true);
    assert_eq!(
        card["securitySchemes"],
        json!({
            "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
            "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
        })
    );
    assert_eq!(
        card["securityRequirements"],
        json!([{"schemes": {"apiKey": {}}}, {"schemes": {"bearer": {}}}])
    );
}

#[tokio::test]
async fn unchanged_card_is_not_sent_again() {
    let remote = Setup::default().start().await;
    let first = remote.get(PATH, &[]).await;
    assert_eq!(header(first.headers(), "cache-control"), "public, max-age=60");
    let tag = header(first.headers(), "etag").to_owned();
    for asked in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
        let again = remote.get(PATH, &[("if-none-match", &asked)]).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{asked}");
        assert_eq!(header(again.headers(), "etag"), tag);
    }
    let other = remote.get(PATH, &[("if-none-match", "\"other\"")]).await;
    assert_eq!(other.status(), StatusCode::OK);
}

//! The card: what the agent says about itself to everybody.

use std::{collections::BTreeMap, fmt, fmt::Write as _, sync::Arc};

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header, uri::Authority};
use sha2::{Digest as _, Sha256};
use url::Url;
use volcanic_a2a_types::{
    AgentCard, AgentInterface, AgentSkill, ApiKeySecurityScheme, BINDING_JSONRPC,
    HttpAuthSecurityScheme, MEDIA_TYPE_JSON, ProtocolVersion, SecurityRequirement, SecurityScheme,
};

use crate::{
    caller::API_KEY_HEADER,
    http_routes::{RPC_PATH, Served},
};

/// What an agent is, without where and how it is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct CardProfile {
    /// The agent's name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The version of the agent.
    pub version: String,
    /// What it can do.
    pub skills: Vec<AgentSkill>,
    /// Media types it takes.
    pub input_modes: Vec<String>,
    /// Media types it gives.
    pub output_modes: Vec<String>,
}

/// Says what the agent is; asked for every card, so that an edit shows at once.
pub trait CardSource: Send + Sync + fmt::Debug {
    /// What the agent is now.
    fn profile(&self) -> CardProfile;
}

impl CardSource for CardProfile {
    fn profile(&self) -> CardProfile {
        self.clone()
    }
}

/// Handles `GET /.well-known/agent-card.json`.
pub(crate) async fn handle(State(served): State<Arc<Served>>, headers: HeaderMap) -> Response {
    let Some(base) = base_url(&served, &headers) else {
        return (StatusCode::BAD_REQUEST, "the request names no usable host\n").into_response();
    };
    let body = match serde_json::to_vec(&build(&served, &base)) {
        Ok(body) => body,
        Err(error) => {
            tracing::error!(%error, "failed to encode the card");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let tag = tag_of(&body);
    let max_age = format!("public, max-age={}", served.config.card_max_age.as_secs());
    let caching = [
        (header::ETAG, tag.clone()),
        (header::CACHE_CONTROL, max_age),
        (header::VARY, "Host".to_owned()),
    ];
    if headers.get_all(header::IF_NONE_MATCH).iter().any(|asked| names_tag(asked, &tag)) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(header::CONTENT_TYPE, MEDIA_TYPE_JSON)], body).into_response()
}

fn build(served: &Served, base: &str) -> AgentCard {
    let profile = served.card.profile();
    let mut card = AgentCard::new(profile.name, profile.description, profile.version);
    let url = format!("{base}{RPC_PATH}");
    let version = ProtocolVersion::V1_0.to_string();
    card.supported_interfaces.push(AgentInterface::new(url, BINDING_JSONRPC, version));
    card.capabilities.streaming = Some(true);
    card.capabilities.push_notifications = Some(served.operations.sends_pushes());
    card.default_input_modes = profile.input_modes;
    card.default_output_modes = profile.output_modes;
    card.skills = profile.skills;
    if served.auth.needs_key() {
        let key = SecurityScheme::ApiKey(ApiKeySecurityScheme::header(API_KEY_HEADER));
        let bearer = SecurityScheme::HttpAuth(HttpAuthSecurityScheme::new("Bearer"));
        card.security_schemes =
            BTreeMap::from([("apiKey".to_owned(), key), ("bearer".to_owned(), bearer)]);
        card.security_requirements =
            ["apiKey", "bearer"].map(SecurityRequirement::one).into_iter().collect();
    }
    card
}

/// The base URL without a slash at its end: the configured one, else what the client called.
fn base_url(served: &Served, headers: &HeaderMap) -> Option<String> {
    if let Some(url) = &served.config.public_url {
        return Some(url.as_str().trim_end_matches('/').to_owned());
    }
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let authority: Authority = host.parse().ok()?;
    let url = Url::parse(&format!("http://{authority}")).ok()?;
    let plain = url.username().is_empty() && url.password().is_none() && url.has_host();
    plain.then(|| url.as_str().trim_end_matches('/').to_owned())
}

fn tag_of(body: &[u8]) -> String {
    let mut tag = String::from("\"");
    for byte in &Sha256::digest(body)[..16] {
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

fn names_tag(asked: &HeaderValue, tag: &str) -> bool {
    let Ok(asked) = asked.to_str() else { return false };
    let mut tags = asked.split(',').map(|one| one.trim().trim_start_matches("W/"));
    tags.any(|one| one == tag || one == "*")
}

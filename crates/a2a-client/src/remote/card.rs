//! The agent's card: where it is, and which of its interfaces is used.

use std::{error::Error, pin::pin};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use url::Url;
use volcanic_a2a_types::{
    AGENT_CARD_PATH, AgentCard, AgentInterface, BINDING_HTTP_JSON, BINDING_JSONRPC,
    ProtocolVersion, VERSION_HEADER, v03,
};
use volcanic_net::{CallKind, GuardPolicy};

use super::line::Line;
use crate::{
    AgentBinding, AgentEntry, AgentProtocol, ClientError, KeyUse, agents_file::shown,
    frame::sanitize_remote_line,
};

mod kept;
mod served;

pub(super) use kept::KeptCard;
pub use served::ServedCard;

/// How much of a card's own words is told in an error, in characters.
const MAX_WORD: usize = 200;

/// Where and how the agent is called.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallTarget {
    pub(super) url: Url,
    pub(super) tenant: Option<String>,
    /// Which interface of the card it is.
    pub(super) interface: usize,
    pub(super) binding: AgentBinding,
    pub(super) protocol: AgentProtocol,
    pub(super) policy: GuardPolicy,
    /// Whether the key and the entry's headers may go there.
    pub(super) is_trusted: bool,
    /// Whether something of the query of the entry's address stands in it.
    pub(super) is_said: bool,
}

/// Where the card of an agent is: at the well-known place below its base URL, unless the URL is that of the card.
pub(super) fn card_url(base: &Url) -> Url {
    let mut url = base.clone();
    // These would travel in the name of the host over HTTP/2. Both fail only for URLs that have no host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let is_card = base.path().to_ascii_lowercase().ends_with(".json");
    if !is_card {
        url.set_path(&format!("{}{AGENT_CARD_PATH}", base.path().trim_end_matches('/')));
    }
    url
}

/// Reads the public card, or finds that `known`, which must be the answer to the same request, has not changed.
pub(super) async fn fetch(
    line: &Line,
    base: &Url,
    known: Option<&KeptCard>,
) -> Result<KeptCard, ClientError> {
    let known = known.filter(|known| !known.validators().is_empty());
    match (ask(line, base, known.map(KeptCard::validators)).await?, known) {
        (Answer::Card { headers, text, said }, _) => {
            let card = v03::read_card(&text).map_err(|error| invalid(line, &error))?;
            let said = said.and_then(|said| v03::read_card(&said).ok());
            let said = said.map(|said| SaidInterfaces::of(&card, said)).unwrap_or_default();
            Ok(KeptCard::new(card, said, &headers))
        }
        (Answer::Unchanged(headers), Some(known)) => Ok(known.renewed(&headers)),
        (Answer::Unchanged(_), None) => Err(unasked(line)),
    }
}

/// What comes of asking for a card.
enum Answer {
    /// It is the one that is known; the headers are newer.
    Unchanged(HeaderMap),
    /// It is there.
    Card {
        headers: HeaderMap,
        /// Without our secrets.
        text: String,
        /// With what of the address's query stands in it, if anything does.
        said: Option<String>,
    },
}

/// Asks for the public card. The key is not sent: cards are public, and which header it goes into stands in the card.
async fn ask(
    line: &Line,
    base: &Url,
    validators: Option<&HeaderMap>,
) -> Result<Answer, ClientError> {
    let url = card_url(base);
    let mut request = Request::get(url.as_str())
        .body(Bytes::new())
        .map_err(|_| line.card_error("its address cannot be used"))?;
    let headers = request.headers_mut();
    line.add_headers(headers);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(VERSION_HEADER, HeaderValue::from_static("1.0"));
    if let Some(validators) = validators {
        headers.extend(validators.clone());
    }
    line.within(line.config.card_timeout, pin!(exchange(line, &url, request))).await
}

async fn exchange(line: &Line, url: &Url, request: Request<Bytes>) -> Result<Answer, ClientError> {
    let response = line.open(request, CallKind::Call).await?;
    let status = response.status();
    if status == StatusCode::NOT_MODIFIED {
        return Ok(Answer::Unchanged(response.into_parts().0.headers));
    }
    if status == StatusCode::NOT_FOUND {
        return Err(line.card_error(format!("there is none at {}", shown(url))));
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) && line.has_key() {
        let (agent, status) = (line.agent.clone(), status.as_u16());
        return Err(ClientError::KeyRejected { agent, status, key: KeyUse::Withheld });
    }
    if !status.is_success() {
        return Err(line.status_error(status, response.headers()));
    }
    let (head, body) = response.into_parts();
    let (body, said) = line.read_as_said(body, line.config.card_limit).await?;
    let text = String::from_utf8(body.into()).map_err(|error| invalid(line, &error))?;
    let said = said.and_then(|said| String::from_utf8(said.into()).ok());
    Ok(Answer::Card { headers: head.headers, text, said })
}

fn invalid(line: &Line, error: &dyn Error) -> ClientError {
    let reason = sanitize_remote_line(&error.to_string(), MAX_WORD);
    line.card_error(format!("it is not valid: {reason}"))
}

fn unasked(line: &Line) -> ClientError {
    line.card_error("the agent says that it has not changed, but was not asked")
}

/// The interfaces of a card in which something of the address's query stands, without that and as the agent says them.
#[derive(Debug, Default)]
pub(super) struct SaidInterfaces(Vec<(AgentInterface, AgentInterface)>);

impl SaidInterfaces {
    fn of(card: &AgentCard, said: AgentCard) -> Self {
        let read = card.supported_interfaces.iter().cloned();
        Self(read.zip(said.supported_interfaces).filter(|(read, said)| read != said).collect())
    }

    /// An interface as the agent says it, if it is at the origin that the query is for. No other may have that.
    fn at_home(&self, entry: &AgentEntry, read: &AgentInterface) -> Option<(&AgentInterface, Url)> {
        let mut same = self.0.iter().filter(|(known, _)| known == read).map(|(_, said)| said);
        let said = same.next()?;
        // Where two look the same without it, nobody can tell which one is meant.
        if same.any(|other| other != said) {
            return None;
        }
        let url = address(entry, said)?;
        (url.origin().ascii_serialization() == entry.origin()).then_some((said, url))
    }
}

/// Where an interface is, if it can be called.
fn address(entry: &AgentEntry, interface: &AgentInterface) -> Option<Url> {
    card_url(&entry.url)
        .join(&interface.url)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .filter(|url| url.username().is_empty() && url.password().is_none())
}

/// Takes the first interface that we speak and the entry wants, of 1.0 if there is one, and checks that we may go there.
pub(super) fn choose(
    entry: &AgentEntry,
    card: &AgentCard,
    said: &SaidInterfaces,
    line: &Line,
) -> Result<CallTarget, ClientError> {
    let fitting = || {
        let spoken = card.supported_interfaces.iter().enumerate().filter_map(|(at, interface)| {
            let (binding, protocol) = spoken(interface)?;
            Some((at, interface, binding, protocol))
        });
        spoken.filter(|(_, _, binding, protocol)| {
            entry.binding.is_none_or(|wanted| wanted == *binding)
                && entry.protocol.is_none_or(|wanted| wanted == *protocol)
        })
    };
    let (at, interface, binding, protocol) = fitting()
        .find(|(_, _, _, protocol)| *protocol == AgentProtocol::V1)
        .or_else(|| fitting().next())
        .ok_or_else(|| line.card_error(offered(card, entry)))?;
    let said = said.at_home(entry, interface);
    let is_said = said.is_some();
    let found = said.or_else(|| Some((interface, address(entry, interface)?)));
    let (interface, url) = found.ok_or_else(|| {
        let url = sanitize_remote_line(without_secrets(&interface.url), MAX_WORD);
        line.card_error(format!("its interface has the address {url}, which cannot be called"))
    })?;
    let origin = url.origin().ascii_serialization();
    let is_trusted = origin == entry.origin() || entry.trusted_origins.contains(&origin);
    let policy = if is_trusted { GuardPolicy::Open } else { GuardPolicy::PublicOnly };
    let is_reachable = policy.admits_host(url.host_str().unwrap_or_default());
    if !is_trusted && (line.has_secrets() || !is_reachable) {
        return Err(ClientError::Untrusted { agent: line.agent.clone(), origin });
    }
    // What the card names must be sent as it is (specification: 8.3.2); ours is for those that leave it open.
    let tenant = interface.tenant.clone().or_else(|| entry.tenant.clone());
    Ok(CallTarget { url, tenant, interface: at, binding, protocol, policy, is_trusted, is_said })
}

/// An address that may be anything, up to where secrets may begin in it.
fn without_secrets(url: &str) -> &str {
    if url.contains('@') {
        "with a user name or a password"
    } else {
        url.split(['?', '#']).next().unwrap_or(url)
    }
}

/// How we would speak at an interface, if we can.
fn spoken(interface: &AgentInterface) -> Option<(AgentBinding, AgentProtocol)> {
    let is = |binding: &str| interface.protocol_binding.eq_ignore_ascii_case(binding);
    let version: ProtocolVersion = interface.protocol_version.parse().ok()?;
    let is_old = (ProtocolVersion::V0_3..ProtocolVersion::V1_0).contains(&version);
    if version == ProtocolVersion::V1_0 && is(BINDING_JSONRPC) {
        Some((AgentBinding::JsonRpc, AgentProtocol::V1))
    } else if version == ProtocolVersion::V1_0 && is(BINDING_HTTP_JSON) {
        Some((AgentBinding::HttpJson, AgentProtocol::V1))
    } else if is_old && is(BINDING_JSONRPC) {
        Some((AgentBinding::JsonRpc, AgentProtocol::V03))
    } else {
        None
    }
}

/// Says what the card offers in place of what we speak.
fn offered(card: &AgentCard, entry: &AgentEntry) -> String {
    let offers: Vec<String> = card
        .supported_interfaces
        .iter()
        .take(10)
        .map(|interface| {
            let binding = sanitize_remote_line(&interface.protocol_binding, 40);
            format!("{binding} {}", sanitize_remote_line(&interface.protocol_version, 40))
        })
        .collect();
    if offers.is_empty() {
        return "it names no interface".to_owned();
    }
    let wanted = match (entry.binding, entry.protocol) {
        (None, None) => "JSONRPC or HTTP+JSON 1.0, or JSONRPC 0.3",
        (None, Some(AgentProtocol::V1)) => "JSONRPC or HTTP+JSON 1.0, as is wanted of it",
        (None | Some(AgentBinding::JsonRpc), Some(AgentProtocol::V03)) => {
            "JSONRPC 0.3, as is wanted of it"
        }
        (Some(AgentBinding::JsonRpc), Some(AgentProtocol::V1)) => "JSONRPC 1.0, as is wanted of it",
        (Some(AgentBinding::JsonRpc), None) => "JSONRPC 1.0 or 0.3, as is wanted of it",
        (Some(AgentBinding::HttpJson), None | Some(AgentProtocol::V1)) => {
            "HTTP+JSON 1.0, as is wanted of it"
        }
        (Some(AgentBinding::HttpJson), Some(AgentProtocol::V03)) => {
            "what is wanted of it: HTTP+JSON 0.3 is not spoken here"
        }
    };
    format!("it offers {}, and none of that is {wanted}", offers.join(", "))
}

#[cfg(test)]
mod tests;

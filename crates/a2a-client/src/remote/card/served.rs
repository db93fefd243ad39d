//! Cards as agents serve them, for those who look at a card rather than call the agent.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, header};
use serde::{Serialize, Serializer};
use volcanic_a2a_types::{
    CardHeaders, FromWire, GetExtendedAgentCardRequest, JsonText, METHOD_GET_EXTENDED_CARD, Route,
    WireLimits,
};
use volcanic_net::Transport;

use super::{Answer, ask, unasked};
use crate::{
    AgentEntry, ClientConfig, ClientError, KeyResolver, RemoteAgent,
    remote::{line::Line, operation::Operation},
};

/// A public card as it is served, whether it can be used or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedCard {
    /// The document, without our secrets.
    pub text: String,
    /// What is said about it.
    pub headers: CardHeaders,
}

impl RemoteAgent {
    /// Reads an agent's public card without understanding it.
    ///
    /// # Errors
    ///
    /// [`ClientError`]: the key cannot be had, or there is no card to be had.
    pub async fn served_card(
        entry: &AgentEntry,
        transport: Arc<dyn Transport>,
        keys: &KeyResolver,
        config: &ClientConfig,
    ) -> Result<ServedCard, ClientError> {
        let line = Line::new(entry, transport, keys, config)?;
        let served = match ask(&line, &entry.url, None).await {
            Ok(Answer::Card { headers, text, said: _ }) => {
                Ok(ServedCard { text, headers: card_headers(&headers, &line) })
            }
            Ok(Answer::Unchanged(_)) => Err(unasked(&line)),
            Err(error) => Err(error),
        };
        served.map_err(|error| line.masked(error))
    }

    /// Reads the card for authenticated callers without understanding it. One of an agent of 0.3 is as it is written there.
    ///
    /// # Errors
    ///
    /// [`ClientError`], also if the agent has no such card.
    pub async fn extended_card_text(&self) -> Result<JsonText, ClientError> {
        let mut request = GetExtendedAgentCardRequest::default();
        request.tenant = self.tenant();
        let card = self.inner.binding.call_for_card(&ExtendedCardText(request)).await?;
        Ok(card.0)
    }
}

/// Asks for the extended card as it is written.
struct ExtendedCardText(GetExtendedAgentCardRequest);

/// The JSON of a card.
struct CardText(JsonText);

impl Serialize for ExtendedCardText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Operation for ExtendedCardText {
    type Answer = CardText;
    const METHOD: &'static str = METHOD_GET_EXTENDED_CARD;

    fn route(&self) -> Route {
        Route::GetExtendedCard
    }
}

impl FromWire for CardText {
    fn from_wire(json: &str, _: WireLimits) -> serde_json::Result<Self> {
        serde_json::from_str(json).map(Self)
    }
}

fn card_headers(headers: &HeaderMap, line: &Line) -> CardHeaders {
    let text = |name: HeaderName| {
        let lines = headers.get_all(name);
        let lines: Vec<_> =
            lines.iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
        (!lines.is_empty()).then(|| line.scrubber().text(lines.join(", ")))
    };
    CardHeaders {
        content_type: text(header::CONTENT_TYPE),
        cache_control: text(header::CACHE_CONTROL),
        etag: text(header::ETAG),
    }
}

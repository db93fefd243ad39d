//! The seam between what an agent is asked and how that is said.

use std::sync::Arc;

use volcanic_a2a_types::{AgentCard, StreamResponse};

use super::{
    card::CallTarget,
    endpoint::{AnswerLimits, Endpoint},
    http_json::HttpJson,
    jsonrpc::JsonRpc,
    line::Line,
    operation::Operation,
    stream::Events,
};
use crate::{AgentBinding, AgentProtocol, ClientError};

/// How one agent is spoken to.
#[expect(clippy::large_enum_variant, reason = "one for each agent, and it stays where it is")]
pub(super) enum Binding {
    JsonRpc(JsonRpc),
    HttpJson(HttpJson),
}

impl Binding {
    pub(super) fn new(
        line: Arc<Line>,
        card: &AgentCard,
        target: CallTarget,
    ) -> Result<Self, ClientError> {
        let (binding, protocol) = (target.binding, target.protocol);
        let endpoint = Endpoint::new(line, card, target)?;
        match binding {
            AgentBinding::JsonRpc => JsonRpc::new(endpoint, protocol).map(Self::JsonRpc),
            AgentBinding::HttpJson => Ok(Self::HttpJson(HttpJson::new(endpoint))),
        }
    }

    pub(super) fn binding(&self) -> AgentBinding {
        match self {
            Self::JsonRpc(_) => AgentBinding::JsonRpc,
            Self::HttpJson(_) => AgentBinding::HttpJson,
        }
    }

    pub(super) fn protocol(&self) -> AgentProtocol {
        match self {
            Self::JsonRpc(rpc) => rpc.dialect(),
            Self::HttpJson(_) => AgentProtocol::V1,
        }
    }

    /// The routing key to send with every request.
    pub(super) fn tenant(&self) -> Option<String> {
        self.endpoint().tenant.clone()
    }

    /// The way to the agent.
    pub(super) fn line(&self) -> &Arc<Line> {
        &self.endpoint().line
    }

    fn endpoint(&self) -> &Endpoint {
        match self {
            Self::JsonRpc(rpc) => &rpc.endpoint,
            Self::HttpJson(http) => &http.endpoint,
        }
    }

    /// Asks for something and reads the answer.
    pub(super) async fn call<O: Operation>(&self, operation: &O) -> Result<O::Answer, ClientError> {
        self.call_within(operation, self.endpoint().call_limits()).await
    }

    /// The same under the limits of a card.
    pub(super) async fn call_for_card<O: Operation>(
        &self,
        operation: &O,
    ) -> Result<O::Answer, ClientError> {
        self.call_within(operation, self.endpoint().card_limits()).await
    }

    async fn call_within<O: Operation>(
        &self,
        operation: &O,
        limits: AnswerLimits,
    ) -> Result<O::Answer, ClientError> {
        let answer = match self {
            Self::JsonRpc(rpc) => rpc.call(operation, limits).await,
            Self::HttpJson(http) => http.call(operation, limits).await,
        };
        answer.map_err(|error| self.line().masked(error))
    }

    /// Asks for something that is answered with a stream.
    pub(super) async fn open_stream<O: Operation<Answer = StreamResponse>>(
        &self,
        operation: &O,
    ) -> Result<Events, ClientError> {
        let opened = match self {
            Self::JsonRpc(rpc) => rpc.open_stream(operation).await,
            Self::HttpJson(http) => http.open_stream(operation).await,
        };
        opened.map_err(|error| self.line().masked(error))
    }
}

//! The client of the official Rust SDK, as its documentation sets it up.

#[path = "../../../src/stopwatch.rs"]
mod stopwatch;

use std::sync::Arc;

use a2a::{GetTaskRequest, Message, Part, Role, SendMessageRequest, TRANSPORT_PROTOCOL_JSONRPC};
use a2a_client::{A2AClient, A2AClientFactory, agent_card::AgentCardResolver};
use anyhow::{Result, ensure};
use futures::StreamExt as _;
use stopwatch::{Client, obey};

#[derive(Clone)]
struct Official {
    client: Arc<A2AClient<Box<dyn a2a_client::transport::Transport>>>,
}

impl Client for Official {
    async fn get(&self) -> Result<()> {
        let request = GetTaskRequest { id: "t-1".into(), history_length: None, tenant: None };
        let task = self.client.get_task(&request).await?;
        ensure!(task.artifacts.is_some_and(|artifacts| artifacts.len() == 1), "no artifact");
        Ok(())
    }

    async fn stream(&self, request: &str) -> Result<u64> {
        let message = Message::new(Role::User, vec![Part::text(request)]);
        let request =
            SendMessageRequest { message, configuration: None, metadata: None, tenant: None };
        let mut events = self.client.send_streaming_message(&request).await?;
        let mut count = 0;
        while let Some(event) = events.next().await {
            event?;
            count += 1;
        }
        Ok(count)
    }
}

async fn connect(url: String) -> Result<Official> {
    let card = AgentCardResolver::new(None).resolve(&url).await?;
    let factory = A2AClientFactory::builder()
        .preferred_bindings(vec![TRANSPORT_PROTOCOL_JSONRPC.to_string()])
        .build();
    Ok(Official { client: Arc::new(factory.create_from_card(&card).await?) })
}

fn main() -> Result<()> {
    obey(connect)
}

//! The client as it ships: over the network client with its guard, with its limits, and with a key that is looked for in
//! everything that comes back.

#[path = "../stopwatch.rs"]
mod stopwatch;

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use stopwatch::{Client, obey};
use url::Url;
use volcanic_a2a_client::{
    AgentEntry, AgentName, ClientConfig, KeySource, RemoteAgent, plain_keys,
};
use volcanic_a2a_types::{Message, Part, SendMessageRequest, TaskId};
use volcanic_base::Secret;
use volcanic_net::{NetClient, NetConfig};

#[derive(Clone)]
struct Volcanic {
    agent: RemoteAgent,
    task: TaskId,
}

impl Client for Volcanic {
    async fn get(&self) -> Result<()> {
        let task = self.agent.get_task(&self.task, None).await?;
        ensure!(task.artifacts.len() == 1, "the task has lost its artifact");
        Ok(())
    }

    async fn stream(&self, request: &str) -> Result<u64> {
        let message = Message::user("m-1", vec![Part::text(request)]);
        let asked = SendMessageRequest::new(message);
        let mut events = self.agent.send_streaming_message(asked).await?;
        let mut count = 0;
        while let Some(event) = events.next().await {
            event?;
            count += 1;
        }
        Ok(count)
    }
}

async fn connect(url: String) -> Result<Volcanic> {
    let name = AgentName::new("bench").context("the name is wrong")?;
    let mut entry = AgentEntry::new(name, Url::parse(&url)?);
    entry.key = Some(KeySource::Plain(Secret::new("a-key-that-nobody-repeats")));
    let network = Arc::new(NetClient::new(NetConfig::default())?);
    let config = ClientConfig::default();
    let agent = RemoteAgent::connect(&entry, network, plain_keys(), &config).await?;
    Ok(Volcanic { agent, task: TaskId::from("t-1") })
}

fn main() -> Result<()> {
    obey(connect)
}

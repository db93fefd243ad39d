//! reqwest alone, with a body that was written beforehand and an answer that nobody reads. Nothing of the
//! protocol is done here, no JSON among it.

#[path = "../../../src/stopwatch.rs"]
mod stopwatch;

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use stopwatch::{Client, obey};

const GET: &str = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t-1"}}"#;

#[derive(Clone)]
struct Raw {
    client: reqwest::Client,
    url: String,
}

impl Raw {
    fn post(&self, body: String) -> reqwest::RequestBuilder {
        self.client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("a2a-version", "1.0")
            .body(body)
    }
}

impl Client for Raw {
    async fn get(&self) -> Result<()> {
        let answer = self.post(GET.to_owned()).send().await?.error_for_status()?;
        ensure!(!answer.bytes().await?.is_empty(), "an empty answer");
        Ok(())
    }

    /// Counts the ends of events and looks at nothing else.
    async fn stream(&self, request: &str) -> Result<u64> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{{"message":{{"messageId":"m-1","role":"ROLE_USER","parts":[{{"text":"{request}"}}]}}}}}}"#
        );
        let answer = self.post(body).header("accept", "text/event-stream").send().await?;
        let mut chunks = answer.error_for_status()?.bytes_stream();
        let (mut count, mut last) = (0, 0);
        while let Some(chunk) = chunks.next().await {
            for byte in chunk? {
                count += u64::from(byte == b'\n' && last == b'\n');
                last = byte;
            }
        }
        Ok(count)
    }
}

async fn connect(url: String) -> Result<Raw> {
    Ok(Raw { client: reqwest::Client::new(), url: format!("{url}/") })
}

fn main() -> Result<()> {
    obey(connect)
}

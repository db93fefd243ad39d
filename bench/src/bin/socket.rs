//! What is left without a client: bytes that were written beforehand go out over a socket, and what comes back is read to its
//! end, which is known beforehand too. No HTTP, no JSON. So this is the share of server, kernel and runtime in every other
//! row, and no client on the same machine can be faster.

#[path = "../stopwatch.rs"]
mod stopwatch;

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use stopwatch::{Client, obey};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const GET: &str = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t-1"}}"#;
/// What the answer to it ends with, which comes in one piece.
const GET_END: &[u8] = b"}}";
/// The last chunk of a stream.
const STREAM_END: &[u8] = b"\r\n0\r\n\r\n";
const BUFFER: usize = 64 << 10;

/// A connection and what it reads into.
struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Clone)]
struct Socket {
    address: String,
    idle: Arc<Mutex<Vec<Line>>>,
}

impl Socket {
    /// Writes a request and reads until `end` has come; counts the ends of events if there are any.
    async fn exchange(&self, body: &str, end: &[u8], is_stream: bool) -> Result<u64> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut line = match idle {
            Some(line) => line,
            None => self.connect().await?,
        };
        let request = format!(
            "POST / HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\na2a-version: 1.0\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        line.stream.write_all(request.as_bytes()).await?;
        let (mut count, mut tail) = (0, Vec::new());
        loop {
            let read = line.stream.read(&mut line.buffer).await?;
            if read == 0 {
                bail!("an answer that was cut");
            }
            let piece = &line.buffer[..read];
            if is_stream {
                count += ends_of_events(tail.last().copied(), piece);
            }
            tail.extend_from_slice(&piece[read.saturating_sub(end.len())..]);
            if tail.ends_with(end) {
                break;
            }
            tail.drain(..tail.len().saturating_sub(end.len()));
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        Ok(count)
    }

    async fn connect(&self) -> Result<Line> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(Line { stream, buffer: vec![0; BUFFER] })
    }
}

/// Counts empty lines, across two pieces too.
fn ends_of_events(last: Option<u8>, piece: &[u8]) -> u64 {
    let mut last = last.unwrap_or_default();
    let mut count = 0;
    for byte in piece {
        count += u64::from(*byte == b'\n' && last == b'\n');
        last = *byte;
    }
    count
}

impl Client for Socket {
    async fn get(&self) -> Result<()> {
        self.exchange(GET, GET_END, false).await.map(drop)
    }

    async fn stream(&self, request: &str) -> Result<u64> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{{"message":{{"messageId":"m-1","role":"ROLE_USER","parts":[{{"text":"{request}"}}]}}}}}}"#
        );
        self.exchange(&body, STREAM_END, true).await
    }
}

async fn connect(url: String) -> Result<Socket> {
    let address = url.strip_prefix("http://").context("the URL is not that of the server")?;
    Ok(Socket { address: address.to_owned(), idle: Arc::default() })
}

fn main() -> Result<()> {
    obey(connect)
}

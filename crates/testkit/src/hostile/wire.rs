//! How an answer goes out: right, or spoilt as HTTP.

use std::{io, sync::atomic::AtomicU64, time::Duration};

use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::sleep};

use super::{
    WireFault,
    content::Content,
    dialect::{CONTEXT, response},
    streams::StreamEnd,
};

/// What the task of an answer says that nobody asked for.
pub const FORGED_TEXT: &str = "forged plum";

/// Between two bytes of a slow answer.
const DRIP: Duration = Duration::from_secs(1);

/// Ten gigabytes of zeros as gzip begin like this: a header, one dynamic block whose code for 258 zeros are two zero bits,
/// and the first zero. Each zero byte that follows stands for 1032 more.
const GZIP_HEAD: [u8; 24] = [
    0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0xff, 0xed, 0xc0, 0x81, 0, 0, 0, 0, 0x80, 0xa0, 0xfd, 0xa9,
    0x17, 0xa9, 0,
];
const GZIP_ZEROS: u64 = 10_000_000_000 / 1032;

/// An answer before it is sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) media_type: &'static str,
    pub(super) body: Content,
    pub(super) end: StreamEnd,
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// Another request may come.
    Next,
    Close,
    /// It stays open, and silent, until the client goes.
    Hold,
    Reset,
}

impl Answer {
    pub(super) fn json(status: &'static str, body: Content) -> Self {
        Self { status, media_type: "application/json", body, end: StreamEnd::Closed }
    }

    pub(super) fn events((body, end): (Content, StreamEnd)) -> Self {
        Self { status: "200 OK", media_type: "text/event-stream", body, end }
    }

    fn head(&self, more: &str) -> String {
        format!("HTTP/1.1 {}\r\nContent-Type: {}\r\n{more}\r\n", self.status, self.media_type)
    }

    /// With its length where it is known, else until the connection is closed.
    pub(super) async fn send(&self, to: &mut TcpStream, sent: &AtomicU64) -> io::Result<Then> {
        match (self.end, self.body.length()) {
            (StreamEnd::Closed, Some(length)) if self.media_type == "application/json" => {
                let head = self.head(&format!("Content-Length: {length}\r\n"));
                Content::of(head).join(self.body.clone()).send(to, sent).await?;
                Ok(Then::Next)
            }
            (StreamEnd::Closed, _) => {
                let head = self.head("Connection: close\r\n");
                Content::of(head).join(self.body.clone()).send(to, sent).await?;
                Ok(Then::Close)
            }
            (StreamEnd::Open, _) => {
                let head = self.head("Connection: close\r\n");
                Content::of(head).join(self.body.clone()).send(to, sent).await?;
                Ok(Then::Hold)
            }
            (StreamEnd::SlowFrom(byte), _) => {
                let whole = self.body.beginning(1 << 20);
                let head = self.head("Connection: close\r\n");
                Content::of(head).then(whole.slice(..byte)).send(to, sent).await?;
                drip(&whole[byte..], to).await?;
                Ok(Then::Close)
            }
        }
    }

    /// As `fault` has it.
    #[expect(clippy::too_many_lines, reason = "a table, with an arm for each fault")]
    pub(super) async fn send_spoilt(
        &self,
        fault: &WireFault,
        to: &mut TcpStream,
        sent: &AtomicU64,
    ) -> io::Result<Then> {
        let short = self.body.beginning(1 << 20);
        let length = format!("Content-Length: {}\r\n", short.len());
        let closing = "Connection: close\r\n";
        let chunked = "Transfer-Encoding: chunked\r\n";
        let (content, then) = match fault {
            WireFault::Silence => return Ok(Then::Hold),
            WireFault::SlowHead => {
                drip(self.head(&length).as_bytes(), to).await?;
                return Ok(Then::Close);
            }
            WireFault::SlowBody => {
                Content::of(self.head(&length)).send(to, sent).await?;
                drip(&short, to).await?;
                return Ok(Then::Close);
            }
            WireFault::OpenEnd => {
                let head = self.head(chunked);
                let chunk = format!("{:x}\r\n", short.len());
                (Content::of(head).then(chunk).then(short).then("\r\n"), Then::Hold)
            }
            WireFault::EndlessHeader => {
                (Content::of("HTTP/1.1 200 OK\r\nX-Plum: ").endless("x"), Then::Close)
            }
            WireFault::EndlessHeaders => {
                (Content::of("HTTP/1.1 200 OK\r\n").endless("X-Plum: plum\r\n"), Then::Close)
            }
            WireFault::InterimFlood => {
                (Content::default().endless("HTTP/1.1 103 Early Hints\r\n\r\n"), Then::Close)
            }
            WireFault::EndlessChunkExtension => {
                (Content::of(self.head(chunked)).then("1;plum=").endless("x"), Then::Close)
            }
            WireFault::HugeChunk => (
                Content::of(self.head(chunked)).then("FFFFFFFFFFFFFFFF\r\n{\"x\":\"").endless("x"),
                Then::Close,
            ),
            WireFault::EndlessTrailer => {
                let chunk = format!("{:x}\r\n", short.len());
                let body = Content::of(self.head(chunked)).then(chunk).then(short);
                (body.then("\r\n0\r\n").endless("X-Plum: plum\r\n"), Then::Close)
            }
            WireFault::EndlessBody => {
                (Content::of(self.head(closing)).then("{\"x\":\"").endless("x"), Then::Close)
            }
            WireFault::EndlessBlanks => (Content::of(self.head(closing)).endless(" "), Then::Close),
            WireFault::BoastfulLength => {
                let length = "Content-Length: 1000000000000000000\r\n";
                (Content::of(self.head(length)).then("{\"x\":\"").endless("x"), Then::Close)
            }
            WireFault::Reset => {
                (Content::of(self.head(&length)).then(short.slice(..short.len() / 2)), Then::Reset)
            }
            WireFault::ShortBody => {
                let length = format!("Content-Length: {}\r\n", short.len() + 100);
                (Content::of(self.head(&length)).then(short), Then::Close)
            }
            WireFault::LongBody => {
                let length = format!("Content-Length: {}\r\n", short.len() - 10);
                (Content::of(self.head(&length)).then(short), Then::Hold)
            }
            WireFault::TwoLengths => {
                let lengths = format!("Content-Length: 5\r\n{length}");
                (Content::of(self.head(&lengths)).then(short), Then::Close)
            }
            WireFault::TrailingAnswer => {
                // At once, as pieces would have to meet the next request.
                let all = [self.head(&length).as_bytes(), &short[..], &forged(&short)[..]].concat();
                (Content::of(all), Then::Hold)
            }
            WireFault::NotHttp => (Content::of("SSH-2.0-plum\r\n\0\x01\x02"), Then::Close),
            WireFault::Http2Settings => (frames(4, &[]), Then::Close),
            WireFault::Http2Pings => (frames(6, &[7; 8]), Then::Close),
            WireFault::Http2Resets => (frames(3, &[0; 4]), Then::Close),
            WireFault::GzipBomb => {
                let size = GZIP_HEAD.len() as u64 + GZIP_ZEROS;
                let head =
                    self.head(&format!("Content-Encoding: gzip\r\nContent-Length: {size}\r\n"));
                let bomb = Content::of(head).then(&GZIP_HEAD[..]);
                (bomb.times(&[0][..], GZIP_ZEROS), Then::Hold)
            }
            WireFault::Redirect(status, url) => {
                let head = format!(
                    "HTTP/1.1 {status} Elsewhere\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n"
                );
                (Content::of(head), Then::Next)
            }
            WireFault::Refresh(url) => {
                let more = format!("Refresh: 0; url={url}\r\n{length}");
                (Content::of(self.head(&more)).then(short), Then::Next)
            }
            WireFault::HugeErrorBody(status) => {
                let head =
                    format!("HTTP/1.1 {status} Plum\r\nContent-Length: {}\r\n\r\n", 100 << 20);
                (Content::of(head).times("plum", 25 << 20), Then::Close)
            }
        };
        content.send(to, sent).await?;
        Ok(then)
    }
}

/// An answer to whatever is asked next: its number follows that of `last`, and the task is there for a message and by itself.
fn forged(last: &[u8]) -> Vec<u8> {
    let last: Value = serde_json::from_slice(last).unwrap_or_default();
    let id = last["id"].as_u64().unwrap_or_default() + 1;
    let parts = json!([{"text": FORGED_TEXT}]);
    let mut task = json!({
        "id": "task-1", "contextId": CONTEXT, "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": response(&parts),
    });
    task["task"] = task.clone();
    let body = json!({"jsonrpc": "2.0", "id": id, "result": task}).to_string();
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
    format!("{head} {length}\r\n\r\n{body}").into_bytes()
}

/// Settings, and then one kind of frame for ever.
fn frames(kind: u8, payload: &[u8]) -> Content {
    let frame = |kind: u8, stream: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).unwrap_or_default();
        [&[0, 0, length, kind, 0, 0, 0, 0, stream][..], payload].concat()
    };
    let stream = u8::from(kind == 3);
    Content::of(frame(4, 0, &[])).endless(frame(kind, stream, payload))
}

async fn drip(bytes: &[u8], to: &mut TcpStream) -> io::Result<()> {
    for byte in bytes {
        to.write_all(&[*byte]).await?;
        sleep(DRIP).await;
    }
    Ok(())
}

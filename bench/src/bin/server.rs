//! An agent that costs next to nothing, so that what is measured is the client: every answer is encoded beforehand, and
//! only the id of the request is put into it.
//!
//! It listens on a free port of the loopback interface, prints its URL, and ends with its standard input.

use std::{collections::HashMap, io::Write as _, ops::Range, sync::Arc};

use anyhow::{Context as _, Result, bail};
use bytes::{Buf as _, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// How many events a stream of small ones has.
const EVENTS: usize = 1000;

/// Stands in templates where the id of the request goes.
const ID: &str = "\"@id@\"";

#[derive(Deserialize)]
struct Request<'b> {
    #[serde(borrow)]
    id: &'b RawValue,
    #[serde(borrow)]
    method: &'b RawValue,
    #[serde(borrow)]
    params: &'b RawValue,
}

/// A text with holes for the id.
struct Template {
    pieces: Vec<Vec<u8>>,
}

impl Template {
    fn new(text: &str) -> Self {
        Self { pieces: text.split(ID).map(|piece| piece.as_bytes().to_vec()).collect() }
    }

    fn length(&self, id: &str) -> usize {
        let pieces: usize = self.pieces.iter().map(Vec::len).sum();
        pieces + (self.pieces.len() - 1) * id.len()
    }
}

/// A whole answer, as it was written last.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    /// Where the ids are.
    ids: Vec<usize>,
}

impl Written {
    fn push(&mut self, template: &Template, id: &str) {
        for (index, piece) in template.pieces.iter().enumerate() {
            if index > 0 {
                self.ids.push(self.bytes.len());
                self.bytes.extend_from_slice(id.as_bytes());
            }
            self.bytes.extend_from_slice(piece);
        }
    }

    /// Puts another id in place of the last one, which is as long.
    fn put(&mut self, id: &[u8]) {
        for at in &self.ids {
            self.bytes[*at..at + id.len()].copy_from_slice(id);
        }
    }
}

/// What there is to answer with.
struct Answers {
    card: Bytes,
    task: Template,
    /// Events by what asks for them.
    streams: HashMap<String, Vec<Template>>,
}

impl Answers {
    fn new(url: &str) -> Self {
        let card = json!({"name": "Bench", "description": "Answers at once", "version": "1.0.0",
            "supportedInterfaces": [
                {"url": format!("{url}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": true}, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "echo", "name": "Echo", "description": "Echoes", "tags": ["echo"]}]});
        let small = (0..EVENTS).map(|number| {
            event(&artifact(&format!("chunk {number}"), number > 0, number + 1 == EVENTS))
        });
        let mut streams = HashMap::from([("events".to_owned(), small.collect())]);
        for bytes in [64 << 10, 1 << 20, 8 << 20] {
            // Quotes and line ends, as text has them: they are escaped on the wire.
            let line = "It said \"all is well\", and so it was.\n";
            let text: String = line.chars().cycle().take(bytes).collect();
            streams.insert(format!("large-{bytes}"), vec![event(&artifact(&text, false, true))]);
        }
        Self {
            card: whole("application/json", &card.to_string()),
            task: Template::new(&envelope(&task())),
            streams,
        }
    }

    /// What is asked for, by a name of its own.
    fn asked(request: &Request<'_>) -> Result<Asked> {
        if request.method.get() == "\"GetTask\"" {
            return Ok(Asked::Task);
        }
        let params: Value = serde_json::from_str(request.params.get())?;
        let text = params["message"]["parts"][0]["text"].as_str().unwrap_or_default();
        Ok(Asked::Stream(text.to_owned()))
    }

    fn write(&self, asked: &Asked, id: &str) -> Result<Written> {
        let mut written = Written::default();
        match asked {
            Asked::Task => {
                let length = self.task.length(id);
                write!(
                    written.bytes,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
                )?;
                written.push(&self.task, id);
            }
            Asked::Stream(name) => {
                let events =
                    self.streams.get(name).with_context(|| format!("no stream `{name}`"))?;
                written.bytes.extend_from_slice(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
                );
                for event in events {
                    write!(written.bytes, "{:x}\r\n", event.length(id))?;
                    written.push(event, id);
                    written.bytes.extend_from_slice(b"\r\n");
                }
                written.bytes.extend_from_slice(b"0\r\n\r\n");
            }
        }
        Ok(written)
    }
}

/// What a request asks for.
enum Asked {
    Task,
    Stream(String),
}

/// The last request of a connection and its answer. The next one is mostly the same but for its id, which is as long: it is
/// neither taken apart nor answered anew then.
struct Known {
    request: Vec<u8>,
    id: Range<usize>,
    written: Written,
}

impl Known {
    fn new(request: &[u8], body: &[u8], answers: &Answers) -> Result<Self> {
        let read: Request<'_> = serde_json::from_slice(body)?;
        let id = read.id.get();
        // It is a part of the request.
        let at = id.as_ptr().addr() - request.as_ptr().addr();
        let written = answers.write(&Answers::asked(&read)?, id)?;
        Ok(Self { request: request.to_vec(), id: at..at + id.len(), written })
    }

    /// The answer, if what was received begins with that request again.
    fn answer(&mut self, received: &[u8]) -> Option<&[u8]> {
        let request = received.get(..self.request.len())?;
        let is_same = |range: Range<usize>| request[range.clone()] == self.request[range];
        if !is_same(0..self.id.start) || !is_same(self.id.end..request.len()) {
            return None;
        }
        self.written.put(&request[self.id.clone()]);
        Some(&self.written.bytes)
    }
}

fn task() -> Value {
    json!({"id": "t-1", "contextId": "c-1",
        "status": {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-11-30T12:00:00.000Z"},
        "artifacts": [{"artifactId": "echo", "parts": [{"text": "Echo: hello"}]}]})
}

fn artifact(text: &str, append: bool, is_last: bool) -> Value {
    json!({"artifactUpdate": {"taskId": "t-1", "contextId": "c-1", "append": append,
        "lastChunk": is_last, "artifact": {"artifactId": "echo", "parts": [{"text": text}]}}})
}

fn envelope(result: &Value) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"result\":{result}}}")
}

fn event(result: &Value) -> Template {
    Template::new(&format!("data: {}\n\n", envelope(result)))
}

fn whole(media_type: &str, body: &str) -> Bytes {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    Bytes::from(head + body)
}

/// Answers the requests of one connection in turn.
async fn serve(mut stream: TcpStream, answers: Arc<Answers>) -> Result<()> {
    let mut received = BytesMut::with_capacity(8 << 10);
    let mut known: Option<Known> = None;
    loop {
        if let Some(known) = &mut known
            && let Some(answer) = known.answer(&received)
        {
            stream.write_all(answer).await?;
            received.advance(known.request.len());
            continue;
        }
        let Some(end) = memchr::memmem::find(&received, b"\r\n\r\n") else {
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let (head, end) = (str::from_utf8(&received[..end])?, end + 4);
        if head.starts_with("GET ") {
            stream.write_all(&answers.card).await?;
            received.advance(end);
            continue;
        }
        let length = end + content_length(head).context("a request without a length")?;
        while received.len() < length {
            if stream.read_buf(&mut received).await? == 0 {
                bail!("a request that was cut");
            }
        }
        known = Some(Known::new(&received[..length], &received[end..length], &answers)?);
    }
}

/// All clients write names of headers in lower case, so that none must be looked at but this one.
fn content_length(head: &str) -> Option<usize> {
    const NAME: &str = "\r\ncontent-length: ";
    let at = memchr::memmem::find(head.as_bytes(), NAME.as_bytes())? + NAME.len();
    head[at..].split("\r\n").next()?.parse().ok()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let answers = Arc::new(Answers::new(&url));
    println!("{url}");
    std::io::stdout().flush()?;
    let mut running = tokio::task::JoinSet::new();
    let mut orders = tokio::io::stdin();
    let mut nothing = [0];
    loop {
        tokio::select! {
            read = orders.read(&mut nothing) => if read? == 0 { return Ok(()) },
            Some(ended) = running.join_next() => if let Err(error) = ended? {
                eprintln!("a connection ended: {error:#}");
            },
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                running.spawn(serve(stream, Arc::clone(&answers)));
            }
        }
    }
}

//! Many agents in one process, for watches to follow: tasks that go on until they are told to end, streams that say
//! nothing, and pushes at a steady rate.
//!
//! Each agent has a port of the loopback interface, and so an origin of its own; their URLs are printed first, in one
//! line. Then it takes orders on standard input, one a line, and ends with it.

#[path = "../numbering.rs"]
mod numbering;

use std::{
    collections::HashMap,
    io::Write as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, bail};
use bytes::{Buf as _, BytesMut};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at},
};

/// What the agents' cards offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Push,
    Subscribe,
    Poll,
}

/// All agents.
struct World {
    kind: Kind,
    /// The tasks that have ended, and when their push left, in nanoseconds since 1970.
    ended: Mutex<HashMap<String, u128>>,
    reads: AtomicU64,
    streams: AtomicU64,
    sends: AtomicU64,
}

#[derive(Deserialize)]
struct Request<'b> {
    #[serde(borrow)]
    id: &'b RawValue,
    method: String,
    params: Value,
}

/// What a request is answered with.
enum Answer {
    Whole(Vec<u8>),
    /// The beginning of a stream that goes on.
    Stream(Vec<u8>),
}

impl World {
    fn card(&self, url: &str) -> Vec<u8> {
        let card = json!({"name": "Bench", "description": "Works on and on", "version": "1.0.0",
            "supportedInterfaces": [
                {"url": format!("{url}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": self.kind == Kind::Subscribe,
                "pushNotifications": self.kind == Kind::Push},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "work", "name": "Work", "description": "Works", "tags": ["work"]}]});
        whole(&card)
    }

    fn answer(&self, body: &[u8]) -> Result<Answer> {
        let Request { id, method, params } = serde_json::from_slice(body)?;
        let result = match method.as_str() {
            "GetTask" => {
                self.reads.fetch_add(1, Ordering::Relaxed);
                self.task(params["id"].as_str().context("no id")?)
            }
            "SubscribeToTask" => {
                self.streams.fetch_add(1, Ordering::Relaxed);
                let task = self.task(params["id"].as_str().context("no id")?);
                let event = envelope(id, &json!({"task": task}));
                let event = format!("data: {event}\n\n");
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                return Ok(Answer::Stream(
                    format!("{head}{:x}\r\n{event}\r\n", event.len()).into_bytes(),
                ));
            }
            "SendMessage" => {
                let number = self.sends.fetch_add(1, Ordering::Relaxed);
                let id = format!("{number:08x}-5e0d-4b1e-9d2f-0242ac120002");
                json!({"task": self.task(&id)})
            }
            "CreateTaskPushNotificationConfig" => params,
            "DeleteTaskPushNotificationConfig" => json!({}),
            other => bail!("no method {other}"),
        };
        Ok(Answer::Whole(whole(&envelope(id, &result))))
    }

    fn task(&self, id: &str) -> Value {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        let context = "c0ffee00-7a5c-4b1e-9d2f-0242ac120002";
        match ended {
            None => {
                json!({"id": id, "contextId": context, "status": {"state": "TASK_STATE_WORKING"}})
            }
            Some(pushed_at) => json!({"id": id, "contextId": context,
                "status": {"state": "TASK_STATE_COMPLETED"},
                "artifacts": [{"artifactId": "a",
                    "parts": [{"text": format!("pushed at {pushed_at} nanoseconds")}]}]}),
        }
    }
}

fn envelope(id: &RawValue, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn whole(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Answers the requests of one connection in turn.
async fn serve(mut stream: TcpStream, world: Arc<World>, url: Arc<str>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut received = BytesMut::new();
    loop {
        let Some((head, body)) = message(&mut stream, &mut received).await? else { return Ok(()) };
        if head.starts_with("GET ") {
            stream.write_all(&world.card(&url)).await?;
            continue;
        }
        match world.answer(&body)? {
            Answer::Whole(bytes) => stream.write_all(&bytes).await?,
            Answer::Stream(bytes) => {
                stream.write_all(&bytes).await?;
                // Until the other side has enough of it.
                while stream.read(&mut [0; 64]).await? > 0 {}
                return Ok(());
            }
        }
    }
}

/// The next message of a connection: its head and its body; `None` at the end.
async fn message(
    stream: &mut TcpStream,
    received: &mut BytesMut,
) -> Result<Option<(String, BytesMut)>> {
    loop {
        if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = str::from_utf8(&received[..end])?.to_owned();
            let length = content_length(&head).unwrap_or(0);
            if received.len() >= end + 4 + length {
                received.advance(end + 4);
                return Ok(Some((head, received.split_to(length))));
            }
        }
        if stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}

fn content_length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

/// A row of pushes, each about the end of another task.
struct Pushes {
    /// Host and port they go to.
    to: String,
    a_second: u32,
    /// The numbers of the tasks.
    tasks: std::ops::Range<usize>,
}

impl Pushes {
    /// Sends them at their rate, whether those before were answered or not; returns how many were taken.
    async fn send(self, world: &Arc<World>) -> Result<usize> {
        let connections = Arc::new(Mutex::new(Vec::<TcpStream>::new()));
        let pause = Duration::from_secs(1) / self.a_second;
        let mut ticks = interval_at(Instant::now(), pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut running = JoinSet::new();
        for number in self.tasks {
            ticks.tick().await;
            let (world, connections, to) =
                (Arc::clone(world), Arc::clone(&connections), self.to.clone());
            running.spawn(async move {
                let kept =
                    connections.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let mut stream = if let Some(stream) = kept {
                    stream
                } else {
                    let stream = TcpStream::connect(&to).await?;
                    stream.set_nodelay(true)?;
                    stream
                };
                let (watch, token) = (numbering::watch(number), numbering::token(number));
                let body = json!({"statusUpdate": {"taskId": numbering::task(number),
                    "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}})
                .to_string();
                let request = format!(
                    "POST /a2a/push/{watch} HTTP/1.1\r\nhost: {to}\r\nx-a2a-notification-token: {token}\r\n\
                     content-type: application/a2a+json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
                let task = numbering::task(number);
                world.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(task, now);
                stream.write_all(request.as_bytes()).await?;
                let answer = message(&mut stream, &mut BytesMut::new()).await?;
                let (head, _) = answer.context("the push was not answered")?;
                connections.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
                anyhow::Ok(head.starts_with("HTTP/1.1 202 "))
            });
        }
        let mut taken = 0;
        while let Some(pushed) = running.join_next().await {
            taken += usize::from(pushed??);
        }
        Ok(taken)
    }
}

/// Obeys one order and returns its answer.
async fn obey(world: &Arc<World>, order: &str) -> Result<String> {
    let words: Vec<&str> = order.split(' ').collect();
    match words[..] {
        ["counts"] => {
            let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let World { reads, streams, sends, .. } = &**world;
            Ok(format!("{} {} {}", count(reads), count(streams), count(sends)))
        }
        ["push", to, a_second, first, count] => {
            let (first, count): (usize, usize) = (first.parse()?, count.parse()?);
            let tasks = first..first + count;
            let pushes = Pushes { to: to.to_owned(), a_second: a_second.parse()?, tasks };
            Ok(pushes.send(world).await?.to_string())
        }
        _ => bail!("no such order: {order}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let kind = match arguments.next().as_deref() {
        Some("push") => Kind::Push,
        Some("subscribe") => Kind::Subscribe,
        Some("poll") => Kind::Poll,
        _ => bail!("usage: bench-agents push|subscribe|poll COUNT"),
    };
    let count: usize = arguments.next().context("how many agents?")?.parse()?;
    let world = Arc::new(World {
        kind,
        ended: Mutex::default(),
        reads: AtomicU64::new(0),
        streams: AtomicU64::new(0),
        sends: AtomicU64::new(0),
    });
    let mut running: JoinSet<Result<()>> = JoinSet::new();
    let mut urls = Vec::new();
    for _ in 0..count {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url: Arc<str> = format!("http://{}", listener.local_addr()?).into();
        urls.push(url.to_string());
        running.spawn(listen(listener, Arc::clone(&world), url));
    }
    println!("{}", urls.join(" "));
    std::io::stdout().flush()?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    loop {
        tokio::select! {
            order = orders.next_line() => {
                let Some(order) = order? else { return Ok(()) };
                println!("{}", obey(&world, &order).await?);
                std::io::stdout().flush()?;
            }
            Some(ended) = running.join_next() => ended??,
        }
    }
}

/// Takes the connections of one agent.
async fn listen(listener: TcpListener, world: Arc<World>, url: Arc<str>) -> Result<()> {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                running.spawn(serve(stream, Arc::clone(&world), Arc::clone(&url)));
            }
            Some(ended) = running.join_next() => if let Err(error) = ended? {
                eprintln!("a connection ended: {error:#}");
            },
        }
    }
}

//! A start with a thousand followed tasks while none of their agents can be reached.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use volcanic_a2a_watch::{
    WatchConfig, WatchId, WatchRecord, WatchSource, WatchState, WatchStore as _, WatchTarget,
};
use volcanic_agent_core::{ScriptedStep, SessionStore as _};
use volcanic_base::{Chance, SystemClock};
use volcanic_net::{CallKind, NetBody, NetError, Transport};
use volcanic_store::Store;
use volcanic_testkit::{FaultSeed, drawn_below};

use crate::assistant::{Home, Setup, says, target};

const ROUNDS: usize = 10;
const WATCHES: usize = 1_000;

/// Each has tasks of its own.
const AGENTS: usize = 100;

/// Nothing here takes so long, whatever else the machine does.
const PATIENCE: Duration = Duration::from_mins(1);

/// How the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Connects neither come about nor fail.
    Hangs,
    /// Connects fail at once.
    Down,
    /// All agents are there, and their tasks are done.
    Up,
}

/// All agents, as far as they can be reached.
#[derive(Debug)]
struct Network {
    line: watch::Sender<Line>,
    connects: Gauge,
    calls: Gauge,
    /// When each host was reached out to first.
    first: Mutex<HashMap<String, Instant>>,
}

#[derive(Debug, Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// One that is under way.
struct UnderWay<'a>(&'a Gauge);

impl Gauge {
    fn enter(&self) -> UnderWay<'_> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        UnderWay(self)
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Network {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            line: watch::Sender::new(Line::Hangs),
            connects: Gauge::default(),
            calls: Gauge::default(),
            first: Mutex::default(),
        })
    }

    fn set(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// Waits until that many hosts were reached out to.
    async fn tried(&self, hosts: usize) {
        while self.first.lock().unwrap().len() < hosts {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[async_trait]
impl Transport for Network {
    async fn send(
        &self,
        request: http::Request<Bytes>,
        _: CallKind,
    ) -> Result<http::Response<NetBody>, NetError> {
        // Without a card there is no call, so what asks for one is what connects.
        let is_connect = request.uri().path().ends_with("agent-card.json");
        let _under_way = if is_connect { self.connects.enter() } else { self.calls.enter() };
        let host = request.uri().host().unwrap().to_owned();
        self.first.lock().unwrap().entry(host.clone()).or_insert_with(Instant::now);
        let mut line = self.line.subscribe();
        let line = *line.wait_for(|line| *line != Line::Hangs).await.unwrap();
        if line == Line::Down {
            let source = Arc::new(std::io::ErrorKind::ConnectionRefused.into());
            return Err(NetError::Connect { host, source });
        }
        let answer = if is_connect { card() } else { answer(request.body()) };
        let response = http::Response::builder().header("content-type", "application/json");
        Ok(response.body(NetBody::new(Body::from(answer.to_string()))).unwrap())
    }
}

fn card() -> Value {
    json!({
        "name": "Bot", "description": "It works.", "version": "1",
        "supportedInterfaces": [{"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": []
    })
}

fn answer(request: &Bytes) -> Value {
    let request: Value = serde_json::from_slice(request).unwrap();
    assert_eq!(request["method"], "GetTask");
    let id = request["params"]["id"].as_str().unwrap();
    let parts = json!([{"text": format!("done: {id}")}]);
    json!({"jsonrpc": "2.0", "id": request["id"], "result": {
        "id": id, "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "response", "parts": parts}]
    }})
}

/// The pauses of the registry, which a round may not depend on.
fn scaled() -> WatchConfig {
    WatchConfig::new(volcanic_a2a_client::ClientConfig::default(), 1 << 20).scaled(0.01)
}

/// A home whose conversation follows a thousand tasks.
async fn home(chance: &Chance) -> (Home, Vec<WatchRecord>) {
    let home = Home::new();
    let entry = |agent: usize| json!({"name": format!("a{agent}"), "url": format!("http://a{agent}.example/")});
    let agents: Vec<_> = (0..AGENTS).map(entry).collect();
    home.write_agents(&Value::from(agents).to_string());
    let watches: Vec<_> = (0..WATCHES)
        .map(|number| {
            // Every agent has one at least.
            let agent = if number < AGENTS { number } else { drawn_below(chance, AGENTS) };
            record(&home, agent, number, chance)
        })
        .collect();
    let store = Store::open(&home.database(), Arc::new(SystemClock)).unwrap();
    store.add_watches(&watches).await.unwrap();
    store.close().await;
    (home, watches)
}

fn record(home: &Home, agent: usize, number: usize, chance: &Chance) -> WatchRecord {
    WatchRecord {
        id: WatchId::random(chance, Timestamp::now()),
        target: WatchTarget::new(target().as_str()),
        workspace: home.workspace(),
        agent: format!("a{agent}"),
        origin: format!("http://a{agent}.example"),
        task_id: format!("t{number}").as_str().into(),
        context_id: None,
        push_token: None,
        source: WatchSource::Poll,
        started_at: Timestamp::now(),
        state: WatchState::Watching,
        epoch: 0,
        round: 0,
        told: Vec::new(),
        text: None,
        delivery_key: String::new(),
        goes_on: false,
        failures: 0,
        not_found: 0,
        not_found_since: None,
        next_check_at: None,
        last_seen: None,
        hops: 0,
        source_ref: None,
        message_id: None,
        continuations: 0,
        followed: 0,
    }
}

async fn round(number: usize, chance: &Chance) {
    let (home, watches) = home(chance).await;
    let network = Network::new();
    let setup =
        |session| Setup { transport: Some(Arc::clone(&network) as _), session, ..Setup::at_once() };
    let began = Instant::now();
    let steps = ["I am here.", "Still here.", "And now?", "As before."].map(says);
    let assistant = home.start(setup(true), steps).await;
    assistant.say("hello").await;
    // Whatever was reached out to has not come to an end.
    let shown = assistant.store.next_outbox(&target()).await.unwrap().unwrap();
    assert_eq!(shown.body, "I am here.", "round {number}");
    network.tried(scaled().max_connects).await;
    // All places are taken; meanwhile the turns of many more agents come.
    for text in ["are you there?", "and now?", "and now again?"] {
        assistant.say(text).await;
    }
    assert_eq!(network.calls.most(), 0);
    network.set(Line::Down);
    network.tried(AGENTS).await;
    let (connects, limit) = (network.connects.most(), scaled().max_connects);
    assert!(connects <= limit, "round {number}: {connects} connects at once");
    let first = network.first.lock().unwrap().clone();
    for agent in 0..AGENTS {
        // The first of an agent's watches has its place in the order of the start.
        let pause = scaled().restore_stagger * u32::try_from(agent).unwrap();
        let waited = first[&format!("a{agent}.example")] - began;
        assert!(waited >= pause, "round {number}: agent {agent} was tried after {waited:?}");
    }
    let live = assistant.store.live().await.unwrap();
    let followed = live.iter().filter(|watch| watch.state == WatchState::Watching).count();
    assert_eq!(followed, WATCHES, "round {number}");
    if drawn_below(chance, 2) == 0 {
        assistant.kill().await;
    } else {
        assistant.stop().await;
    }
    network.set(Line::Up);
    let assistant = home.start(setup(false), [] as [ScriptedStep; 0]).await;
    while !assistant.watch_states().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assistant.stop().await;
    let connects = network.connects.most();
    assert!(connects <= limit, "round {number}: {connects} connects at once");
    let calls = network.calls.most();
    assert!(calls <= scaled().max_calls, "round {number}: {calls} calls at once");
    let database = rusqlite::Connection::open(home.database()).unwrap();
    let mut accepted =
        database.prepare("SELECT key, text FROM inbound WHERE origin = 'delivery'").unwrap();
    let accepted = accepted.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let accepted: HashMap<String, String> = accepted.map(Result::unwrap).collect();
    assert_eq!(accepted.len(), WATCHES, "round {number}");
    for watch in watches {
        let text = &accepted[&watch.key_for("completed")];
        let expected = format!("done: {}", watch.task_id);
        assert!(text.lines().any(|line| line == expected), "round {number}: {text}");
    }
}

#[tokio::test]
async fn start_with_a_thousand_watches_and_no_agent_there_is_not_held_up_and_loses_none() {
    let seed = FaultSeed::new();
    for number in 0..FaultSeed::times(ROUNDS) {
        let chance = seed.round(number);
        tokio::time::timeout(PATIENCE, round(number, &chance)).await.unwrap();
    }
}

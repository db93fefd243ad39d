//! A life of the assistant as the bot leads it: updates come in and are acknowledged, answers go to a screen.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use volcanic_a2a_watch::WatchStore as _;
use volcanic_agent_core::{
    NewPrompt, Origin, OutboxItem, PromptKey, ScriptedModel, ScriptedRules, SessionStore as _,
};
use volcanic_base::Chance;
use volcanic_testkit::{FaultSeed, drawn_from};

use super::judge::Judge;
use super::{LIFETIME, one_in};
use crate::assistant::{Assistant, Home, Setup, target};
use crate::remote::RemoteSetup;

/// The test that leads a life in a process of its own when it is told to.
pub(super) const TEST: &str =
    "faults::power::life::life_that_nobody_disturbs_comes_to_its_end_and_tells_all_once";

/// Tells it which.
pub(super) const SCRIPT: &str = "VOLCANIC_RECORDED_LIFE";

/// What stands before everything that goes to the screen.
pub(super) const SCREEN_MARK: &str = "screen ";

/// What the model does, whichever life it is in. Questions are answered without the owner.
const RULES: &str = r#"
[[rule]]
when = '^delegate (.+)$'
call = { tool = "a2a", arguments = { action = "send", agent = "bot", message = "$1" } }

[[rule]]
after = "tool:a2a"
say = "The tool said: $result"

[[rule]]
when = '(?s)^\[A2A question from "bot", task (\S+) '
call = { tool = "a2a", arguments = { action = "send", agent = "bot", taskId = "$1", message = "Friday" } }

[[rule]]
when = '(?s)^\[A2A '
say = "There is news: $prompt"
"#;

/// What is delegated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Hold,
    Echo,
    Report,
    Book,
}

/// What one errand is about; no other has its word.
#[derive(Debug, Clone)]
pub(super) struct Errand {
    pub(super) task: Task,
    pub(super) word: String,
}

impl Errand {
    /// What the agent is told.
    pub(super) fn message(&self) -> String {
        let verb = match self.task {
            Task::Hold => "hold",
            Task::Echo => "echo",
            Task::Report => "report",
            Task::Book => "book",
        };
        format!("{verb} {}", self.word)
    }
}

/// What the owner says, and how the assistant is set up.
#[derive(Debug, Clone)]
pub(super) struct Life {
    name: String,
    waits: bool,
    pushes: bool,
    errands: Vec<Errand>,
}

impl Life {
    pub(super) fn drawn(name: &str, chance: &Chance) -> Self {
        // A file is always among them.
        let others = [Task::Hold, Task::Echo, Task::Book];
        let tasks = [*drawn_from(chance, &others), Task::Report, *drawn_from(chance, &others)];
        let errand = |(number, task)| Errand { task, word: format!("{name}x{number}") };
        Self {
            name: name.to_owned(),
            waits: one_in(chance, 3),
            pushes: one_in(chance, 2),
            errands: (1..).zip(tasks).map(errand).collect(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn errands(&self) -> &[Errand] {
        &self.errands
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.errands.iter().map(|errand| errand.word.as_str())
    }

    /// What the process that leads it is told.
    pub(super) fn script(&self, home: &Path, screen: SocketAddr) -> String {
        let messages: Vec<_> = self.errands.iter().map(Errand::message).collect();
        json!({
            "home": home, "screen": screen, "waits": self.waits, "pushes": self.pushes, "messages": messages
        })
        .to_string()
    }

    pub(super) async fn start(&self, home: &Home) -> Assistant {
        start(home, self.waits, self.pushes).await
    }

    pub(super) async fn live(&self, assistant: &Assistant, screen: &Screen) {
        let messages: Vec<_> = self.errands.iter().map(Errand::message).collect();
        live(assistant, &messages, screen).await;
    }
}

async fn start(home: &Home, waits: bool, pushes: bool) -> Assistant {
    let setup = Setup {
        wait: if waits { Duration::from_secs(30) } else { Duration::ZERO },
        pushes,
        change: |config| {
            config.poll_pauses = vec![Duration::from_millis(20)];
            config.safety_read = Duration::from_millis(200);
        },
        ..Setup::default()
    };
    let rules = ScriptedRules::parse("rules.toml", RULES).unwrap();
    home.start_with(setup, ScriptedModel::rules(rules)).await
}

/// Does what an earlier life left, then takes one update after the other, as a bot does.
async fn live(assistant: &Assistant, messages: &[String], screen: &Screen) {
    let store = assistant.store.whole();
    loop {
        rest(assistant, screen).await;
        let next = store.telegram_offset().await.unwrap().unwrap_or(1);
        let place = usize::try_from(next).unwrap();
        let Some(message) = messages.get(place - 1) else { return };
        let raw = json!({"update_id": next, "text": format!("delegate {message}")}).to_string();
        store.record_updates(vec![(next, raw)], next + 1).await.unwrap();
        screen.say(&json!({"acknowledged": next}));
    }
}

/// Waits until there is nothing left to do.
async fn rest(assistant: &Assistant, screen: &Screen) {
    let store = assistant.store.whole();
    loop {
        for update in store.updates_to_handle(100).await.unwrap() {
            let raw: Value = serde_json::from_str(&update.raw).unwrap();
            let prompt = NewPrompt {
                target: target(),
                key: PromptKey::new(format!("tg:{}", update.update_id)),
                origin: Origin::Owner,
                hops: 0,
                source: None,
                text: raw["text"].as_str().unwrap().to_owned(),
            };
            store.update_handled(update.update_id, Some(prompt)).await.unwrap();
            assistant.session().wake();
        }
        assistant.session().wait_idle().await;
        while let Some(item) = store.next_outbox(&target()).await.unwrap() {
            screen.show(&item);
            store.outbox_sent(item.id, None).await.unwrap();
        }
        // In the order in which things move on: what leaves one place is found in the next one.
        let rests = store.open_sends().await.unwrap().is_empty()
            && store.live().await.unwrap().is_empty()
            && store.waiting(&target()).await.unwrap().is_empty()
            && store.targets_with_work().await.unwrap().is_empty();
        if rests {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What the world sees.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// Whoever watches from outside of the process.
    watched: Option<Mutex<TcpStream>>,
    /// The keys of what was shown, each with whether it was labelled.
    shown: Mutex<Vec<(String, bool)>>,
}

impl Screen {
    fn watched_from(address: SocketAddr) -> Self {
        let watched = TcpStream::connect(address).unwrap();
        Self { watched: Some(Mutex::new(watched)), ..Self::default() }
    }

    /// A screen that has shown something.
    pub(super) fn remembering(shown: Vec<(String, bool)>) -> Self {
        Self { watched: None, shown: Mutex::new(shown) }
    }

    pub(super) fn shown(&self) -> Vec<(String, bool)> {
        self.shown.lock().unwrap().clone()
    }

    fn show(&self, item: &OutboxItem) {
        self.say(&json!({"shown": item.key, "labelled": item.may_repeat}));
        self.shown.lock().unwrap().push((item.key.clone(), item.may_repeat));
    }

    fn say(&self, what: &Value) {
        if let Some(watched) = &self.watched {
            watched.lock().unwrap().write_all(format!("{SCREEN_MARK}{what}\n").as_bytes()).unwrap();
        }
    }
}

/// A life as its script says, in this process.
async fn lead(script: &str) {
    let script: Value = serde_json::from_str(script).unwrap();
    let is = |name: &str| script[name].as_bool().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let home = Home::at(text(&script["home"]).into());
    let screen = Screen::watched_from(text(&script["screen"]).parse().unwrap());
    let messages: Vec<_> = script["messages"].as_array().unwrap().iter().map(text).collect();
    let assistant = start(&home, is("waits"), is("pushes")).await;
    live(&assistant, &messages, &screen).await;
    assistant.stop().await;
}

/// Where the others lead their lives: their processes run this test with a script, and are killed. By itself it is a life
/// that nobody disturbs.
#[tokio::test]
async fn life_that_nobody_disturbs_comes_to_its_end_and_tells_all_once() {
    if let Ok(script) = std::env::var(SCRIPT) {
        return lead(&script).await;
    }
    let seed = FaultSeed::new();
    let remote = RemoteSetup::new().with_pushes().start().await;
    let home = Home::with(&remote);
    let life = Life::drawn("undisturbed", seed.chance());
    for word in life.words() {
        remote.release(word);
    }
    let screen = Screen::default();
    let living = async {
        let assistant = life.start(&home).await;
        life.live(&assistant, &screen).await;
        assistant.stop().await;
    };
    tokio::time::timeout(LIFETIME, living).await.expect("it comes to rest");
    let judge = Judge { home: &home, remote: &remote, life: &life };
    assert_eq!(judge.at_the_end(&screen), [""; 0]);
    assert!(screen.shown().len() >= life.errands().len(), "{:?}", screen.shown());
}

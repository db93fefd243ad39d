//! What was promised, and whether a disk keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use serde_json::Value;
use volcanic_base::SystemClock;
use volcanic_store::Store;

use super::life::{Life, SCREEN_MARK, Screen, Task};
use super::record::Operation;
use crate::assistant::Home;
use crate::remote::{Received, Remote};

/// What anybody outside was told.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// Messages that begin to leave.
    sent: BTreeSet<String>,
    /// Tasks that were asked for or pushed for, so that they are followed.
    asked: BTreeSet<String>,
    /// The last update that was acknowledged.
    acknowledged: i64,
    /// The keys of answers that begin to be shown, each with whether it is labelled.
    shown: Vec<(String, bool)>,
}

impl Promises {
    /// Whether the operation tells anybody something.
    pub(super) fn hear(&mut self, operation: &Operation) -> bool {
        let Operation::Sent { data } = operation else { return false };
        let said = String::from_utf8_lossy(data);
        if let Some(said) = said.strip_prefix(SCREEN_MARK) {
            let said: Value = serde_json::from_str(said.trim_end()).unwrap();
            if let Some(update) = said["acknowledged"].as_i64() {
                self.acknowledged = update;
            } else {
                let key = said["shown"].as_str().unwrap().to_owned();
                self.shown.push((key, said["labelled"].as_bool().unwrap()));
            }
            return true;
        }
        // A request, with its head or without.
        let body = said.find('{').and_then(|at| serde_json::from_str::<Value>(&said[at..]).ok());
        let Some(body) = body.filter(|body| body["method"].is_string()) else { return false };
        let params = &body["params"];
        if let Some(id) = params["message"]["messageId"].as_str() {
            return self.sent.insert(id.to_owned());
        }
        let task = [&params["taskId"], &params["id"]].into_iter().find_map(Value::as_str);
        task.is_some_and(|task| self.asked.insert(task.to_owned()))
    }

    pub(super) fn count(&self) -> usize {
        let acknowledged = usize::from(self.acknowledged > 0);
        self.sent.len() + self.asked.len() + self.shown.len() + acknowledged
    }

    pub(super) fn kinds(&self) -> Vec<&'static str> {
        let kinds = [
            ("sent", self.sent.is_empty()),
            ("asked", self.asked.is_empty()),
            ("acknowledged", self.acknowledged == 0),
            ("shown", self.shown.is_empty()),
        ];
        kinds.into_iter().filter(|(_, is_empty)| !is_empty).map(|(kind, _)| kind).collect()
    }

    pub(super) fn sent(&self) -> &BTreeSet<String> {
        &self.sent
    }

    pub(super) fn shown_before(&self) -> Vec<(String, bool)> {
        self.shown.clone()
    }
}

/// Looks at one home.
pub(super) struct Judge<'a> {
    pub(super) home: &'a Home,
    pub(super) remote: &'a Remote,
    pub(super) life: &'a Life,
}

impl Judge<'_> {
    /// Whether what the disk holds is whole and keeps the promises. The assistant opens its state for that, as it does
    /// when it starts.
    pub(super) async fn after_power_loss(&self, promises: &Promises) -> Vec<String> {
        let mut faults = self.view_faults();
        let is_there = self.home.database().exists();
        if !is_there && promises.count() == 0 {
            return faults;
        }
        let opened = if is_there {
            Store::open(&self.home.database(), Arc::new(SystemClock))
        } else {
            faults.push("the state is gone".to_owned());
            return faults;
        };
        let store = match opened {
            Ok(store) => store,
            Err(error) => {
                faults.push(format!("the state does not open: {error:?}"));
                return faults;
            }
        };
        let state = State::read(&self.home.database());
        store.close().await;
        match state {
            Ok(state) => {
                faults.extend(state.standing_faults());
                faults.extend(state.broken(promises));
                faults.extend(self.file_faults(&state).1);
                faults.extend(self.doubled(&state));
            }
            Err(error) => faults.push(format!("the state cannot be read: {error}")),
        }
        faults
    }

    /// Whether everything came to its end once, when nothing is left to do.
    pub(super) async fn at_the_end(&self, screen: &Screen) -> Vec<String> {
        let state = match State::read(&self.home.database()) {
            Ok(state) => state,
            Err(error) => return vec![format!("the state cannot be read: {error}")],
        };
        let mut faults = state.standing_faults();
        faults.extend(state.open_ends().into_iter().map(|end| format!("still open: {end}")));
        faults.extend(self.view_faults());
        faults.extend(self.outcome_faults(&state));
        faults.extend(self.doubled(&state));
        faults.extend(state.screen_faults(&screen.shown()));
        let (told, file_faults) = self.file_faults(&state);
        faults.extend(file_faults);
        faults.extend(self.left_overs(&told));
        if !faults.is_empty() {
            let said: Vec<_> = state.entries.iter().map(|entry| entry.body.to_string()).collect();
            faults.push(format!("the conversation: {said:#?}"));
        }
        faults
    }

    pub(super) fn open_ends(&self) -> String {
        match State::read(&self.home.database()) {
            Ok(state) => format!("{:?}", state.open_ends()),
            Err(error) => error.to_string(),
        }
    }

    /// Whether the files for people are whole.
    fn view_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let folder = self.home.workspace().join(".volcanic/a2a");
        let url = self.remote.url();
        match std::fs::read_to_string(folder.join("agents.json")) {
            Ok(agents) if agents.contains(&url) => {}
            other => faults.push(format!("agents.json is broken: {other:?}")),
        }
        if let Ok(pending) = std::fs::read(folder.join("pending.json"))
            && let Err(error) = serde_json::from_slice::<Value>(&pending)
        {
            faults.push(format!("pending.json is broken: {error}"));
        }
        faults
    }

    /// The received files that the state tells of, and what is wrong with them.
    fn file_faults(&self, state: &State) -> (BTreeSet<String>, Vec<String>) {
        let received = self.remote.received();
        let (mut told, mut faults) = (BTreeSet::new(), Vec::new());
        for text in state.told() {
            let Some(path) = text.lines().find_map(|line| line.strip_prefix("Files: ")) else {
                continue;
            };
            told.insert(path.to_owned());
            let asked = received.iter().find(|one| text.contains(&one.task_id));
            let word = asked.and_then(|one| one.text.strip_prefix("report ")).unwrap_or_default();
            match std::fs::read_to_string(self.home.workspace().join(path)) {
                Ok(content) if content.trim_end() == word => {}
                Ok(content) => {
                    faults.push(format!("{path} is told, but holds {content:?} instead of {word}"));
                }
                Err(error) => faults.push(format!("{path} is told, but is not there: {error}")),
            }
        }
        (told, faults)
    }

    /// What stands in the conversation more than once.
    fn doubled(&self, state: &State) -> Vec<String> {
        let mut faults = Vec::new();
        for errand in self.life.errands() {
            let received = self.remote.received();
            let tasks = received.iter().filter(|one| one.text == errand.message());
            for one in tasks.filter(|one| state.sends.contains_key(&one.message_id)) {
                for outcome in outcomes(errand.task, &errand.word) {
                    let times = state.count(&one.task_id, &outcome);
                    if times > 1 {
                        faults.push(format!("\"{outcome}\" is told {times} times"));
                    }
                }
            }
        }
        faults
    }

    /// Whether every errand has what came of it.
    fn outcome_faults(&self, state: &State) -> Vec<String> {
        let received: Vec<_> = self.remote.received();
        let ours = |text: &str| -> Vec<&Received> {
            let is_ours = |one: &&Received| state.sends.contains_key(&one.message_id);
            received.iter().filter(is_ours).filter(|one| one.text == text).collect()
        };
        let mut faults = Vec::new();
        for (number, errand) in (1..).zip(self.life.errands()) {
            let word = &errand.word;
            if !state.inbound.contains_key(&format!("tg:{number}")) {
                faults.push(format!("what was said about {word} is lost"));
            }
            let one = match ours(&errand.message()).as_slice() {
                // A loss came between the prompt and the message, or nobody knows; the call says so.
                [] => continue,
                [one] => *one,
                several => {
                    faults.push(format!("{word} was sent {} times", several.len()));
                    continue;
                }
            };
            let unknown = state.is_unknown(&one.message_id);
            let expected = outcomes(errand.task, word);
            let mut check = |what: &str, unknown: bool| {
                let times = state.count(&one.task_id, what);
                if times + usize::from(unknown) != 1 {
                    faults.push(format!("\"{what}\" is told {times} times, unknown: {unknown}"));
                }
            };
            let answers: Vec<_> = received
                .iter()
                .filter(|answer| answer.text == "Friday" && answer.task_id == one.task_id)
                .collect();
            let (ours, others): (Vec<&Received>, Vec<_>) = answers
                .into_iter()
                .partition(|answer| state.sends.contains_key(&answer.message_id));
            if !others.is_empty() {
                // The agent remembers an answer that went out after the loss, or in the life after another one: the
                // question is none any more.
                let told = expected.iter().filter(|what| state.count(&one.task_id, what) == 1);
                if told.count() + usize::from(unknown) == 0 {
                    faults.push(format!("nothing is told of {word}"));
                }
                continue;
            }
            check(&expected[0], unknown);
            match ours.as_slice() {
                [] => {}
                [answer] => check(&expected[1], state.is_unknown(&answer.message_id)),
                _ => faults.push(format!("the question about {word} was answered twice")),
            }
        }
        // What the agent refused is told by the result of its call.
        let mut refusals = state.errors();
        for (id, state_of) in &state.sends {
            let arrived = received.iter().any(|one| one.message_id == *id);
            if arrived || state.is_unknown(id) || state.is_refused(id) {
                continue;
            }
            if state_of != "ended" || refusals == 0 {
                faults.push(format!("message {id} ({state_of}) never arrived, and nobody is told"));
            }
            refusals = refusals.saturating_sub(1);
        }
        faults
    }

    /// Files that nobody needs any more.
    fn left_overs(&self, told: &BTreeSet<String>) -> Vec<String> {
        let mut faults = Vec::new();
        for path in files_below(self.home.root()) {
            let path = path.to_string_lossy().into_owned();
            let is_known = match path.strip_prefix("workspace/") {
                Some(".volcanic/a2a/agents.json" | ".volcanic/a2a/pending.json") => true,
                Some(path) => told.contains(path),
                None => ["roots.pem", "state/state.db"].contains(&path.as_str()),
            };
            if !is_known {
                faults.push(format!("{path} is left over"));
            }
        }
        let pending = self.home.workspace().join(".volcanic/a2a/pending.json");
        if let Ok(pending) = std::fs::read_to_string(pending)
            && serde_json::from_str(&pending).ok() != Some(Value::Array(Vec::new()))
        {
            faults.push(format!("nothing is followed, but pending.json says {pending}"));
        }
        faults
    }
}

/// What is told of a task: what comes first, and what comes of the answer to that.
fn outcomes(task: Task, word: &str) -> Vec<String> {
    match task {
        Task::Hold => vec![format!("finished: {word}")],
        Task::Echo => vec![format!("echo: {word}")],
        Task::Report => vec!["The report is attached.".to_owned()],
        Task::Book => vec!["Which day?".to_owned(), format!("Booked {word} for Friday.")],
    }
}

/// A state as it lies on disk, read without the code that wrote it.
struct State {
    damage: Vec<String>,
    entries: Vec<Entry>,
    inbound: BTreeMap<String, Inbound>,
    /// States by key.
    outbox: BTreeMap<String, String>,
    /// States by message id.
    sends: BTreeMap<String, String>,
    watches: Vec<Watch>,
    /// Whether each received update is handled.
    updates: BTreeMap<i64, bool>,
    offset: i64,
}

struct Entry {
    seq: i64,
    ends_run: bool,
    body: Value,
}

struct Inbound {
    origin: String,
    text: String,
    consumed_by: Option<i64>,
}

struct Watch {
    task_id: String,
    state: String,
    text: Option<String>,
}

impl State {
    fn read(path: &Path) -> rusqlite::Result<Self> {
        let database = Connection::open(path)?;
        let rows = |sql: &str| -> rusqlite::Result<Vec<Vec<rusqlite::types::Value>>> {
            let mut statement = database.prepare(sql)?;
            let width = statement.column_count();
            let rows = statement.query_map([], |row| (0..width).map(|at| row.get(at)).collect())?;
            rows.collect()
        };
        let damage =
            rows("PRAGMA integrity_check")?.iter().map(|row| text(&row[0])).collect::<Vec<_>>();
        let entries = rows("SELECT seq, ends_run, body FROM entries ORDER BY seq")?;
        let inbound = rows("SELECT key, origin, text, consumed_by FROM inbound")?;
        let watches = rows("SELECT task_id, state, text FROM watches")?;
        let pairs = |sql| -> rusqlite::Result<BTreeMap<String, String>> {
            Ok(rows(sql)?.iter().map(|row| (text(&row[0]), text(&row[1]))).collect())
        };
        let updates = rows("SELECT update_id, handled FROM telegram_updates")?;
        let offset = rows("SELECT next_offset FROM telegram_state")?;
        Ok(Self {
            damage: damage.into_iter().filter(|line| line != "ok").collect(),
            entries: entries
                .iter()
                .map(|row| Entry {
                    seq: number(&row[0]).unwrap(),
                    ends_run: number(&row[1]) == Some(1),
                    body: serde_json::from_str(&text(&row[2])).unwrap(),
                })
                .collect(),
            inbound: inbound
                .iter()
                .map(|row| {
                    let (origin, said) = (text(&row[1]), text(&row[2]));
                    let inbound = Inbound { origin, text: said, consumed_by: number(&row[3]) };
                    (text(&row[0]), inbound)
                })
                .collect(),
            outbox: pairs("SELECT key, state FROM outbox")?,
            sends: pairs("SELECT message_id, state FROM sends")?,
            watches: watches
                .iter()
                .map(|row| Watch {
                    task_id: text(&row[0]),
                    state: text(&row[1]),
                    text: Some(text(&row[2])).filter(|text| !text.is_empty()),
                })
                .collect(),
            updates: updates
                .iter()
                .map(|row| (number(&row[0]).unwrap(), number(&row[1]) == Some(1)))
                .collect(),
            offset: offset.first().and_then(|row| number(&row[0])).unwrap_or_default(),
        })
    }

    /// What must never be.
    fn standing_faults(&self) -> Vec<String> {
        let mut faults: Vec<_> =
            self.damage.iter().map(|line| format!("the state is damaged: {line}")).collect();
        let mut open = None;
        for (entry, seq) in self.entries.iter().zip(1..) {
            if entry.seq != seq {
                faults.push(format!("entry {seq} of the conversation is missing"));
                break;
            }
            let key = entry.body["key"].as_str().unwrap_or_default();
            if entry.body["kind"] == "user" {
                if let Some(before) = open.replace(key) {
                    faults.push(format!("prompt {key} entered before {before} was answered"));
                }
                if self.inbound.get(key).and_then(|inbound| inbound.consumed_by) != Some(seq) {
                    faults.push(format!("prompt {key} entered without having been accepted"));
                }
            } else if entry.ends_run && open.take().is_none() {
                faults.push(format!("entry {seq} ends a run that had ended"));
            }
        }
        faults
    }

    /// What was promised and is not so.
    fn broken(&self, promises: &Promises) -> Vec<String> {
        let mut faults = Vec::new();
        for id in &promises.sent {
            if !self.sends.contains_key(id) {
                faults.push(format!("message {id} left before it was on disk"));
            }
        }
        for task in &promises.asked {
            if !self.watches.iter().any(|watch| watch.task_id == *task) {
                faults.push(format!("task {task} is asked for, but not followed"));
            }
        }
        if promises.acknowledged > 0 && self.offset <= promises.acknowledged {
            faults.push(format!("update {} was acknowledged before it was on disk", self.offset));
        }
        for update in 1..=promises.acknowledged {
            let is_there = match self.updates.get(&update) {
                Some(true) => self.inbound.contains_key(&format!("tg:{update}")),
                Some(false) => true,
                None => false,
            };
            if !is_there {
                faults.push(format!("update {update} was acknowledged and is lost"));
            }
        }
        for (key, _) in &promises.shown {
            match self.outbox.get(key).map(String::as_str) {
                Some("sending" | "sent") => {}
                other => faults.push(format!("answer {key} was shown and is {other:?} on disk")),
            }
            let prompt = key.trim_start_matches("run:");
            if self.inbound.get(prompt).is_none_or(|inbound| inbound.consumed_by.is_none()) {
                faults.push(format!("answer {key} was shown, and its prompt did not enter"));
            }
        }
        faults
    }

    /// What is not at rest.
    fn open_ends(&self) -> Vec<String> {
        let mut ends = Vec::new();
        let sends = self.sends.iter().filter(|(_, state)| *state == "sending");
        ends.extend(sends.map(|(id, _)| format!("message {id}")));
        let watches = self.watches.iter().filter(|watch| watch.state != "done");
        ends.extend(watches.map(|watch| format!("task {} is {}", watch.task_id, watch.state)));
        let waiting = self.inbound.iter().filter(|(_, inbound)| inbound.consumed_by.is_none());
        ends.extend(waiting.map(|(key, _)| format!("prompt {key}")));
        let unsent = self.outbox.iter().filter(|(_, state)| *state != "sent");
        ends.extend(unsent.map(|(key, state)| format!("answer {key} is {state}")));
        let unhandled = self.updates.iter().filter(|(_, handled)| !**handled);
        ends.extend(unhandled.map(|(update, _)| format!("update {update}")));
        ends
    }

    /// Whether every answer was shown, and again only with a label.
    fn screen_faults(&self, shown: &[(String, bool)]) -> Vec<String> {
        let mut faults = Vec::new();
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for (key, labelled) in shown {
            let times = times.entry(key).or_default();
            if *times > 0 && !labelled {
                faults.push(format!("answer {key} is shown again without a label"));
            }
            *times += 1;
        }
        for key in self.outbox.keys() {
            if !times.contains_key(key.as_str()) {
                faults.push(format!("answer {key} was never shown"));
            }
        }
        let prompts = self.entries.iter().filter(|entry| entry.body["kind"] == "user");
        for key in prompts.filter_map(|entry| entry.body["key"].as_str()) {
            if !self.outbox.contains_key(&format!("run:{key}")) {
                faults.push(format!("prompt {key} has no answer"));
            }
        }
        faults
    }

    /// Everything that tells what came of a task, in the conversation or on its way there.
    fn told(&self) -> Vec<&str> {
        let claimed = self.watches.iter().filter_map(|watch| watch.text.as_deref());
        let delivered = self.inbound.values().filter(|inbound| inbound.origin == "delivery");
        let delivered = delivered.map(|inbound| inbound.text.as_str());
        let results = self.entries.iter().filter(|entry| entry.body["kind"] == "tool");
        let results = results.filter_map(|entry| entry.body["text"].as_str());
        claimed.chain(delivered).chain(results).collect()
    }

    /// How often the conversation says this of a task.
    fn count(&self, task_id: &str, what: &str) -> usize {
        let from_outside = self
            .entries
            .iter()
            .filter(|entry| entry.body["kind"] == "tool" || entry.body["origin"] == "delivery");
        let texts = from_outside.filter_map(|entry| entry.body["text"].as_str());
        texts.filter(|text| text.contains(task_id) && text.contains(what)).count()
    }

    /// How many calls ended with an error.
    fn errors(&self) -> usize {
        let results = self.entries.iter().filter(|entry| entry.body["kind"] == "tool");
        results.filter(|entry| entry.body["is_error"] == true).count()
    }

    fn is_unknown(&self, message_id: &str) -> bool {
        self.inbound.contains_key(&format!("a2a-send:{message_id}:unknown"))
    }

    fn is_refused(&self, message_id: &str) -> bool {
        self.inbound.contains_key(&format!("a2a-send:{message_id}:not-sent"))
    }
}

/// The messages that a state knows of.
pub(super) fn messages(database: &Path) -> BTreeSet<String> {
    State::read(database).unwrap().sends.into_keys().collect()
}

fn text(value: &rusqlite::types::Value) -> String {
    match value {
        rusqlite::types::Value::Text(text) => text.clone(),
        _ => String::new(),
    }
}

fn number(value: &rusqlite::types::Value) -> Option<i64> {
    match value {
        rusqlite::types::Value::Integer(number) => Some(*number),
        _ => None,
    }
}

/// Every file below a folder, by its path from there.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&inner)).unwrap() {
            let entry = entry.unwrap();
            let path = inner.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files
}

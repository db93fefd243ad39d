//! A state read with SQL alone, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value as Column;
use serde_json::Value;

use super::promises::Promises;

/// A state as it lies on disk, read without the code that wrote it.
pub(super) struct State {
    damage: Vec<String>,
    pub(super) entries: Vec<Entry>,
    pub(super) inbound: BTreeMap<String, Inbound>,
    /// States by key.
    outbox: BTreeMap<String, String>,
    /// States by message id.
    pub(super) sends: BTreeMap<String, String>,
    watches: Vec<Watch>,
    /// Whether each received update is handled.
    updates: BTreeMap<i64, bool>,
    offset: i64,
}

pub(super) struct Entry {
    seq: i64,
    ends_run: bool,
    pub(super) body: Value,
}

pub(super) struct Inbound {
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
    pub(super) fn read(path: &Path) -> rusqlite::Result<Self> {
        let database = Connection::open(path)?;
        let rows = |sql: &str| -> rusqlite::Result<Vec<Vec<Column>>> {
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
    pub(super) fn standing_faults(&self) -> Vec<String> {
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
    pub(super) fn broken(&self, promises: &Promises) -> Vec<String> {
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
    pub(super) fn open_ends(&self) -> Vec<String> {
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
    pub(super) fn screen_faults(&self, shown: &[(String, bool)]) -> Vec<String> {
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
    pub(super) fn told(&self) -> Vec<&str> {
        let claimed = self.watches.iter().filter_map(|watch| watch.text.as_deref());
        let delivered = self.inbound.values().filter(|inbound| inbound.origin == "delivery");
        let delivered = delivered.map(|inbound| inbound.text.as_str());
        let results = self.entries.iter().filter(|entry| entry.body["kind"] == "tool");
        let results = results.filter_map(|entry| entry.body["text"].as_str());
        claimed.chain(delivered).chain(results).collect()
    }

    /// How often the conversation says this of a task.
    pub(super) fn count(&self, task_id: &str, what: &str) -> usize {
        let from_outside = self
            .entries
            .iter()
            .filter(|entry| entry.body["kind"] == "tool" || entry.body["origin"] == "delivery");
        let texts = from_outside.filter_map(|entry| entry.body["text"].as_str());
        texts.filter(|text| text.contains(task_id) && text.contains(what)).count()
    }

    /// How many calls ended with an error.
    pub(super) fn errors(&self) -> usize {
        let results = self.entries.iter().filter(|entry| entry.body["kind"] == "tool");
        results.filter(|entry| entry.body["is_error"] == true).count()
    }

    pub(super) fn is_unknown(&self, message_id: &str) -> bool {
        self.inbound.contains_key(&format!("a2a-send:{message_id}:unknown"))
    }

    pub(super) fn is_refused(&self, message_id: &str) -> bool {
        self.inbound.contains_key(&format!("a2a-send:{message_id}:not-sent"))
    }
}

/// The messages that a state knows of.
pub(super) fn messages(database: &Path) -> BTreeSet<String> {
    State::read(database).unwrap().sends.into_keys().collect()
}

fn text(value: &Column) -> String {
    match value {
        Column::Text(text) => text.clone(),
        _ => String::new(),
    }
}

fn number(value: &Column) -> Option<i64> {
    match value {
        Column::Integer(number) => Some(*number),
        _ => None,
    }
}

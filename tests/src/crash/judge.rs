//! Reads what a killed assistant left, and says whether a promise was broken.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, Result};
use rusqlite::{Connection, OpenFlags, Params, Row};
use serde_json::Value;
use tempfile::TempDir;

use super::{phase::Phase, scene::Scene};

/// A look at a state.
#[derive(Debug)]
pub(super) struct Judge {
    connection: Connection,
    /// Keeps a dead process's files apart, so that looking changes nothing.
    _copy: Option<TempDir>,
}

/// An entry of the conversation.
#[derive(Debug)]
struct Entry {
    seq: i64,
    ends_run: bool,
    body: Value,
}

impl Entry {
    fn kind(&self) -> &str {
        self.body["kind"].as_str().unwrap_or_default()
    }
}

impl Judge {
    /// Looks at the state of a process that has ended. What is looked at is a copy.
    pub(super) fn of_the_dead(database: &Path) -> Result<Self> {
        let copy = tempfile::tempdir()?;
        for suffix in ["", "-wal"] {
            let mut name = database.as_os_str().to_owned();
            name.push(suffix);
            let to = copy.path().join(format!("state.db{suffix}"));
            if Path::new(&name).exists() {
                std::fs::copy(&name, to)
                    .with_context(|| format!("failed to copy {}", Path::new(&name).display()))?;
            }
        }
        let connection =
            Connection::open(copy.path().join("state.db")).context("the state does not open")?;
        Ok(Self { connection, _copy: Some(copy) })
    }

    /// Looks at the state of a process that runs.
    pub(super) fn of_the_living(database: &Path) -> Result<Self> {
        let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        Ok(Self { connection, _copy: None })
    }

    /// What stands in a phase, by its id.
    pub(super) fn standing(&self, phase: Phase, scene: &Scene) -> Result<Vec<String>> {
        let Some(query) = phase.query() else { return Ok(Vec::new()) };
        let mut ids = self.column(query)?;
        if ids.is_empty() {
            return Ok(ids);
        }
        match phase {
            Phase::SendIntent | Phase::AnswerInFlight => {
                let journal = scene.journal()?;
                let has_arrived =
                    |id: &String| journal.iter().any(|line| line["messageId"] == **id);
                ids.retain(|id| has_arrived(id) == (phase == Phase::AnswerInFlight));
            }
            Phase::Watching => ids.retain(|task| !scene.is_over(task)),
            Phase::Claim => ids.retain(|task| scene.is_over(task)),
            Phase::Run | Phase::ResultRun => {
                ids.retain(|key| key.starts_with("a2a") == (phase == Phase::ResultRun));
            }
            _ => {}
        }
        Ok(ids)
    }

    /// Everything that is not at rest.
    pub(super) fn open_ends(&self) -> Result<Vec<String>> {
        let mut ends = Vec::new();
        let open = [
            ("a message", "SELECT message_id FROM sends WHERE state = 'sending'"),
            ("a watch", "SELECT task_id || ' ' || state FROM watches WHERE state <> 'done'"),
            ("a prompt", "SELECT key FROM inbound WHERE consumed_by IS NULL"),
            ("an answer", "SELECT key FROM outbox WHERE state IN ('queued', 'sending')"),
            (
                "a run",
                "SELECT e.target FROM entries e WHERE e.ends_run = 0
                 AND e.seq = (SELECT max(seq) FROM entries l WHERE l.target = e.target)",
            ),
        ];
        for (what, query) in open {
            ends.extend(self.column(query)?.into_iter().map(|id| format!("{what}: {id}")));
        }
        Ok(ends)
    }

    /// The messages of which nobody knows whether they left.
    pub(super) fn sends_in_flight(&self) -> Result<Vec<String>> {
        self.column("SELECT message_id FROM sends WHERE state = 'sending'")
    }

    /// What must never be, at any moment.
    pub(super) fn standing_faults(&self) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        for line in self.column("PRAGMA integrity_check")? {
            if line != "ok" {
                faults.push(format!("the database is damaged: {line}"));
            }
        }
        // A consumed prompt is the entry that consumed it; a key without a prompt is a tool's result.
        let strays = "SELECT i.key FROM inbound i LEFT JOIN entries e ON e.target = i.target AND e.seq = i.consumed_by
                      WHERE i.consumed_by IS NOT NULL AND NOT coalesce(CASE i.text
                          WHEN '' THEN json_extract(e.body, '$.kind') = 'tool'
                          ELSE json_extract(e.body, '$.kind') = 'user' AND json_extract(e.body, '$.key') = i.key END, 0)";
        for key in self.column(strays)? {
            faults.push(format!("prompt {key} was consumed by an entry that is not its own"));
        }
        let unheard = "SELECT json_extract(e.body, '$.key') FROM entries e
                       WHERE json_extract(e.body, '$.kind') = 'user' AND NOT EXISTS (
                           SELECT 1 FROM inbound i WHERE i.target = e.target AND i.consumed_by = e.seq)";
        for key in self.column(unheard)? {
            faults.push(format!("prompt {key} entered without having been accepted"));
        }
        let entries = self.entries()?;
        for (entry, seq) in entries.iter().zip(1..) {
            if entry.seq != seq {
                faults.push(format!("entry {seq} of the conversation is missing"));
                break;
            }
        }
        faults.extend(run_faults(&entries));
        Ok(faults)
    }

    /// What must not be when nothing is open.
    pub(super) fn faults_at_rest(&self) -> Result<Vec<String>> {
        let mut faults = call_faults(&self.entries()?);
        let unanswered = "SELECT json_extract(e.body, '$.key') FROM entries e WHERE json_extract(e.body, '$.kind') = 'user'
                          AND (SELECT count(*) FROM outbox o
                               WHERE o.target = e.target AND o.key = 'run:' || json_extract(e.body, '$.key')) <> 1";
        for key in self.column(unanswered)? {
            faults.push(format!("prompt {key} has not exactly one answer"));
        }
        let unasked = "SELECT o.key FROM outbox o WHERE NOT EXISTS (
                           SELECT 1 FROM entries e WHERE e.target = o.target AND json_extract(e.body, '$.kind') = 'user'
                           AND o.key = 'run:' || json_extract(e.body, '$.key'))";
        for key in self.column(unasked)? {
            faults.push(format!("answer {key} has no prompt"));
        }
        Ok(faults)
    }

    /// How often it was announced that the outcome of a message is unknown.
    pub(super) fn announcements(&self, message_id: &str) -> Result<usize> {
        self.told_of_send(message_id, "unknown")
    }

    /// How often it was announced that a message was not sent.
    pub(super) fn refusals(&self, message_id: &str) -> Result<usize> {
        self.told_of_send(message_id, "not-sent")
    }

    fn told_of_send(&self, message_id: &str, what: &str) -> Result<usize> {
        let query = "SELECT key FROM inbound WHERE key = 'a2a-send:' || ?1 || ':' || ?2";
        Ok(self.rows(query, [message_id, what], |row| row.get::<_, String>(0))?.len())
    }

    /// Every message that was begun to be sent.
    pub(super) fn sends(&self) -> Result<Vec<String>> {
        self.column("SELECT message_id FROM sends")
    }

    /// What the conversation says of the end of a task: results of tools, and deliveries.
    pub(super) fn outcomes(&self, task: &str) -> Result<Vec<String>> {
        Ok(outcomes(&self.entries()?, task))
    }

    /// How many results of calls say that the agent was not there.
    pub(super) fn unreached(&self) -> Result<usize> {
        let says_so = |entry: &Entry| {
            let text = entry.body["text"].as_str().unwrap_or_default();
            entry.kind() == "tool" && text.starts_with("Could not reach agent ")
        };
        Ok(self.entries()?.iter().filter(|entry| says_so(entry)).count())
    }

    /// What was to be shown.
    pub(super) fn answers(&self) -> Result<Vec<String>> {
        self.column("SELECT body FROM outbox")
    }

    fn entries(&self) -> Result<Vec<Entry>> {
        let rows =
            self.rows("SELECT seq, ends_run, body FROM entries ORDER BY target, seq", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))
            })?;
        rows.into_iter()
            .map(|(seq, ends_run, body)| {
                Ok(Entry { seq, ends_run, body: serde_json::from_str(&body)? })
            })
            .collect()
    }

    fn column(&self, query: &str) -> Result<Vec<String>> {
        self.rows(query, [], |row| row.get(0))
    }

    fn rows<T>(
        &self,
        query: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map(parameters, read)?;
        rows.collect::<Result<_, _>>().with_context(|| format!("failed to read the state: {query}"))
    }
}

/// What the conversation says came of a task.
fn outcomes(entries: &[Entry], task: &str) -> Vec<String> {
    let mut outcomes = Vec::new();
    for entry in entries {
        let text = entry.body["text"].as_str().unwrap_or_default();
        let head = match entry.kind() {
            // What the agent was done with when it answered is still to be told.
            "tool" if text.contains(" will be delivered to this conversation") => None,
            "tool" => text
                .lines()
                .find(|line| line.contains(" is completed") || line.contains(" is failed")),
            "user" if entry.body["origin"] == "delivery" => {
                text.lines().find(|line| line.starts_with("[A2A "))
            }
            _ => None,
        };
        if head.is_some_and(|head| head.contains(task)) {
            outcomes.push(text.to_owned());
        }
    }
    outcomes
}

/// Runs stand one after the other: each prompt once, and one end before the next.
fn run_faults(entries: &[Entry]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut open: Option<&str> = None;
    let mut seen = BTreeSet::new();
    for entry in entries {
        if entry.kind() == "user" {
            let key = entry.body["key"].as_str().unwrap_or_default();
            if let Some(before) = open.replace(key) {
                faults.push(format!("prompt {key} entered before {before} was answered"));
            }
            if !seen.insert(key) {
                faults.push(format!("prompt {key} entered twice"));
            }
        } else if entry.ends_run && open.take().is_none() && entry.kind() != "reset" {
            faults.push(format!("entry {} ends a run that had ended", entry.seq));
        }
    }
    faults
}

/// Every call has one result, before the next reply.
fn call_faults(entries: &[Entry]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    let mut close = |open: &mut BTreeMap<&str, usize>, seq: i64| {
        for (call, results) in std::mem::take(open) {
            if results != 1 {
                faults.push(format!("call {call} has {results} results before entry {seq}"));
            }
        }
    };
    for entry in entries {
        match entry.kind() {
            "assistant" => {
                close(&mut open, entry.seq);
                let blocks = entry.body["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
                let calls = blocks.iter().filter(|block| block["type"] == "tool_call");
                open.extend(calls.filter_map(|call| Some((call["id"].as_str()?, 0))));
            }
            "tool" => {
                let call = entry.body["call_id"].as_str().unwrap_or_default();
                *open.entry(call).or_default() += 1;
            }
            _ => {}
        }
    }
    close(&mut open, i64::MAX);
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversation(bodies: &[Value]) -> Vec<Entry> {
        let entry = |(seq, body): (i64, &Value)| Entry {
            seq,
            ends_run: body["ends"] == true,
            body: body.clone(),
        };
        (1..).zip(bodies).map(entry).collect()
    }

    fn user(key: &str) -> Value {
        json!({ "kind": "user", "key": key })
    }

    fn answer() -> Value {
        json!({ "kind": "assistant", "blocks": [], "ends": true })
    }

    fn calls(ids: &[&str]) -> Value {
        let blocks: Vec<Value> =
            ids.iter().map(|id| json!({ "type": "tool_call", "id": id })).collect();
        json!({ "kind": "assistant", "blocks": blocks })
    }

    fn result(id: &str) -> Value {
        json!({ "kind": "tool", "call_id": id })
    }

    #[test]
    fn outcome_is_told_once_by_a_call_or_by_a_delivery() {
        let told = |text: &str| json!({ "kind": "tool", "call_id": "c", "text": text });
        let delivered =
            |text: &str| json!({ "kind": "user", "key": "k", "origin": "delivery", "text": text });
        let by_call = "Agent \"demo\": task t1 (context c1) is completed.\nLisbon";
        let later =
            " is completed.\nIts result will be delivered to this conversation when it is ready.";
        let handed_over = format!("Agent \"demo\": task t1 (context c1){later}");
        let by_delivery = "[2026-12-01 08:54 +00:00 Etc/UTC, Tue]\n[A2A result from \"demo\", task t1 (completed)]\nLisbon";
        let check = |bodies: &[Value], expected: &[&str]| {
            assert_eq!(outcomes(&conversation(bodies), "t1"), expected);
        };
        check(&[told(by_call)], &[by_call]);
        check(&[told(&handed_over)], &[]);
        check(&[told(&handed_over), delivered(by_delivery)], &[by_delivery]);
        check(&[told(by_call), delivered(by_delivery)], &[by_call, by_delivery]);
        check(&[told(&by_call.replace("t1", "t2")), answer()], &[]);
    }

    #[test]
    fn runs_stand_one_after_the_other() {
        let check = |bodies: &[Value], expected: &[&str]| {
            assert_eq!(run_faults(&conversation(bodies)), expected);
        };
        let reset = json!({ "kind": "reset", "ends": true });
        check(&[user("a"), answer(), reset, user("b"), answer()], &[]);
        check(&[user("a"), answer(), user("b")], &[]);
        check(&[user("a"), answer(), answer()], &["entry 3 ends a run that had ended"]);
        check(&[user("a"), user("b"), answer()], &["prompt b entered before a was answered"]);
        check(&[user("a"), answer(), user("a"), answer()], &["prompt a entered twice"]);
    }

    #[test]
    fn each_call_has_one_result() {
        let check = |bodies: &[Value], expected: &[&str]| {
            assert_eq!(call_faults(&conversation(bodies)), expected);
        };
        check(&[calls(&["1", "2"]), result("2"), result("1"), answer()], &[]);
        check(&[calls(&["1"]), answer()], &["call 1 has 0 results before entry 2"]);
        check(
            &[calls(&["1"]), result("1"), result("1"), answer()],
            &["call 1 has 2 results before entry 4"],
        );
    }
}

//! Reads what a killed assistant left, and says whether a promise was broken.

use std::{collections::BTreeMap, fmt, path::Path};

use anyhow::{Context as _, Result};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;

use super::CrashReport;

/// What the screen puts before an answer that it may have shown before.
const LABEL: &str = "(may be a repeat) ";

/// How far the state had come when the process was killed: the first thing that is not at rest, in the order of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The message is on disk, its answer is not.
    SendInFlight,
    /// The task is known and the turn waits for it.
    AttendedWait,
    /// The outcome is on disk, not yet in the conversation.
    Claimed,
    /// The outcome is in the conversation's queue.
    AcceptedDelivery,
    /// A prompt of the owner is in the queue.
    AcceptedPrompt,
    /// A run was going on.
    Run,
    /// An answer is committed and not shown.
    Answer,
    /// A watch follows a task.
    Watching,
    /// Nothing was open.
    AtRest,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SendInFlight => "send on disk, answer in flight",
            Self::AttendedWait => "attended wait",
            Self::Claimed => "claimed, not delivered",
            Self::AcceptedDelivery => "delivery accepted, not consumed",
            Self::AcceptedPrompt => "prompt accepted, not consumed",
            Self::Run => "run under way",
            Self::Answer => "answer committed, not shown",
            Self::Watching => "watching",
            Self::AtRest => "at rest",
        })
    }
}

/// Things that are not at rest, with the phase they stand for.
const OPEN: &[(Phase, &str)] = &[
    (Phase::SendInFlight, "SELECT message_id FROM sends WHERE state = 'sending'"),
    (Phase::AttendedWait, "SELECT task_id FROM watches WHERE state = 'attended'"),
    (Phase::Claimed, "SELECT task_id FROM watches WHERE state = 'claimed'"),
    (
        Phase::AcceptedDelivery,
        "SELECT key FROM inbound WHERE consumed_by IS NULL AND origin = 'delivery'",
    ),
    (
        Phase::AcceptedPrompt,
        "SELECT key FROM inbound WHERE consumed_by IS NULL AND origin = 'owner'",
    ),
    (
        Phase::Run,
        "SELECT e.target FROM entries e WHERE e.ends_run = 0
         AND e.seq = (SELECT max(seq) FROM entries l WHERE l.target = e.target)",
    ),
    (Phase::Answer, "SELECT key FROM outbox WHERE state IN ('queued', 'sending')"),
    (Phase::Watching, "SELECT task_id FROM watches WHERE state = 'watching'"),
];

/// A look at a state.
#[derive(Debug)]
pub struct Judge {
    connection: Connection,
    /// Keeps a dead process's files apart, so that looking changes nothing.
    _copy: Option<TempDir>,
}

impl Judge {
    /// Looks at the state of a process that has ended. What is looked at is a copy.
    ///
    /// # Errors
    /// When the copy cannot be made or is no database.
    pub fn of_the_dead(database: &Path) -> Result<Self> {
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
    ///
    /// # Errors
    /// When it cannot be opened for reading.
    pub fn of_the_living(database: &Path) -> Result<Self> {
        let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        Ok(Self { connection, _copy: None })
    }

    /// The phase the state is in.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn phase(&self) -> Result<Phase> {
        for (phase, query) in OPEN {
            if !self.column(query)?.is_empty() {
                return Ok(*phase);
            }
        }
        Ok(Phase::AtRest)
    }

    /// Everything that is not at rest.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn open_ends(&self) -> Result<Vec<String>> {
        let mut ends = Vec::new();
        for (phase, query) in OPEN {
            ends.extend(self.column(query)?.into_iter().map(|what| format!("{phase}: {what}")));
        }
        Ok(ends)
    }

    /// What must never be, at any moment.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn standing_faults(&self) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        for line in self.column("PRAGMA integrity_check")? {
            if line != "ok" {
                faults.push(format!("the database is damaged: {line}"));
            }
        }
        let twice = "SELECT json_extract(body, '$.key') FROM entries WHERE json_extract(body, '$.kind') = 'user'
                     GROUP BY target, json_extract(body, '$.key') HAVING count(*) > 1";
        faults.extend(
            self.column(twice)?.into_iter().map(|key| format!("prompt {key} entered twice")),
        );
        Ok(faults)
    }

    /// Holds the conversation beside the remote's journal and the screen.
    ///
    /// # Errors
    /// When the database or the journal cannot be read.
    pub fn verdict(
        &self,
        journal: &Path,
        typed: &[String],
        screen: &[String],
        report: &mut CrashReport,
    ) -> Result<()> {
        report.faults.extend(self.standing_faults()?);
        let journal =
            std::fs::read_to_string(journal).context("failed to read the remote's journal")?;
        let received: Vec<Value> =
            journal.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        for word in typed {
            self.judge_word(word, &received, report)?;
        }
        self.judge_screen(&screen.join("\n"), report)
    }

    fn judge_word(&self, word: &str, received: &[Value], report: &mut CrashReport) -> Result<()> {
        let messages: Vec<&Value> = received
            .iter()
            .filter(|line| line["text"].as_str().is_some_and(|text| text.contains(word)))
            .collect();
        let outcomes = self.outcomes(word)?;
        report.received += messages.len();
        report.entered += outcomes;
        let [message] = messages.as_slice() else {
            if messages.len() > 1 {
                report.faults.push(format!("{word} was sent {} times", messages.len()));
            }
            if outcomes > 0 && messages.is_empty() {
                report.faults.push(format!("{word} has an outcome, but was never received"));
            }
            return Ok(());
        };
        let id = message["messageId"].as_str().context("the journal has no messageId")?;
        let announced =
            self.count("SELECT count(*) FROM inbound WHERE key LIKE '%' || ?1 || '%'", id)?;
        match (outcomes, announced) {
            (1, 0) => {}
            (0, 1) => report.unknown += 1,
            (0, 0) => report.faults.push(format!("the outcome of {word} is lost")),
            (outcomes, announced) => report.faults.push(format!(
                "{word} has {outcomes} outcomes in the conversation and {announced} notices that it is unknown"
            )),
        }
        Ok(())
    }

    /// How often the outcome of the task with `word` is in the conversation, as a tool's result or as a delivery.
    fn outcomes(&self, word: &str) -> Result<usize> {
        let query = "SELECT count(*) FROM entries WHERE instr(json_extract(body, '$.text'), ?1) > 0 AND (
               (json_extract(body, '$.kind') = 'tool' AND instr(json_extract(body, '$.text'), 'is completed') > 0)
            OR (json_extract(body, '$.kind') = 'user' AND json_extract(body, '$.origin') = 'delivery'))";
        self.count(query, word)
    }

    fn judge_screen(&self, screen: &str, report: &mut CrashReport) -> Result<()> {
        // Some answers read alike, such as that a call was interrupted: as many as there are must be on the screen.
        let mut bodies: BTreeMap<String, usize> = BTreeMap::new();
        for body in self.column("SELECT body FROM outbox")? {
            *bodies.entry(body.trim_end().to_owned()).or_default() += 1;
        }
        for (body, answers) in bodies {
            let labelled = screen.matches(&format!("{LABEL}{body}")).count();
            let plain = screen.matches(&body).count() - labelled;
            report.repeats += labelled;
            if plain > answers {
                report.faults.push(format!(
                    "{answers} answers were shown {plain} times without a label: {body}"
                ));
            }
            if plain + labelled < answers {
                report
                    .faults
                    .push(format!("of {answers} answers {} were shown: {body}", plain + labelled));
            }
        }
        Ok(())
    }

    fn count(&self, query: &str, parameter: &str) -> Result<usize> {
        let count: i64 = self.connection.query_row(query, [parameter], |row| row.get(0))?;
        Ok(usize::try_from(count)?)
    }

    fn column(&self, query: &str) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>().with_context(|| format!("failed to read the state: {query}"))
    }
}

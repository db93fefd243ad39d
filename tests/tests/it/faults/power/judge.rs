//! Whether a disk keeps what was promised, and whether everything comes to its end once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use volcanic_base::SystemClock;
use volcanic_store::Store;

use super::life::{Life, Screen, Task};
use super::promises::Promises;
use super::state::State;
use crate::assistant::Home;
use crate::remote::{Received, Remote};

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
    pub(super) fn at_the_end(&self, screen: &Screen) -> Vec<String> {
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

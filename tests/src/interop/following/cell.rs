//! One cell at play.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tokio::time::{sleep, timeout};
use url::Url;

use super::{
    FollowJob, Source, Trouble,
    agent::Agent,
    assistant::{Assistant, HandedOver},
    hints::Hints,
    proxy::FaultyProxy,
    rules,
};
use crate::interop::{
    InteropPlan,
    peer::Peers,
    scene::word,
    wire::{self, Call, Operation, WireEvent},
};

/// How long the agent's port is closed, while about half of the tasks end.
const CLOSED: Duration = Duration::from_millis(700);

/// How long it may take until every task is followed.
const FOLLOWED: Duration = Duration::from_secs(90);

/// How long it may take until every outcome is there.
const OVER: Duration = Duration::from_secs(80);

/// How long a tale is, in lines.
const LINES: usize = 60;

/// How many calls a report shows; a cell has thousands.
const SHOWN: usize = 12;

/// What went wrong in a cell.
#[derive(Debug)]
pub(super) struct FollowFault {
    pub(super) error: anyhow::Error,
    pub(super) calls: Vec<Call>,
    /// What found the ends of the tasks.
    pub(super) found: String,
}

impl fmt::Display for FollowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.calls.len().saturating_sub(SHOWN);
        write!(f, "{:#}\n{} calls were made, the last ones:\n", self.error, self.calls.len())?;
        f.write_str(&wire::transcript(&self.calls[from..]))
    }
}

/// Plays a cell; returns what found the ends of its tasks.
pub(super) async fn play(
    plan: &InteropPlan,
    peers: &Peers,
    hints: &Hints,
    job: FollowJob,
) -> Result<String, FollowFault> {
    let early = |error| FollowFault { error, calls: Vec::new(), found: String::new() };
    let folder = tempfile::tempdir().map_err(|error| early(error.into()))?;
    let agent = Agent::of(plan, peers, job, folder.path()).await.map_err(early)?;
    let proxy = FaultyProxy::start(agent.address()).map_err(|error| early(error.into()))?;
    let mut cell = Cell {
        job,
        gate: word(),
        words: (0..job.tasks).map(|_| word()).collect(),
        proxy,
        tasks: Vec::new(),
        outcomes: Vec::new(),
        pushes: 0,
        push_base: None,
    };
    let played = cell.follow(agent, folder.path()).await;
    let calls = wire::calls(&cell.proxy.exchanges());
    let found = cell.found(hints);
    let judged = played.and_then(|()| cell.judge(&calls, hints));
    match judged {
        Ok(()) => Ok(found),
        Err(error) => {
            // If it is about a task, its calls tell more than the last ones of all.
            let text = format!("{error:#}");
            let task = cell.tasks.iter().find(|task| text.contains(&task.task));
            let calls = match task {
                Some(task) => calls.into_iter().filter(|call| call.is_about(&task.task)).collect(),
                None => calls,
            };
            Err(FollowFault { error, calls, found })
        }
    }
}

struct Cell {
    job: FollowJob,
    /// What the tasks wait at.
    gate: String,
    words: Vec<String>,
    proxy: FaultyProxy,
    tasks: Vec<HandedOver>,
    /// What entered the conversation.
    outcomes: Vec<String>,
    pushes: usize,
    /// Where pushes are to go.
    push_base: Option<Url>,
}

impl Cell {
    async fn follow(&mut self, agent: Agent<'_>, folder: &std::path::Path) -> Result<()> {
        if self.job.row.trouble == Trouble::Delayed {
            self.proxy.delay();
        }
        let assistant = Assistant::start(self.job, self.proxy.address(), folder).await?;
        let followed = self.follow_with(&assistant, agent).await;
        self.outcomes = assistant.conversation().await?;
        self.pushes = assistant.pushes();
        self.push_base.clone_from(&assistant.push_base);
        let stopped = assistant.stop().await;
        followed.and(stopped)
    }

    async fn follow_with(&mut self, assistant: &Assistant, mut agent: Agent<'_>) -> Result<()> {
        let verb = rules::verb(self.job.row);
        let asked = |word: &String| (format!("{verb} {} {word}", self.gate), word.clone());
        let words: Vec<_> = self.words.iter().map(asked).collect();
        self.tasks = assistant.send_all(&words).await?;
        let followed = assistant.until_followed(self.job.row.source, self.job.tasks);
        if timeout(FOLLOWED, followed).await.is_err() {
            anyhow::bail!("not all tasks are followed as wanted: {}", assistant.left().await);
        }
        match self.job.row.trouble {
            Trouble::None | Trouble::Delayed => agent.open_gate(&self.gate).await?,
            Trouble::Cut => {
                self.proxy.cut(self.job.tasks * 2, (self.job.tasks / 10).max(3));
                agent.open_gate(&self.gate).await?;
            }
            Trouble::Closed => {
                self.proxy.go_down().await;
                agent.open_gate(&self.gate).await?;
                sleep(CLOSED).await;
                self.proxy.come_back().context("the port was lost")?;
            }
            Trouble::Restarted => {
                agent = agent.restart().await?;
                agent.open_gate(&self.gate).await?;
            }
        }
        match timeout(OVER, assistant.until_over()).await {
            Ok(over) => over,
            Err(_) => anyhow::bail!("not all is told: {}", assistant.left().await),
        }
    }

    /// What found the ends of the tasks, for people.
    fn found(&self, hints: &Hints) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for task in &self.tasks {
            for found in hints.of(&task.task) {
                *counts.entry(found.by).or_default() += 1;
            }
        }
        let mut told: Vec<String> =
            counts.into_iter().map(|(by, count)| format!("{by} {count}")).collect();
        if self.job.row.source == Source::Push {
            told.push(format!("{} pushes came", self.pushes));
        }
        if self.job.row.trouble == Trouble::Cut {
            told.push(format!("{} connections were cut", self.proxy.cuts()));
        }
        told.join(", ")
    }

    fn judge(&self, calls: &[Call], hints: &Hints) -> Result<()> {
        self.outcomes_are_right()?;
        self.hints_are_right(calls, hints)?;
        self.calls_are_right(calls)
    }

    /// Every outcome stands in the conversation once, whole and right, and nothing else does.
    fn outcomes_are_right(&self) -> Result<()> {
        let is_lost = rules::loses_tasks(self.job.row, self.job.column);
        for HandedOver { word, task, context } in &self.tasks {
            let about: Vec<&String> =
                self.outcomes.iter().filter(|text| text.contains(task)).collect();
            ensure!(about.len() == 1, "the outcome of task {task} is there {} times", about.len());
            let told = about[0].trim_end();
            if is_lost {
                let gone = format!(
                    "[A2A result from \"peer\", task {task} (stopped)]\nContext: {context}\nAgent \"peer\" says repeatedly \
                     that it does not know task {task}, so it is no longer followed."
                );
                ensure!(told == gone, "it is not told that the task is gone, but:\n{told}");
                continue;
            }
            let tale: Vec<String> =
                (1..=LINES).map(|number| format!("line {number} of {word}")).collect();
            let whole = format!(
                "[A2A result from \"peer\", task {task} (completed)]\nContext: {context}\n{}",
                tale.join("\n")
            );
            ensure!(
                told == whole,
                "the conversation does not hold the tale of {word}, but:\n{told}"
            );
        }
        ensure!(self.tasks.len() == self.words.len(), "{} tasks were begun", self.tasks.len());
        let count = self.outcomes.len();
        ensure!(count == self.tasks.len(), "the conversation holds {count} outcomes");
        Ok(())
    }

    fn hints_are_right(&self, calls: &[Call], hints: &Hints) -> Result<()> {
        let right = rules::right_hints(self.job.row);
        let mut excused = 0;
        let is_lost = rules::loses_tasks(self.job.row, self.job.column);
        for task in &self.tasks {
            let found = hints.of(&task.task);
            ensure!(
                found.len() == 1,
                "something was told of task {} {} times",
                task.task,
                found.len()
            );
            let wanted = if is_lost { "not-found" } else { "completed" };
            ensure!(found[0].told == wanted, "it was told that a task is {}", found[0].told);
            let by = found[0].by.as_str();
            if by == "gap" && !right.contains(&by) && self.is_silent_end(calls, task) {
                excused += 1;
                continue;
            }
            ensure!(
                is_lost || right.contains(&by),
                "the end of task {} was found by {}, not by {}",
                task.task,
                found[0].by,
                right.join(" or ")
            );
        }
        ensure!(
            excused <= (self.tasks.len() / 4).max(2),
            "{excused} ends were found by gap: the agent ended those streams before it told of them"
        );
        Ok(())
    }

    /// Whether the agent is known to end some streams before they tell of the end, and the record shows that it did.
    fn is_silent_end(&self, calls: &[Call], task: &HandedOver) -> bool {
        let ends = |call: &&Call| {
            let told = WireEvent::Status("completed".to_owned());
            call.operation == Operation::SubscribeToTask
                && call.is_about(&task.task)
                && call.is_whole()
                && !call.events().contains(&told)
        };
        rules::ends_streams_early(self.job.column) && calls.iter().any(|call| ends(&call))
    }

    /// The record shows each message once, and nothing but what belongs to the source.
    fn calls_are_right(&self, calls: &[Call]) -> Result<()> {
        let column = self.job.column;
        let mut sent: HashMap<&str, &Call> = HashMap::new();
        for call in calls {
            if let Some(binding) = call.binding {
                let target = call.target();
                ensure!(binding == column.binding(), "{target} is of the wrong binding");
                let version = call.header("a2a-version");
                ensure!(version == Some(column.version()), "{target} is of version {version:?}");
            }
            if call.operation == Operation::CreatePushConfig {
                let base = self.push_base.as_ref().map(Url::as_str).context("nobody listens")?;
                let asked = call.params.to_string();
                ensure!(
                    asked.contains(&format!("{base}a2a/push/")),
                    "a push is to go elsewhere: {asked}"
                );
            }
            if call.operation == Operation::SendMessage {
                let text = call.params["message"]["parts"][0]["text"].as_str().unwrap_or_default();
                let word = text.rsplit(' ').next().unwrap_or_default();
                ensure!(sent.insert(word, call).is_none(), "\"{text}\" was sent twice");
            }
        }
        for task in &self.tasks {
            let call = sent.get(task.word.as_str()).context("a message was not sent")?;
            let answered = call.task().context("a message was not answered with a task")?;
            ensure!(answered.id == task.task, "{} is not task {}", task.task, answered.id);
        }
        let names = |operation: Operation, task: &HandedOver| {
            let is_it = |call: &&Call| call.operation == operation && call.is_about(&task.task);
            calls.iter().filter(is_it).count()
        };
        for task in &self.tasks {
            let pushed = names(Operation::CreatePushConfig, task);
            let subscribed = names(Operation::SubscribeToTask, task);
            let is_right = match self.job.row.source {
                Source::Push => pushed == 1 && subscribed == 0,
                Source::Subscribe => pushed == 0 && subscribed > 0,
                Source::Poll => pushed == 0 && subscribed == 0,
            };
            ensure!(
                is_right,
                "task {} has {pushed} push configs and {subscribed} streams",
                task.task
            );
        }
        if self.job.row.trouble == Trouble::Cut {
            let is_cut = |call: &Call| match self.job.row.source {
                Source::Subscribe => call.is_stream() && !call.is_whole(),
                Source::Push | Source::Poll => !call.is_whole(),
            };
            ensure!(calls.iter().any(is_cut), "nothing was cut");
        }
        Ok(())
    }
}

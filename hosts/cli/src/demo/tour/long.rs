//! The steps about tasks that outlast the turn which began them.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{AGENT, Tour, start_chat, task_in};

/// How long the remote's long task takes, in seconds: long enough that the assistant is dead before it is done.
const SECONDS: u64 = 3;
/// The same.
pub(super) const TAKES: Duration = Duration::from_secs(SECONDS);

/// How long it takes until something comes after its turn, in seconds. A turn waits for one.
const LATER: u64 = 2;

/// The title of the step whose result is looked at once more at the end.
pub(super) const TITLE: &str = "a long task, with the assistant killed in the middle";

impl Tour<'_> {
    pub(super) async fn survives_kill(&mut self) -> Result<()> {
        let word = self.word();
        self.say(&format!("ask {AGENT}: slow {SECONDS}s {word}")).await?;
        let task = self.handed_over().await?;

        let killed = self.chat.take().context("the assistant does not run")?;
        let status = killed.kill().await?;
        ensure!(
            status.signal() == Some(9),
            "the assistant was to be killed, but ended with {status}"
        );
        writeln!(self.screen, "   (kill -9: the assistant is gone; the remote works on)")?;
        let wait = format!("{}s", SECONDS + self.deps.patience.as_secs());
        let waited = self.volcanic(["status", AGENT, &task, "--wait", &wait]).await?;
        ensure!(waited.contains(&word), "the remote did not finish its task: {waited}");

        writeln!(self.screen, "   (the remote is done; the assistant is started again)")?;
        self.chat = Some(start_chat(self.deps, &self.pushes)?);
        self.answer_with(&word).await?;
        self.delivered = Some(word.clone());
        self.journal_has(&word)
    }

    /// Looks for the result of the long task in all that was shown since the restart, and for what is left of it.
    pub(super) async fn delivered_once(&mut self, lines: &[String]) -> Result<()> {
        let word = self.delivered.take().context("nothing was delivered")?;
        let times = lines.iter().filter(|line| line.contains(&word)).count();
        ensure!(
            times == 1,
            "the result with {word} was to be shown once, but was shown {times} times"
        );
        let watches = self.volcanic(["watches"]).await?;
        ensure!(
            !watches.contains(&word) && !watches.contains(AGENT),
            "a watch is left over: {watches}"
        );
        Ok(())
    }

    /// The remote calls the assistant, which would not look by itself before the tour is over.
    pub(super) async fn pushed(&mut self) -> Result<()> {
        let word = self.word();
        self.say(&format!("ask {AGENT}: slow {LATER}s {word}")).await?;
        let task = self.handed_over().await?;
        self.is_pushed_to(&task).await?;
        writeln!(self.screen, "   (a watch with a webhook: by itself it looks every ten minutes)")?;
        self.answer_with(&word).await?;
        writeln!(self.screen, "   (so it was the agent that called)")?;
        self.journal_has(&word)
    }

    /// A question that comes when the turn is over; its answer is another turn, and what comes of it comes later again.
    pub(super) async fn later_question(&mut self) -> Result<()> {
        let (subject, day) = (self.word(), self.word());
        self.say(&format!("ask {AGENT}: plan {LATER}s {subject}")).await?;
        let task = self.handed_over().await?;
        self.shown(&format!("a question about {subject}"), |line| {
            line.contains(&subject) && line.ends_with('?')
        })
        .await?;
        self.say(&format!("reply {AGENT} {task}: {day}")).await?;
        let again = self.handed_over().await?;
        ensure!(again == task, "the answer went to task {again} instead of {task}");
        self.shown(&format!("an outcome with {subject} and {day}"), |line| {
            line.contains(&subject) && line.contains(&day)
        })
        .await?;
        self.journal_has(&subject)?;
        self.journal_has(&day)
    }

    /// Waits until a turn hands a task over; returns the task.
    async fn handed_over(&mut self) -> Result<String> {
        let line = self.shown("the task's id", |line| task_in(line).is_some()).await?;
        let task = task_in(&line).context("the hand-over names no task")?.to_owned();
        self.shown("that the result will come by itself", |line| {
            line.contains("will be delivered")
        })
        .await?;
        Ok(task)
    }

    /// Waits until another command of `volcanic` sees that the remote will push when the task changes.
    async fn is_pushed_to(&self, task: &str) -> Result<()> {
        let deadline = Instant::now() + self.deps.patience;
        loop {
            let told = self.volcanic(["watches", "--json"]).await?;
            let told: Value = serde_json::from_str(&told)
                .with_context(|| format!("the watches cannot be read: {told}"))?;
            let watches = told["watches"].as_array().into_iter().flatten();
            let source = watches
                .filter(|watch| watch["taskId"] == task)
                .find_map(|watch| watch["source"].as_str());
            if source == Some("push") {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "the remote was to push, but its task is followed by {}",
                source.unwrap_or("nothing")
            );
            // The command is the only way to ask, and it takes a moment itself.
            sleep(Duration::from_millis(50)).await;
        }
    }
}

//! The guided tour: the whole path once, on real processes and real sockets, checked as it goes.
//!
//! No text that a check expects stands in this program: each step draws a random word, sends it through the assistant
//! to the remote agent, and looks for it in the remote's journal and on the screen.

mod long;

use std::{
    ffi::OsString,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::{
    process::Command,
    time::{Instant, timeout},
};
use volcanic_base::Chance;

use super::{
    port::Port,
    process::{Process, Program},
};

/// The name under which the assistant knows the remote agent.
const AGENT: &str = "demo";

/// Where things are in the tour's folder.
const WORKSPACE: &str = "workspace";
const HOME: &str = "home";
const JOURNAL: &str = "journal.jsonl";

/// What a tour works with.
#[derive(Debug)]
pub struct TourDeps<'a> {
    /// The `volcanic` binary that plays the assistant.
    pub assistant: PathBuf,
    /// The `volcanic` binary that plays the remote agent.
    pub remote: PathBuf,
    /// Rules for the remote agent; the built-in ones when there are none.
    pub rules: Option<PathBuf>,
    /// An empty folder for both; the caller removes it.
    pub folder: &'a Path,
    /// Draws the words.
    pub chance: &'a Chance,
    /// How long anything may take before the tour gives it up, the remote's own work apart.
    pub patience: Duration,
}

/// Runs the tour and tells about it on `screen`.
///
/// # Errors
/// When anything is missing: the error names the step, what was expected and what was shown instead.
pub async fn run_tour(deps: &TourDeps<'_>, screen: &mut (dyn Write + Send)) -> Result<()> {
    let started = Instant::now();
    let mut tour = Tour::start(deps, screen).await?;
    tour.step("the agents this chat may call", Tour::lists_agents).await?;
    tour.step("a quick task", Tour::quick_task).await?;
    tour.step("a question asked and answered", Tour::question).await?;
    tour.step("a file received", Tour::file).await?;
    tour.step(long::TITLE, Tour::survives_kill).await?;
    tour.step("a failure", Tour::failure).await?;
    tour.step("a result that the agent pushes", Tour::pushed).await?;
    tour.step("a question that comes later", Tour::later_question).await?;
    tour.end().await?;
    writeln!(screen, "\nAll of it happened, in {:.1} s.", started.elapsed().as_secs_f32())?;
    Ok(())
}

/// A tour on its way.
struct Tour<'a> {
    deps: &'a TourDeps<'a>,
    screen: &'a mut (dyn Write + Send),
    remote: Process,
    remote_url: String,
    /// Absent only while it is down.
    chat: Option<Process>,
    /// Where the remote pushes to, whenever the assistant runs.
    pushes: Port,
    /// The word of the result that was delivered after the kill.
    delivered: Option<String>,
    number: u32,
}

impl<'a> Tour<'a> {
    async fn start(deps: &'a TourDeps<'a>, screen: &'a mut (dyn Write + Send)) -> Result<Self> {
        writeln!(
            screen,
            "Two real processes on this machine: an assistant and a remote agent that speaks A2A."
        )?;
        let (remote, remote_url) = start_remote(deps).await?;
        let settings = deps.folder.join(WORKSPACE).join(".volcanic/a2a");
        std::fs::create_dir_all(&settings).context("failed to make the demo's workspace")?;
        let agents = json!([{ "name": AGENT, "url": remote_url }]);
        std::fs::write(settings.join("agents.json"), agents.to_string())
            .context("failed to write agents.json")?;
        let pushes = Port::reserve().context("failed to find a port for pushes")?;
        let chat = Some(start_chat(deps, &pushes)?);
        Ok(Self { deps, screen, remote, remote_url, chat, pushes, delivered: None, number: 0 })
    }

    async fn step(
        &mut self,
        title: &str,
        act: impl AsyncFnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.number += 1;
        writeln!(self.screen, "\n{}. {title}", self.number)?;
        self.screen.flush()?;
        act(self).await.with_context(|| format!("step {}, {title}", self.number))
    }

    async fn lists_agents(&mut self) -> Result<()> {
        self.say("agents").await?;
        self.shown(&format!("the agent {AGENT}"), |line| line.contains(AGENT)).await?;
        // What the card says was not written down here, so it was fetched.
        let line = self
            .shown("what the agent's card says", |line| {
                line.contains("card: ") || line.contains("unreachable")
            })
            .await?;
        let url = &self.remote_url;
        ensure!(!line.contains("unreachable"), "the agent at {url} was not reached: {line}");
        Ok(())
    }

    async fn quick_task(&mut self) -> Result<()> {
        let word = self.word();
        self.say(&format!("ask {AGENT}: echo {word}")).await?;
        self.answer_with(&word).await?;
        self.journal_has(&word)
    }

    async fn question(&mut self) -> Result<()> {
        let (subject, day) = (self.word(), self.word());
        self.say(&format!("ask {AGENT}: book {subject}")).await?;
        let task = self.shown("the question's task id", |line| task_in(line).is_some()).await?;
        let task = task_in(&task).context("the question names no task")?.to_owned();
        self.say(&format!("reply {AGENT} {task}: {day}")).await?;
        let (wanted_subject, wanted_day) = (subject.clone(), day.clone());
        self.shown(&format!("an answer with {subject} and {day}"), move |line| {
            line.contains(&wanted_subject) && line.contains(&wanted_day)
        })
        .await?;
        self.journal_has(&subject)?;
        self.journal_has(&day)
    }

    async fn file(&mut self) -> Result<()> {
        let word = self.word();
        self.say(&format!("ask {AGENT}: report {word}")).await?;
        let line = self.shown("the saved file", |line| line.starts_with("Files: ")).await?;
        let path = line.trim_start_matches("Files: ").trim();
        let file = self.deps.folder.join(WORKSPACE).join(path);
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("failed to read {}", file.display()))?;
        ensure!(text.contains(&word), "{} does not contain {word}: {text}", file.display());
        writeln!(self.screen, "   {path} holds: {}", text.trim_end())?;
        self.journal_has(&word)
    }

    async fn failure(&mut self) -> Result<()> {
        let word = self.word();
        self.say(&format!("ask {AGENT}: fail {word}")).await?;
        self.shown("that the task failed", |line| line.contains(" is failed.")).await?;
        self.answer_with(&word).await?;
        self.journal_has(&word)
    }

    /// Ends both processes in order, and looks at everything the restarted assistant showed.
    async fn end(mut self) -> Result<()> {
        let chat = self.chat.take().context("the assistant does not run")?;
        let (status, lines) = chat.finish(self.deps.patience).await?;
        ensure!(status.success(), "the assistant ended with {status}");
        self.delivered_once(&lines).await.with_context(|| format!("step 5, {}", long::TITLE))?;
        self.remote.kill().await.map(drop)
    }

    /// A word nobody can know beforehand.
    fn word(&self) -> String {
        let letters = self.deps.chance.uuid().simple().to_string();
        format!("w{}", &letters[..8])
    }

    async fn say(&mut self, line: &str) -> Result<()> {
        writeln!(self.screen, "   > {line}")?;
        self.chat()?.say(line).await
    }

    /// Waits for a line of the assistant and shows it.
    async fn shown(&mut self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let patience = self.deps.patience;
        let line = self.chat()?.line(patience, what, wanted).await?;
        writeln!(self.screen, "   {line}")?;
        Ok(line)
    }

    async fn answer_with(&mut self, word: &str) -> Result<()> {
        self.shown(&format!("an answer with {word}"), |line| line.contains(word)).await.map(drop)
    }

    fn chat(&mut self) -> Result<&mut Process> {
        self.chat.as_mut().context("the assistant does not run")
    }

    /// Looks for a word in what the remote agent wrote down about the messages it received: there once, sent once.
    fn journal_has(&self, word: &str) -> Result<()> {
        let path = self.deps.folder.join(JOURNAL);
        let journal =
            std::fs::read_to_string(&path).context("failed to read the remote's journal")?;
        let times = journal.lines().filter(|line| line.contains(word)).count();
        ensure!(times == 1, "the remote was to receive {word} once, but received it {times} times");
        Ok(())
    }

    /// Runs another command of `volcanic` over the same workspace and returns what it prints.
    async fn volcanic<const N: usize>(&self, arguments: [&str; N]) -> Result<String> {
        let mut command = Command::new(&self.deps.assistant);
        command.args(arguments).arg("--workspace").arg(self.deps.folder.join(WORKSPACE));
        command.env_clear().env("VOLCANIC_HOME", self.deps.folder.join(HOME)).kill_on_drop(true);
        let within = self.deps.patience * 2 + long::TAKES;
        let output =
            timeout(within, command.output()).await.context("the command took too long")??;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The task that a line names: `… task 5c1e… (context …`.
fn task_in(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(": task ")?;
    rest.split([' ', ',']).next().filter(|id| !id.is_empty())
}

/// Starts the remote agent on a free port; returns it with its base URL.
pub(super) async fn start_remote(deps: &TourDeps<'_>) -> Result<(Process, String)> {
    let mut arguments: Vec<OsString> = vec!["serve".into(), "--scripted".into()];
    arguments.extend(deps.rules.clone().map(OsString::from));
    arguments.extend(["--listen".into(), "127.0.0.1:0".into(), "--workspace".into()]);
    arguments.push(deps.folder.join("remote").into());
    arguments.push("--journal".into());
    arguments.push(deps.folder.join(JOURNAL).into());
    std::fs::create_dir_all(deps.folder.join("remote"))
        .context("failed to make the remote's folder")?;
    let environment = vec![("VOLCANIC_HOME", deps.folder.join("remote-home").into())];
    let program =
        Program { name: "the remote agent", binary: &deps.remote, arguments, environment };
    let mut remote = Process::start(program)?;
    let line = remote.line(deps.patience, "its address", |line| line.contains("http://")).await?;
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap_or_default();
    Ok((remote, url.to_owned()))
}

/// Starts the assistant: a chat without a terminal over the demo's workspace, which agents can push to.
fn start_chat(deps: &TourDeps<'_>, pushes: &Port) -> Result<Process> {
    let arguments = ["chat", "--model", "scripted", "--workspace"].map(OsString::from);
    let mut arguments = Vec::from(arguments);
    arguments.push(deps.folder.join(WORKSPACE).into());
    let environment = vec![
        ("VOLCANIC_HOME", deps.folder.join(HOME).into()),
        ("A2AClient__WaitSeconds", "1".into()),
        ("A2A__Listen", pushes.address().to_string().into()),
        ("A2A__PublicUrl", format!("http://{}", pushes.address()).into()),
    ];
    Process::start(Program {
        name: "the assistant",
        binary: &deps.assistant,
        arguments,
        environment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_id_is_read_off_a_result_line() {
        let line = "Agent \"demo\": task 5c1e-22 (context 7f20) is input-required.";
        assert_eq!(task_in(line), Some("5c1e-22"));
        assert_eq!(task_in("Agent \"demo\" replied: hello"), None);
    }
}

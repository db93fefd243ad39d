//! `volcanic chat`: the assistant in a terminal, or line by line in a pipe.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{broadcast, mpsc},
};
use volcanic_agent_core::{NewPrompt, Origin, PromptKey, SessionActivity, SessionEvent};
use volcanic_base::with_causes;

use crate::{
    args::ChatArgs,
    assistant::Assistant,
    config::CliConfig,
    disk::{Disk, DiskNews, WELL, trouble},
    exit::Exit,
    held::{Held, LEFT_HELD},
    input::{self, Input},
    output::Format,
    screen::Screen,
    terminal::Terminal,
};

const HELP: &str = "\
Say what you want. While the assistant works, further lines wait their turn.
/a2a     the agents it may call, and the tasks it follows
/status  what it is doing
/stop    stop what it is doing
/new     begin a new conversation
/help    this
/quit    leave; tasks that it follows are taken up again at the next start";

/// What is said about a run that was stopped while it waited for an agent.
const STOPPED_BUT_FOLLOWED: &str = "(stopped; a task that was started is followed on: /a2a)";

/// Files that the assistant shows and that wait to be named on the screen; more of them wait for their turn.
const FILES: usize = 8;

/// Pauses before what was said is tried to be kept again: a busy disk gets a moment, a person does not wait for a full one.
const KEEP_PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];

/// How long it may take to find out what is followed on, when somebody leaves.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// What becomes of a chat's state when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// The next chat goes on with it.
    Kept,
    /// It goes with the chat.
    Gone,
}

/// Runs a chat until the input ends, `/quit`, or a signal.
///
/// # Errors
/// When the workspace, the state or the screen cannot be used.
pub(crate) async fn chat(
    args: &ChatArgs,
    config: &CliConfig,
    format: Format,
    afterwards: Afterwards,
) -> Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen to signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen to signals")?;
    let (shown, files) = mpsc::channel(FILES);
    let start = Assistant::start(&args.at.workspace, args.model.as_deref(), config, shown);
    // It may take long when the state cannot be read; nothing has been accepted yet.
    let assistant = tokio::select! {
        biased;
        _ = interrupt.recv() => return Ok(Exit::Done),
        _ = terminate.recv() => return Ok(Exit::Done),
        started = start => started?,
    };
    // Programs get lines, also on a terminal.
    let terminal = if format == Format::Json { None } else { Terminal::open() };
    let (terminal, inputs) = match terminal {
        Some((terminal, inputs)) => (Some(terminal), inputs),
        None => (None, input::lines()),
    };
    let mut chat = Chat {
        events: assistant.session().subscribe(),
        held: Held::new(assistant.held()),
        disk: Disk::new(assistant.unwritable()),
        assistant,
        screen: Screen::new(terminal, format),
        inputs,
        files,
        was_interrupted: false,
        has_lost: false,
        goes_on: false,
    };
    // Whatever it is doing: accepted work is on disk, and the rest is taken up at the next start.
    let end = tokio::select! {
        biased;
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        end = chat.run() => end,
    };
    let is_held = chat.held.is_held();
    let followed = tokio::time::timeout(LAST_LOOK, chat.assistant.followed()).await;
    chat.assistant.stop().await;
    if is_held {
        chat.screen.leave(LEFT_HELD);
    }
    if let Some(text) = farewell(followed.unwrap_or_default().all, afterwards) {
        chat.screen.leave(&text);
    }
    end.map(|()| Exit::Done)
}

/// What is said to somebody who leaves while so many tasks are followed.
fn farewell(followed: usize, afterwards: Afterwards) -> Option<String> {
    let (tasks, them) = match followed {
        0 => return None,
        1 => ("1 task is".to_owned(), "it"),
        count => (format!("{count} tasks are"), "them"),
    };
    Some(match afterwards {
        Afterwards::Kept => {
            format!("{tasks} followed on; start a chat here again to hear of {them}.")
        }
        Afterwards::Gone => format!("{tasks} left alone: the demo ends here."),
    })
}

struct Chat {
    assistant: Assistant,
    screen: Screen,
    events: broadcast::Receiver<SessionEvent>,
    /// Whether another program keeps the assistant from writing.
    held: Held,
    /// Whether the state can be written.
    disk: Disk,
    inputs: mpsc::Receiver<Input>,
    /// Files that the assistant shows.
    files: mpsc::Receiver<String>,
    /// Whether the last input was a Ctrl-C that had nothing to stop.
    was_interrupted: bool,
    /// Whether something that was said could not be kept.
    has_lost: bool,
    /// Whether the run that is being stopped leaves a task behind.
    goes_on: bool,
}

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    Nothing,
    Say(&'a str),
    Agents,
    Status,
    Stop,
    New,
    Help,
    Quit,
    Unknown(&'a str),
}

impl<'a> Wish<'a> {
    fn of(line: &'a str) -> Self {
        let line = line.trim();
        let Some(command) = line.strip_prefix('/') else {
            return if line.is_empty() { Self::Nothing } else { Self::Say(line) };
        };
        match command {
            "a2a" => Self::Agents,
            "status" => Self::Status,
            "stop" => Self::Stop,
            "new" => Self::New,
            "help" => Self::Help,
            "quit" | "exit" => Self::Quit,
            _ => Self::Unknown(line),
        }
    }
}

impl Chat {
    async fn run(&mut self) -> Result<()> {
        for line in self.assistant.greeting().to_vec() {
            self.screen.line(&line).await?;
        }
        self.show_answers().await?;
        self.screen.ask();
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => self.on_event(event).await?,
                Some(file) = self.files.recv() => self.screen.line(&file).await?,
                () = self.held.changed() => self.held.tell(&mut self.screen).await?,
                news = self.disk.news() => self.on_disk(news).await?,
                input = self.inputs.recv() => match input {
                    Some(input) => {
                        if !self.on_input(input).await? {
                            return Ok(());
                        }
                        self.screen.ask();
                    }
                    // Ctrl-D: a person leaves. A pipe has only said all it had to say.
                    None if self.screen.is_live() => return Ok(()),
                    None => return self.finish().await,
                },
            }
        }
    }

    /// The input has ended: what was said before is still answered.
    async fn finish(&mut self) -> Result<()> {
        self.until_idle().await?;
        self.show_answers().await?;
        for pause in KEEP_PAUSES {
            if self.disk.is_well() {
                break;
            }
            tokio::time::sleep(pause).await;
            self.assistant.session().wake();
            self.until_idle().await?;
            self.show_answers().await?;
        }
        anyhow::ensure!(!self.has_lost, "not all that was said could be kept");
        anyhow::ensure!(
            self.disk.is_well(),
            "the state cannot be written: start a chat here again for what is not answered yet"
        );
        Ok(())
    }

    /// Waits until nothing is left to do, or what is left cannot be kept: to try that again is up to the caller.
    async fn until_idle(&mut self) -> Result<()> {
        let session = self.assistant.session().clone();
        let idle = session.wait_idle();
        tokio::pin!(idle);
        loop {
            tokio::select! {
                biased;
                event = self.events.recv() => self.on_event(event).await?,
                Some(file) = self.files.recv() => self.screen.line(&file).await?,
                () = self.held.changed() => self.held.tell(&mut self.screen).await?,
                news = self.disk.news() => self.tell_disk(news).await?,
                () = &mut idle => return Ok(()),
            }
        }
    }

    /// Tells of a disk, and goes on with what it kept from being done.
    async fn on_disk(&mut self, news: DiskNews) -> Result<()> {
        self.tell_disk(news).await?;
        self.assistant.session().wake();
        self.show_answers().await
    }

    async fn tell_disk(&mut self, news: DiskNews) -> Result<()> {
        match news {
            DiskNews::Trouble(reason) => self.screen.line(&trouble(&reason)).await,
            DiskNews::Over { was_told: true } => self.screen.line(WELL).await,
            DiskNews::Over { was_told: false } | DiskNews::Still => Ok(()),
        }
    }

    async fn on_event(
        &mut self,
        event: Result<SessionEvent, broadcast::error::RecvError>,
    ) -> Result<()> {
        match event {
            Ok(SessionEvent::TextDelta { text }) => self.screen.delta(&text).await,
            Ok(SessionEvent::ToolStarted { name, summary }) => {
                self.screen.tool(&name, &summary).await
            }
            Ok(SessionEvent::Retrying { attempt, wait, reason }) => {
                let seconds = wait.as_secs_f32();
                self.screen.line(&format!("({reason}; attempt {attempt} in {seconds:.0} s)")).await
            }
            Ok(SessionEvent::RunAborted { .. }) => {
                let is_followed = std::mem::take(&mut self.goes_on);
                self.screen.line(if is_followed { STOPPED_BUT_FOLLOWED } else { "(stopped)" }).await
            }
            Ok(SessionEvent::RunFailed { .. }) => {
                self.screen.end_stream();
                Ok(())
            }
            // A reader that fell behind has lost deltas, never answers: those are in the outbox.
            Ok(SessionEvent::OutboxReady) | Err(broadcast::error::RecvError::Lagged(_)) => {
                self.show_answers().await
            }
            Ok(_) => Ok(()),
            Err(broadcast::error::RecvError::Closed) => anyhow::bail!("the session has ended"),
        }
    }

    /// Does what was said; false when it ends the chat.
    async fn on_input(&mut self, input: Input) -> Result<bool> {
        let was_interrupted = std::mem::take(&mut self.was_interrupted);
        match input {
            Input::Line(line) => return self.on_line(&line).await,
            Input::TooLong => {
                let text = "That line is over 1 MiB: put it into a file of the workspace and name the file.";
                self.screen.line(text).await?;
            }
            Input::Interrupted if self.assistant.session().is_running() => self.stop().await?,
            Input::Interrupted if was_interrupted => return Ok(false),
            Input::Interrupted => {
                self.was_interrupted = true;
                self.screen
                    .line("(Nothing is running. Ctrl-C again, Ctrl-D or /quit leaves.)")
                    .await?;
            }
        }
        Ok(true)
    }

    /// Does what a line says; false when it ends the chat.
    async fn on_line(&mut self, line: &str) -> Result<bool> {
        match Wish::of(line) {
            Wish::Nothing => {}
            Wish::Say(text) => self.say(text).await?,
            Wish::Agents => {
                let overview = self.assistant.overview().await;
                self.screen.line(&overview).await?;
            }
            Wish::Status => {
                let status = self.status().await.unwrap_or_else(|error| format!("{error:#}."));
                self.screen.line(&status).await?;
            }
            Wish::Stop => self.stop().await?,
            Wish::New => {
                let reset = self.assistant.session().reset();
                let reset = self.held.meanwhile(&mut self.screen, reset).await?;
                self.catch_up().await?;
                let told = match reset {
                    Ok(()) => "A new conversation.".to_owned(),
                    Err(error) => {
                        format!("No new conversation was begun: {}.", with_causes(&error))
                    }
                };
                self.screen.line(&told).await?;
            }
            Wish::Help => self.screen.line(HELP).await?,
            Wish::Quit => return Ok(false),
            Wish::Unknown(line) => {
                let text = format!("There is no command {line}. /help lists them.");
                self.screen.line(&text).await?;
            }
        }
        Ok(true)
    }

    async fn stop(&mut self) -> Result<()> {
        let before = self.assistant.followed().await;
        let end = self.assistant.session().abort();
        let end = self.held.meanwhile(&mut self.screen, end).await?.context("failed to stop")?;
        self.goes_on = before.waited_for > 0 && self.assistant.followed().await.all > 0;
        self.catch_up().await?;
        self.goes_on = false;
        let told = match (end.was_running, end.waiting) {
            (false, 0) => "Nothing is running.",
            (true, 0) => return Ok(()),
            (_, _) => "What was said after it goes on now.",
        };
        self.screen.line(told).await
    }

    /// Shows what has happened until now, before what is said about it.
    async fn catch_up(&mut self) -> Result<()> {
        loop {
            match self.events.try_recv() {
                Ok(event) => self.on_event(Ok(event)).await?,
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(_) => return Ok(()),
            }
        }
    }

    /// Keeps what was said. A store that fails may have kept it all the same, so it is tried again under the same key.
    async fn say(&mut self, text: &str) -> Result<()> {
        let session = self.assistant.session().clone();
        let prompt = NewPrompt {
            target: session.target().clone(),
            key: PromptKey::new(format!("cli:{}", self.assistant.chance().uuid())),
            origin: Origin::Owner,
            hops: 0,
            source: None,
            text: text.to_owned(),
        };
        let was_running = session.is_running();
        let accept = || self.assistant.store().accept(prompt.clone());
        let mut kept = self.held.meanwhile(&mut self.screen, accept()).await?;
        for pause in KEEP_PAUSES {
            let Err(error) = &kept else { break };
            tracing::warn!(error = %with_causes(error), "what was said could not be kept and is tried again");
            tokio::time::sleep(pause).await;
            kept = self.held.meanwhile(&mut self.screen, accept()).await?;
        }
        // Also when it failed: it may be there, and is answered then.
        session.wake();
        if let Err(error) = kept {
            self.has_lost = true;
            self.disk.note_told();
            let text = format!(
                "What you said could not be kept ({}): mend that and say it again.",
                with_causes(&error)
            );
            return self.screen.line(&text).await;
        }
        if was_running && self.screen.is_live() {
            let waiting = session.status().await.map_or(0, |status| status.waiting);
            match waiting {
                0 => {}
                1 => self.screen.note("(queued; 1 waits)").await?,
                count => self.screen.note(&format!("(queued; {count} wait)")).await?,
            }
        }
        Ok(())
    }

    async fn status(&self) -> Result<String> {
        let status =
            self.assistant.session().status().await.context("failed to read the status")?;
        let waiting = match status.waiting {
            0 => String::new(),
            1 => " One message waits.".to_owned(),
            count => format!(" {count} messages wait."),
        };
        let doing = match status.running.map(|run| run.activity) {
            None => "Nothing is running.".to_owned(),
            Some(SessionActivity::Model) => "The model is writing.".to_owned(),
            Some(SessionActivity::Retry) => {
                "The model failed; it is asked again in a moment.".to_owned()
            }
            Some(SessionActivity::Tools { names }) => format!("Running: {}.", names.join(", ")),
        };
        Ok(doing + &waiting)
    }

    /// Shows what is in the outbox, as far as the store lets it out.
    async fn show_answers(&mut self) -> Result<()> {
        let target = self.assistant.session().target().clone();
        let store = self.assistant.store();
        let shown = self.screen.empty_outbox(store, &target, &mut self.held).await?;
        if let Err(error) = &shown {
            tracing::warn!(error = %with_causes(error), "answers could not be shown and are tried again");
        }
        self.disk.note_shown(shown.map_err(|error| with_causes(&error)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_who_leaves_hears_what_becomes_of_the_tasks() {
        assert_eq!(farewell(0, Afterwards::Kept), None);
        assert_eq!(
            farewell(1, Afterwards::Kept).as_deref(),
            Some("1 task is followed on; start a chat here again to hear of it.")
        );
        assert_eq!(
            farewell(2, Afterwards::Gone).as_deref(),
            Some("2 tasks are left alone: the demo ends here.")
        );
    }

    #[test]
    fn lines_are_told_from_commands() {
        assert_eq!(Wish::of("  hello /new "), Wish::Say("hello /new"));
        assert_eq!(Wish::of("/new"), Wish::New);
        assert_eq!(Wish::of("/nEw"), Wish::Unknown("/nEw"));
        assert_eq!(Wish::of("   "), Wish::Nothing);
    }
}

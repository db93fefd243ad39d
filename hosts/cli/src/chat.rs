//! `volcanic chat`: the assistant in a terminal, or line by line in a pipe.

use anyhow::{Context as _, Result};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{broadcast, mpsc},
};
use volcanic_agent_core::{NewPrompt, Origin, PromptKey, SessionActivity, SessionEvent};

use crate::{
    args::ChatArgs, assistant::Assistant, environment::Environment, exit::Exit, input,
    screen::Screen,
};

const HELP: &str = "\
Say what you want. While the assistant works, further lines wait their turn.
/a2a     the agents it may call, and the tasks it follows
/status  what it is doing
/stop    stop what it is doing
/new     begin a new conversation
/help    this
/quit    leave; tasks that it follows are taken up again at the next start";

/// Runs a chat until the input ends, `/quit`, or a signal.
///
/// # Errors
/// When the workspace, the state or the screen cannot be used.
pub(crate) async fn chat(args: &ChatArgs, environment: &Environment) -> Result<Exit> {
    let mut screen = Screen::new();
    let assistant =
        Assistant::start(&args.at.workspace, args.model.as_deref(), environment).await?;
    for line in assistant.greeting() {
        screen.line(line)?;
    }
    let mut chat = Chat {
        events: assistant.session().subscribe(),
        lines: input::lines(),
        interrupt: signal(SignalKind::interrupt()).context("failed to listen to signals")?,
        terminate: signal(SignalKind::terminate()).context("failed to listen to signals")?,
        assistant,
        screen,
        asked: false,
    };
    let end = chat.run().await;
    chat.assistant.stop().await;
    end.map(|()| Exit::Done)
}

struct Chat {
    assistant: Assistant,
    screen: Screen,
    events: broadcast::Receiver<SessionEvent>,
    lines: mpsc::Receiver<String>,
    interrupt: Signal,
    terminate: Signal,
    /// Whether the last thing on a live screen is the request for a line.
    asked: bool,
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
        self.show_answers().await?;
        self.ask()?;
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => return Ok(()),
                _ = self.terminate.recv() => return Ok(()),
                event = self.events.recv() => self.on_event(event).await?,
                line = self.lines.recv() => match line {
                    Some(line) => {
                        self.asked = false;
                        if !self.on_line(&line).await? {
                            return Ok(());
                        }
                    }
                    None => return self.finish().await,
                },
            }
        }
    }

    /// The input has ended: what was said before is still answered.
    async fn finish(&mut self) -> Result<()> {
        let session = self.assistant.session().clone();
        let idle = session.wait_idle();
        tokio::pin!(idle);
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => return Ok(()),
                _ = self.terminate.recv() => return Ok(()),
                event = self.events.recv() => self.on_event(event).await?,
                () = &mut idle => break,
            }
        }
        self.show_answers().await
    }

    async fn on_event(
        &mut self,
        event: Result<SessionEvent, broadcast::error::RecvError>,
    ) -> Result<()> {
        match event {
            Ok(SessionEvent::TextDelta { text }) => {
                self.clear_prompt()?;
                self.screen.delta(&text)
            }
            Ok(SessionEvent::ToolStarted { name, summary }) => {
                self.clear_prompt()?;
                self.screen.tool(&name, &summary)
            }
            Ok(SessionEvent::Retrying { attempt, wait, reason }) => {
                self.screen.line(&format!("({reason}; attempt {attempt} in {} s)", wait.as_secs()))
            }
            Ok(SessionEvent::RunAborted { .. }) => self.screen.line("(stopped)"),
            Ok(SessionEvent::RunFailed { .. }) => self.screen.end_stream(),
            // A reader that fell behind has lost deltas, never answers: those are in the outbox.
            Ok(SessionEvent::OutboxReady) | Err(broadcast::error::RecvError::Lagged(_)) => {
                self.clear_prompt()?;
                self.show_answers().await
            }
            Ok(SessionEvent::Idle) => self.ask(),
            Ok(_) => Ok(()),
            Err(broadcast::error::RecvError::Closed) => anyhow::bail!("the session has ended"),
        }
    }

    /// Does what a line says; false when it ends the chat.
    async fn on_line(&mut self, line: &str) -> Result<bool> {
        match Wish::of(line) {
            Wish::Nothing => self.ask()?,
            Wish::Say(text) => self.say(text).await?,
            Wish::Agents => {
                let overview = self.assistant.overview().await;
                self.answer(&overview)?;
            }
            Wish::Status => {
                let status = self.status().await?;
                self.answer(&status)?;
            }
            Wish::Stop => {
                let end = self.assistant.session().abort().await.context("failed to stop")?;
                if !end.was_running {
                    self.answer("Nothing is running.")?;
                }
            }
            Wish::New => {
                self.assistant
                    .session()
                    .reset()
                    .await
                    .context("failed to begin a new conversation")?;
                self.answer("A new conversation.")?;
            }
            Wish::Help => self.answer(HELP)?,
            Wish::Quit => return Ok(false),
            Wish::Unknown(line) => {
                self.answer(&format!("There is no command {line}. /help lists them."))?
            }
        }
        Ok(true)
    }

    async fn say(&mut self, text: &str) -> Result<()> {
        if text.len() > input::LONGEST {
            return self.answer(
                "That line is over 1 MiB: put it into a file of the workspace and name the file.",
            );
        }
        let session = self.assistant.session();
        let prompt = NewPrompt {
            target: session.target().clone(),
            key: PromptKey::new(format!("cli:{}", self.assistant.chance().uuid())),
            origin: Origin::Owner,
            hops: 0,
            source: None,
            text: text.to_owned(),
        };
        self.assistant.store().accept(prompt).await.context("failed to keep what you said")?;
        session.wake();
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

    async fn show_answers(&mut self) -> Result<()> {
        let target = self.assistant.session().target().clone();
        self.screen.empty_outbox(self.assistant.store(), &target).await
    }

    fn answer(&mut self, text: &str) -> Result<()> {
        self.screen.line(text)?;
        if self.assistant.session().is_running() { Ok(()) } else { self.ask() }
    }

    fn ask(&mut self) -> Result<()> {
        if self.asked {
            return Ok(());
        }
        self.asked = true;
        self.screen.prompt()
    }

    /// Leaves the line with the request for input before something else is shown.
    fn clear_prompt(&mut self) -> Result<()> {
        if self.asked && self.screen.live {
            self.asked = false;
            return self.screen.break_line();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_from_commands() {
        assert_eq!(Wish::of("  hello /new "), Wish::Say("hello /new"));
        assert_eq!(Wish::of("/new"), Wish::New);
        assert_eq!(Wish::of("/nEw"), Wish::Unknown("/nEw"));
        assert_eq!(Wish::of("   "), Wish::Nothing);
    }
}

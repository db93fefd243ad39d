//! One chat: what a person can ask of it directly.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::Notify;
use volcanic_a2a_tool::overview;
use volcanic_a2a_watch::{WatchHandle, WatchTarget};
use volcanic_agent_core::{
    Commit, SessionActivity, SessionHandle, SessionStatus, SessionStore as _, StoreError, TargetId,
};
use volcanic_store::Store;

use super::ChatDeps;
use crate::command::{ChatCommand, MENU};
use crate::markdown::FormattedText;
use crate::outbox::answer_rows;

/// How long a command may take before it is answered without its outcome. A stop has two seconds of grace for tools.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// One open chat.
#[derive(Debug)]
pub(crate) struct Chat {
    target: TargetId,
    workspace: PathBuf,
    session: SessionHandle,
    outbox: Arc<Notify>,
    /// The process's watches, while the client half is on.
    watches: Option<WatchHandle>,
    store: Store,
    model: String,
    time_zone: TimeZone,
}

impl Chat {
    pub(super) fn new(
        target: TargetId,
        workspace: PathBuf,
        session: SessionHandle,
        outbox: Arc<Notify>,
        watches: Option<WatchHandle>,
        deps: &ChatDeps,
    ) -> Self {
        let (store, time_zone) = (deps.store.clone(), deps.time_zone.clone());
        Self {
            target,
            workspace,
            session,
            outbox,
            watches,
            store,
            model: deps.model.id().to_owned(),
            time_zone,
        }
    }

    /// Its conversation.
    pub(crate) fn target(&self) -> &TargetId {
        &self.target
    }

    /// Its session.
    pub(crate) fn session(&self) -> &SessionHandle {
        &self.session
    }

    /// Has the session look for prompts.
    pub(crate) fn wake(&self) {
        self.session.wake();
    }

    /// Puts a text of the host into the outbox, once per key.
    ///
    /// # Errors
    /// [`StoreError`] when the commit failed.
    pub(crate) async fn say(&self, key: &str, text: &str) -> Result<(), StoreError> {
        let outbox = answer_rows(key, &FormattedText::plain(text), None);
        let commit = Commit {
            target: self.target.clone(),
            consume: Vec::new(),
            entries: Vec::new(),
            outbox,
        };
        self.store.commit(commit).await?;
        self.outbox.notify_one();
        Ok(())
    }

    /// Carries out a command and returns what to say about it.
    pub(crate) async fn run_command(&self, command: ChatCommand) -> String {
        let work = async {
            match command {
                ChatCommand::Start => START.to_owned(),
                ChatCommand::Help => help(),
                ChatCommand::New => self.begin_anew().await,
                ChatCommand::Stop => self.stop().await,
                ChatCommand::Status => self.status().await,
                ChatCommand::A2a => self.agents().await,
                ChatCommand::Unknown(name) => {
                    format!("There is no command /{name}. /help lists what there is.")
                }
            }
        };
        tokio::time::timeout(COMMAND_LIMIT, work).await.unwrap_or_else(|_| {
            "That takes longer than it should; it goes on in the background.".to_owned()
        })
    }

    async fn begin_anew(&self) -> String {
        match self.session.reset().await {
            Ok(()) => "A new conversation begins. What was said before is left out from now on."
                .to_owned(),
            Err(error) => failed("the new conversation could not be begun", &error),
        }
    }

    async fn stop(&self) -> String {
        match self.session.abort().await {
            Ok(end) => {
                let stopped =
                    if end.was_running { "Stopped." } else { "Nothing is being worked on." };
                format!("{stopped}{}", waiting(end.waiting))
            }
            Err(error) => failed("it could not be stopped", &error),
        }
    }

    async fn status(&self) -> String {
        let status = match self.session.status().await {
            Ok(status) => status,
            Err(error) => return failed("the status cannot be read", &error),
        };
        let mut text =
            format!("{}{}\nModel: {}", self.activity(&status), waiting(status.waiting), self.model);
        if let Some(watches) = &self.watches {
            let watches = watches.watches(Some(self.watch_target())).await.len();
            // Writing to a text cannot fail.
            let _ = write!(text, "\nWatched tasks: {watches}");
        }
        text
    }

    fn activity(&self, status: &SessionStatus) -> String {
        let Some(run) = &status.running else { return "Nothing is being worked on.".to_owned() };
        let since = run
            .started_at
            .to_zoned_datetime(self.time_zone.clone())
            .strftime("%H:%M:%S %:z")
            .to_string();
        let doing = match &run.activity {
            SessionActivity::Model => "the model writes".to_owned(),
            SessionActivity::Tools { names } => format!("tools run: {}", names.join(", ")),
            SessionActivity::Retry => "the model failed and is asked again shortly".to_owned(),
        };
        format!("Working since {since}: {doing}.")
    }

    async fn agents(&self) -> String {
        match &self.watches {
            None => "The A2A client is off (A2AClient__Enabled): no agents, no watches.".to_owned(),
            Some(watches) => overview(&self.workspace, watches, &self.watch_target()).await,
        }
    }

    fn watch_target(&self) -> WatchTarget {
        WatchTarget::new(self.target.as_str())
    }
}

const START: &str = "Hello. Write what you need; /help says what else can be done here.";

fn help() -> String {
    let mut lines = vec![
        "Write what you need, and I answer here. Messages sent meanwhile wait their turn."
            .to_owned(),
    ];
    lines.extend(MENU.iter().map(|entry| format!("/{} – {}", entry.command, entry.description)));
    lines.join("\n")
}

fn waiting(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " One message waits and comes next.".to_owned(),
        count => format!(" {count} messages wait and come next."),
    }
}

fn failed(what: &str, error: &volcanic_agent_core::SessionError) -> String {
    tracing::error!(%error, what, "a command failed");
    format!("Sorry, {what}. The log says why.")
}

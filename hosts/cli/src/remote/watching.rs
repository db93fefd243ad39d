//! `volcanic subscribe` and `watch`: what an agent reports about a task, and what the task comes to.

use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;
use tokio::time::timeout;
use volcanic_a2a_client::{ClientError, RemoteAgent, sanitize_remote_line};
use volcanic_a2a_types::{TaskId, TaskState};

use super::{
    Contact, Waited,
    events::{Reporter, Told},
    following::Following,
    told::exit_of,
    waiting::after,
};
use crate::{
    args::{SubscribeArgs, WatchArgs},
    config::CliConfig,
    exit::{Exit, Failure},
    output::{Format, note},
};

/// How long a stream is still listened to once its task is over: nothing comes after that, and not every agent closes it.
const LINGER: Duration = Duration::from_secs(2);

/// Prints what an agent reports about a task, until the stream or the time ends.
///
/// # Errors
/// A failure to ask, or of the stream; when the command line is wrong, a usage error.
pub(crate) async fn subscribe(
    args: &SubscribeArgs,
    config: &CliConfig,
    format: Format,
) -> Result<Exit> {
    let contact = Contact::open(&args.of.at, config, format)?;
    let deadline = args.timeout.and_then(after);
    let id = TaskId::from(args.of.task.as_str());
    let mut reporter = Reporter::new(&contact.live, format, Told::Everything);
    let mut state = TaskState::default();
    let listening = async {
        let remote = contact.connect().await?;
        contact.must_stream(&remote)?;
        let mut events = remote.subscribe(&id).await?;
        loop {
            let next = events.next();
            let event = if state.is_terminal() {
                // However the stream ends, it has told all that there is.
                timeout(LINGER, next).await.ok().flatten().and_then(Result::ok)
            } else {
                next.await.transpose()?
            };
            let Some(event) = event else { break };
            reporter.event(&event)?;
            if let Some(status) = event.status() {
                state.clone_from(&status.state);
            }
        }
        Ok::<_, anyhow::Error>(())
    };
    let why = match contact.leave.bounded(&contact.live, deadline, listening).await {
        Waited::Done(ended) => {
            if let Err(error) = ended {
                let is_theirs = error.is::<ClientError>();
                return Err(if is_theirs { contact.failure(&error).into() } else { error });
            }
            "The stream ended before the task did."
        }
        Waited::TimeIsUp => "The time is up.",
        Waited::Interrupted => "Stopped listening, not the task.",
    };
    let exit = exit_of(&state);
    if exit == Exit::TimedOut && format == Format::Text {
        let follow = contact.command("watch", &[&sanitize_remote_line(&args.of.task, 200)]);
        note(&format!("{why} To follow it: {follow}"));
    }
    Ok(exit)
}

/// Follows a task to its end and tells the outcome.
///
/// # Errors
/// As [`subscribe`].
pub(crate) async fn watch(args: &WatchArgs, config: &CliConfig, format: Format) -> Result<Exit> {
    let contact = Contact::open(&args.of.at, config, format)?;
    // No time at all is for how the task stands.
    let wait = args.timeout.or(Some(config.client.watch_timeout)).filter(|wait| !wait.is_zero());
    let deadline = wait.and_then(after);
    let id = TaskId::from(args.of.task.as_str());
    let (remote, task) = contact.read(&id, 0, deadline).await?;
    let mut reporter = Reporter::new(&contact.live, format, Told::Changes);
    if !task.status.state.is_settled() {
        reporter.read(&task)?;
    }
    let mut following = Following {
        remote: &remote,
        reporter,
        events: None,
        pause: args.poll_interval,
        history: 0,
        task,
        answered: None,
    };
    if wait.is_some() {
        contact.follow(&mut following, deadline).await?;
    }
    contact.tell(&remote, following.task, 0)
}

impl Contact<'_> {
    /// Refuses to listen to an agent whose card does not offer that.
    fn must_stream(&self, remote: &RemoteAgent) -> Result<(), Failure> {
        if remote.streams() {
            return Ok(());
        }
        let agent = remote.name();
        let text = format!("The card of agent \"{agent}\" does not say that it streams.");
        let advice = format!("`{}` asks it instead.", self.command("watch", &["TASK"]));
        let failure = Failure::new(Exit::Failed, "unsupportedOperation", text);
        Err(failure.with("agent", agent).advising(&advice))
    }
}

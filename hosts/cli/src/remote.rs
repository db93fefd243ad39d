//! Remote agents from the command line. None of these commands touches a watch of the assistant's.

use std::{fmt::Write as _, sync::Arc};

use anyhow::Result;
use tokio::time::Instant;
use volcanic_a2a_client::{
    AGENTS_FILE, AgentEntry, ClientConfig, ClientError, KeyMask, KeyResolver, KeyUse, RemoteAgent,
};
use volcanic_a2a_types::{Task, TaskId};
use volcanic_base::ConfinedDir;
use volcanic_host::{TransportSetupError, agent_transport, key_resolver};
use volcanic_net::Transport;

use crate::{
    args::{AgentArgs, WorkspaceArgs},
    config::CliConfig,
    exit::{Exit, Failure, UsageError},
    home::Home,
    output::{Format, is_harmful},
    workspace,
};

mod agents;
mod card;
mod events;
mod following;
mod heard;
mod live;
mod parts;
mod push_configs;
mod secrets;
mod send;
mod target;
mod tasks;
mod told;
mod traced;
mod waiting;
mod watching;

use live::Live;
use target::Target;
use traced::Traced;
use waiting::{Leave, Waited};

pub(crate) use agents::agents;
pub(crate) use card::card;
pub(crate) use push_configs::push_config;
pub(crate) use send::send;
pub(crate) use tasks::{cancel, status, tasks};
pub(crate) use watching::{subscribe, watch};

/// The longest token of a page that is shown in a command, in bytes.
const MAX_TOKEN: usize = 2000;

/// What agents are called with.
struct Caller {
    transport: Arc<dyn Transport>,
    keys: KeyResolver,
    config: ClientConfig,
}

impl Caller {
    fn new(at: &WorkspaceArgs, config: &CliConfig) -> Result<Self> {
        let secrets = Home::secrets_of(&at.workspace, &config.home)?;
        Ok(Self {
            transport: transport(config)?,
            keys: key_resolver(config.environment.agent_keys.clone(), secrets),
            config: config.client.calls(),
        })
    }

    async fn connect(&self, entry: &AgentEntry) -> Result<RemoteAgent, ClientError> {
        let (transport, keys) = (Arc::clone(&self.transport), Arc::clone(&self.keys));
        RemoteAgent::connect(entry, transport, keys, &self.config).await
    }
}

/// The one agent of a command, and how the command tells of it.
struct Contact<'a> {
    args: &'a AgentArgs,
    workspace: ConfinedDir,
    target: Target,
    caller: Caller,
    max_file_bytes: u64,
    live: Live,
    leave: Leave,
    /// What keeps secrets out of what is said of exchanges, if they are.
    mask: Option<Arc<KeyMask>>,
    format: Format,
}

impl<'a> Contact<'a> {
    /// Finds the agent, and calls nobody yet.
    fn open(args: &'a AgentArgs, config: &CliConfig, format: Format) -> Result<Self> {
        // The first that is told is a folder that is not there.
        workspace::open(&args.at.workspace)?;
        Self::with(args, Target::find(args)?, config, format)
    }

    /// Goes for an agent that is found.
    fn with(
        args: &'a AgentArgs,
        target: Target,
        config: &CliConfig,
        format: Format,
    ) -> Result<Self> {
        let workspace = workspace::open(&args.at.workspace)?;
        let mut caller = Caller::new(&args.at, config)?;
        let mask = args.debug.then(|| Arc::new(target.mask(&caller.keys)));
        if let Some(mask) = &mask {
            let inner = Arc::clone(&caller.transport);
            let traced = Traced::new(inner, Arc::clone(mask), target.shows_queries());
            caller.transport = Arc::new(traced);
        }
        // Both at once would write over each other.
        let live = if args.debug { Live::closed() } else { Live::open(target.name(), config) };
        let leave = Leave::new();
        let max_file_bytes = config.client.max_file_bytes;
        Ok(Self { args, workspace, target, caller, max_file_bytes, live, leave, mask, format })
    }

    /// Reads the agent's card, if it has to be read.
    async fn connect(&self) -> Result<RemoteAgent, ClientError> {
        self.live.says("connecting");
        let remote = self.target.connect(&self.caller).await?;
        self.live.says("asking");
        Ok(remote)
    }

    /// Asks something that is answered soon, unless somebody is tired of it.
    async fn ask<T>(
        &self,
        work: impl AsyncFnOnce(RemoteAgent) -> Result<T, ClientError>,
    ) -> Result<T> {
        self.bounded(async { work(self.connect().await?).await }).await
    }

    /// Reads a task, for as long as the user wants to wait.
    async fn read(
        &self,
        id: &TaskId,
        history: u32,
        deadline: Option<Instant>,
    ) -> Result<(RemoteAgent, Task)> {
        let reading = async {
            let remote = self.connect().await?;
            let task = remote.get_task(id, Some(history)).await?;
            Ok((remote, task))
        };
        self.until(deadline, reading).await
    }

    /// Does something that ends by itself, unless somebody is tired of it.
    fn bounded<T>(
        &self,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> impl Future<Output = Result<T>> {
        // Another future around it would hold the work once more.
        self.until(None, work)
    }

    /// The same for as long as the user wants to wait.
    async fn until<T>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T> {
        match self.leave.bounded(&self.live, deadline, work).await {
            Waited::Done(answer) => answer.map_err(|error| self.failure(&error.into()).into()),
            Waited::TimeIsUp => Err(self.timed_out().into()),
            Waited::Interrupted => Err(self.interrupted().into()),
        }
    }

    /// What an error is, with what can be done about it here.
    fn failure(&self, error: &anyhow::Error) -> Failure {
        let failure = Failure::of(error);
        if failure.exit != Exit::KeyRefused {
            return failure;
        }
        let has_entry = self.target.name() == self.args.agent;
        match error.downcast_ref() {
            Some(ClientError::KeyRejected { agent, status, key }) => {
                let what = match key {
                    KeyUse::None => "asks for a key",
                    KeyUse::Sent => "rejected the key",
                    KeyUse::Withheld => return failure,
                };
                // What is told otherwise is about entries.
                if has_entry {
                    return failure;
                }
                let told = format!("Agent \"{agent}\" {what} ({status}).");
                let message = format!("{told} It is given by --key-file or --key-env.");
                Failure { message, ..failure }
            }
            Some(_) if has_entry => {
                failure.advising(&format!("Check the \"key\" in its entry in {AGENTS_FILE}."))
            }
            Some(_) => failure.advising("Its key is given by --key-file or --key-env."),
            None => failure,
        }
    }

    fn timed_out(&self) -> ClientError {
        ClientError::TimedOut { agent: self.target.name().to_owned() }
    }

    fn interrupted(&self) -> Failure {
        let text = format!("Stopped before agent \"{}\" answered.", self.target.name());
        Failure::new(Exit::TimedOut, "interrupted", text).with("agent", self.target.name())
    }

    /// How the next page is asked for, if that can be shown.
    fn next_page(&self, verb: &str, rest: &[&str], token: &str) -> String {
        if token.len() > MAX_TOKEN {
            return "Where the next page begins is in what --json prints.".to_owned();
        }
        format!("More: {}", self.command(verb, &[rest, &["--page-token", token]].concat()))
    }

    /// The words of another command on the same agent, for a person to copy.
    fn command(&self, verb: &str, rest: &[&str]) -> String {
        let agent = as_argument(&self.args.agent);
        let options = self.args.options();
        let rest = rest.iter().copied().chain(options.iter().map(String::as_str));
        rest.fold(format!("volcanic {verb} {agent}"), |mut command, word| {
            command.push(' ');
            command.push_str(&as_argument(word));
            command
        })
    }
}

/// The transport to agents.
pub(crate) fn transport(config: &CliConfig) -> Result<Arc<dyn Transport>> {
    agent_transport(config.ca_file.as_deref()).map_err(|error| match error {
        TransportSetupError::Certificates { .. } => UsageError::of(error).into(),
        error => error.into(),
    })
}

/// The text as a word of a command that people may copy: what a remote calls its task is one argument at most. What would
/// steer the terminal on the way is written in bytes, as bash, zsh and ksh read them.
fn as_argument(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.chars().any(is_harmful) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = "$'".to_owned();
    for character in text.chars() {
        match character {
            harmful if is_harmful(harmful) => {
                for byte in harmful.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    let _ = write!(word, "\\x{byte:02x}");
                }
            }
            '\'' | '\\' => word.extend(['\\', character]),
            plain => word.push(plain),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_remote_calls_a_task_is_one_word_of_a_command() {
        assert_eq!(as_argument("5c1e-b_2"), "5c1e-b_2");
        assert_eq!(as_argument("http://a.example:1/b"), "http://a.example:1/b");
        assert_eq!(as_argument("x; it's $(bad)"), r"'x; it'\''s $(bad)'");
        assert_eq!(as_argument(""), "''");
        assert_eq!(as_argument("é\u{1b}a'\\\u{202e}"), r"$'é\x1ba\'\\\xe2\x80\xae'");
    }
}

//! Remote agents from the command line: `agents`, `send`, `status`, `cancel`. None of them touches a watch.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};
use url::Url;
use volcanic_a2a_client::{
    AgentEntry, AgentName, ClientConfig, ClientError, KeyResolver, KeySource, RemoteAgent,
    TaskOutcome,
    frame::{self, sanitize_remote_line},
    read_agents, read_attachments,
};
use volcanic_a2a_types::{
    Message, MessageId, Part, SendMessageConfiguration, SendMessageRequest, SendMessageResponse,
    StreamResponse, Task, TaskId, TaskState,
};
use volcanic_base::{Chance, ConfinedDir, Secret};
use volcanic_net::Transport;

use crate::{
    args::{AgentArgs, AgentsArgs, SendArgs, StatusArgs, TaskArgs},
    environment::Environment,
    exit::Exit,
    links,
};

/// Between two reads of a task whose agent cannot stream.
const POLL: Duration = Duration::from_secs(1);

/// The longest text of a card that is shown on a line.
const CARD_LINE: usize = 300;

/// Largest key file read.
const MAX_KEY_BYTES: u64 = 16 << 10;

/// What a command works with.
struct Caller<'a> {
    environment: &'a Environment,
    transport: Arc<dyn Transport>,
    keys: KeyResolver,
    config: ClientConfig,
}

impl<'a> Caller<'a> {
    fn new(environment: &'a Environment, workspace: &Path) -> Result<Self> {
        Ok(Self {
            environment,
            transport: links::transport(environment)?,
            keys: links::keys(environment, workspace),
            config: ClientConfig::new(environment.card_timeout, environment.max_file_bytes),
        })
    }

    async fn connect(&self, entry: &AgentEntry) -> Result<RemoteAgent, ClientError> {
        RemoteAgent::connect(
            entry,
            Arc::clone(&self.transport),
            Arc::clone(&self.keys),
            &self.config,
        )
        .await
    }
}

/// `volcanic agents`.
///
/// # Errors
/// When agents.json cannot be read.
pub(crate) async fn agents(args: &AgentsArgs, environment: &Environment) -> Result<Exit> {
    let caller = Caller::new(environment, &args.at.workspace)?;
    let file = read_agents(&args.at.workspace)?;
    let asked =
        futures::future::join_all(file.agents.iter().map(|entry| caller.connect(entry))).await;
    let mut out = std::io::stdout();
    if args.json {
        let agents: Vec<Value> =
            file.agents.iter().zip(&asked).map(|(entry, asked)| agent_json(entry, asked)).collect();
        writeln!(out, "{}", json!({ "agents": agents, "skipped": file.skipped }))?;
        return Ok(Exit::Done);
    }
    if file.agents.is_empty() {
        writeln!(
            out,
            "No agents. Add some to {}.",
            args.at.workspace.join(volcanic_a2a_client::AGENTS_FILE).display()
        )?;
    }
    for (entry, asked) in file.agents.iter().zip(&asked) {
        match asked {
            Ok(remote) => write_agent(&mut out, entry, remote)?,
            Err(error) => {
                writeln!(out, "{} ({}): unreachable ({error})", entry.name, entry.shown_url())?
            }
        }
    }
    for skipped in &file.skipped {
        writeln!(out, "skipped: {skipped}")?;
    }
    Ok(Exit::Done)
}

fn write_agent(
    out: &mut impl std::io::Write,
    entry: &AgentEntry,
    remote: &RemoteAgent,
) -> Result<()> {
    let card = remote.card();
    let said = entry.description.as_deref().unwrap_or(&card.description);
    let line = |text: &str| sanitize_remote_line(text, CARD_LINE);
    let streams = if remote.streams() { ", streams" } else { "" };
    let pushes = if remote.pushes() { ", pushes" } else { "" };
    writeln!(out, "{} ({}): {}{streams}{pushes}", entry.name, entry.shown_url(), line(&card.name))?;
    writeln!(out, "  {}", line(said))?;
    for skill in &card.skills {
        writeln!(out, "  - {}: {}", line(&skill.id), line(&skill.description))?;
    }
    Ok(())
}

fn agent_json(entry: &AgentEntry, asked: &Result<RemoteAgent, ClientError>) -> Value {
    let (name, url) = (entry.name.as_str(), entry.shown_url());
    match asked {
        Ok(remote) => json!({ "name": name, "url": url, "card": remote.card() }),
        Err(error) => json!({ "name": name, "url": url, "unreachable": error.to_string() }),
    }
}

/// `volcanic send`.
///
/// # Errors
/// When the command line or a file of the user's is wrong; what the agent does is an [`Exit`].
pub(crate) async fn send(args: &SendArgs, environment: &Environment) -> Result<Exit> {
    let caller = Caller::new(environment, &args.to.at.workspace)?;
    let entry = find(&args.to)?;
    let workspace = ConfinedDir::open(&args.to.at.workspace)?;
    let mut parts = vec![Part::text(args.text.clone())];
    parts.extend(read_attachments(&workspace, &args.files, environment.max_file_bytes)?);
    let remote = match caller.connect(&entry).await {
        Ok(remote) => remote,
        Err(error) => return fail(&error, args.json),
    };
    let request = match request(args, parts, &remote).await {
        Ok(request) => request,
        Err(error) => return fail(&error, args.json),
    };
    match remote.send_message(request).await {
        Ok(SendMessageResponse::Message(message)) => {
            let outcome = TaskOutcome::from_message(&message, environment.max_file_bytes);
            if args.json {
                writeln!(std::io::stdout(), "{}", json!({ "message": message }))?;
            } else {
                show(&outcome.save(&workspace, remote.name())?, remote.name())?;
            }
            Ok(Exit::Done)
        }
        Ok(SendMessageResponse::Task(task)) => {
            let task = wait(&remote, task, args.wait).await;
            tell(&remote, &task, &workspace, &caller, args.json)
        }
        Ok(_) => bail!("agent \"{}\" answered with neither a task nor a message", remote.name()),
        Err(error) => fail(&error, args.json),
    }
}

async fn request(
    args: &SendArgs,
    parts: Vec<Part>,
    remote: &RemoteAgent,
) -> Result<SendMessageRequest, ClientError> {
    let mut message = Message::user(MessageId::from(Chance::from_os().uuid().to_string()), parts);
    message.context_id = args.context.clone().map(Into::into);
    if let Some(task) = &args.task {
        let task_id = TaskId::from(task.clone());
        if message.context_id.is_none() {
            // Some agents lose the context of a follow-up that names only its task.
            message.context_id = remote.get_task(&task_id, Some(0)).await?.context_id;
        }
        message.task_id = Some(task_id);
    }
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = true;
    let mut request = SendMessageRequest::new(message);
    request.configuration = Some(configuration);
    request.metadata.get_or_insert_default().insert("volcanic.hops".to_owned(), json!(1));
    Ok(request)
}

/// `volcanic status`.
///
/// # Errors
/// As [`send`].
pub(crate) async fn status(args: &StatusArgs, environment: &Environment) -> Result<Exit> {
    let TaskArgs { at, task, json } = &args.of;
    let caller = Caller::new(environment, &at.at.workspace)?;
    let workspace = ConfinedDir::open(&at.at.workspace)?;
    let remote = match caller.connect(&find(at)?).await {
        Ok(remote) => remote,
        Err(error) => return fail(&error, *json),
    };
    match remote.get_task(&TaskId::from(task.clone()), Some(0)).await {
        Ok(task) => {
            let task = wait(&remote, task, args.wait.unwrap_or_default()).await;
            tell(&remote, &task, &workspace, &caller, *json)
        }
        Err(error) => fail(&error, *json),
    }
}

/// `volcanic cancel`.
///
/// # Errors
/// As [`send`].
pub(crate) async fn cancel(args: &TaskArgs, environment: &Environment) -> Result<Exit> {
    let caller = Caller::new(environment, &args.at.at.workspace)?;
    let workspace = ConfinedDir::open(&args.at.at.workspace)?;
    let remote = match caller.connect(&find(&args.at)?).await {
        Ok(remote) => remote,
        Err(error) => return fail(&error, args.json),
    };
    match remote.cancel_task(&TaskId::from(args.task.clone())).await {
        Ok(task) => {
            let canceled = task.status.state == TaskState::Canceled;
            let told = tell(&remote, &task, &workspace, &caller, args.json)?;
            Ok(if canceled { Exit::Done } else { told })
        }
        Err(error) => fail(&error, args.json),
    }
}

/// Reads the task until it settles or the time is up; the last that is known of it.
async fn wait(remote: &RemoteAgent, task: Task, time: Duration) -> Task {
    let mut latest = task;
    // Running out of time is an outcome: the task as it stands is told.
    let _ = timeout(time, async {
        if !latest.status.state.is_settled() && remote.streams() {
            follow(remote, &latest.id).await;
        }
        while !latest.status.state.is_settled() {
            let asked_at = Instant::now();
            match remote.get_task(&latest.id, Some(0)).await {
                Ok(task) => latest = task,
                Err(error) => tracing::debug!(%error, "a read failed"),
            }
            if !latest.status.state.is_settled() {
                sleep_until(asked_at + POLL).await;
            }
        }
    })
    .await;
    latest
}

/// Follows a stream until it hints at the end or breaks off; only a read decides.
async fn follow(remote: &RemoteAgent, task: &TaskId) {
    let Ok(mut events) = remote.subscribe(task).await else { return };
    while let Some(Ok(event)) = events.next().await {
        let state = match &event {
            StreamResponse::Task(task) => Some(&task.status.state),
            StreamResponse::StatusUpdate(update) => Some(&update.status.state),
            _ => None,
        };
        if state.is_some_and(TaskState::is_settled) {
            return;
        }
    }
}

/// Tells how a task stands, its files saved when it is settled.
fn tell(
    remote: &RemoteAgent,
    task: &Task,
    workspace: &ConfinedDir,
    caller: &Caller<'_>,
    json: bool,
) -> Result<Exit> {
    let state = &task.status.state;
    if json {
        writeln!(std::io::stdout(), "{}", json!({ "task": task }))?;
    } else {
        let outcome = TaskOutcome::from_task(task, caller.environment.max_file_bytes);
        show(&outcome.save(workspace, remote.name())?, remote.name())?;
    }
    Ok(match state {
        TaskState::Completed => Exit::Done,
        TaskState::InputRequired | TaskState::AuthRequired => Exit::NeedsInput,
        state if state.is_terminal() => Exit::Failed,
        _ => Exit::TimedOut,
    })
}

fn show(outcome: &volcanic_a2a_client::SavedOutcome, agent: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{}", frame::render_result(agent, outcome))
        .context("failed to write to the screen")
}

/// Tells a failure and which exit code it is.
fn fail(error: &ClientError, json: bool) -> Result<Exit> {
    let exit = match error {
        ClientError::Unreachable { .. } => Exit::Unreachable,
        ClientError::KeyRejected { .. } => Exit::KeyRefused,
        ClientError::TimedOut { .. } => Exit::TimedOut,
        _ => Exit::Failed,
    };
    if json {
        writeln!(std::io::stdout(), "{}", json!({ "error": error.to_string() }))?;
    } else {
        writeln!(std::io::stderr(), "{error}")?;
    }
    Ok(exit)
}

/// The agent of that name in agents.json, or the one at that URL.
fn find(args: &AgentArgs) -> Result<AgentEntry> {
    if args.agent.starts_with("http://") || args.agent.starts_with("https://") {
        let url = Url::parse(&args.agent).with_context(|| format!("`{}` is no URL", args.agent))?;
        let name = AgentName::new("agent").context("the name of a nameless agent is wrong")?;
        let mut entry = AgentEntry::new(name, url);
        entry.key = args.key_file.as_deref().map(read_key).transpose()?.map(KeySource::Plain);
        return Ok(entry);
    }
    if args.key_file.is_some() {
        bail!(
            "--key-file is for an agent given by URL; the key of \"{}\" stands in agents.json",
            args.agent
        );
    }
    let file = read_agents(&args.at.workspace)?;
    if let Some(entry) = file.agent(&args.agent) {
        return Ok(entry.clone());
    }
    let names: Vec<_> = file.agents.iter().map(|entry| entry.name.as_str()).collect();
    let path: PathBuf = args.at.workspace.join(volcanic_a2a_client::AGENTS_FILE);
    if names.is_empty() {
        bail!("unknown agent \"{}\": {} lists none", args.agent, path.display());
    }
    bail!("unknown agent \"{}\": {} lists {}", args.agent, path.display(), names.join(", "));
}

fn read_key(path: &Path) -> Result<Secret> {
    let named = || format!("the key file `{}` cannot be used", path.display());
    let length = std::fs::metadata(path).with_context(named)?.len();
    if length > MAX_KEY_BYTES {
        bail!("the key file `{}` is over {MAX_KEY_BYTES} bytes", path.display());
    }
    let key = std::fs::read_to_string(path).with_context(named)?;
    let key = key.trim();
    if key.is_empty() {
        bail!("the key file `{}` is empty", path.display());
    }
    Ok(Secret::new(key))
}

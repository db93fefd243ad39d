//! `volcanic serve`: a remote agent that follows rules.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use volcanic_a2a_server::{
    FileTasks, Journal, OpenAccess, PushConfig, ScriptRules, ScriptedAgent, ServerConfig,
    ServerDeps, router, serve as serve_listener,
};
use volcanic_base::{Chance, SystemClock, read_text_to_limit};
use volcanic_net::{NetClient, NetConfig};

use crate::{
    args::ServeArgs,
    exit::{Exit, OrUsage as _, UsageError},
    output::{Format, write_json, write_line},
    workspace,
};

/// Where the tasks are, in the workspace.
const TASKS: &str = ".volcanic/a2a/tasks";

/// Task files over this are not read.
const MAX_TASK_BYTES: u64 = 64 << 20;

/// How long turns may go on after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// Serves until a signal comes.
///
/// # Errors
/// When the rules, the address or the workspace cannot be used.
pub(crate) async fn serve(args: &ServeArgs, format: Format) -> Result<Exit> {
    if !args.listen.ip().is_loopback() {
        return Err(UsageError::new(format!(
            "--listen {} is not a loopback address: this agent answers everybody, so only this machine may reach it, e.g. 127.0.0.1:8080",
            args.listen
        ))
        .into());
    }
    let (rules, card) = match args.scripted.as_ref().and_then(Option::as_ref) {
        Some(path) => {
            let rules = read_rules(path)?;
            let card = ScriptedAgent::card_of(&rules);
            (rules, card)
        }
        None => (ScriptRules::built_in(), ScriptedAgent::card()),
    };
    let journal = match &args.journal {
        Some(path) => Journal::to_file(path)
            .with_context(|| format!("the journal `{}` cannot be opened", path.display()))
            .or_usage()?,
        None => Journal::in_memory(),
    };
    let workspace = workspace::open(&args.workspace)?;
    let tracker = TaskTracker::new();
    let stop = CancellationToken::new();
    let clock = Arc::new(SystemClock);
    let deps = ServerDeps {
        executor: Arc::new(ScriptedAgent::new(rules, Arc::new(journal), clock.clone())),
        auth: Arc::new(OpenAccess::loopback()),
        store: Arc::new(FileTasks::new(workspace, TASKS, MAX_TASK_BYTES)),
        card: Arc::new(card),
        clock,
        chance: Arc::new(Chance::from_os()),
        // Everything here is on this machine, webhooks as well.
        push: Some(Arc::new(NetClient::new(NetConfig::default())?)),
    };
    let config = ServerConfig {
        push: PushConfig { allow_http: true, ..PushConfig::default() },
        ..ServerConfig::default()
    };
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("failed to listen on {}", args.listen))?;
    let address = listener.local_addr().context("failed to read the address")?;
    let routes = router(config, deps, &tracker, stop.clone());

    // Before anybody hears that we are there.
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen to signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen to signals")?;
    let url = format!("http://{address}");
    let card = format!("{url}/.well-known/agent-card.json");
    match format {
        Format::Text => write_line(format!("listening on {url} (card: {card})"))?,
        Format::Json => {
            write_json(&json!({ "listening": { "url": format!("{url}/"), "card": card } }))?;
        }
    }

    let serving = serve_listener(listener, routes, stop.clone());
    tokio::pin!(serving);
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = &mut serving => {}
    }
    stop.cancel();
    tracker.close();
    // What does not end in time is told as failed at the next start.
    let _ = tokio::time::timeout(GRACE, async {
        serving.await;
        tracker.wait().await;
    })
    .await;
    Ok(Exit::Done)
}

/// The largest rule file, in bytes.
const MAX_RULES: u64 = 1 << 20;

fn read_rules(path: &Path) -> Result<ScriptRules> {
    let text = read_text_to_limit(path, MAX_RULES)
        .with_context(|| format!("the rules `{}` cannot be read", path.display()))
        .or_usage()?;
    ScriptRules::parse(&text)
        .with_context(|| format!("the rules `{}` cannot be used", path.display()))
        .or_usage()
}

//! `volcanic demo`: everything on this machine, without a token and without a key.

mod port;
mod process;
mod tour;

use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde_json::json;
use volcanic_base::Chance;
use volcanic_host::ClientSettings;

pub use tour::{TourDeps, run_tour};

use crate::{
    args::{ChatArgs, DemoArgs, WorkspaceArgs},
    chat::{Afterwards, chat},
    config::CliConfig,
    exit::{Exit, told},
    output::{Format, write_json},
};

/// How long the tour waits for anything.
const PATIENCE: Duration = Duration::from_secs(8);

/// How long the conversation's assistant waits for an agent before it follows the task.
const WAIT: Duration = Duration::from_secs(3);

const WELCOME: &str = "\
A remote agent runs beside this chat; both speak A2A over a real socket. The
assistant is scripted: it needs no model.
Try, for example:
  agents                        who can be called
  ask demo: echo hello          a quick task
  ask demo: book Rome           a question comes back; answer with: reply demo TASK: Monday
  ask demo: report volcanoes    a file comes back
  ask demo: slow 90s tea        a long task: it is followed (/a2a shows it), and
                                its result arrives by itself
  ask demo: plan 20s Rome       a question that comes later
/help lists the commands, Ctrl-C stops, Ctrl-D leaves.";

/// Runs the demo: a conversation on a terminal, else the checked tour.
///
/// # Errors
/// When a process of the demo cannot be started; the tour's own failures are told and end with [`Exit::Failed`].
pub(crate) async fn demo(args: &DemoArgs, config: &CliConfig, format: Format) -> Result<Exit> {
    let folder = tempfile::Builder::new()
        .prefix("volcanic-demo-")
        .tempdir()
        .context("failed to make a folder")?;
    let binary = std::env::current_exe().context("failed to find this program")?;
    let chance = Chance::from_os();
    let deps = TourDeps {
        assistant: binary.clone(),
        remote: binary,
        rules: None,
        folder: folder.path(),
        chance: &chance,
        patience: PATIENCE,
    };
    if format == Format::Json {
        return tour_as_json(&deps).await;
    }
    if args.tour || !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        let mut screen = std::io::stdout();
        return match run_tour(&deps, &mut screen).await {
            Ok(()) => Ok(Exit::Done),
            Err(error) => {
                writeln!(screen, "\nMissing: {}", told(&error))?;
                Ok(Exit::Failed)
            }
        };
    }
    converse(&deps, config).await
}

/// Runs the tour for a program: what it told, once it is over.
async fn tour_as_json(deps: &TourDeps<'_>) -> Result<Exit> {
    let mut screen = Vec::new();
    let missing = run_tour(deps, &mut screen).await.err().map(|error| told(&error));
    let told = String::from_utf8_lossy(&screen);
    let told: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
    write_json(
        &json!({ "tour": { "passed": missing.is_none(), "missing": missing, "told": told } }),
    )?;
    Ok(if missing.is_none() { Exit::Done } else { Exit::Failed })
}

async fn converse(deps: &TourDeps<'_>, config: &CliConfig) -> Result<Exit> {
    let (remote, url) = tour::start_remote(deps).await?;
    let workspace = deps.folder.join("workspace");
    let settings = workspace.join(".volcanic/a2a");
    std::fs::create_dir_all(&settings).context("failed to make the demo's workspace")?;
    std::fs::write(
        settings.join("agents.json"),
        json!([{ "name": "demo", "url": url }]).to_string(),
    )
    .context("failed to write agents.json")?;
    writeln!(std::io::stdout(), "{WELCOME}\n")?;
    // A task is to be seen handed over while somebody still looks.
    let client = ClientSettings { wait: config.client.wait.min(WAIT), ..config.client.clone() };
    let config = CliConfig { home: deps.folder.join("home"), client, ..config.clone() };
    let args = ChatArgs { at: WorkspaceArgs { workspace }, model: Some("scripted".to_owned()) };
    let exit = chat(&args, &config, Format::Text, Afterwards::Gone).await;
    remote.kill().await?;
    exit
}

//! What a process leaves that followed many tasks: workspaces with an agent each, and their watches.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::json;
use url::Url;
use volcanic_a2a_watch::{
    WatchId, WatchRecord, WatchSource, WatchState, WatchStore as _, WatchTarget,
};
use volcanic_base::{Clock as _, Secret, SystemClock};
use volcanic_store::Store;

use crate::numbering;

/// How many watches are kept with one commit.
const GROUP: usize = 500;

/// The name of every agent in its workspace.
pub(crate) const AGENT: &str = "travel-bot";

/// Where the state is.
pub(crate) fn database(home: &Path) -> PathBuf {
    home.join("state").join("state.db")
}

/// The workspace of a conversation.
pub(crate) fn workspace(home: &Path, number: usize) -> PathBuf {
    home.join("workspaces").join(format!("{number:010}"))
}

/// The conversation with that workspace.
pub(crate) fn target(number: usize) -> String {
    format!("tg:{number:010}")
}

/// Makes a workspace for each URL, and `count` watches that are spread over them.
pub(crate) async fn seed(home: &Path, kind: &str, count: usize, urls: &[&str]) -> Result<()> {
    for (number, url) in urls.iter().enumerate() {
        let folder = workspace(home, number).join(".volcanic/a2a");
        std::fs::create_dir_all(&folder)?;
        let agents =
            json!([{"name": AGENT, "url": url, "key": format!("key-of-agent-{number:010}")}]);
        std::fs::write(folder.join("agents.json"), agents.to_string())?;
    }
    let origins = urls
        .iter()
        .map(|url| Ok(Url::parse(url)?.origin().ascii_serialization()))
        .collect::<Result<Vec<_>>>()?;
    let store = Store::open(&database(home), Arc::new(SystemClock))?;
    let watches: Vec<_> = (0..count)
        .map(|number| {
            let at = number % urls.len();
            watch(number, kind, (target(at), workspace(home, at)), &origins[at])
        })
        .collect();
    for group in watches.chunks(GROUP) {
        store.add_watches(group).await.context("the watches could not be kept")?;
    }
    store.close().await;
    Ok(())
}

/// A watch as it looks after some checks.
fn watch(
    number: usize,
    kind: &str,
    (target, workspace): (String, PathBuf),
    origin: &str,
) -> WatchRecord {
    let now = SystemClock.now();
    let id = numbering::watch(number);
    let task = numbering::task(number);
    WatchRecord {
        id: WatchId::new(id),
        target: WatchTarget::new(target),
        workspace,
        agent: AGENT.to_owned(),
        origin: origin.to_owned(),
        message_id: Some(format!("3e55a6e0-7a5c-4b1e-9d2f-{number:012x}").into()),
        task_id: task.into(),
        context_id: Some("c0ffee00-7a5c-4b1e-9d2f-0242ac120002".into()),
        push_token: (kind == "push").then(|| Secret::new(numbering::token(number))),
        source: if kind == "push" { WatchSource::Push } else { WatchSource::Poll },
        started_at: now,
        state: WatchState::Watching,
        epoch: 2,
        round: 0,
        told: Vec::new(),
        text: None,
        delivery_key: String::new(),
        goes_on: false,
        failures: 0,
        not_found: 0,
        not_found_since: None,
        next_check_at: Some(now),
        last_seen: Some("working".to_owned()),
        hops: 0,
        source_ref: Some(format!("{number}")),
        continuations: 0,
        followed: 0,
    }
}

//! What `/a2a` shows: the agents of a workspace and the watches of a conversation.

use std::path::Path;

use volcanic_a2a_client::{AgentEntry, KeySource};
use volcanic_a2a_watch::{WatchHandle, WatchTarget, WatchView};

use crate::listing;
use crate::watch_lines::WatchLines;

/// Keys shorter than this show nothing of themselves, in characters.
const SHOWN_FROM: usize = 12;
/// How much of a longer key is shown, in characters.
const SHOWN: usize = 4;
/// How many watches are shown: as many as fit into one message of a chat.
const MAX_WATCHES: usize = 25;

/// The text of `/a2a`. Asks no agent; URLs are shown without user, query and fragment, keys masked.
pub async fn overview(workspace: &Path, watches: &WatchHandle, target: &WatchTarget) -> String {
    let views = watches.watches(Some(target.clone())).await;
    let agents = listing::read(workspace).await;
    let mut lines = match agents {
        Err(reason) => vec![reason],
        Ok(file) if file.agents.is_empty() && file.skipped.is_empty() => {
            vec!["No agents.".to_owned()]
        }
        Ok(file) => {
            let agents = file.agents.iter().map(agent);
            let skipped = file.skipped.iter().map(|reason| format!("skipped: {reason}"));
            let warnings = file.warnings.iter().map(|warning| format!("warning: {warning}"));
            let heading = std::iter::once("Agents:".to_owned());
            heading.chain(agents).chain(skipped).chain(warnings).collect()
        }
    };
    if views.is_empty() {
        lines.push("No watches.".to_owned());
    } else {
        lines.push("Watches:".to_owned());
        lines.extend(views.iter().take(MAX_WATCHES).map(watch));
        let more = views.len().saturating_sub(MAX_WATCHES);
        if more > 0 {
            lines.push(format!("… and {more} more, which began later"));
        }
    }
    lines.join("\n")
}

fn agent(entry: &AgentEntry) -> String {
    let key = match &entry.key {
        None => "no key".to_owned(),
        Some(KeySource::Plain(secret)) => format!("key {}", masked(secret.expose())),
        Some(KeySource::Env(name)) => format!("key from {name}"),
        Some(KeySource::File(path)) => format!("key from {}", path.display()),
    };
    format!("- {}: {} ({key})", entry.name.as_str(), entry.shown_url())
}

fn masked(key: &str) -> String {
    let length = key.chars().count();
    if length < SHOWN_FROM {
        return "****".to_owned();
    }
    format!("****{}", key.chars().skip(length - SHOWN).collect::<String>())
}

fn watch(view: &WatchView) -> String {
    WatchLines {
        agent: &view.agent,
        task_id: view.task_id.as_str(),
        source: view.source,
        state: view.state,
        age: view.age,
        next_check_in: view.next_check_in,
        last_seen: view.last_seen.as_deref(),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_show_their_end_and_short_ones_nothing() {
        assert_eq!([masked("k_3f9c2a1234"), masked("k_3f9c2a123")], ["****1234", "****"]);
        assert_eq!(masked("ключ-ключ-ключ"), "****ключ");
    }
}

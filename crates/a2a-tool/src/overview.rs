//! What `/a2a` shows: the agents of a workspace and the watches of a conversation.

use std::path::Path;
use std::time::Duration;

use volcanic_a2a_client::{AgentEntry, KeySource, sanitize_remote_line};
use volcanic_a2a_watch::{WatchHandle, WatchTarget, WatchView};

use crate::listing;

/// Keys shorter than this show nothing of themselves, in characters.
const SHOWN_FROM: usize = 12;
/// How much of a longer key is shown, in characters.
const SHOWN: usize = 4;
/// How much of a remote's id or reason is shown, in characters.
const MAX_LINE: usize = 200;

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
        lines.extend(views.iter().map(watch));
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
    let line = |text: &str| sanitize_remote_line(text, MAX_LINE);
    let seen = view
        .last_seen
        .as_deref()
        .map_or_else(String::new, |seen| format!(", last: {}", line(seen)));
    let next = view.next_check_in.map_or_else(String::new, |left| match left.as_secs() {
        0 => ", next check now".to_owned(),
        _ => format!(", next check in {}", age(left)),
    });
    format!(
        "- {}: task {} ({}, {}, {}{next}{seen})",
        view.agent,
        line(view.task_id.as_str()),
        view.source.as_str(),
        view.state.as_str(),
        age(view.age)
    )
}

fn age(age: Duration) -> String {
    let minutes = age.as_secs() / 60;
    match minutes {
        0 => format!("{}s", age.as_secs()),
        1..60 => format!("{minutes}m"),
        60..1440 => format!("{}h {}m", minutes / 60, minutes % 60),
        _ => format!("{}d {}h", minutes / 1440, minutes / 60 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_show_their_end_and_short_ones_nothing() {
        assert_eq!([masked("k_3f9c2a1234"), masked("k_3f9c2a123")], ["****1234", "****"]);
        assert_eq!(masked("ключ-ключ-ключ"), "****ключ");
    }

    #[test]
    fn ages_are_said_in_two_units_at_most() {
        let said = [59, 60, 3700, 90_000].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(said, ["59s", "1m", "1h 1m", "1d 1h"]);
    }
}

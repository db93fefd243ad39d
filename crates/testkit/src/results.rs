//! Sixty tasks whose outcomes mean harm to whoever is told of them, and an agent that has them.

mod agent;
mod cases;

use serde_json::Value;

pub use agent::HostileResults;

/// A task that has settled, and what it is meant to do.
#[derive(Debug, Clone)]
pub struct HostileResult {
    /// What it tries, in a few words.
    pub name: &'static str,
    /// The task as A2A 1.0 writes it.
    pub task: Value,
}

impl HostileResult {
    /// Its id, whatever that looks like.
    pub fn task_id(&self) -> &str {
        self.task["id"].as_str().unwrap_or_default()
    }
}

/// The sixty; the same ones with every call.
pub fn hostile_results() -> Vec<HostileResult> {
    cases::all()
}

//! What made the registry look when there was something to tell: it logs that, and this listens.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result};
use tracing::field::{Field, Visit};
use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
    layer::{Context, SubscriberExt as _},
};

/// One claim of a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    task: String,
    /// The label of what is told, such as `completed`.
    pub(super) told: String,
    /// The hint.
    pub(super) by: String,
}

/// The claims of all registries of this process, by the id of the task.
#[derive(Debug, Default)]
pub(super) struct Hints {
    found: Mutex<HashMap<String, Vec<Found>>>,
}

/// Hands events on to the hints.
struct Listener(Arc<Hints>);

impl Hints {
    /// Listens for the rest of the process.
    ///
    /// # Errors
    /// When somebody else listens already.
    pub(super) fn listen() -> Result<Arc<Self>> {
        let hints = Arc::new(Self::default());
        let subscriber = tracing_subscriber::registry().with(hints.layer());
        tracing::subscriber::set_global_default(subscriber)
            .context("somebody else listens to the log")?;
        Ok(hints)
    }

    fn layer(self: &Arc<Self>) -> impl Layer<Registry> + use<> {
        let wanted = Targets::new().with_target("volcanic_a2a_watch", LevelFilter::INFO);
        Listener(Arc::clone(self)).with_filter(wanted)
    }

    /// What was claimed of a task.
    pub(super) fn of(&self, task: &str) -> Vec<Found> {
        self.found().get(task).cloned().unwrap_or_default()
    }

    fn found(&self) -> MutexGuard<'_, HashMap<String, Vec<Found>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: tracing::Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut found = Found::default();
        event.record(&mut found);
        if !found.by.is_empty() {
            self.0.found().entry(found.task.clone()).or_default().push(found);
        }
    }
}

impl Visit for Found {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "told" => value.clone_into(&mut self.told),
            "found_by" => value.clone_into(&mut self.by),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "task.id" {
            self.task = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_told_from_everything_else() {
        let hints = Arc::new(Hints::default());
        let subscriber = tracing_subscriber::registry().with(hints.layer());
        tracing::subscriber::with_default(subscriber, || {
            let target = "t1";
            tracing::info!(
                target: "volcanic_a2a_watch::x",
                { task.id = %target, told = Some("completed"), found_by = "push" },
                "x"
            );
            tracing::info!(target: "volcanic_a2a_watch::x", { task.id = %target }, "nothing of the kind");
            tracing::info!(target: "volcanic_net", { task.id = %target, found_by = "poll" }, "x");
        });
        let found = Found { task: "t1".into(), told: "completed".into(), by: "push".into() };
        assert_eq!(hints.of("t1"), [found]);
        assert_eq!(hints.of("t2"), []);
    }
}

//! A model without a network: it follows steps in tests, and rules for people.
//!
//! [`ScriptedModel::steps`] plays a queue of replies and records what it was asked. [`ScriptedModel::rules`] answers
//! by a rule file, and [`ScriptedModel::built_in`] by rules that come with it and drive every tool, so that the
//! product can be tried without a key.

mod reply;
mod rules;
mod stream;
mod template;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

pub use reply::ScriptedReply;
pub use rules::{ScriptedRules, ScriptedRulesError};

use crate::model::{Capabilities, Model, ModelErrorKind, ModelEvent, ModelRequest};

/// What it says it can hold: like most models of today, and enough for every script.
const CONTEXT_WINDOW: u64 = 128_000;

/// A model that does as it was told beforehand. Clones share their script.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    script: Arc<Script>,
    /// The pause before each piece of text.
    delay: Duration,
}

#[derive(Debug)]
enum Script {
    Steps { left: Mutex<VecDeque<ScriptedStep>>, requests: Mutex<Vec<ModelRequest>> },
    Rules(ScriptedRules),
}

impl ScriptedModel {
    /// A model that gives these replies, one per request, and records the requests. A request too many fails.
    pub fn steps(steps: impl IntoIterator<Item = impl Into<ScriptedStep>>) -> Self {
        let left = Mutex::new(steps.into_iter().map(Into::into).collect());
        let script = Script::Steps { left, requests: Mutex::default() };
        Self { script: Arc::new(script), delay: Duration::ZERO }
    }

    /// A model that answers by rules.
    pub fn rules(rules: ScriptedRules) -> Self {
        let delay = rules.delay();
        Self { script: Arc::new(Script::Rules(rules)), delay }
    }

    /// A model that answers by the rules that come with it. Ask it anything it does not know and it tells them.
    pub fn built_in() -> Self {
        Self::rules(ScriptedRules::built_in())
    }

    /// Waits this long before each piece of text, so that streaming can be seen.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The requests so far, oldest first; none for a model that answers by rules.
    pub fn requests(&self) -> Vec<ModelRequest> {
        match &*self.script {
            Script::Steps { requests, .. } => lock(requests).clone(),
            Script::Rules(_) => Vec::new(),
        }
    }

    /// How many steps nobody has asked for yet.
    pub fn steps_left(&self) -> usize {
        match &*self.script {
            Script::Steps { left, .. } => lock(left).len(),
            Script::Rules(_) => 0,
        }
    }

    /// Checks in a test that every step was asked for.
    ///
    /// # Panics
    ///
    /// If a step is left over.
    #[track_caller]
    pub fn assert_finished(&self) {
        assert_eq!(self.steps_left(), 0, "steps of the script that nobody asked for");
    }

    fn reply(&self, request: ModelRequest) -> ScriptedReply {
        match &*self.script {
            Script::Rules(rules) => rules.reply(&request),
            Script::Steps { left, requests } => {
                let step = lock(left).pop_front();
                let reply = match step {
                    Some(ScriptedStep::Fixed(reply)) => reply,
                    Some(ScriptedStep::Made(make)) => make(&request),
                    None => ScriptedReply::fail(
                        ModelErrorKind::BadRequest,
                        "the script has no step for this request",
                    ),
                };
                lock(requests).push(request);
                reply
            }
        }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn id(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tools: true, context_window: CONTEXT_WINDOW }
    }

    async fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, ModelEvent> {
        let place = request.messages.len();
        let asked = request.system.len() + request.messages.iter().map(stream::size).sum::<usize>();
        stream::play(self.reply(request), place, asked, self.delay, cancel)
    }
}

/// One step of a script.
pub enum ScriptedStep {
    /// A reply that is known beforehand.
    Fixed(ScriptedReply),
    /// A reply made from the request.
    Made(Box<dyn FnOnce(&ModelRequest) -> ScriptedReply + Send>),
}

impl ScriptedStep {
    /// A reply that depends on the request.
    pub fn made(make: impl FnOnce(&ModelRequest) -> ScriptedReply + Send + 'static) -> Self {
        Self::Made(Box::new(make))
    }
}

impl From<ScriptedReply> for ScriptedStep {
    fn from(reply: ScriptedReply) -> Self {
        Self::Fixed(reply)
    }
}

impl fmt::Debug for ScriptedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(reply) => f.debug_tuple("Fixed").field(reply).finish(),
            Self::Made(_) => f.debug_tuple("Made").finish_non_exhaustive(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A bug whose panic has a key in its text: what is seen of it, and that everything goes on.

use std::{
    io,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::subscriber::DefaultGuard;
use volcanic_agent_core::{
    Capabilities, Model, ModelEvent, ModelRequest, ScriptedModel, ScriptedReply,
};

use crate::kit::{Kit, config, store, tool};

const KEY: &str = "k_planted_3f9c2a7e";

/// What is logged on this thread for as long as the guard is there.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logged {
    fn start() -> (Self, DefaultGuard) {
        let logged = Self::default();
        let writer = logged.clone();
        let log = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        (logged, tracing::subscriber::set_default(log))
    }

    #[track_caller]
    fn check(&self, expected: &str) {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains(expected) && !text.contains(KEY), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn tool_that_panics_with_a_key_shows_it_nowhere_and_the_run_goes_on() {
    let (logged, _guard) = Logged::start();
    let broken = tool("broken", |_, _| async { panic!("with {KEY}") });
    let replies = [ScriptedReply::call("broken", json!({})), ScriptedReply::say("Done.")];
    let mut kit = Kit::start(replies, vec![broken]);
    kit.ask("a").await;
    logged.check("tool panicked");
    let seen = format!("{:?} {:?} {:?}", kit.lines(), kit.screen(), kit.events_so_far());
    assert!(!seen.contains(KEY), "{seen}");
    assert_eq!(kit.screen(), ["Done."]);
}

/// A model whose code fails.
#[derive(Debug)]
struct Broken;

#[async_trait]
impl Model for Broken {
    fn id(&self) -> &'static str {
        "broken"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tools: false, context_window: 1 }
    }

    async fn stream(
        &self,
        _: ModelRequest,
        _: CancellationToken,
    ) -> BoxStream<'static, ModelEvent> {
        panic!("with {KEY}")
    }
}

#[tokio::test(start_paused = true)]
async fn model_that_panics_with_a_key_shows_it_nowhere() {
    let (logged, _guard) = Logged::start();
    let (store, unused) = (store(), ScriptedModel::steps([ScriptedReply::hang()]));
    let seam = Arc::new(store.clone());
    let mut kit = Kit::with_seams(store, seam, unused, Arc::new(Broken), Vec::new(), config());
    kit.ask("hi").await;
    logged.check("run panicked");
    let seen = format!("{:?} {:?} {:?}", kit.lines(), kit.screen(), kit.events_so_far());
    assert!(!seen.contains(KEY), "{seen}");
    assert_eq!(kit.screen().len(), 1, "the run is given up");
}

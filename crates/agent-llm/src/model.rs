//! The chat completions model.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use rig_core::driver::Model as RigModel;
use rig_core::message::Origin;
use rig_core::providers::openai::OpenAIConfig;
use rig_core::providers::openai::wire::{Auth, Chat, OPENAI};
use rig_core::streaming::CompletionStream;
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{
    Capabilities, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, PartialReply,
};

use crate::classify::Classifier;
use crate::config::{OpenAiConfig, OpenAiConfigError};
use crate::reply;
use crate::request::{self, Stamp};
use crate::transport::LimitedClient;

/// The dialect's name in [`volcanic_agent_core::Replay::api`].
const API: &str = "openai-chat";

/// Makes a model that speaks chat completions.
///
/// # Errors
///
/// [`OpenAiConfigError`] if the configuration cannot be used. Nothing is sent.
pub fn openai_chat(config: OpenAiConfig) -> Result<Arc<dyn Model>, OpenAiConfigError> {
    if config.model.is_empty() {
        return Err(OpenAiConfigError::NoModel);
    }
    let endpoint = config.endpoint()?;
    let provider = match (endpoint.host_str().unwrap_or_default(), endpoint.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    let client = LimitedClient::new(&config)?;
    // Rig gets no key and must then not send an empty one; the client adds ours.
    let mut settings = OpenAIConfig::with_key(&OPENAI, "").with_base_url(&config.base_url);
    settings.auth = Auth::OptionalBearer;
    Ok(Arc::new(OpenAiChat {
        id: format!("openai:{}", config.model),
        context_window: config.context_window,
        origin: Origin::new("openai.chat", OPENAI.name, &config.model),
        model: RigModel::new(Chat::new(settings, &config.model), client),
        stamp: Stamp { api: API, provider, model: config.model },
        classifier: Classifier::new(config.key),
    }))
}

/// A model behind a chat completions endpoint.
#[derive(Debug)]
struct OpenAiChat {
    id: String,
    context_window: u64,
    model: RigModel<Chat, LimitedClient>,
    /// What rig compares a reply's origin with.
    origin: Origin,
    stamp: Stamp,
    classifier: Classifier,
}

#[async_trait]
impl Model for OpenAiChat {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tools: true, context_window: self.context_window }
    }

    async fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, ModelEvent> {
        let opened = match request::build(&request, &self.stamp, &self.origin) {
            Ok(built) => self.model.stream(built).map_err(|error| self.classifier.provider(&error)),
            Err(error) => Err(ModelError {
                kind: ModelErrorKind::BadRequest,
                status: None,
                retry_after: None,
                message: format!("the request cannot be written: {error}"),
            }),
        };
        match opened {
            Ok(stream) => {
                Box::pin(events(stream, self.stamp.clone(), self.classifier.clone(), cancel))
            }
            Err(error) => {
                let failed = ModelEvent::Failed { error, partial: PartialReply::default() };
                Box::pin(futures::stream::once(async { failed }))
            }
        }
    }
}

/// The reply's events; the last one is `Done` or `Failed`. When it ends or is dropped, the connection is closed.
fn events(
    mut stream: CompletionStream,
    stamp: Stamp,
    classifier: Classifier,
    cancel: CancellationToken,
) -> impl futures::Stream<Item = ModelEvent> {
    async_stream::stream! {
        let mut started = false;
        let error = loop {
            let item = tokio::select! {
                biased;
                () = cancel.cancelled() => break aborted(),
                item = stream.next() => item,
            };
            match item {
                Some(Ok(item)) => {
                    if !started {
                        started = true;
                        yield ModelEvent::Start { response_id: None };
                    }
                    if let Some(event) = reply::event(item, &stamp) {
                        yield event;
                    }
                }
                Some(Err(error)) => break classifier.provider(&error),
                None => {
                    let response = stream.partial();
                    match reply::stop(&response) {
                        Ok(stop) => {
                            if !started {
                                yield ModelEvent::Start { response_id: None };
                            }
                            yield ModelEvent::Done { stop, usage: reply::usage(&response.usage) };
                            return;
                        }
                        Err((kind, message)) => {
                            break ModelError { kind, status: None, retry_after: None, message };
                        }
                    }
                }
            }
        };
        let partial = reply::partial(stream.partial(), &stamp);
        drop(stream);
        yield ModelEvent::Failed { error, partial };
    }
}

fn aborted() -> ModelError {
    ModelError {
        kind: ModelErrorKind::Aborted,
        status: None,
        retry_after: None,
        message: "stopped".to_owned(),
    }
}

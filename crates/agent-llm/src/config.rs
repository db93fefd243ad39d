//! What a model adapter can be told.

use std::time::Duration;

use rig_reqwest::reqwest::Url;
use volcanic_base::Secret;

/// A chat completions endpoint and a model behind it.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// The address below which `/chat/completions` is, e.g. `https://api.openai.com/v1`. It has neither user, password,
    /// query nor fragment.
    pub base_url: String,
    /// The key, sent as `Authorization: Bearer`; servers at home often need none.
    pub key: Option<Secret>,
    /// The model's name at the endpoint.
    pub model: String,
    /// The model's context window in tokens. The dialect has no way to ask for it.
    pub context_window: u64,
    /// How long the endpoint may take until it begins to answer. Servers at home read the whole prompt before.
    pub header_timeout: Duration,
    /// How long an answer may be silent between two pieces. There is no limit on a whole answer: small machines are slow.
    pub idle_timeout: Duration,
}

impl OpenAiConfig {
    /// The usual limits: two minutes for each silence, a window of 128,000 tokens.
    pub fn new(base_url: impl Into<String>, key: Option<Secret>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key,
            model: model.into(),
            context_window: 128_000,
            header_timeout: Duration::from_mins(2),
            idle_timeout: Duration::from_mins(2),
        }
    }

    /// The base URL, checked.
    pub(crate) fn endpoint(&self) -> Result<Url, OpenAiConfigError> {
        let wrong = |reason| Err(OpenAiConfigError::BaseUrl { reason });
        let Ok(url) = Url::parse(&self.base_url) else { return wrong("it is not a URL") };
        if !matches!(url.scheme(), "http" | "https") {
            return wrong("it has to begin with http:// or https://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("it must not contain a user or password");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return wrong("it must not contain ? or #");
        }
        Ok(url)
    }
}

/// Why no model could be made of an [`OpenAiConfig`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenAiConfigError {
    /// The base URL cannot be used. What was given is not repeated: it might hold a password.
    #[error("the base URL of the model cannot be used: {reason}")]
    BaseUrl {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The model has no name.
    #[error("the name of the model is empty")]
    NoModel,
    /// The key has characters that no header can carry.
    #[error("the key of the model has characters that cannot be sent")]
    Key,
    /// The HTTP client could not be set up.
    #[error("failed to set up the HTTP client of the model")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

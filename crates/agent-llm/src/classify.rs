//! What kind of failure a failure is, and what may be said about it.

use std::error::Error as _;
use std::time::Duration;

use rig_core::error::ProviderError;
use rig_core::http_client::{Error as HttpError, HeaderMap};
use rig_reqwest::reqwest;
use serde_json::Value;
use volcanic_agent_core::{ModelError, ModelErrorKind};
use volcanic_base::Secret;

use crate::transport::Limit;

/// The longest text of a provider that is repeated, in characters.
const TEXT_MAX: usize = 400;

/// Turns failures into the core's errors. It knows the key, to keep it out of them.
#[derive(Debug, Clone)]
pub(crate) struct Classifier {
    key: Option<Secret>,
}

impl Classifier {
    pub(crate) fn new(key: Option<Secret>) -> Self {
        Self { key: key.filter(|key| !key.is_empty()) }
    }

    /// The error for a failure of rig's.
    pub(crate) fn provider(&self, error: &ProviderError) -> ModelError {
        if let Some(response) = error.provider_response() {
            let status = response.status.map(|status| status.as_u16());
            let refusal = Refusal::read(status, &response.body);
            let kind = refusal.kind();
            return ModelError {
                kind,
                status: refusal.status,
                retry_after: response.headers.as_ref().and_then(retry_after),
                message: self.describe(kind, &refusal),
            };
        }
        let (kind, message) = match error {
            ProviderError::Truncated => {
                (ModelErrorKind::Truncated, "the answer broke off before its end".to_owned())
            }
            ProviderError::Http(error) => transport(error),
            ProviderError::Json(_) | ProviderError::Response(_) => (
                ModelErrorKind::Transport,
                "the provider sent something that cannot be read".to_owned(),
            ),
            other => (ModelErrorKind::BadRequest, format!("the request cannot be sent: {other}")),
        };
        ModelError { kind, status: None, retry_after: None, message: self.clean(&message) }
    }

    fn describe(&self, kind: ModelErrorKind, refusal: &Refusal) -> String {
        let what = match kind {
            ModelErrorKind::RateLimited => "the provider is asked too often",
            ModelErrorKind::Overloaded => "the provider has trouble",
            ModelErrorKind::ContextOverflow => "the conversation is too long for the model",
            ModelErrorKind::Auth => "the provider refused the key",
            ModelErrorKind::Quota => "the account at the provider has no quota left",
            ModelErrorKind::Refused => "the provider refused the content",
            ModelErrorKind::Transport
            | ModelErrorKind::Truncated
            | ModelErrorKind::BadRequest
            | ModelErrorKind::Aborted => "the provider refused the request",
        };
        let status = refusal.status.map_or_else(String::new, |status| format!(" ({status})"));
        // Providers like to repeat a wrong key, with only its middle left out.
        if kind == ModelErrorKind::Auth || refusal.message.is_empty() {
            return format!("{what}{status}");
        }
        format!("{what}{status}: {}", self.clean(&refusal.message))
    }

    /// A text from outside: one line, not long, without key and addresses.
    fn clean(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => text.replace(key.expose(), "***"),
            None => text.to_owned(),
        };
        let words: Vec<&str> = text
            .split(|character: char| character.is_whitespace() || character.is_control())
            .filter(|word| !word.is_empty())
            .map(|word| if word.contains("://") { "(address)" } else { word })
            .collect();
        let text = words.join(" ");
        match text.char_indices().nth(TEXT_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}

/// A failure without an answer of the provider.
fn transport(error: &HttpError) -> (ModelErrorKind, String) {
    match error {
        HttpError::Instance(inner) => {
            if let Some(limit) = inner.downcast_ref::<Limit>() {
                return (ModelErrorKind::Transport, limit.to_string());
            }
            let Some(error) = inner.downcast_ref::<reqwest::Error>() else {
                return (ModelErrorKind::Transport, "the connection failed".to_owned());
            };
            // Its own text names the URL; the innermost cause says what happened.
            let mut cause = error.source();
            while let Some(deeper) = cause.and_then(std::error::Error::source) {
                cause = Some(deeper);
            }
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            if error.is_connect() || error.is_timeout() {
                (ModelErrorKind::Transport, format!("the provider cannot be reached{cause}"))
            } else if error.is_body() || error.is_decode() {
                (ModelErrorKind::Truncated, format!("the answer broke off{cause}"))
            } else {
                (ModelErrorKind::Transport, format!("the connection failed{cause}"))
            }
        }
        HttpError::StreamEnded => {
            (ModelErrorKind::Truncated, "the answer broke off before its end".to_owned())
        }
        HttpError::InvalidContentType(_) => (
            ModelErrorKind::BadRequest,
            "the address answers, but not with a stream of events; the base URL may be wrong"
                .to_owned(),
        ),
        HttpError::Protocol(_)
        | HttpError::InvalidHeaderValue(_)
        | HttpError::NoHeaders
        | HttpError::InvalidStatusCodeWithDetails { .. } => {
            (ModelErrorKind::Transport, "the connection failed".to_owned())
        }
    }
}

/// A provider's refusal: with a status of its own, or in the middle of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Refusal {
    /// The status, unless it is that of the stream it came in.
    status: Option<u16>,
    /// `type` and `code`, lower-case.
    names: Vec<String>,
    message: String,
}

impl Refusal {
    fn read(status: Option<u16>, body: &str) -> Self {
        let mut refusal = Self {
            status: status.filter(|status| !(200..300).contains(status)),
            ..Self::default()
        };
        let Ok(body) = serde_json::from_str::<Value>(body) else { return refusal };
        // `{"error": {…}}`, `{"error": "…"}`, `{"message": "…"}`, and any of them in a list of one.
        let body = body.as_array().and_then(|list| list.first()).unwrap_or(&body);
        let error = body.get("error").unwrap_or(body);
        if let Some(text) = error.as_str() {
            text.clone_into(&mut refusal.message);
            return refusal;
        }
        if let Some(text) = error.get("message").and_then(Value::as_str) {
            text.clone_into(&mut refusal.message);
        }
        for name in ["type", "code", "status"] {
            match error.get(name) {
                Some(Value::String(text)) => refusal.names.push(text.to_ascii_lowercase()),
                // Gateways put the status of what is behind them here.
                Some(Value::Number(number)) if refusal.status.is_none() => {
                    refusal.status = number
                        .as_u64()
                        .and_then(|number| u16::try_from(number).ok())
                        .filter(|number| (400..600).contains(number));
                }
                _ => {}
            }
        }
        refusal
    }

    /// Status first, then type and code, the text last. What the context window and quota are called differs too much for
    /// statuses alone, so those two are looked for wherever the status leaves it open.
    fn kind(&self) -> ModelErrorKind {
        match self.status {
            Some(401) => ModelErrorKind::Auth,
            Some(402) => ModelErrorKind::Quota,
            Some(403) => self.named().unwrap_or(ModelErrorKind::Auth),
            Some(429) if self.is_quota() => ModelErrorKind::Quota,
            Some(429) => ModelErrorKind::RateLimited,
            Some(408 | 425) => ModelErrorKind::Overloaded,
            Some(413) => ModelErrorKind::ContextOverflow,
            Some(500..) => self.overflow().unwrap_or(ModelErrorKind::Overloaded),
            Some(400 | 422) => self.named().unwrap_or(ModelErrorKind::BadRequest),
            Some(_) => ModelErrorKind::BadRequest,
            // A stream had begun, so the request itself was fine: worth another attempt unless something says otherwise.
            None => self.named().unwrap_or(ModelErrorKind::Overloaded),
        }
    }

    fn named(&self) -> Option<ModelErrorKind> {
        if let Some(overflow) = self.overflow() {
            return Some(overflow);
        }
        if self.is_quota() {
            return Some(ModelErrorKind::Quota);
        }
        self.names.iter().find_map(|name| match name.as_str() {
            "rate_limit_error" | "rate_limit_exceeded" | "too_many_requests" | "rate_limited" => {
                Some(ModelErrorKind::RateLimited)
            }
            "overloaded_error"
            | "overloaded"
            | "engine_overloaded"
            | "server_error"
            | "api_error"
            | "internal_error"
            | "internal_server_error"
            | "service_unavailable"
            | "unavailable"
            | "timeout"
            | "timeout_error" => Some(ModelErrorKind::Overloaded),
            "authentication_error"
            | "invalid_api_key"
            | "permission_error"
            | "permission_denied"
            | "unauthenticated" => Some(ModelErrorKind::Auth),
            "content_filter" | "content_policy_violation" | "moderation" => {
                Some(ModelErrorKind::Refused)
            }
            "invalid_request_error"
            | "invalid_argument"
            | "bad_request"
            | "model_not_found"
            | "not_found_error" => Some(ModelErrorKind::BadRequest),
            _ => None,
        })
    }

    fn overflow(&self) -> Option<ModelErrorKind> {
        const NAMES: [&str; 3] =
            ["context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"];
        const TEXTS: [&str; 6] = [
            "maximum context length",
            "context window",
            "context length",
            "available context size",
            "prompt is too long",
            "input is too long",
        ];
        self.says(&NAMES, &TEXTS).then_some(ModelErrorKind::ContextOverflow)
    }

    fn is_quota(&self) -> bool {
        const NAMES: [&str; 7] = [
            "insufficient_quota",
            "quota_exceeded",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
            "insufficient_balance",
            "usage_limit_reached",
        ];
        const TEXTS: [&str; 6] = [
            "exceeded your current quota",
            "insufficient balance",
            "insufficient credit",
            "credit balance is too low",
            "billing",
            "usage limit",
        ];
        self.says(&NAMES, &TEXTS)
    }

    fn says(&self, names: &[&str], texts: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        self.names.iter().any(|name| names.contains(&name.as_str()))
            || texts.iter().any(|text| message.contains(text))
    }
}

/// The wait a provider asks for. A date is read against the answer's own `Date`, so no clock has to agree with anybody's.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|value| value.parse::<u64>().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let parse = |date: &str| jiff::fmt::rfc2822::parse(date).ok().map(|date| date.timestamp());
    let wait = parse(value)?.duration_since(parse(text("date")?)?);
    Some(Duration::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests;

//! Settings of the serving half.

use std::time::Duration;

use url::Url;

use crate::fanout::FanoutLimits;

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where callers reach this server, for the card; `None` takes the host of each request, which is wrong behind a
    /// proxy.
    pub public_url: Option<Url>,
    /// The largest request body, in bytes; see [`ServerConfig::body_limit_for`].
    pub max_body_bytes: usize,
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
    /// How many agents work may have come through; more fails the task.
    pub max_hops: u32,
    /// Turns that may run at a time, over all callers.
    pub max_running: usize,
    /// How long an executor may take to return after it was told to stop; then it is dropped.
    pub cancel_grace: Duration,
    /// The pause between signs of life on a stream. Below the idle limits that proxies have.
    pub keep_alive: Duration,
    /// Bounds of the event logs.
    pub fanout: FanoutLimits,
    /// How webhooks are called.
    pub push: PushConfig,
    /// How long clients may take the card from their caches.
    pub card_max_age: Duration,
}

/// Settings of outgoing pushes.
#[derive(Debug, Clone)]
pub struct PushConfig {
    /// Whether webhooks may be plain http. Whether they may be in private ranges is up to the transport.
    pub allow_http: bool,
    /// How long one call may take.
    pub timeout: Duration,
    /// The pauses between attempts; after the last one a push is given up.
    pub pauses: Vec<Duration>,
    /// The share by which a pause may be longer, so that many do not come at once.
    pub jitter: f64,
    /// The longest pause a webhook may ask for with `Retry-After`.
    pub max_retry_after: Duration,
    /// Webhooks one task may have.
    pub max_configs: usize,
    /// Calls that may wait for one task; beyond them the oldest is given up.
    pub max_pending: usize,
}

impl ServerConfig {
    /// The body limit that lets two files of `max_file_bytes` through as base64, with room for the rest.
    pub fn body_limit_for(max_file_bytes: usize) -> usize {
        max_file_bytes.saturating_mul(8).div_ceil(3).saturating_add(4 << 20)
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            public_url: None,
            max_body_bytes: Self::body_limit_for(10 << 20),
            body_timeout: Duration::from_mins(1),
            max_hops: 3,
            max_running: 256,
            cancel_grace: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
            fanout: FanoutLimits::default(),
            push: PushConfig::default(),
            card_max_age: Duration::from_mins(1),
        }
    }
}

impl Default for PushConfig {
    fn default() -> Self {
        Self {
            allow_http: false,
            timeout: Duration::from_secs(15),
            pauses: [1, 5, 30, 120, 600, 1800].map(Duration::from_secs).to_vec(),
            jitter: 0.1,
            max_retry_after: Duration::from_hours(1),
            max_configs: 10,
            max_pending: 100,
        }
    }
}

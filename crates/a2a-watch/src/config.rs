//! Every pause and limit of the registry, as data.

use std::time::Duration;

use url::Url;
use volcanic_a2a_client::{ClientConfig, MAX_INLINE_BYTES};

/// Pauses and limits. [`WatchConfig::new`] holds the contract's values; tests over sockets scale the pauses down with
/// [`WatchConfig::scaled`].
#[derive(Debug, Clone)]
pub struct WatchConfig {
    /// Limits of a single remote call.
    pub client: ClientConfig,
    /// The largest file taken from a settled task, in bytes.
    pub max_file_bytes: u64,
    /// How much of a task's text is told in place, in bytes; hosts with a small model lower it.
    pub inline_bytes: usize,
    /// How long a watch lives, counted from its start or from its last continuation.
    pub watch_timeout: Duration,
    /// Where remotes reach our push route, without the route's own path; `None` when nothing listens there.
    pub push_base: Option<Url>,
    /// Between two reads inside `send`'s wait, where no stream is held.
    pub wait_poll: Duration,
    /// Pauses of a polling watch; the last one repeats.
    pub poll_pauses: Vec<Duration>,
    /// The largest share of a pause that is added by chance, so that many watches do not read at once.
    pub jitter: f64,
    /// Between two reads of a watch whose remote pushes.
    pub safety_read: Duration,
    /// How long a stream is held before the task is read and a new one is opened.
    pub stream_hold: Duration,
    /// Pauses before a stream that ended or failed is opened again.
    pub reopen_pauses: Vec<Duration>,
    /// After how many failures of streams in a row, with the agent there to be read, the watch polls.
    pub stream_failures: u32,
    /// Streams held at once, of all agents…
    pub max_streams: usize,
    /// …and of one origin.
    pub streams_per_origin: usize,
    /// The shortest time between two reads that pushes or streams cause.
    pub push_gap: Duration,
    /// The longest `Retry-After` that is obeyed.
    pub retry_after_cap: Duration,
    /// How often in a row a remote must deny the task before the watch ends…
    pub not_found_limit: u32,
    /// …and over how long at least.
    pub not_found_span: Duration,
    /// An agent counts as removed when two reads of the file, this far apart, do not have it.
    pub missing_gap: Duration,
    /// Between two attempts of a write or a delivery that failed.
    pub store_retry: Duration,
    /// Between the first checks of two watches after a start; none waits longer than the longest pause of polling. Calls
    /// take turns besides.
    pub restore_stagger: Duration,
    /// Pauses before each further look for a send whose outcome an earlier process left unknown; the last one repeats.
    pub lookup_pauses: Vec<Duration>,
    /// How long such a send is looked for at most, starts of the process in between included…
    pub lookup_limit: Duration,
    /// …and how long one look may take.
    pub lookup_timeout: Duration,
    /// How many messages go out from runs that deliveries started, without a message of the owner in between.
    pub unattended_sends: u32,
    /// The shortest time between two writes of a workspace's `pending.json`. Where they take long it is longer.
    pub view_gap: Duration,
    /// How often it is looked at how long the machine slept…
    pub clock_check: Duration,
    /// …and from how long on all timers are set anew.
    pub clock_drift: Duration,
    /// How long running jobs may go on at shutdown before they are dropped.
    pub shutdown_grace: Duration,
    /// Calls of watches that run at once, to all agents…
    pub max_calls: usize,
    /// …and to one origin.
    pub calls_per_origin: usize,
    /// Cards that are fetched at once for watches.
    pub max_connects: usize,
    /// Commands that may wait for the actor. Callers wait when it is full, so it only has to smooth bursts.
    pub queue: usize,
}

impl WatchConfig {
    /// The contract's values around the given limits of a call.
    pub fn new(client: ClientConfig, max_file_bytes: u64) -> Self {
        Self {
            client,
            max_file_bytes,
            inline_bytes: MAX_INLINE_BYTES,
            watch_timeout: Duration::from_hours(24),
            push_base: None,
            wait_poll: Duration::from_secs(1),
            poll_pauses: [15, 30, 60, 120, 300].map(Duration::from_secs).to_vec(),
            jitter: 0.1,
            safety_read: Duration::from_mins(10),
            stream_hold: Duration::from_mins(5),
            reopen_pauses: [1, 5, 15].map(Duration::from_secs).to_vec(),
            stream_failures: 3,
            max_streams: 512,
            streams_per_origin: 16,
            push_gap: Duration::from_secs(5),
            retry_after_cap: Duration::from_hours(1),
            not_found_limit: 3,
            not_found_span: Duration::from_mins(10),
            missing_gap: Duration::from_secs(5),
            store_retry: Duration::from_secs(2),
            restore_stagger: Duration::from_millis(100),
            lookup_pauses: [5, 15, 30].map(Duration::from_secs).to_vec(),
            lookup_limit: Duration::from_mins(2),
            lookup_timeout: Duration::from_secs(20),
            unattended_sends: 20,
            view_gap: Duration::from_secs(1),
            clock_check: Duration::from_secs(30),
            clock_drift: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(5),
            max_calls: 64,
            calls_per_origin: 4,
            max_connects: 8,
            queue: 256,
        }
    }

    /// The same with every pause multiplied by `factor`; lifetimes, limits of a call and counts stay.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        for pause in [
            &mut self.wait_poll,
            &mut self.safety_read,
            &mut self.push_gap,
            &mut self.stream_hold,
            &mut self.lookup_limit,
            &mut self.retry_after_cap,
            &mut self.not_found_span,
            &mut self.missing_gap,
            &mut self.store_retry,
            &mut self.restore_stagger,
            &mut self.view_gap,
        ]
        .into_iter()
        .chain(&mut self.poll_pauses)
        .chain(&mut self.lookup_pauses)
        .chain(&mut self.reopen_pauses)
        {
            *pause = pause.mul_f64(factor);
        }
        self
    }
}

//! How much is logged, and what of a panic.

#[cfg(test)]
mod tests;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

/// The least important events that are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Someone must act.
    Error,
    /// Unexpected, handled.
    Warn,
    /// Lifecycle.
    Info,
    /// Decisions.
    Debug,
    /// Sizes and shapes.
    Trace,
}

impl LogLevel {
    /// The level of this name, in any case.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let levels = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];
        levels
            .into_iter()
            .find(|level| level.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| "allowed are `error`, `warn`, `info`, `debug` and `trace`".to_owned())
    }

    /// The level as the log's filter writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// The directives of the log's filter: this level for us, no more than warnings for other crates, some of which write
    /// down requests at lower levels, and nothing for the one that writes down what people say to a model.
    pub fn filter(self) -> String {
        let others = if self == Self::Error { "error" } else { "warn" };
        format!("{others},volcanic={},rig=off", self.as_str())
    }
}

/// Has panics of this process go into the log instead of onto standard error, without what was put into their texts at
/// run time: that may be anything that was at hand, a key among it. The place is told, and a text that stands in the code.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        // Shown if the person who started the process asks for it (RUST_BACKTRACE). It names code, no values.
        let backtrace = Backtrace::capture();
        let backtrace =
            (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
        tracing::error!(place, text = constant_text(panic), backtrace, "panicked");
    }));
}

/// The text of a panic if nothing was put into it.
fn constant_text(panic: &PanicHookInfo<'_>) -> &'static str {
    match panic.payload().downcast_ref::<&'static str>() {
        Some(text) => text,
        None => "(withheld)",
    }
}

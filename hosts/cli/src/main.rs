//! The `volcanic` command: see [`volcanic_cli`].

use std::{io::IsTerminal as _, process::ExitCode};

use clap::Parser as _;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer as _, filter::FilterExt as _, filter::filter_fn, layer::Filter,
    layer::SubscriberExt as _, util::SubscriberInitExt as _,
};
use volcanic_cli::{Cli, CliConfig, Command, Exit, UsageError, completions, report, run};
use volcanic_host::{LogLevel, log_panics, return_large_memory};

fn main() -> ExitCode {
    return_large_memory();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misunderstood(&error),
    };
    let as_json = cli.json;
    let end = |result: anyhow::Result<Exit>| match result {
        Ok(exit) => exit.into(),
        Err(error) => report(&error, as_json).into(),
    };
    if let Command::Completions(args) = &cli.command {
        return end(completions(args));
    }
    let config = match CliConfig::load(&std::env::vars_os().collect(), cli.config.as_deref()) {
        Ok(config) => config,
        Err(error) => return end(Err(error)),
    };
    let mut lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // On a terminal NO_COLOR decides, as it does by itself.
    if !std::io::stderr().is_terminal() {
        lines.set_ansi(false);
    }
    tracing_subscriber::registry().with(lines.with_filter(logged(&config))).init();
    log_panics();
    // Libraries below us bring more than one TLS provider; this one is used wherever none is named. It fails only when
    // one is installed already, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(anyhow::Error::from(error).context("failed to start"))),
    };
    let code = end(runtime.block_on(run(cli, &config)));
    // A blocked read of the terminal must not hold the process.
    runtime.shutdown_background();
    code
}

/// Tells what is wrong with the command line, or what it asks to be told about.
fn misunderstood(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if error.use_stderr() && wants_json {
        let text = error.to_string();
        let text = text.trim_start_matches("error: ").trim_end();
        return report(&UsageError::new(text).into(), true).into();
    }
    // With nobody to read it, it is as well.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
}

/// What is logged: what `RUST_LOG` says, else `Ops__Log__Level`, else errors, and never what [`may_be_logged`] excludes. That
/// is a filter of its own: beside a directive of `RUST_LOG` that is more specific, another directive would not count.
fn logged<S: Subscriber>(config: &CliConfig) -> impl Filter<S> + use<S> {
    let level = config.log_level.unwrap_or(LogLevel::Error);
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.filter()));
    filter.and(filter_fn(may_be_logged))
}

/// Not what people write to a model, nor the frames of HTTP/2, which hold what agents say, maybe a key.
fn may_be_logged(event: &Metadata<'_>) -> bool {
    let target = event.target();
    let is_of = |name: &str| target.split("::").next() == Some(name);
    let is_frame = is_of("h2") && *event.level() > Level::INFO;
    !is_frame && !target.starts_with("rig")
}

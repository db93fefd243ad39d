//! The `volcanic` command: see [`volcanic_cli`].

use std::{io::Write as _, process::ExitCode};

use clap::Parser as _;
use tracing_subscriber::EnvFilter;
use volcanic_cli::{Cli, CliConfig, Exit, run, told};
use volcanic_host::LogLevel;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let config = match CliConfig::load(&std::env::vars_os().collect(), cli.config.as_deref()) {
        Ok(config) => config,
        Err(error) => return fail(&error, Exit::of(&error)),
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(logged(&config)).init();
    // Libraries below us bring more than one TLS provider; this one is used wherever none is named. It fails only when
    // one is installed already, which is as good.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return fail(&anyhow::Error::from(error).context("failed to start"), Exit::Failed);
        }
    };
    let code = match runtime.block_on(run(cli, &config)) {
        Ok(exit) => exit.into(),
        Err(error) => fail(&error, Exit::of(&error)),
    };
    // A blocked read of the terminal must not hold the process.
    runtime.shutdown_background();
    code
}

/// What is logged: what `RUST_LOG` says, else `Ops__Log__Level`, else errors, but never what people write to a model.
fn logged(config: &CliConfig) -> EnvFilter {
    let level = config.log_level.unwrap_or(LogLevel::Error);
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.filter()));
    match "rig=off".parse() {
        Ok(off) => filter.add_directive(off),
        Err(_) => filter,
    }
}

fn fail(error: &anyhow::Error, exit: Exit) -> ExitCode {
    // With standard error gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "volcanic: {}", told(error));
    exit.into()
}

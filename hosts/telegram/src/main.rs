//! `volcanic-telegram`: the bot.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;
use volcanic_host::{HostEnvironment, build_model, log_panics, return_large_memory};
use volcanic_telegram::{BotConfig, LoadedConfig, LogFormat, LogSettings, load_config, run_bot};

/// A personal assistant in Telegram that hands work to other agents. Settings come from the environment and
/// volcanic.toml; see docs/configuration.md.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The settings file [default: volcanic.toml in the home folder, if it is there].
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Check the settings and end: 0 when all is well, 2 when not.
    #[arg(long)]
    check: bool,
    /// Print every setting, its value and where it comes from; secrets are masked.
    #[arg(long)]
    print_config: bool,
}

/// The settings cannot be used.
const BAD_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    return_large_memory();
    let arguments = Arguments::parse();
    let variables = std::env::vars_os().collect();
    let loaded = match load_config(&variables, arguments.config.as_deref()) {
        Ok(loaded) => loaded,
        Err(error) => return refuse(&error.to_string()),
    };
    if arguments.print_config {
        print_settings(&loaded);
    }
    if let Err(error) = build_model(&loaded.config.model, &loaded.config.openai) {
        return refuse(&format!("{:#}", anyhow::Error::from(error)));
    }
    if arguments.check {
        tell_fine(&loaded.config.warnings());
    }
    if arguments.check || arguments.print_config {
        return ExitCode::SUCCESS;
    }
    start_log(loaded.config.log);
    log_panics();
    match run(loaded.config, HostEnvironment::pick(&variables)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the bot cannot go on");
            ExitCode::FAILURE
        }
    }
}

fn run(config: BotConfig, environment: HostEnvironment) -> anyhow::Result<()> {
    // An error means that somebody installed one before, which serves as well.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let bot = run_bot(config, environment, stop.clone());
        tokio::pin!(bot);
        tokio::select! {
            ended = &mut bot => return ended,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
        tokio::select! {
            ended = bot => ended,
            _ = interrupt.recv() => anyhow::bail!("interrupted a second time; what was under way is on disk"),
        }
    })
}

#[expect(
    clippy::print_stderr,
    reason = "there is no log yet, and the text is for the person who starts the bot"
)]
fn refuse(text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(BAD_SETTINGS)
}

#[expect(clippy::print_stdout, reason = "the output of --print-config")]
fn print_settings(loaded: &LoadedConfig) {
    println!("VOLCANIC_HOME = {}", loaded.config.home.display());
    for setting in &loaded.effective {
        println!("{setting}");
    }
}

#[expect(clippy::print_stdout, reason = "the output of --check")]
fn tell_fine(warnings: &[String]) {
    println!("The settings are fine.");
    for warning in warnings {
        println!("Warning: {warning}.");
    }
}

fn start_log(log: LogSettings) {
    let filter = EnvFilter::new(log.level.filter());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match log.format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

//! `volcanic-telegram`: the bot.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;
use volcanic_telegram::{
    BotConfig, HostEnvironment, LoadedConfig, LogFormat, LogLevel, LogSettings, build_model,
    load_config, run_bot,
};

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
    let arguments = Arguments::parse();
    let environment = environment();
    let loaded = match load_config(environment.clone(), arguments.config.as_deref()) {
        Ok(loaded) => loaded,
        Err(error) => return refuse(&error.to_string()),
    };
    if arguments.print_config {
        print_settings(&loaded);
    }
    if let Err(error) = build_model(&loaded.config.model) {
        return refuse(&format!("{:#}", anyhow::Error::from(error)));
    }
    if arguments.check || arguments.print_config {
        return ExitCode::SUCCESS;
    }
    start_log(loaded.config.log);
    match run(loaded.config, HostEnvironment::pick(&environment)) {
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

fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
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

fn start_log(log: LogSettings) {
    // Other crates only warn: at lower levels some of them write down requests.
    let others = if log.level == LogLevel::Error { "error" } else { "warn" };
    let filter = EnvFilter::new(format!("{others},volcanic={},rig=off", log.level.as_str()));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match log.format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}

//! The half that calls other agents: its settings, and what is wired from them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use volcanic_a2a_client::ClientConfig;
use volcanic_a2a_tool::A2aToolConfig;
use volcanic_a2a_watch::WatchConfig;
use volcanic_agent_core::Model;
use volcanic_net::{NetClient, NetConfig, NetError, RootCertificates, Transport};

/// Open files where there is no limit: more than anything here needs.
const MANY_FILES: u64 = 1 << 20;

/// Settings of the A2A client half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// How long the tool waits for an outcome before a watch takes over.
    pub wait: Duration,
    /// When a watch gives up, counted from its start.
    pub watch_timeout: Duration,
    /// How long fetching a card may take.
    pub card_timeout: Duration,
    /// Bytes of the files of one send together, and of each received file.
    pub max_file_bytes: u64,
}

impl ClientSettings {
    /// Limits of a single call.
    pub fn calls(&self) -> ClientConfig {
        ClientConfig::new(self.card_timeout, self.max_file_bytes)
    }

    /// Watches that tell outcomes to this model; nothing is pushed to them.
    pub fn watches(&self, model: &dyn Model) -> WatchConfig {
        let defaults = WatchConfig::new(self.calls(), self.max_file_bytes);
        // An eighth of the window, at four bytes for a token.
        let window = model.capabilities().context_window / 8 * 4;
        WatchConfig {
            watch_timeout: self.watch_timeout,
            inline_bytes: defaults.inline_bytes.min(usize::try_from(window).unwrap_or(usize::MAX)),
            max_streams: defaults.max_streams.min(open_files() / 4),
            ..defaults
        }
    }

    /// The tool of a conversation with this workspace, an absolute path.
    pub fn tool(&self, workspace: PathBuf) -> A2aToolConfig {
        A2aToolConfig {
            wait: self.wait,
            max_file_bytes: self.max_file_bytes,
            ..A2aToolConfig::new(workspace)
        }
    }
}

/// An error while the connections to agents are set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportSetupError {
    /// The certificates cannot be used: the owner named them, and only the owner can mend it.
    #[error("SSL_CERT_FILE is `{}`", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: NetError,
    },
    /// Something else is wrong.
    #[error("failed to set up the connections to agents")]
    Other(#[source] NetError),
}

/// How many files this process may have open, raised as far as it may raise that itself.
fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || limit.maximum.is_none() {
        let raised = Rlimit { current: limit.maximum.or(Some(MANY_FILES)), ..limit };
        // Without it there are fewer streams, no more.
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MANY_FILES);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// The connections to agents, trusting the certificates in `ca_file` instead of the system's if there is one.
///
/// # Errors
/// [`TransportSetupError`].
pub fn agent_transport(ca_file: Option<&Path>) -> Result<Arc<dyn Transport>, TransportSetupError> {
    let roots = match ca_file {
        Some(file) => RootCertificates::PemFile(file.to_owned()),
        None => RootCertificates::System,
    };
    let client = NetClient::new(NetConfig { roots, ..NetConfig::default() }).map_err(|source| {
        match ca_file {
            // Only the file can be wrong.
            Some(path) => TransportSetupError::Certificates { path: path.to_owned(), source },
            None => TransportSetupError::Other(source),
        }
    })?;
    Ok(Arc::new(client))
}

#[cfg(test)]
mod tests {
    use volcanic_agent_core::ScriptedModel;

    use super::*;

    #[test]
    fn told_text_fits_into_an_eighth_of_the_models_window() {
        let settings = ClientSettings {
            wait: Duration::ZERO,
            watch_timeout: Duration::from_hours(2),
            card_timeout: Duration::from_secs(3),
            max_file_bytes: 7,
        };
        let model = ScriptedModel::built_in();
        let window = model.capabilities().context_window;
        let config = settings.watches(&model);
        assert!(config.inline_bytes as u64 <= window / 2, "{} of {window}", config.inline_bytes);
        assert_eq!((config.watch_timeout, config.max_file_bytes), (Duration::from_hours(2), 7));
        assert_eq!(settings.tool("/w".into()).wait, Duration::ZERO);
        let files = getrlimit(Resource::Nofile);
        assert!(files.current == files.maximum, "{files:?}");
        assert!(config.max_streams <= open_files() / 4 && config.max_streams > 0);
    }
}

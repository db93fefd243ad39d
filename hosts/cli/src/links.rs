//! The way out: connections and keys, as this host allows them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use volcanic_a2a_client::{KeyError, KeyResolver, KeySource};
use volcanic_base::Secret;
use volcanic_net::{NetClient, NetConfig, RootCertificates, Transport};

use crate::{environment::Environment, exit::OrUsage as _, home::Home};

/// Where containers find their secrets.
const CONTAINER_SECRETS: &str = "/run/secrets";

/// The transport to agents.
pub(crate) fn transport(environment: &Environment) -> Result<Arc<dyn Transport>> {
    let roots = match &environment.certificates {
        Some(path) => RootCertificates::PemFile(path.clone()),
        None => RootCertificates::System,
    };
    let client = NetClient::new(NetConfig { roots, ..NetConfig::default() });
    let client = match &environment.certificates {
        // Only the file can be wrong.
        Some(path) => {
            client.with_context(|| format!("SSL_CERT_FILE is `{}`", path.display())).or_usage()?
        }
        None => client.context("failed to prepare connections")?,
    };
    Ok(Arc::new(client))
}

/// Resolves what stands for a key in agents.json: `env:A2A_KEY_…`, and `file:` under the state's `secrets/` or
/// `/run/secrets/` only.
pub(crate) fn keys(environment: &Environment, workspace: &Path) -> KeyResolver {
    let variables = environment.agent_keys.clone();
    let state = Home::of(workspace, &environment.home).map(|home| home.state.join("secrets")).ok();
    Arc::new(move |source| match source {
        KeySource::Plain(key) => Ok(key.clone()),
        KeySource::Env(name) => variables
            .get(name)
            .cloned()
            .ok_or_else(|| KeyError::new(format!("the variable {name} is not set"))),
        KeySource::File(path) => read_secret(path, state.as_deref()),
    })
}

fn read_secret(path: &Path, state: Option<&Path>) -> Result<Secret, KeyError> {
    let shown = path.display();
    let real =
        path.canonicalize().map_err(|error| KeyError::new(format!("the file {shown}: {error}")))?;
    let allowed: Vec<PathBuf> = [state, Some(Path::new(CONTAINER_SECRETS))]
        .into_iter()
        .flatten()
        .filter_map(|folder| folder.canonicalize().ok())
        .collect();
    if !allowed.iter().any(|folder| real.starts_with(folder)) {
        let state = state.map(|state| format!("{} or ", state.display())).unwrap_or_default();
        return Err(KeyError::new(format!(
            "the file {shown} is not under {state}{CONTAINER_SECRETS}"
        )));
    }
    let key = std::fs::read_to_string(&real)
        .map_err(|error| KeyError::new(format!("the file {shown}: {error}")))?;
    Ok(Secret::new(key.trim()))
}

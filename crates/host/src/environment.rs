//! What a host takes from the variables of its process besides its settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use volcanic_a2a_client::KEY_VARIABLE_PREFIX;
use volcanic_base::Secret;

/// The variables of a process, as the host read them.
pub type Variables = BTreeMap<OsString, OsString>;

/// The variables that shell commands may see. None of them holds a secret.
const SHELL_VARIABLES: [&str; 8] =
    ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TERM", "USER", "TMPDIR"];

/// What is handed on to agents' keys and to shell commands.
#[derive(Debug, Clone, Default)]
pub struct HostEnvironment {
    /// The variables that may be named as keys in `agents.json`.
    pub agent_keys: BTreeMap<String, Secret>,
    /// The environment of shell commands.
    pub shell: Vec<(OsString, OsString)>,
}

impl HostEnvironment {
    /// Picks out what may be used.
    pub fn pick(variables: &Variables) -> Self {
        let of_agents = variables.iter().filter_map(|(name, value)| {
            let name = name.to_str().filter(|name| name.starts_with(KEY_VARIABLE_PREFIX))?;
            Some((name.to_owned(), Secret::new(value.to_str()?)))
        });
        let of_shell = variables
            .iter()
            .filter(|(name, _)| SHELL_VARIABLES.iter().any(|known| name.as_os_str() == *known));
        Self {
            agent_keys: of_agents.collect(),
            shell: of_shell.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}

/// Makes a folder, and its parents, that only this user can look into.
///
/// # Errors
/// When it is not there and cannot be made.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_commands_see_no_secrets() {
        let variables = [
            ("PATH", "/bin"),
            ("HOME", "/home/x"),
            ("TELEGRAM_BOT_TOKEN", "t"),
            ("A2A_KEY_X", "k"),
            ("OPENAI_API_KEY", "o"),
        ];
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let picked = HostEnvironment::pick(&variables);
        let names: Vec<_> = picked.shell.iter().map(|(name, _)| name.as_os_str()).collect();
        assert_eq!(names, ["HOME", "PATH"]);
        assert_eq!(picked.agent_keys.keys().collect::<Vec<_>>(), ["A2A_KEY_X"]);
    }
}

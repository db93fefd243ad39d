//! Where the keys of remote agents may lie, and what shell commands may know.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use volcanic_a2a_client::{KEY_VARIABLE_PREFIX, KeyError, KeyResolver, KeySource};
use volcanic_base::{ConfineError, ConfinedDir, Secret};

/// The largest file that counts as a key.
const MAX_KEY: u64 = 64 * 1024;
/// Where container engines put secrets.
const RUN_SECRETS: &str = "/run/secrets";
/// The variables that shell commands may see. None of them holds a secret.
const SHELL_VARIABLES: [&str; 6] = ["PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER"];

/// What the host takes from the process's environment besides its settings.
#[derive(Debug, Clone, Default)]
pub struct HostEnvironment {
    /// The variables that may be named as keys in `agents.json`.
    pub agent_keys: HashMap<String, Secret>,
    /// The environment of shell commands.
    pub shell: Vec<(OsString, OsString)>,
}

impl HostEnvironment {
    /// Picks out what may be used.
    pub fn pick(environment: &[(String, String)]) -> Self {
        let of_agents =
            environment.iter().filter(|(name, _)| name.starts_with(KEY_VARIABLE_PREFIX));
        let shell = environment.iter().filter(|(name, _)| SHELL_VARIABLES.contains(&name.as_str()));
        Self {
            agent_keys: of_agents.map(|(name, value)| (name.clone(), Secret::new(value))).collect(),
            shell: shell.map(|(name, value)| (name.into(), value.into())).collect(),
        }
    }
}

/// Resolves keys: `env:` from `variables`, `file:` from `folder` (relative paths too) and the container engine's secrets.
pub(crate) fn key_resolver(variables: HashMap<String, Secret>, folder: PathBuf) -> KeyResolver {
    Arc::new(move |source| match source {
        KeySource::Plain(secret) => Ok(secret.clone()),
        KeySource::Env(name) => match variables.get(name) {
            Some(secret) if !secret.expose().trim().is_empty() => Ok(secret.clone()),
            Some(_) | None => Err(KeyError::new(format!("the variable {name} is not set"))),
        },
        KeySource::File(path) => read_key(path, &folder),
    })
}

fn read_key(path: &Path, folder: &Path) -> Result<Secret, KeyError> {
    let shown = path.display();
    let places = [folder, Path::new(RUN_SECRETS)];
    let found = if path.is_absolute() {
        places.into_iter().find_map(|place| Some((place, path.strip_prefix(place).ok()?)))
    } else {
        Some((folder, path))
    };
    let Some((place, rest)) = found else {
        return Err(KeyError::new(format!(
            "{shown} is neither in {} nor in {RUN_SECRETS}",
            folder.display()
        )));
    };
    let read = ConfinedDir::open(place).and_then(|place| place.read_to_limit(rest, MAX_KEY));
    let bytes = read.map_err(|error| match error {
        ConfineError::NotFound { .. } => KeyError::new(format!("there is no file {shown}")),
        error => KeyError::new(format!("the file {shown} cannot be read: {error}")),
    })?;
    match String::from_utf8(bytes) {
        Ok(text) if !text.trim().is_empty() => Ok(Secret::new(text.trim())),
        Ok(_) | Err(_) => Err(KeyError::new(format!("the file {shown} holds no key"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &KeySource, folder: &Path, wanted: Result<&str, &str>) {
        let variables = HashMap::from([
            ("A2A_KEY_ONE".to_owned(), Secret::new("first-key")),
            ("A2A_KEY_EMPTY".to_owned(), Secret::new(" ")),
        ]);
        let resolved = key_resolver(variables, folder.to_owned())(source);
        match (resolved, wanted) {
            (Ok(secret), Ok(wanted)) => assert_eq!(secret.expose(), wanted),
            (Err(error), Err(wanted)) => assert!(error.to_string().contains(wanted), "{error}"),
            (resolved, wanted) => panic!("{resolved:?} is not {wanted:?}"),
        }
    }

    #[test]
    fn keys_come_from_their_variables_only() {
        let folder = Path::new("/nowhere");
        check(&KeySource::Env("A2A_KEY_ONE".to_owned()), folder, Ok("first-key"));
        check(&KeySource::Env("A2A_KEY_TWO".to_owned()), folder, Err("A2A_KEY_TWO is not set"));
        check(&KeySource::Env("A2A_KEY_EMPTY".to_owned()), folder, Err("A2A_KEY_EMPTY is not set"));
        check(&KeySource::Plain(Secret::new("k")), folder, Ok("k"));
    }

    #[test]
    fn key_files_lie_in_the_secrets_folder_only() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("secrets");
        std::fs::create_dir(&folder).expect("made");
        std::fs::write(folder.join("key"), "from-file\n").expect("written");
        std::fs::write(home.path().join("outside"), "outside").expect("written");
        std::os::unix::fs::symlink("../outside", folder.join("link")).expect("linked");
        let file = |path: PathBuf| KeySource::File(path);
        check(&file(folder.join("key")), &folder, Ok("from-file"));
        check(&file("key".into()), &folder, Ok("from-file"));
        check(&file("gone".into()), &folder, Err("there is no file gone"));
        check(&file("link".into()), &folder, Err("cannot be read"));
        check(&file("../outside".into()), &folder, Err("cannot be read"));
        check(&file(home.path().join("outside")), &folder, Err("is neither in"));
    }

    #[test]
    fn shell_commands_see_no_secrets() {
        let variables = [
            ("PATH", "/bin"),
            ("TELEGRAM_BOT_TOKEN", "t"),
            ("A2A_KEY_X", "k"),
            ("OPENAI_API_KEY", "o"),
        ];
        let environment: Vec<_> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let picked = HostEnvironment::pick(&environment);
        assert_eq!(picked.shell, [(OsString::from("PATH"), OsString::from("/bin"))]);
        assert_eq!(picked.agent_keys.keys().collect::<Vec<_>>(), ["A2A_KEY_X"]);
    }
}

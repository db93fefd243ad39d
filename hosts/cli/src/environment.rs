//! What the process was told by its environment: read once, here and nowhere else.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

use anyhow::Result;
use volcanic_base::{Secret, parse_duration, parse_size};

use crate::exit::UsageError;

/// The settings the command line honours. Both `Enabled` switches of the configuration are the bot's alone.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Where state is kept: `VOLCANIC_HOME`, else `~/.volcanic`.
    pub home: PathBuf,
    /// `OPENAI_API_KEY`, or the content of `OPENAI_API_KEY_FILE`.
    pub openai_key: Option<Secret>,
    /// `OPENAI_BASE_URL`.
    pub openai_base: Option<String>,
    /// `A2AClient__WaitSeconds` (60): how long `send` of the assistant waits before a watch takes over.
    pub wait: Duration,
    /// `A2AClient__WatchTimeout` (1d): when a watch gives up.
    pub watch_timeout: Duration,
    /// `A2AClient__CardTimeoutSeconds` (10): how long a card may take.
    pub card_timeout: Duration,
    /// `A2AClient__MaxFileBytes` (10MB): the largest file sent or received.
    pub max_file_bytes: u64,
    /// `SSL_CERT_FILE`: replaces the system's root certificates.
    pub certificates: Option<PathBuf>,
    /// What shell commands of the assistant get to see: none of the above.
    pub shell: Vec<(OsString, OsString)>,
    /// Variables whose names begin with `A2A_KEY_`, for `env:` keys in agents.json.
    pub agent_keys: BTreeMap<String, Secret>,
}

/// Names that shell commands inherit; everything else may be a key.
const SHELL: &[&str] = &["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TERM", "USER", "TMPDIR"];

impl Environment {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// All faults at once, each naming its variable, what was read (never a secret) and what is allowed.
    pub fn read() -> Result<Self> {
        Self::from_variables(std::env::vars_os().collect())
    }

    fn from_variables(variables: Vec<(OsString, OsString)>) -> Result<Self> {
        let shell = variables
            .iter()
            .filter(|(name, _)| name.to_str().is_some_and(|name| SHELL.contains(&name)))
            .cloned()
            .collect();
        let mut reader = Reader::new(variables);
        let home = reader.take("VOLCANIC_HOME").map(PathBuf::from);
        let home =
            home.or_else(|| reader.take("HOME").map(|home| PathBuf::from(home).join(".volcanic")));
        if home.is_none() {
            reader.fault("VOLCANIC_HOME and HOME are both unset: set VOLCANIC_HOME to a folder for the state".to_owned());
        }
        let environment = Self {
            home: home.unwrap_or_default(),
            openai_key: reader.secret("OPENAI_API_KEY"),
            openai_base: reader.take("OPENAI_BASE_URL"),
            wait: reader.seconds("A2AClient__WaitSeconds", 60, 600),
            watch_timeout: reader.parsed(
                "A2AClient__WatchTimeout",
                Duration::from_hours(24),
                parse_duration,
            ),
            card_timeout: reader.seconds("A2AClient__CardTimeoutSeconds", 10, 60),
            max_file_bytes: reader.parsed("A2AClient__MaxFileBytes", 10 << 20, parse_size),
            certificates: reader.take("SSL_CERT_FILE").map(PathBuf::from),
            shell,
            agent_keys: reader.agent_keys(),
        };
        reader.end(environment)
    }
}

/// Takes variables out and gathers what is wrong with them.
struct Reader {
    /// By name in lower case: names are the same in any case.
    values: BTreeMap<String, (String, String)>,
    faults: Vec<String>,
}

impl Reader {
    fn new(variables: Vec<(OsString, OsString)>) -> Self {
        let mut reader = Self { values: BTreeMap::new(), faults: Vec::new() };
        for (name, value) in variables {
            // Names and values of ours are text; whatever is not, is not ours.
            let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else { continue };
            if value.is_empty() {
                continue;
            }
            let twin = reader.values.insert(name.to_ascii_lowercase(), (name.clone(), value));
            if let Some((twin, _)) = twin.filter(|_| is_ours(&name)) {
                reader.fault(format!("{name} and {twin} are the same setting: keep one"));
            }
        }
        reader
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.values.remove(&name.to_ascii_lowercase()).map(|(_, value)| value)
    }

    fn parsed<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        let Some(value) = self.take(name) else { return default };
        parse(&value).unwrap_or_else(|error| {
            self.fault(format!("{name} is `{value}`: {error}"));
            default
        })
    }

    fn seconds(&mut self, name: &str, default: u64, most: u64) -> Duration {
        let seconds = self.parsed(name, default, |value| {
            let seconds = value.parse().ok().filter(|seconds| *seconds <= most);
            seconds.ok_or_else(|| format!("a whole number of seconds up to {most} is allowed"))
        });
        Duration::from_secs(seconds)
    }

    fn secret(&mut self, name: &str) -> Option<Secret> {
        let file = format!("{name}_FILE");
        match (self.take(name), self.take(&file)) {
            (Some(_), Some(_)) => {
                self.fault(format!("{name} and {file} are both set: keep one"));
                None
            }
            (Some(value), None) => Some(Secret::new(value)),
            (None, Some(path)) => match std::fs::read_to_string(&path) {
                Ok(value) => Some(Secret::new(value.trim())),
                Err(error) => {
                    self.fault(format!("{file} is `{path}`: {error}"));
                    None
                }
            },
            (None, None) => None,
        }
    }

    fn agent_keys(&self) -> BTreeMap<String, Secret> {
        let named = self.values.values().filter(|(name, _)| name.starts_with("A2A_KEY_"));
        named.map(|(name, value)| (name.clone(), Secret::new(value.clone()))).collect()
    }

    fn fault(&mut self, text: String) {
        self.faults.push(text);
    }

    fn end(mut self, environment: Environment) -> Result<Environment> {
        let unknown: Vec<_> = self
            .values
            .values()
            .filter(|(name, _)| is_client_section(name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in unknown {
            if name.eq_ignore_ascii_case("A2AClient__Enabled") {
                continue; // the bot's switch; here the client is always on
            }
            self.fault(format!(
                "{name} is not a setting: there are A2AClient__WaitSeconds, A2AClient__WatchTimeout, A2AClient__CardTimeoutSeconds and A2AClient__MaxFileBytes"
            ));
        }
        if self.faults.is_empty() {
            return Ok(environment);
        }
        self.faults.sort();
        let faults = self.faults.join("\n  ");
        Err(UsageError::new(format!("the environment cannot be used:\n  {faults}")).into())
    }
}

fn is_ours(name: &str) -> bool {
    is_client_section(name) || name.eq_ignore_ascii_case("VOLCANIC_HOME")
}

fn is_client_section(name: &str) -> bool {
    name.get(..11).is_some_and(|section| section.eq_ignore_ascii_case("A2AClient__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment> {
        Environment::from_variables(
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        )
    }

    #[test]
    fn all_faults_are_told_at_once_and_without_secrets() {
        let error = read(&[
            ("HOME", "/home/x"),
            ("a2aclient__waitseconds", "soon"),
            ("A2AClient__WatchTimeout", "90"),
            ("A2AClient__PushBaseUrl", "http://x"),
            ("OPENAI_API_KEY", "sk-very-secret"),
            ("OPENAI_API_KEY_FILE", "/nowhere"),
        ])
        .unwrap_err()
        .to_string();
        for part in [
            "A2AClient__WaitSeconds is `soon`",
            "A2AClient__WatchTimeout is `90`",
            "A2AClient__PushBaseUrl",
            "OPENAI_API_KEY_FILE",
        ] {
            assert!(error.contains(part), "{part} is missing: {error}");
        }
        assert!(!error.contains("sk-very-secret"), "{error}");
    }

    #[test]
    fn names_are_the_same_in_any_case_and_empty_is_unset() {
        let environment =
            read(&[("HOME", "/home/x"), ("A2ACLIENT__WAITSECONDS", "0"), ("VOLCANIC_HOME", "")])
                .unwrap();
        assert_eq!(
            (environment.wait, environment.home),
            (Duration::ZERO, PathBuf::from("/home/x/.volcanic"))
        );
    }

    #[test]
    fn twins_are_refused() {
        let error = read(&[
            ("HOME", "/x"),
            ("A2AClient__WaitSeconds", "1"),
            ("A2ACLIENT__WAITSECONDS", "2"),
        ]);
        assert!(error.unwrap_err().to_string().contains("are the same setting"));
    }

    #[test]
    fn shell_commands_see_no_keys() {
        let environment = read(&[
            ("HOME", "/x"),
            ("PATH", "/bin"),
            ("OPENAI_API_KEY", "k"),
            ("A2A_KEY_BOB", "k"),
        ]);
        let names: Vec<_> = environment.unwrap().shell.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["HOME", "PATH"]);
    }
}

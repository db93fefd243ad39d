//! What a host takes from the variables of its process besides its settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use rustix::fs::Access;
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

/// Makes a folder, and its parents, that only this user can look into, durably.
///
/// # Errors
/// When it is not there and cannot be made.
pub fn private_folder(path: &Path) -> io::Result<()> {
    volcanic_base::create_folders(path, 0o700)
}

/// Whether [`private_folder`] would come to a folder that can be written into; makes nothing.
///
/// # Errors
/// What making it, or a first file in it, would fail with.
pub fn check_private_folder(path: &Path) -> io::Result<()> {
    let there = path.ancestors().find_map(|folder| match folder.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(error)),
        // A link that leads nowhere is in the way, too.
        Ok(_) => Some(folder.metadata().map(|found| (folder, found.is_dir()))),
    });
    match there.transpose()? {
        Some((folder, true)) => Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?),
        Some((_, false)) => Err(io::ErrorKind::NotADirectory.into()),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt as _;

    use super::*;

    #[test]
    fn a_folder_that_cannot_be_made_is_found_out_without_making_it() {
        let home = tempfile::tempdir().expect("a folder");
        let at = |name: &str| home.path().join(name);
        std::fs::write(at("file"), "").expect("written");
        std::os::unix::fs::symlink("nowhere", at("link")).expect("linked");
        check_private_folder(&at("new/telegram")).expect("it can be made");
        check_private_folder(home.path()).expect("it is there");
        assert!(!at("new").exists());
        for wrong in ["file", "file/telegram", "link/telegram"] {
            assert!(check_private_folder(&at(wrong)).is_err(), "{wrong}");
            assert!(private_folder(&at(wrong)).is_err(), "{wrong}");
        }
        // Root may do it all the same, and then both say so.
        DirBuilder::new().mode(0o500).create(at("closed")).expect("made");
        let checked = check_private_folder(&at("closed/telegram")).is_ok();
        assert_eq!(checked, private_folder(&at("closed/telegram")).is_ok());
    }

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

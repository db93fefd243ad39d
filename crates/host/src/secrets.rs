//! Where the keys of remote agents may lie.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use volcanic_a2a_client::{KeyError, KeyResolver, KeySource};
use volcanic_base::{ConfineError, ConfinedDir, Secret};

/// The largest file that counts as a key.
const MAX_KEY: u64 = 64 * 1024;
/// Where container engines put secrets.
const RUN_SECRETS: &str = "/run/secrets";
/// Resolves keys: `env:` from `variables`, `file:` from `folder` (relative paths too) and the container engine's secrets.
pub fn key_resolver(variables: BTreeMap<String, Secret>, folder: PathBuf) -> KeyResolver {
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
    let Some((place, rest)) = place_of(path, folder) else {
        return Err(KeyError::new(format!(
            "the file {shown} is not under {} or {RUN_SECRETS}",
            folder.display()
        )));
    };
    let read = ConfinedDir::open(place).and_then(|place| place.read_to_limit(rest, MAX_KEY));
    let bytes = read.map_err(|error| match error {
        ConfineError::NotFound { .. } => {
            KeyError::new(format!("there is no file {}", folder.join(path).display()))
        }
        error => KeyError::new(format!("the file {shown} cannot be read: {error}")),
    })?;
    match String::from_utf8(bytes) {
        Ok(text) if !text.trim().is_empty() => Ok(Secret::new(text.trim())),
        Ok(_) | Err(_) => Err(KeyError::new(format!("the file {shown} holds no key"))),
    }
}

/// The allowed place that a path leads into, and the way on from there.
fn place_of(path: &Path, folder: &Path) -> Option<(PathBuf, PathBuf)> {
    if path.is_relative() {
        return Some((folder.to_owned(), path.to_owned()));
    }
    let places = [folder, Path::new(RUN_SECRETS)];
    let below = |place: &Path, path: &Path| {
        Some((place.to_owned(), path.strip_prefix(place).ok()?.to_owned()))
    };
    let written = places.into_iter().find_map(|place| below(place, path));
    written.or_else(|| {
        // Another name for the same place, such as `/var/run/secrets`.
        let real = path.canonicalize().ok()?;
        places.into_iter().find_map(|place| below(&place.canonicalize().ok()?, &real))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &KeySource, folder: &Path, wanted: Result<&str, &str>) {
        let variables = BTreeMap::from([
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
        std::os::unix::fs::symlink(&folder, home.path().join("alias")).expect("linked");
        check(&file(home.path().join("alias/key")), &folder, Ok("from-file"));
        check(&file(home.path().join("alias/link")), &folder, Err("is not under"));
        let gone = folder.join("gone").display().to_string();
        check(&file("gone".into()), &folder, Err(&format!("there is no file {gone}")));
        check(&file("link".into()), &folder, Err("cannot be read"));
        check(&file("../outside".into()), &folder, Err("cannot be read"));
        check(&file(home.path().join("outside")), &folder, Err("is not under"));
    }
}

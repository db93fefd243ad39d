//! A workspace with something around it that nobody may touch.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::json;
use tempfile::TempDir;
use volcanic_testkit::{Measured, Program};

/// The binary under test.
const VOLCANIC: &str = env!("CARGO_BIN_EXE_volcanic");

/// How long a command may take before a test gives it up.
const SOON: Duration = Duration::from_secs(90);

/// A key that must be seen nowhere.
pub(crate) const KEY: &str = "k_planted_7d1e5b90";

/// Where what the agent sends may go.
pub(crate) const INBOX: &str = "workspace/inbox/a2a/demo";

/// Folders of one run: a workspace, a home, and files beside them and in them that nobody may touch.
pub(crate) struct Scene {
    folder: TempDir,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) is_file: bool,
    pub(crate) mode: u32,
    /// Of a file.
    pub(crate) bytes: Vec<u8>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { folder: TempDir::new().unwrap() };
        for file in [
            "canary",
            "workspace/canary.txt",
            "workspace/.bashrc",
            "workspace/AGENTS.md",
            "workspace/inbox/canary.txt",
            "workspace/inbox/a2a/other/canary.txt",
            "workspace/.volcanic/a2a/tasks/canary.json",
        ] {
            scene.write(file, "untouched");
        }
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes an agent known to the workspace as `demo`.
    pub(crate) fn knows(&self, url: &str, has_key: bool) {
        let mut agents = json!([{"name": "demo", "url": url}]);
        if has_key {
            agents[0]["key"] = KEY.into();
        }
        self.write("workspace/.volcanic/a2a/agents.json", &agents.to_string());
    }

    pub(crate) fn program(&self) -> Program {
        Program::new("volcanic", VOLCANIC)
            .env("VOLCANIC_HOME", self.path("home"))
            .current_dir(self.path("workspace"))
    }

    pub(crate) async fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Measured {
        let mut program = self.program().args(arguments);
        for (name, value) in variables {
            program = program.env(name, *value);
        }
        program.measure(SOON).await.unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// Everything there is, by its path; no link is followed.
    pub(crate) fn tree(&self) -> BTreeMap<String, Standing> {
        let mut found = BTreeMap::new();
        walk(self.folder.path(), "", &mut found).unwrap();
        found
    }
}

fn walk(folder: &Path, path: &str, found: &mut BTreeMap<String, Standing>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{path}{}", entry.file_name().to_str().expect("a name that is text"));
        let metadata = fs::symlink_metadata(entry.path())?;
        if metadata.is_dir() {
            walk(&entry.path(), &format!("{name}/"), found)?;
        }
        let bytes = if metadata.is_file() { fs::read(entry.path())? } else { Vec::new() };
        let mode = metadata.permissions().mode() & 0o7777;
        found.insert(name, Standing { is_file: metadata.is_file(), mode, bytes });
    }
    Ok(())
}

//! Whatever an agent calls its files, each becomes a plain file of its own in the inbox.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use proptest::{collection::vec, prelude::*, sample::select};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use volcanic_a2a_client::{RemoteAgent, SavedOutcome};
use volcanic_a2a_types::{Artifact, Part, Task, TaskState, TaskStatus};
use volcanic_base::ConfinedDir;
use volcanic_testkit::{HostileAgent, HostileTrick};

use crate::hostile::connect;

const INBOX: &str = "inbox/a2a/bot";

/// Pieces that mean something to some system.
const PIECES: [&str; 40] = [
    "/",
    "\\",
    "..",
    ".",
    "../",
    "..\\",
    "~",
    "-",
    " ",
    "\0",
    "\n",
    "\r",
    "\t",
    ":",
    "*",
    "?",
    "\"",
    "<",
    ">",
    "|",
    "CON",
    "nul",
    "Com1",
    "AUX.",
    ".txt",
    ".TXT",
    "a",
    "A",
    "plan",
    "PLAN",
    "-2",
    "-3",
    "é",
    "e\u{301}",
    "\u{202e}",
    "\u{2066}",
    "\u{feff}",
    "\u{1f4a9}",
    "$DATA",
    "%2f",
];

/// Names that others may have taken already.
const TAKEN: [&str; 8] =
    ["plan.txt", "PLAN.TXT", "plan-2.txt", "file", "File-2", "a", "_con", "canary.txt"];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        // Few names, so that many are the same.
        3 => select(TAKEN.to_vec()).prop_map(str::to_owned),
        4 => vec(select(PIECES.to_vec()), 0..8).prop_map(|pieces| pieces.concat()),
        2 => any::<String>(),
        1 => vec(any::<u8>(), 0..40).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        1 => (select(vec!["x", "é", "\u{1f4a9}", ".", "-"]), 20_usize..400, select(vec!["", ".txt", ".a/b"]))
            .prop_map(|(letter, count, end)| format!("{}{end}", letter.repeat(count))),
    ]
}

/// The agent whose tasks these are; it is asked for its card and nothing more.
static REMOTE: LazyLock<RemoteAgent> = LazyLock::new(|| {
    Runtime::new().unwrap().block_on(async {
        let agent = HostileAgent::start(HostileTrick::None).await.unwrap();
        connect(&agent).await
    })
});

/// What stands in the inbox before: a file, a link that leads out, or a folder.
#[derive(Debug, Clone, Copy)]
enum Standing {
    File,
    Link,
    Folder,
}

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![Just(Standing::File), Just(Standing::Link), Just(Standing::Folder)]
}

struct Place {
    outer: TempDir,
    workspace: ConfinedDir,
}

impl Place {
    fn new() -> Self {
        let outer = TempDir::new().unwrap();
        let path = outer.path().join("workspace");
        fs::create_dir_all(path.join(INBOX)).unwrap();
        fs::write(outer.path().join("canary.txt"), "untouched").unwrap();
        fs::write(path.join("canary.txt"), "untouched").unwrap();
        fs::write(path.join("inbox/canary.txt"), "untouched").unwrap();
        Self { workspace: ConfinedDir::open(path).unwrap(), outer }
    }

    fn inbox(&self) -> PathBuf {
        self.workspace.path().join(INBOX)
    }

    fn put(&self, name: &str, standing: Standing) {
        let path = self.inbox().join(name);
        // A name that was given twice is taken by the first.
        let _ = match standing {
            Standing::File if path.symlink_metadata().is_err() => fs::write(path, "was here"),
            Standing::Link => symlink(self.outer.path().join("canary.txt"), path),
            Standing::Folder => fs::create_dir(path),
            Standing::File => Ok(()),
        };
    }

    fn save(&self, files: &[(String, Vec<u8>)]) -> SavedOutcome {
        let parts = files.iter().map(|(name, bytes)| {
            Part::raw(bytes.clone(), "application/octet-stream", name.as_str())
        });
        let mut task = Task::new("t", "c", TaskStatus::new(TaskState::Completed));
        task.artifacts = vec![Artifact::new("a", parts.collect())];
        REMOTE.outcome_of(task, 1 << 20).save(&self.workspace, "bot")
    }

    /// Everything outside of the inbox, and what stood in it before, with its content.
    fn tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk(self.outer.path(), &mut found);
        found
    }
}

fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_dir() {
            walk(&path, found);
        }
        let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.insert(path, content);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_name_is_a_plain_file_of_its_own_in_the_inbox(
        names in vec(name(), 1..20),
        before in vec((select(TAKEN.to_vec()), standing()), 0..6),
    ) {
        let place = Place::new();
        for (name, standing) in before {
            place.put(name, standing);
        }
        let was = place.tree();
        let files: Vec<_> = names.into_iter().enumerate()
            .map(|(number, name)| (name, format!("content {number}").into_bytes()))
            .collect();
        let saved = place.save(&files);
        prop_assert_eq!(saved.saved.len(), files.len(), "{:?}", saved);
        let mut now = place.tree();
        for (path, (name, bytes)) in saved.saved.iter().zip(&files) {
            let path = place.workspace.path().join(path);
            let inbox = place.inbox();
            prop_assert_eq!(path.parent(), Some(inbox.as_path()), "{:?}", name);
            let metadata = path.symlink_metadata().unwrap();
            prop_assert!(metadata.is_file() && metadata.nlink() == 1, "{:?}: {:?}", name, metadata);
            prop_assert_eq!(metadata.mode() & 0o7777, 0o600, "{:?}", name);
            prop_assert!(path.file_name().unwrap().len() <= 255, "{:?}", name);
            // Each is there once, with its own content, and had no place before.
            let content = now.remove(&path);
            prop_assert_eq!(content.as_ref(), Some(bytes), "{:?}", name);
            prop_assert!(!was.contains_key(&path), "{:?} was overwritten", path);
        }
        prop_assert_eq!(now, was, "something else was written");
        let folded: Vec<_> = saved.saved.iter().map(|path| path.to_lowercase()).collect();
        let different: std::collections::BTreeSet<_> = folded.iter().collect();
        prop_assert_eq!(different.len(), folded.len(), "{:?}", saved.saved);
    }

    #[test]
    fn the_same_name_again_gets_two_three_and_so_on(name in name(), count in 2_usize..8) {
        let place = Place::new();
        let files: Vec<_> =
            (0..count).map(|number| (name.clone(), format!("{number}").into_bytes())).collect();
        let saved = place.save(&files).saved;
        let first = saved[0].strip_prefix(INBOX).unwrap();
        for (number, path) in saved.iter().enumerate().skip(1) {
            let path = path.strip_prefix(INBOX).unwrap();
            let mark = format!("-{}", number + 1);
            let is_first = |(at, _): (usize, &str)| format!("{}{}", &path[..at], &path[at + mark.len()..]) == first;
            prop_assert!(path.match_indices(&mark).any(is_first), "{} after {}", path, first);
        }
    }
}

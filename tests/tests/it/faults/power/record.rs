//! Recorded lives: what they did to their disk and what they told the world, in one order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use volcanic_base::Chance;
use volcanic_testkit::{Program, drawn_below, drawn_from};

use super::disk::Disk;
use super::life::{self, Life};
use super::promises::Promises;
use super::state;
use super::{LIFETIME, one_in};
use crate::assistant::Home;
use crate::remote::Remote;

/// Processes that one life takes, all but the last killed.
const LIVES: usize = 4;

/// One operation. Paths are relative to the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operation {
    Create { inode: u64, path: String },
    Write { inode: u64, at: usize, data: Vec<u8> },
    Resize { inode: u64, size: usize },
    Sync { inode: u64, times: bool },
    SyncFolder { path: String },
    Rename { from: String, to: String },
    Link { from: String, to: String },
    Remove { path: String },
    Folder { path: String },
    Sent { data: Vec<u8> },
}

/// What stood there before the first life, flushed.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    pub(super) files: BTreeMap<String, (u64, Vec<u8>)>,
    pub(super) folders: BTreeSet<String>,
}

/// Some lives in a row over one home.
pub(super) struct Record {
    name: String,
    life: Life,
    home: Home,
    before: Before,
    operations: Vec<Operation>,
    /// Every name that a file had, by its inode at that time.
    names: HashMap<u64, BTreeSet<String>>,
    /// Right behind something that was told.
    announced: Vec<usize>,
    /// Where something is not flushed.
    unflushed: Vec<usize>,
}

/// Compiles the shim with the system's C compiler.
pub(super) fn build_shim(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim/record.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
        .args([&folder.join("record.so"), &source])
        .arg("-ldl")
        .status()
        .unwrap();
    assert!(status.success(), "the C compiler refuses {}", source.display());
}

/// Kills a life right behind any of its operations, or one of those that are seldom: what is made, named and removed.
fn end_early(program: Program, chance: &Chance) -> Program {
    if one_in(chance, 2) {
        let at = 1 + drawn_below(chance, 500);
        return program.env("RECORD_KILL_AT", at.to_string());
    }
    let (kind, of) = *drawn_from(chance, &[("M", 4), ("C", 12), ("R", 8), ("U", 4), ("D", 12)]);
    let at = 1 + drawn_below(chance, of);
    program.env("RECORD_KILL_AT", at.to_string()).env("RECORD_KILL_OF", kind)
}

/// Records a life that is killed some times on its way.
pub(super) async fn record(remote: &Remote, shim: &Path, life: Life, chance: &Chance) -> Record {
    let home = Home::with(remote);
    let before = Before::of(home.root());
    let log = shim.join(format!("{}.log", life.name()));
    let screen = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = screen.local_addr().unwrap();
    // Whoever looks at the screen keeps nothing: the record has it.
    let mut looking = JoinSet::new();
    looking.spawn(async move {
        while let Ok((mut watched, _)) = screen.accept().await {
            let _ = tokio::io::copy(&mut watched, &mut tokio::io::sink()).await;
        }
    });
    for number in 0..LIVES {
        let mut program = Program::new("a recorded life", std::env::current_exe().unwrap())
            .args(["--exact", life::TEST, "--nocapture", "--test-threads=1"])
            .env("LD_PRELOAD", shim.join("record.so"))
            .env("RECORD_UNDER", home.root())
            .env("RECORD_LOG", &log)
            .env(life::SCRIPT, life.script(home.root(), address));
        let is_last = number + 1 == LIVES;
        if !is_last {
            program = end_early(program, chance);
        }
        let (status, said) = program.start().unwrap().finish(LIFETIME).await.unwrap();
        let is_killed = !is_last && status.signal() == Some(9);
        assert!(status.success() || is_killed, "{status}: {said:#?}");
    }
    let record = Record::new(life, home, before, parse(&std::fs::read(log).unwrap()));
    let mut promises = Promises::default();
    for operation in record.operations() {
        promises.hear(operation);
    }
    // What is not seen to be sent cannot be judged.
    let ours = state::messages(&record.home.database());
    for received in remote.received() {
        let is_ours = ours.contains(&received.message_id);
        assert!(!is_ours || promises.sent.contains(&received.message_id), "{received:?}");
    }
    record
}

/// The same operations with a number of its own for each file: the system gives that of a file that is gone to the next one.
fn told_apart(mut operations: Vec<Operation>) -> Vec<Operation> {
    // Above all numbers that a system gives; those of files that were there before stay.
    const GENERATION: u64 = 1 << 48;
    let mut created: HashMap<u64, u64> = HashMap::new();
    for operation in &mut operations {
        match operation {
            Operation::Create { inode, .. } => {
                let times = created.entry(*inode).or_default();
                *times += 1;
                *inode += *times * GENERATION;
            }
            Operation::Write { inode, .. }
            | Operation::Resize { inode, .. }
            | Operation::Sync { inode, .. } => {
                *inode += created.get(inode).copied().unwrap_or_default() * GENERATION;
            }
            Operation::SyncFolder { .. }
            | Operation::Rename { .. }
            | Operation::Link { .. }
            | Operation::Remove { .. }
            | Operation::Folder { .. }
            | Operation::Sent { .. } => {}
        }
    }
    operations
}

impl Record {
    fn new(life: Life, home: Home, before: Before, operations: Vec<Operation>) -> Self {
        let root = format!("{}/", home.root().display());
        let operations = operations.into_iter().map(|operation| operation.below(&root)).collect();
        let operations = told_apart(operations);
        let mut record = Self {
            name: life.name().to_owned(),
            life,
            home,
            before,
            operations,
            names: HashMap::new(),
            announced: Vec::new(),
            unflushed: Vec::new(),
        };
        record.index();
        record
    }

    fn index(&mut self) {
        let mut now: HashMap<String, u64> = HashMap::new();
        for (path, (inode, _)) in &self.before.files {
            now.insert(path.clone(), *inode);
        }
        let mut promises = Promises::default();
        let mut disk = Disk::new(&self.before);
        for (place, operation) in (1..).zip(&self.operations) {
            disk.apply(operation);
            if disk.has_unflushed() {
                self.unflushed.push(place);
            }
            match operation {
                Operation::Create { inode, path } => {
                    now.insert(path.clone(), *inode);
                    self.names.entry(*inode).or_default().insert(path.clone());
                }
                Operation::Rename { from, to } | Operation::Link { from, to } => {
                    if let Some(inode) = now.get(from).copied() {
                        now.insert(to.clone(), inode);
                        self.names.entry(inode).or_default().insert(to.clone());
                    }
                }
                Operation::Sent { .. } if promises.hear(operation) => self.announced.push(place),
                _ => {}
            }
        }
    }

    /// The same without some of its operations.
    pub(super) fn without(&self, is_left_out: fn(&Self, &Operation) -> bool) -> Self {
        let left = self.operations.iter().filter(|operation| !is_left_out(self, operation));
        let mut record = Self {
            name: self.name.clone(),
            life: self.life.clone(),
            home: self.home.clone(),
            before: self.before.clone(),
            operations: left.cloned().collect(),
            names: HashMap::new(),
            announced: Vec::new(),
            unflushed: Vec::new(),
        };
        record.index();
        record
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn life(&self) -> &Life {
        &self.life
    }

    pub(super) fn home(&self) -> &Path {
        self.home.root()
    }

    pub(super) fn before(&self) -> &Before {
        &self.before
    }

    pub(super) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Whether a file ever had a name that begins so.
    pub(super) fn is_name_of(&self, inode: u64, name: &str) -> bool {
        self.names.get(&inode).is_some_and(|names| names.iter().any(|had| had.starts_with(name)))
    }

    /// What is promised somewhere in it.
    pub(super) fn kinds(&self) -> Vec<&'static str> {
        let mut promises = Promises::default();
        for operation in &self.operations {
            promises.hear(operation);
        }
        let is_inbox = |operation: &Operation| match operation {
            Operation::Rename { to, .. } => to.starts_with("workspace/inbox/"),
            _ => false,
        };
        let file = self.operations.iter().any(is_inbox).then_some("file");
        promises.kinds().into_iter().chain(file).collect()
    }

    /// Of the cuts a third is anywhere, a third right behind something that was told, a third where the disk may lose
    /// something.
    pub(super) fn drawn_cut(&self, chance: &Chance) -> usize {
        match drawn_below(chance, 3) {
            1 if !self.announced.is_empty() => *drawn_from(chance, &self.announced),
            2 if !self.unflushed.is_empty() => *drawn_from(chance, &self.unflushed),
            _ => drawn_below(chance, self.operations.len() + 1),
        }
    }
}

impl Before {
    fn of(root: &Path) -> Self {
        let mut before = Self::default();
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(root.join(&folder)).unwrap() {
                let entry = entry.unwrap();
                let path = folder.join(entry.file_name());
                let name = path.to_str().unwrap().to_owned();
                if entry.file_type().unwrap().is_dir() {
                    before.folders.insert(name);
                    folders.push(path);
                } else {
                    let inode = entry.metadata().unwrap().ino();
                    before.files.insert(name, (inode, std::fs::read(entry.path()).unwrap()));
                }
            }
        }
        before
    }
}

impl Operation {
    fn below(self, root: &str) -> Self {
        let below = |path: String| path.strip_prefix(root).unwrap_or_default().to_owned();
        match self {
            Self::Create { inode, path } => Self::Create { inode, path: below(path) },
            Self::SyncFolder { path } => Self::SyncFolder { path: below(path) },
            Self::Rename { from, to } => Self::Rename { from: below(from), to: below(to) },
            Self::Link { from, to } => Self::Link { from: below(from), to: below(to) },
            Self::Remove { path } => Self::Remove { path: below(path) },
            Self::Folder { path } => Self::Folder { path: below(path) },
            Self::Write { .. } | Self::Resize { .. } | Self::Sync { .. } | Self::Sent { .. } => {
                self
            }
        }
    }
}

/// Reads what the shim wrote; how it looks stands there.
fn parse(mut log: &[u8]) -> Vec<Operation> {
    let mut operations = Vec::new();
    while !log.is_empty() {
        let (head, rest) = log.split_at(25);
        let number =
            |at: usize| usize::try_from(u64::from_ne_bytes(head[at..at + 8].try_into().unwrap()));
        let length = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().unwrap()) as usize;
        let (inode, place) = (number(1).unwrap() as u64, number(9).unwrap());
        let (one, rest) = rest.split_at(length(17));
        let (two, rest) = rest.split_at(length(21));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        operations.push(match head[0] {
            b'C' => Operation::Create { inode, path: text(one) },
            b'W' => Operation::Write { inode, at: place, data: two.to_vec() },
            b'T' => Operation::Resize { inode, size: place },
            b'S' => Operation::Sync { inode, times: true },
            b'F' => Operation::Sync { inode, times: false },
            b'D' => Operation::SyncFolder { path: text(one) },
            b'R' => Operation::Rename { from: text(one), to: text(two) },
            b'L' => Operation::Link { from: text(one), to: text(two) },
            b'U' => Operation::Remove { path: text(one) },
            b'M' => Operation::Folder { path: text(one) },
            b'N' => Operation::Sent { data: two.to_vec() },
            kind => panic!("a record of the unknown kind {kind}"),
        });
        log = rest;
    }
    operations
}

#[test]
fn a_file_that_has_the_number_of_one_that_is_gone_is_another() {
    let create = |inode, path: &str| Operation::Create { inode, path: path.to_owned() };
    let sync = |inode| Operation::Sync { inode, times: true };
    let numbers: Vec<u64> =
        told_apart(vec![sync(7), create(7, "a"), sync(7), create(7, "b"), sync(7), sync(8)])
            .iter()
            .map(|operation| match operation {
                Operation::Create { inode, .. } | Operation::Sync { inode, .. } => *inode,
                other => panic!("{other:?}"),
            })
            .collect();
    let [before, first, of_first, second, of_second, other] = numbers[..] else {
        panic!("{numbers:?}")
    };
    assert_eq!((before, other), (7, 8));
    assert!(
        first == of_first && second == of_second && first != second && first != 7,
        "{numbers:?}"
    );
}

//! A disk as a model: what is flushed stays, of everything else any part may be lost.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use volcanic_base::Chance;
use volcanic_testkit::{drawn_below, drawn_from};

use super::one_in;
use super::record::{Before, Operation};

/// What a disk writes at once.
const SECTOR: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Folder,
    File(usize),
}

/// A change of a file's content that is not flushed.
#[derive(Debug, Clone)]
struct Change {
    /// The operation it came with.
    number: usize,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Write { at: usize, data: Vec<u8> },
    Resize(usize),
}

#[derive(Debug, Default)]
struct Content {
    flushed: Vec<u8>,
    changes: Vec<Change>,
}

/// A change of names that is not flushed; it comes to pass as a whole or not at all.
#[derive(Debug)]
struct Naming {
    number: usize,
    names: Vec<(String, Option<Node>)>,
}

/// A disk in the middle of a record.
#[derive(Debug, Default)]
pub(super) struct Disk {
    number: usize,
    contents: Vec<Content>,
    by_inode: HashMap<u64, usize>,
    /// The names as the process sees them…
    now: BTreeMap<String, Node>,
    /// …and those that are flushed.
    flushed: BTreeMap<String, Node>,
    namings: Vec<Naming>,
}

/// What a disk holds when the power is back.
#[derive(Debug)]
pub(super) struct Image {
    /// Folders have no content.
    files: BTreeMap<String, Option<Vec<u8>>>,
    lost: usize,
    /// What the shared memory of the database's index holds then.
    garbage: bool,
}

/// How much of what is not flushed is there.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Everything,
    Nothing,
    /// Each change by itself, so many of ten.
    Changes(usize),
    /// Each sector by itself, so many of ten.
    Sectors(usize),
    /// All from this operation on; of the operation itself, some sectors are there.
    From(usize),
}

impl Disk {
    pub(super) fn new(before: &Before) -> Self {
        let mut disk = Self::default();
        for folder in &before.folders {
            disk.flushed.insert(folder.clone(), Node::Folder);
        }
        for (path, (inode, content)) in &before.files {
            disk.by_inode.insert(*inode, disk.contents.len());
            disk.flushed.insert(path.clone(), Node::File(disk.contents.len()));
            disk.contents.push(Content { flushed: content.clone(), changes: Vec::new() });
        }
        disk.now.clone_from(&disk.flushed);
        disk
    }

    pub(super) fn apply(&mut self, operation: &Operation) {
        self.number += 1;
        match operation {
            Operation::Create { inode, path } => {
                let file = self.contents.len();
                self.contents.push(Content::default());
                self.by_inode.insert(*inode, file);
                self.name(vec![(path.clone(), Some(Node::File(file)))]);
            }
            Operation::Write { inode, at, data } => {
                self.change(*inode, What::Write { at: *at, data: data.clone() });
            }
            Operation::Resize { inode, size } => self.change(*inode, What::Resize(*size)),
            Operation::Sync { inode, times: _ } => self.contents_mut(*inode).flush(),
            Operation::SyncFolder { path } => self.flush_names(path),
            Operation::Rename { from, to } => {
                let node = self.now[from];
                assert!(matches!(node, Node::File(_)), "{from} is a folder that is renamed");
                self.name(vec![(from.clone(), None), (to.clone(), Some(node))]);
            }
            Operation::Link { from, to } => {
                let node = self.now[from];
                self.name(vec![(to.clone(), Some(node))]);
            }
            Operation::Remove { path } => self.name(vec![(path.clone(), None)]),
            Operation::Folder { path } => self.name(vec![(path.clone(), Some(Node::Folder))]),
            Operation::Sent { .. } => {}
        }
    }

    fn contents_mut(&mut self, inode: u64) -> &mut Content {
        let file = self.by_inode[&inode];
        &mut self.contents[file]
    }

    fn change(&mut self, inode: u64, what: What) {
        let number = self.number;
        self.contents_mut(inode).changes.push(Change { number, what });
    }

    fn name(&mut self, names: Vec<(String, Option<Node>)>) {
        set(&mut self.now, &names);
        self.namings.push(Naming { number: self.number, names });
    }

    fn flush_names(&mut self, folder: &str) {
        for naming in std::mem::take(&mut self.namings) {
            if naming.names.iter().any(|(path, _)| folder_of(path) == folder) {
                set(&mut self.flushed, &naming.names);
            } else {
                self.namings.push(naming);
            }
        }
    }

    /// Whether it may lose something.
    pub(super) fn has_unflushed(&self) -> bool {
        let has_changes = |content: &Content| !content.changes.is_empty();
        !self.namings.is_empty() || self.contents.iter().any(has_changes)
    }

    /// Draws what is there when the power is back.
    pub(super) fn after_power_loss(&self, chance: &Chance) -> Image {
        let (data, names) = (self.drawn_loss(chance), self.drawn_loss(chance));
        let mut lost = 0;
        let mut found = self.flushed.clone();
        for naming in &self.namings {
            let is_kept = match names {
                Loss::Everything => false,
                Loss::Nothing => true,
                Loss::Changes(of_ten) | Loss::Sectors(of_ten) => drawn_below(chance, 10) < of_ten,
                Loss::From(number) => naming.number < number,
            };
            if is_kept {
                set(&mut found, &naming.names);
            }
            lost += usize::from(!is_kept);
        }
        let is_reached = |path: &str| {
            let mut above = folder_of(path);
            while !above.is_empty() && found.get(above) == Some(&Node::Folder) {
                above = folder_of(above);
            }
            above.is_empty()
        };
        let mut files = BTreeMap::new();
        for (path, node) in found.iter().filter(|(path, _)| is_reached(path)) {
            let content = match node {
                Node::Folder => None,
                Node::File(file) => Some(self.contents[*file].after(data, chance, &mut lost)),
            };
            files.insert(path.clone(), content);
        }
        Image { files, lost, garbage: one_in(chance, 4) }
    }

    fn drawn_loss(&self, chance: &Chance) -> Loss {
        let of_ten = *drawn_from(chance, &[1, 5, 9]);
        match drawn_below(chance, 6) {
            0 => Loss::Everything,
            1 => Loss::Nothing,
            2 => Loss::Changes(of_ten),
            3 => Loss::Sectors(of_ten),
            _ => {
                let open = self.contents.iter().flat_map(|content| &content.changes);
                let numbers: Vec<_> = open
                    .map(|change| change.number)
                    .chain(self.namings.iter().map(|naming| naming.number))
                    .collect();
                match numbers.as_slice() {
                    [] => Loss::Everything,
                    numbers => Loss::From(*drawn_from(chance, numbers)),
                }
            }
        }
    }
}

impl Content {
    fn flush(&mut self) {
        for change in std::mem::take(&mut self.changes) {
            change.what.apply(&mut self.flushed);
        }
    }

    fn after(&self, loss: Loss, chance: &Chance, lost: &mut usize) -> Vec<u8> {
        let mut content = self.flushed.clone();
        for change in &self.changes {
            let of_ten = match loss {
                Loss::Nothing => 10,
                Loss::Changes(of_ten) if drawn_below(chance, 10) < of_ten => 10,
                Loss::From(number) if change.number < number => 10,
                Loss::From(number) if change.number == number => 5,
                Loss::Everything | Loss::Changes(_) | Loss::From(_) => 0,
                Loss::Sectors(of_ten) => of_ten,
            };
            let is_kept = |_: &usize| of_ten == 10 || drawn_below(chance, 10) < of_ten;
            match &change.what {
                _ if of_ten == 0 => *lost += 1,
                What::Resize(size) if is_kept(&0) => content.resize(*size, 0),
                What::Resize(_) => *lost += 1,
                What::Write { at, data } => {
                    // The pieces of what is written that lie in one sector each.
                    let mut begin = *at;
                    while begin < at + data.len() {
                        let end = (begin / SECTOR * SECTOR + SECTOR).min(at + data.len());
                        if is_kept(&begin) {
                            put(&mut content, begin, &data[begin - at..end - at]);
                        } else {
                            *lost += 1;
                        }
                        begin = end;
                    }
                }
            }
        }
        content
    }
}

impl What {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, data } => put(content, *at, data),
            Self::Resize(size) => content.resize(*size, 0),
        }
    }
}

impl Image {
    pub(super) fn lost_something(&self) -> bool {
        self.lost > 0
    }

    pub(super) fn write_to(&self, root: &Path) {
        for (path, content) in &self.files {
            match content {
                None => std::fs::create_dir(root.join(path)).unwrap(),
                Some(content) => std::fs::write(root.join(path), content).unwrap(),
            }
            if self.garbage && path.ends_with("-wal") {
                let index = path.replace("-wal", "-shm");
                std::fs::write(root.join(index), vec![0x5a; 32 * 1024]).unwrap();
            }
        }
    }
}

fn set(all: &mut BTreeMap<String, Node>, names: &[(String, Option<Node>)]) {
    for (path, node) in names {
        match node {
            Some(node) => all.insert(path.clone(), *node),
            None => all.remove(path),
        };
    }
}

fn put(content: &mut Vec<u8>, at: usize, data: &[u8]) {
    if content.len() < at + data.len() {
        content.resize(at + data.len(), 0);
    }
    content[at..at + data.len()].copy_from_slice(data);
}

/// The folder that a name stands in; empty for the home.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[test]
fn only_what_is_flushed_is_sure_to_be_there() {
    let before = Before { folders: ["f".to_owned()].into(), ..Before::default() };
    let mut disk = Disk::new(&before);
    let path = || "f/one".to_owned();
    disk.apply(&Operation::Create { inode: 7, path: path() });
    disk.apply(&Operation::Write { inode: 7, at: 0, data: vec![1; 2 * SECTOR] });
    let drawn = |disk: &Disk| -> Vec<Option<Vec<u8>>> {
        let draw = |seed| disk.after_power_loss(&Chance::seeded(seed)).files.remove("f/one");
        (0..200).map(|seed| draw(seed).flatten()).collect()
    };
    let found = drawn(&disk);
    let torn: Vec<u8> = [vec![0; SECTOR], vec![1; SECTOR]].concat();
    let pieces = [None, Some(vec![]), Some(vec![1; SECTOR]), Some(torn), Some(vec![1; 2 * SECTOR])];
    for expected in &pieces {
        assert!(found.contains(expected), "never {:?}", expected.as_ref().map(Vec::len));
    }
    assert!(found.iter().all(|found| pieces.contains(found)));
    disk.apply(&Operation::Sync { inode: 7, times: false });
    assert!(drawn(&disk).iter().all(|found| found.as_ref().is_none_or(|it| *it == [1; 1024])));
    assert!(drawn(&disk).contains(&None));
    disk.apply(&Operation::SyncFolder { path: "f".to_owned() });
    assert!(drawn(&disk).iter().all(Option::is_some));
    disk.apply(&Operation::Rename { from: path(), to: "f/two".to_owned() });
    let both = |seed| {
        let files = disk.after_power_loss(&Chance::seeded(seed)).files;
        (files.contains_key("f/one"), files.contains_key("f/two"))
    };
    // A name is moved or it is not.
    assert!((0..200).all(|seed| [(true, false), (false, true)].contains(&both(seed))));
}

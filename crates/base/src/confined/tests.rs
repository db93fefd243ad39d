use std::{
    fs as std_fs,
    os::unix::{fs::PermissionsExt as _, fs::symlink, net::UnixListener},
};

use tempfile::TempDir;

use super::*;

/// A directory `inside` to confine to, beside a file `outside.txt` that must stay out of reach.
fn place() -> (TempDir, ConfinedDir) {
    let root = TempDir::new().unwrap();
    std_fs::create_dir(root.path().join("inside")).unwrap();
    std_fs::write(root.path().join("outside.txt"), "secret").unwrap();
    let confined = ConfinedDir::open(root.path().join("inside")).unwrap();
    (root, confined)
}

fn make_fifo(confined: &ConfinedDir, name: &str) {
    fs::mknodat(&confined.directory, name, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[track_caller]
fn check_outside<T: std::fmt::Debug>(result: &Result<T, ConfineError>) {
    assert!(matches!(result, Err(ConfineError::Outside { .. })), "{result:?}");
}

#[track_caller]
fn check_not_a_file<T: std::fmt::Debug>(result: &Result<T, ConfineError>) {
    assert!(matches!(result, Err(ConfineError::NotAFile { .. })), "{result:?}");
}

#[test]
fn renamed_file_replaces_what_has_the_name_and_keeps_its_bytes() {
    let (_root, dir) = place();
    dir.create_dir_all("a/b").unwrap();
    for (name, text) in [("a/one", "1"), ("a/b/other", "2")] {
        dir.create_new(name, text.as_bytes(), 0o600).unwrap();
    }
    dir.rename("a/one", "a/b/other").unwrap();
    assert_eq!(dir.read_to_limit("a/b/other", 10).unwrap(), b"1");
    let gone = dir.rename("a/one", "a/b/other");
    assert!(matches!(gone, Err(ConfineError::NotFound { .. })), "{gone:?}");
    assert_eq!(dir.read_to_limit("a/b/other", 10).unwrap(), b"1");
}

#[test]
fn paths_that_climb_out_are_refused_by_every_call() {
    let (_root, dir) = place();
    for path in ["../outside.txt", "/etc/passwd", "a/../../outside.txt"] {
        dir.create_dir_all("a").unwrap();
        check_outside(&dir.open_file(path));
        check_outside(&dir.read_to_limit(path, 10));
        check_outside(&dir.create_new(path, b"x", 0o600));
        check_outside(&dir.write_atomic(path, b"x", 0o600));
        check_outside(&dir.remove_file(path));
        check_outside(&dir.rename(path, "a/b"));
        check_outside(&dir.rename("a", path));
        check_outside(&dir.metadata(path));
        check_outside(&dir.list(path));
        check_outside(&dir.open_dir(path));
    }
    check_outside(&dir.create_dir_all("../new"));
    check_outside(&dir.create_dir_all("/new"));
    check_outside(&dir.list(".."));
}

#[test]
fn links_that_leave_are_refused_and_links_that_stay_work() {
    let (root, dir) = place();
    dir.create_dir_all("notes/deep").unwrap();
    dir.write_atomic("notes/a.txt", b"inner", 0o600).unwrap();
    symlink("notes/a.txt", root.path().join("inside/near")).unwrap();
    symlink("../a.txt", root.path().join("inside/notes/deep/up")).unwrap();
    symlink("../outside.txt", root.path().join("inside/relative-escape")).unwrap();
    symlink(root.path().join("outside.txt"), root.path().join("inside/absolute-escape")).unwrap();
    symlink("..", root.path().join("inside/parent")).unwrap();

    assert_eq!(dir.read_to_limit("near", 100).unwrap(), b"inner");
    assert_eq!(dir.read_to_limit("notes/deep/up", 100).unwrap(), b"inner");
    check_outside(&dir.open_file("relative-escape"));
    check_outside(&dir.open_file("absolute-escape"));
    check_outside(&dir.open_file("parent/outside.txt"));
    check_outside(&dir.write_atomic("parent/outside.txt", b"x", 0o600));
    check_outside(&dir.create_new("parent/new", b"x", 0o600));
    check_outside(&dir.create_dir_all("parent/new"));
    check_outside(&dir.list("parent"));
    assert_eq!(std_fs::read(root.path().join("outside.txt")).unwrap(), b"secret");
}

#[test]
fn link_loops_and_magic_links_are_refused() {
    let (root, dir) = place();
    symlink("round", root.path().join("inside/round")).unwrap();
    check_outside(&dir.open_file("round"));
    let process = ConfinedDir::open("/proc/self").unwrap();
    check_outside(&process.open_file("exe"));
    check_outside(&process.list("root"));
}

#[test]
fn fifo_is_refused_without_waiting_for_a_writer() {
    let (_root, dir) = place();
    make_fifo(&dir, "pipe");
    check_not_a_file(&dir.open_file("pipe"));
    check_not_a_file(&dir.read_to_limit("pipe", 10));
}

#[test]
fn sockets_devices_and_directories_are_not_files() {
    let (root, dir) = place();
    let _listener = UnixListener::bind(root.path().join("inside/socket")).unwrap();
    dir.create_dir_all("folder").unwrap();
    check_not_a_file(&dir.open_file("socket"));
    check_not_a_file(&dir.open_file("folder"));
    check_not_a_file(&dir.write_atomic("folder", b"x", 0o600));
    check_not_a_file(&dir.write_atomic(".", b"x", 0o600));
    check_not_a_file(&dir.remove_file("folder"));
    check_not_a_file(&ConfinedDir::open("/dev").unwrap().open_file("null"));
}

#[test]
fn create_new_takes_no_existing_name() {
    let (root, dir) = place();
    dir.create_new("fresh", b"bytes", 0o640).unwrap();
    let mode =
        std_fs::metadata(root.path().join("inside/fresh")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & !0o640, 0, "{mode:o}");
    symlink("nowhere", root.path().join("inside/dangling")).unwrap();
    symlink("../outside.txt", root.path().join("inside/escape")).unwrap();
    for path in ["fresh", "dangling", "escape"] {
        let result = dir.create_new(path, b"x", 0o600);
        assert!(matches!(result, Err(ConfineError::AlreadyExists { .. })), "{result:?}");
    }
    assert_eq!(dir.read_to_limit("fresh", 10).unwrap(), b"bytes");
    assert!(!root.path().join("inside/nowhere").exists());
    assert_eq!(dir.list(".").unwrap().len(), 3, "no temporary file stays");
}

#[test]
fn sweep_stays_inside_and_takes_left_overs_only() {
    let (_root, dir) = place();
    dir.create_dir_all("a").unwrap();
    dir.create_new("a/.pending.json.1-0.volcanic-tmp", b"half", 0o600).unwrap();
    dir.create_new("a/pending.json", b"whole", 0o600).unwrap();
    assert_eq!(dir.sweep_temp_files("a").unwrap(), 1);
    assert_eq!(dir.list("a").unwrap().len(), 1);
    check_outside(&dir.sweep_temp_files(".."));
}

#[test]
fn create_dir_all_makes_what_is_missing_and_no_more() {
    let (root, dir) = place();
    dir.create_dir_all("inbox/a2a/travel-bot").unwrap();
    dir.create_dir_all("inbox/a2a/travel-bot").unwrap();
    dir.create_dir_all("inbox/./other/").unwrap();
    dir.create_dir_all(".").unwrap();
    assert!(root.path().join("inside/inbox/a2a/travel-bot").is_dir());
    assert!(root.path().join("inside/inbox/other").is_dir());
    dir.write_atomic("file", b"", 0o600).unwrap();
    let through_a_file = dir.create_dir_all("file/below");
    assert!(
        matches!(through_a_file, Err(ConfineError::NotADirectory { .. })),
        "{through_a_file:?}"
    );
    symlink("nowhere", root.path().join("inside/dangling")).unwrap();
    let through_nothing = dir.create_dir_all("dangling/below");
    assert!(matches!(through_nothing, Err(ConfineError::NotFound { .. })), "{through_nothing:?}");
}

#[test]
fn read_stops_at_the_limit() {
    let (_root, dir) = place();
    dir.write_atomic("ten", b"0123456789", 0o600).unwrap();
    assert_eq!(dir.read_to_limit("ten", 10).unwrap(), b"0123456789");
    let result = dir.read_to_limit("ten", 9);
    assert!(matches!(result, Err(ConfineError::TooLarge { limit: 9, .. })), "{result:?}");
    // Files of /proc say that they are empty; the limit holds for what is read.
    let result = ConfinedDir::open("/proc/self").unwrap().read_to_limit("status", 20);
    assert!(matches!(result, Err(ConfineError::TooLarge { limit: 20, .. })), "{result:?}");
}

#[test]
fn atomic_write_lands_in_its_folder_and_leaves_no_temp() {
    let (root, dir) = place();
    dir.create_dir_all("state").unwrap();
    dir.write_atomic("state/pending.json", b"[]", 0o600).unwrap();
    dir.write_atomic("state/pending.json", b"[1]", 0o600).unwrap();
    assert_eq!(std_fs::read(root.path().join("inside/state/pending.json")).unwrap(), b"[1]");
    assert_eq!(dir.list("state").unwrap().len(), 1);
    let missing = dir.write_atomic("nowhere/file", b"", 0o600).unwrap_err();
    assert_eq!(missing.to_string(), "`nowhere/file` does not exist");
}

#[test]
fn list_is_sorted_and_follows_no_links() {
    let (root, dir) = place();
    dir.write_atomic("b.txt", b"", 0o600).unwrap();
    dir.create_dir_all("a").unwrap();
    symlink("../outside.txt", root.path().join("inside/c")).unwrap();
    make_fifo(&dir, "d");
    let entry = |name: &str, kind| ConfinedEntry { name: name.into(), kind };
    assert_eq!(
        dir.list(".").unwrap(),
        [
            entry("a", EntryKind::Directory),
            entry("b.txt", EntryKind::File),
            entry("c", EntryKind::Link),
            entry("d", EntryKind::Other)
        ]
    );
    let result = dir.list("b.txt");
    assert!(matches!(result, Err(ConfineError::NotADirectory { .. })), "{result:?}");
}

#[test]
fn metadata_and_removal_follow_their_rules() {
    let (root, dir) = place();
    dir.write_atomic("file", b"12345", 0o600).unwrap();
    symlink("file", root.path().join("inside/link")).unwrap();
    assert_eq!(dir.metadata("link").unwrap().len(), 5);
    assert!(dir.metadata(".").unwrap().is_dir());
    dir.remove_file("link").unwrap();
    assert!(dir.metadata("file").unwrap().is_file());
    dir.remove_file("file").unwrap();
    let result = dir.metadata("file");
    assert!(matches!(result, Err(ConfineError::NotFound { .. })), "{result:?}");
}

#[test]
fn inner_confinement_is_tighter() {
    let (root, dir) = place();
    dir.create_dir_all("room").unwrap();
    dir.write_atomic("shared", b"x", 0o600).unwrap();
    symlink("../shared", root.path().join("inside/room/up")).unwrap();
    assert_eq!(dir.read_to_limit("room/up", 1).unwrap(), b"x");
    let room = dir.open_dir("room").unwrap();
    check_outside(&room.open_file("up"));
    assert_eq!(room.path(), root.path().join("inside/room"));
}

#[test]
fn descriptor_keeps_its_directory_when_the_path_changes_hands() {
    let (root, dir) = place();
    dir.write_atomic("mine", b"x", 0o600).unwrap();
    std_fs::rename(root.path().join("inside"), root.path().join("moved")).unwrap();
    std_fs::create_dir(root.path().join("inside")).unwrap();
    assert_eq!(dir.read_to_limit("mine", 1).unwrap(), b"x");
}

#[test]
fn lock_is_exclusive_and_writes_nothing() {
    let (root, dir) = place();
    let other = ConfinedDir::open(root.path().join("inside")).unwrap();
    let lock = dir.try_lock().unwrap();
    assert!(lock.is_some());
    assert!(dir.try_lock().unwrap().is_none(), "held in this process too");
    assert!(other.try_lock().unwrap().is_none());
    drop(lock);
    let again = other.try_lock().unwrap();
    assert!(again.is_some() && dir.try_lock().unwrap().is_none());
    assert_eq!(dir.list(".").unwrap(), []);
}

#[test]
fn open_needs_a_directory() {
    let (root, _dir) = place();
    let file = ConfinedDir::open(root.path().join("outside.txt"));
    assert!(matches!(file, Err(ConfineError::NotADirectory { .. })), "{file:?}");
    let missing = ConfinedDir::open(root.path().join("nowhere"));
    assert!(matches!(missing, Err(ConfineError::NotFound { .. })), "{missing:?}");
}

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    sync::atomic::AtomicBool,
    thread,
};

use tempfile::TempDir;

use super::*;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn write_replaces_content_and_leaves_nothing_else() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("agents.json");
    write_atomic(&path, b"old", 0o600).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    write_atomic(&path, b"new and longer", 0o600).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new and longer");
    assert_ne!(
        fs::metadata(&path).unwrap().ino(),
        before,
        "the file is replaced, not rewritten in place"
    );
    assert_eq!(names(dir.path()), ["agents.json"]);
}

#[test]
fn mode_of_the_new_file_is_the_one_asked_for() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("key");
    write_atomic(&path, b"k", 0o600).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn readers_see_the_old_or_the_new_content_only() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("state");
    let (old, new) = (vec![b'o'; 64 * 1024], vec![b'n'; 48 * 1024]);
    write_atomic(&path, &old, 0o600).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0;
            while !done.load(Ordering::Relaxed) || reads == 0 {
                let seen = fs::read(&path).unwrap();
                assert!(seen == old || seen == new, "a mixture of {} bytes", seen.len());
                reads += 1;
            }
        });
        for round in 0..20 {
            write_atomic(&path, if round % 2 == 0 { &new } else { &old }, 0o600).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

#[test]
fn failed_write_removes_its_temp_and_keeps_the_target() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("taken");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "x").unwrap();
    write_atomic(&path, b"x", 0o600).unwrap_err();
    assert_eq!(names(dir.path()), ["taken"]);
    assert_eq!(names(&path), ["inside"]);
}

#[test]
fn write_through_a_link_replaces_the_link() {
    let dir = TempDir::new().unwrap();
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    fs::write(&target, "kept").unwrap();
    symlink(&target, &link).unwrap();
    write_atomic(&link, b"new", 0o600).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"kept");
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
}

#[test]
fn path_without_file_name_is_invalid_input() {
    let error = write_atomic("/", b"x", 0o600).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn long_names_are_written_too() {
    let dir = TempDir::new().unwrap();
    let name = "n".repeat(255);
    write_atomic(dir.path().join(&name), b"x", 0o600).unwrap();
    assert_eq!(names(dir.path()), [name]);
}

#[test]
fn sweep_removes_left_overs_and_nothing_else() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join(".pending.json.1-0.volcanic-tmp"), "half").unwrap();
    fs::write(dir.path().join(".pending.json.9-17.volcanic-tmp"), "half").unwrap();
    fs::write(dir.path().join("pending.json"), "whole").unwrap();
    fs::write(dir.path().join("notes.volcanic-tmp"), "a person's own").unwrap();
    fs::write(dir.path().join(".x.draft.volcanic-tmp"), "a person's own").unwrap();
    fs::create_dir(dir.path().join(".d.1-1.volcanic-tmp")).unwrap();
    assert_eq!(sweep_temp_files(dir.path()).unwrap(), 2);
    assert_eq!(
        names(dir.path()),
        [".d.1-1.volcanic-tmp", ".x.draft.volcanic-tmp", "notes.volcanic-tmp", "pending.json"]
    );
}

#[test]
fn sweep_leaves_a_file_that_is_being_written() {
    let dir = TempDir::new().unwrap();
    let directory = File::open(dir.path()).unwrap();
    let (name, file) = create_temp(directory.as_fd(), OsStr::new("busy"), 0o600).unwrap();
    assert_eq!(sweep_temp_files(dir.path()).unwrap(), 0);
    drop(file);
    assert!(is_temp_name(name.as_encoded_bytes()));
    assert_eq!(
        sweep_temp_files(dir.path()).unwrap(),
        1,
        "once its writer is gone it is a left-over"
    );
}

#[test]
fn writes_and_sweeps_may_race() {
    let dir = TempDir::new().unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..50 {
                write_atomic(dir.path().join("file"), format!("{round}").as_bytes(), 0o600)
                    .unwrap();
            }
        });
        while !writer.is_finished() {
            sweep_temp_files(dir.path()).unwrap();
        }
        writer.join().unwrap();
    });
    assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"49");
}

#[test]
fn left_over_with_the_next_name_is_stepped_over() {
    let dir = TempDir::new().unwrap();
    let next = NEXT_TEMP.load(Ordering::Relaxed);
    for number in next..next + 200 {
        fs::write(dir.path().join(temp_name(OsStr::new("f"), number)), "half").unwrap();
    }
    write_atomic(dir.path().join("f"), b"whole", 0o600).unwrap();
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), b"whole");
}

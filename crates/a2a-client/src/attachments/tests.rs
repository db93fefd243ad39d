use std::os::unix::fs::symlink;

use volcanic_a2a_types::PartContent;

use super::*;

fn workspace() -> (tempfile::TempDir, ConfinedDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("docs")).unwrap();
    fs::write(folder.path().join("docs/plan.PDF"), "plan").unwrap();
    fs::write(folder.path().join("notes.md"), "notes").unwrap();
    let workspace = ConfinedDir::open(folder.path()).unwrap();
    (folder, workspace)
}

fn read(workspace: &ConfinedDir, paths: &[&str], max: u64) -> Result<Vec<Part>, AttachmentError> {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    read_attachments(workspace, &paths, max)
}

#[track_caller]
fn check_unreadable(workspace: &ConfinedDir, path: &str, reason: &str) {
    let error = read(workspace, &[path], 100).unwrap_err().to_string();
    assert_eq!(error, format!("Could not attach a file: `{path}` {reason}."));
}

#[test]
fn files_become_parts_with_name_and_media_type() {
    let (_folder, workspace) = workspace();
    let parts = read(&workspace, &["docs/plan.PDF", "notes.md"], 9).unwrap();
    assert_eq!(
        parts,
        [
            Part::raw(&b"plan"[..], "application/pdf", "plan.PDF"),
            Part::raw(&b"notes"[..], "text/markdown", "notes.md"),
        ]
    );
}

#[test]
fn every_extension_has_its_media_type() {
    for (path, expected) in [
        ("a.png", "image/png"),
        ("a.jpg", "image/jpeg"),
        ("a.txt", "text/plain"),
        ("a.json", "application/json"),
        ("a.csv", "text/csv"),
        ("a.bin", "application/octet-stream"),
        ("a", "application/octet-stream"),
    ] {
        assert_eq!(media_type(Path::new(path)), expected);
    }
}

#[test]
fn limit_is_for_all_files_together() {
    let (_folder, workspace) = workspace();
    let error = read(&workspace, &["docs/plan.PDF", "notes.md"], 8).unwrap_err();
    assert!(matches!(error, AttachmentError::TooLarge { limit: 8 }), "{error:?}");
}

#[test]
fn links_work_inside_and_not_to_the_outside() {
    let ((folder, workspace), outside) = (workspace(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret"), "planted").unwrap();
    symlink("docs/plan.PDF", folder.path().join("inner")).unwrap();
    symlink(outside.path().join("secret"), folder.path().join("outer")).unwrap();
    symlink(outside.path(), folder.path().join("door")).unwrap();
    let parts = read(&workspace, &["inner"], 100).unwrap();
    assert_eq!(parts[0].content, PartContent::Raw("plan".into()));
    for path in ["outer", "door/secret", "../x", "docs/../../x", "/etc/hostname"] {
        check_unreadable(&workspace, path, "leads outside the directory");
    }
}

#[test]
fn absolute_path_inside_is_understood() {
    let (folder, workspace) = workspace();
    let path = folder.path().join("notes.md");
    assert_eq!(read(&workspace, &[path.to_str().unwrap()], 100).unwrap().len(), 1);
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let (folder, workspace) = workspace();
    let fifo = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    check_unreadable(&workspace, "pipe", "is not a regular file");
    check_unreadable(&workspace, "docs", "is not a regular file");
    check_unreadable(&workspace, "gone", "does not exist");
}

#[test]
fn keys_are_not_sent() {
    let (folder, workspace) = workspace();
    fs::create_dir_all(folder.path().join(".volcanic/a2a")).unwrap();
    fs::write(folder.path().join(".volcanic/a2a/agents.json"), "[]").unwrap();
    symlink(".volcanic/a2a/agents.json", folder.path().join("innocent.json")).unwrap();
    symlink(".volcanic", folder.path().join("folder")).unwrap();
    for path in [
        ".volcanic/a2a/agents.json",
        "./.volcanic/a2a/agents.json",
        "docs/../.volcanic/a2a/agents.json",
        "innocent.json",
        "folder/a2a/agents.json",
    ] {
        let error = read(&workspace, &[path], 100).unwrap_err();
        assert!(matches!(error, AttachmentError::Private { .. }), "{path}: {error:?}");
    }
}

//! No tool's path leads out of the workspace, and none waits for a special file.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use crate::room::{Room, make_fifo};

/// The calls that take a path to a file.
fn calls(path: &str) -> [(&'static str, Value); 4] {
    [
        ("read", json!({ "path": path })),
        ("write", json!({ "path": path, "content": "overwritten" })),
        ("edit", json!({ "path": path, "old_text": "secret", "new_text": "overwritten" })),
        ("send", json!({ "path": path })),
    ]
}

#[tokio::test]
async fn nothing_outside_is_read_or_changed() {
    let room = Room::new();
    fs::create_dir(room.outside("beside")).unwrap();
    let secret = room.outside("beside/secret");
    fs::write(&secret, "secret").unwrap();
    symlink(&secret, room.path("absolute-link")).unwrap();
    symlink("../beside/secret", room.path("relative-link")).unwrap();
    symlink("../beside", room.path("folder-link")).unwrap();
    symlink("relative-link", room.path("second-link")).unwrap();
    let absolute = secret.to_str().unwrap().to_owned();
    let within = room.path("../beside/secret").to_str().unwrap().to_owned();
    let paths = [
        "../beside/secret",
        "x/../../beside/secret",
        "absolute-link",
        "relative-link",
        "folder-link/secret",
        "second-link",
        &absolute,
        &within,
        "/proc/self/root/etc/hostname",
    ];
    fs::create_dir(room.path("x")).unwrap();
    for path in paths {
        for (tool, arguments) in calls(path) {
            let (text, is_error) = room.call(tool, arguments).await;
            assert!(is_error && text.contains("leads outside"), "{tool} {path}: {text}");
        }
    }
    for path in ["..", "folder-link", "/"] {
        let (text, is_error) = room.call("ls", json!({ "path": path })).await;
        assert!(is_error && text.contains("leads outside"), "ls {path}: {text}");
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    assert!(room.sender.received.lock().unwrap().is_empty());
}

#[tokio::test]
async fn dangling_link_does_not_create_outside() {
    let room = Room::new();
    symlink("../made", room.path("out")).unwrap();
    let (text, is_error) = room.call("write", json!({ "path": "out", "content": "x" })).await;
    assert!(is_error && text.contains("leads outside"), "{text}");
    assert!(!room.outside("made").exists());
    symlink("later/made", room.path("in")).unwrap();
    let (text, is_error) = room.call("write", json!({ "path": "in", "content": "x" })).await;
    assert!(!is_error, "{text}");
    assert_eq!(room.get("later/made"), "x");
}

#[tokio::test]
async fn circle_of_links_ends() {
    let room = Room::new();
    symlink("b", room.path("a")).unwrap();
    symlink("a", room.path("b")).unwrap();
    for (tool, arguments) in calls("a") {
        let (text, is_error) = room.call(tool, arguments).await;
        assert!(is_error, "{tool}: {text}");
    }
}

#[tokio::test]
async fn special_files_are_refused_at_once() {
    let room = Room::new();
    make_fifo(&room.path("fifo"));
    let _socket = UnixListener::bind(room.path("socket")).unwrap();
    symlink("fifo", room.path("to-fifo")).unwrap();
    fs::create_dir(room.path("folder")).unwrap();
    for path in ["fifo", "to-fifo", "socket", "folder"] {
        for (tool, arguments) in calls(path) {
            let (text, is_error) = room.call(tool, arguments).await;
            assert!(is_error, "{tool} {path}: {text}");
        }
    }
    assert!(fs::metadata(room.path("fifo")).unwrap().file_type().is_fifo());
}

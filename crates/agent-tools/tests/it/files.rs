//! `read`, `write` and `ls`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;

use crate::room::{Room, make_fifo};

fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| line.to_string()).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn tools_are_named_and_described_for_the_model() {
    let room = Room::new();
    let specs: Vec<_> = room.tools().iter().map(|tool| tool.spec()).collect();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["read", "write", "edit", "ls", "bash", "send"]);
    for spec in &specs {
        assert_eq!(spec.parameters["type"], "object", "{spec:?}");
        for required in spec.parameters["required"].as_array().into_iter().flatten() {
            assert!(
                spec.parameters["properties"][required.as_str().unwrap()].is_object(),
                "{spec:?}"
            );
        }
    }
}

#[tokio::test]
async fn small_file_is_read_whole() {
    let room = Room::new();
    room.put("notes/a.txt", "one\r\ntwo\n");
    let said = room.call("read", json!({ "path": "notes/a.txt" })).await;
    assert_eq!(said, ("one\ntwo".to_owned(), false));
    let absolute = room.path("notes/a.txt");
    let said = room.call("read", json!({ "path": absolute })).await;
    assert_eq!(said, ("one\ntwo".to_owned(), false));
}

#[tokio::test]
async fn byte_order_mark_is_not_shown() {
    let room = Room::new();
    room.put("a", "\u{feff}x");
    assert_eq!(room.call("read", json!({ "path": "a" })).await, ("x".to_owned(), false));
}

#[tokio::test]
async fn long_file_is_read_in_pieces() {
    let room = Room::new();
    room.put("long", numbered(4500));
    let (first, _) = room.call("read", json!({ "path": "long" })).await;
    assert!(first.starts_with("1\n2\n"), "{first:.20}");
    assert!(first.ends_with(
        "\n2000\n\n[Lines 1-2000 are shown; the file goes on. Use offset=2001 to go on.]"
    ));
    let (last, _) = room.call("read", json!({ "path": "long", "offset": 4001 })).await;
    assert!(last.starts_with("4001\n") && last.ends_with("\n4500"), "{last:.20}");
    let piece = room.call("read", json!({ "path": "long", "offset": 10, "limit": 2 })).await;
    let expected = "10\n11\n\n[Lines 10-11 are shown; the file goes on. Use offset=12 to go on.]";
    assert_eq!(piece, (expected.to_owned(), false));
}

#[tokio::test]
async fn reading_stops_at_the_byte_limit_between_lines() {
    let room = Room::new();
    room.put("wide", format!("{}\n", "x".repeat(999)).repeat(100));
    let (text, _) = room.call("read", json!({ "path": "wide" })).await;
    assert!(
        text.ends_with("[Lines 1-51 are shown; the file goes on. Use offset=52 to go on.]"),
        "{}",
        text.len()
    );
}

#[tokio::test]
async fn one_giant_line_shows_its_beginning() {
    let room = Room::new();
    room.put("giant", format!("first\nä{}", "x".repeat(3_000_000)));
    let (text, is_error) = room.call("read", json!({ "path": "giant", "offset": 2 })).await;
    assert!(!is_error && text.starts_with("äxxx") && text.len() < 52_000, "{}", text.len());
    assert!(text.contains("[Line 2 is longer than 50 KiB"), "{:.300}", &text[51_000..]);
    let (text, _) = room.call("read", json!({ "path": "giant" })).await;
    assert_eq!(text, "first\n\n[Lines 1-1 are shown; the file goes on. Use offset=2 to go on.]");
}

#[tokio::test]
async fn offset_beyond_the_end_is_an_error_that_says_the_length() {
    let room = Room::new();
    room.put("three", "a\nb\nc");
    let said = room.call("read", json!({ "path": "three", "offset": 4 })).await;
    assert_eq!(said, ("line 4 is beyond the end: the file has 3 lines".to_owned(), true));
    let said = room.call("read", json!({ "path": "three", "offset": 3 })).await;
    assert_eq!(said, ("c".to_owned(), false));
}

#[tokio::test]
async fn binary_and_empty_files_are_named_as_such() {
    let room = Room::new();
    room.put("binary", b"PK\x03\x04\0\0");
    let (text, is_error) = room.call("read", json!({ "path": "binary" })).await;
    assert!(!is_error && text.starts_with("(binary file of 6 bytes"), "{text}");
    room.put("empty", "");
    assert_eq!(
        room.call("read", json!({ "path": "empty" })).await,
        ("(the file is empty)".to_owned(), false)
    );
}

#[tokio::test]
async fn wrong_arguments_and_missing_files_are_readable_errors() {
    let room = Room::new();
    let (text, is_error) = room.call("read", json!({ "path": 3 })).await;
    assert!(is_error && text.starts_with("the arguments do not fit:"), "{text}");
    let said = room.call("read", json!({ "path": "nowhere" })).await;
    assert_eq!(said, ("`nowhere` does not exist".to_owned(), true));
    let said = room.call("read", json!({ "path": "." })).await;
    assert_eq!(said, ("`.` is not a regular file".to_owned(), true));
    let said = room.call("read", json!({ "path": "" })).await;
    assert_eq!(said, ("the path is empty".to_owned(), true));
}

#[tokio::test]
async fn writing_makes_folders_and_replaces() {
    let room = Room::new();
    let said = room.call("write", json!({ "path": "a/b/c.txt", "content": "ä" })).await;
    assert_eq!(said, ("Created a/b/c.txt (2 bytes).".to_owned(), false));
    let said = room.call("write", json!({ "path": "a/b/c.txt", "content": "xyz\n" })).await;
    assert_eq!(said, ("Replaced a/b/c.txt (4 bytes).".to_owned(), false));
    assert_eq!(room.get("a/b/c.txt"), "xyz\n");
    let names: Vec<_> =
        fs::read_dir(room.path("a/b")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["c.txt"]);
}

#[tokio::test]
async fn mode_stays_and_files_with_keys_are_the_owners_alone() {
    let room = Room::new();
    let mode = |path: &str| fs::metadata(room.path(path)).unwrap().permissions().mode() & 0o777;
    room.put("run.sh", "old");
    fs::set_permissions(room.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    room.call("write", json!({ "path": "run.sh", "content": "new" })).await;
    assert_eq!(mode("run.sh"), 0o750);
    let agents = json!({ "path": ".volcanic/a2a/agents.json", "content": "[]" });
    let (text, is_error) = room.call("write", agents).await;
    assert!(!is_error, "{text}");
    assert_eq!(
        (mode(".volcanic/a2a/agents.json"), room.get(".volcanic/a2a/agents.json")),
        (0o600, "[]".into())
    );
}

#[tokio::test]
async fn writing_through_a_link_keeps_the_link() {
    let room = Room::new();
    room.put("real/file", "old");
    symlink("real/file", room.path("link")).unwrap();
    symlink("real", room.path("folder")).unwrap();
    let (text, is_error) = room.call("write", json!({ "path": "link", "content": "new" })).await;
    assert!(!is_error, "{text}");
    assert_eq!(room.get("real/file"), "new");
    assert!(fs::symlink_metadata(room.path("link")).unwrap().is_symlink());
    room.call("write", json!({ "path": "folder/other", "content": "x" })).await;
    assert_eq!(room.get("real/other"), "x");
}

#[tokio::test]
async fn listing_tells_kinds_apart_and_escapes_names() {
    let room = Room::new();
    assert_eq!(room.call("ls", json!({})).await, ("(the folder is empty)".to_owned(), false));
    room.put("b.txt", "");
    room.put(".hidden", "");
    room.put("a/inner", "");
    room.put("two\nlines", "");
    symlink("b.txt", room.path("link")).unwrap();
    make_fifo(&room.path("pipe"));
    let said = room.call("ls", json!({ "path": "." })).await;
    assert_eq!(said, (".hidden\na/\nb.txt\nlink@\npipe!\ntwo\\nlines".to_owned(), false));
    assert_eq!(room.call("ls", json!({ "path": "a" })).await, ("inner".to_owned(), false));
    let said = room.call("ls", json!({ "path": "b.txt" })).await;
    assert_eq!(said, ("`b.txt` is not a directory".to_owned(), true));
}

#[tokio::test]
async fn long_listing_says_what_is_missing() {
    let room = Room::new();
    for number in 0..2100 {
        room.put(&format!("{number:04}"), "");
    }
    let (text, _) = room.call("ls", json!({})).await;
    assert!(
        text.ends_with("1999\n\n[2000 of 2100 entries are shown.]"),
        "{}",
        &text[text.len() - 60..]
    );
}

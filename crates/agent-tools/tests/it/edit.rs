//! `edit`.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::json;

use crate::room::Room;

#[tokio::test]
async fn one_place_is_replaced_and_named() {
    let room = Room::new();
    room.put("a", "one\ntwo\nthree\n");
    let said = room.call("edit", json!({ "path": "a", "old_text": "two", "new_text": "2" })).await;
    assert_eq!(said, ("Edited a: 1 replacement, at line 2.".to_owned(), false));
    assert_eq!(room.get("a"), "one\n2\nthree\n");
}

#[tokio::test]
async fn several_edits_are_all_made_or_none() {
    let room = Room::new();
    room.put("a", "one\ntwo\nthree\n");
    let edits = json!([
        { "old_text": "three", "new_text": "3" },
        { "old_text": "four", "new_text": "4" }
    ]);
    let (text, is_error) = room.call("edit", json!({ "path": "a", "edits": edits })).await;
    assert!(is_error && text.starts_with("edit 2: old_text is not in the file"), "{text}");
    assert_eq!(room.get("a"), "one\ntwo\nthree\n");
    let edits = json!([
        { "old_text": "three", "new_text": "3" },
        { "old_text": "one\n", "new_text": "" }
    ]);
    let said = room.call("edit", json!({ "path": "a", "edits": edits })).await;
    assert_eq!(
        said,
        ("Edited a: 2 replacements, at lines 3, 1 of the old text.".to_owned(), false)
    );
    assert_eq!(room.get("a"), "two\n3\n");
}

#[tokio::test]
async fn line_endings_and_byte_order_mark_stay() {
    let room = Room::new();
    room.put("dos", "\u{feff}a\r\nb\r\n");
    room.call("edit", json!({ "path": "dos", "old_text": "a\nb", "new_text": "A\nB\nC" })).await;
    assert_eq!(room.get("dos"), "\u{feff}A\r\nB\r\nC\r\n");
}

#[tokio::test]
async fn what_cannot_be_edited_says_why() {
    let room = Room::new();
    room.put("a", "x");
    for (arguments, expected) in [
        (json!({ "path": "a" }), "give old_text and new_text, or a list of edits"),
        (json!({ "path": "a", "edits": [] }), "give old_text and new_text, or a list of edits"),
        (json!({ "path": "a", "old_text": "x" }), "old_text and new_text go together"),
        (json!({ "path": "b", "old_text": "x", "new_text": "y" }), "`b` does not exist"),
    ] {
        assert_eq!(room.call("edit", arguments).await, (expected.to_owned(), true));
    }
    room.put("latin", b"caf\xe9");
    let (text, is_error) =
        room.call("edit", json!({ "path": "latin", "old_text": "caf", "new_text": "x" })).await;
    assert!(is_error && text.contains("not UTF-8"), "{text}");
    assert_eq!(fs::read(room.path("latin")).unwrap(), b"caf\xe9");
}

#[tokio::test]
async fn edits_at_the_same_time_all_arrive_also_through_another_name() {
    let room = Arc::new(Room::new());
    let lines: Vec<String> = (0..40).map(|number| format!("line {number:02} old")).collect();
    room.put("real", lines.join("\n"));
    symlink("real", room.path("alias")).unwrap();
    let mut edits = tokio::task::JoinSet::new();
    for number in 0..40 {
        let room = Arc::clone(&room);
        edits.spawn(async move {
            let path = if number % 2 == 0 { "real" } else { "alias" };
            let old = format!("line {number:02} old");
            let new = format!("line {number:02} new");
            room.call("edit", json!({ "path": path, "old_text": old, "new_text": new })).await
        });
    }
    for (text, is_error) in edits.join_all().await {
        assert!(!is_error, "{text}");
    }
    assert_eq!(room.get("real"), lines.join("\n").replace("old", "new"));
}

//! `send`.

use serde_json::json;

use crate::room::{Received, Room};

#[tokio::test]
async fn file_reaches_the_person_of_the_conversation() {
    let room = Room::new();
    room.put("out/plan.txt", "the plan");
    let said = room.call("send", json!({ "path": "out/plan.txt", "caption": "here" })).await;
    assert_eq!(said, ("Sent out/plan.txt (8 bytes) to the owner.".to_owned(), false));
    let expected = Received {
        target: "chat-1".to_owned(),
        name: "plan.txt".to_owned(),
        path: "out/plan.txt".into(),
        content: "the plan".to_owned(),
        size: 8,
        caption: Some("here".to_owned()),
    };
    assert_eq!(*room.sender.received.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn refusal_of_the_host_is_told_to_the_model() {
    let room = Room::new();
    room.put("a", "x");
    *room.sender.refuses.lock().unwrap() = Some("the chat is closed".to_owned());
    let said = room.call("send", json!({ "path": "a" })).await;
    assert_eq!(said, ("the file was not sent: the chat is closed".to_owned(), true));
}

#[tokio::test]
async fn empty_and_too_large_files_are_not_sent() {
    let room = Room::with(|config| config.send_max_bytes = 3);
    room.put("empty", "");
    room.put("large", "1234");
    room.put("fits", "123");
    assert_eq!(
        room.call("send", json!({ "path": "empty" })).await,
        ("`empty` is empty".to_owned(), true)
    );
    let said = room.call("send", json!({ "path": "large" })).await;
    assert_eq!(said, ("`large` has 4 bytes; at most 3 can be sent".to_owned(), true));
    let (text, is_error) = room.call("send", json!({ "path": "fits" })).await;
    assert!(!is_error, "{text}");
    assert_eq!(room.sender.received.lock().unwrap().len(), 1);
}

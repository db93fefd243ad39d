//! The scripted agent from outside, and its journal.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;
use volcanic_a2a_server::{Journal, JournalFile};

use crate::remote::{Setup, message, response_of, said, scripted, short, state_of};

fn attach(params: &mut Value) {
    let part = json!({"raw": STANDARD.encode("abc"), "filename": "a.txt"});
    params["message"]["parts"].as_array_mut().unwrap().push(part);
}

#[tokio::test]
async fn report_comes_as_a_file_and_an_answer() {
    let remote = Setup::default().start().await;
    let task = remote.send("report all is well").await;
    assert_eq!(response_of(&task), "The report is attached.");
    let file = &task["artifacts"][0];
    assert_eq!(file["name"], "report.txt");
    assert_eq!(
        file["parts"][0],
        json!({"raw": STANDARD.encode("all is well\n"), "mediaType": "text/plain", "filename": "report.txt"})
    );
}

#[tokio::test]
async fn failure_and_refusal_say_why() {
    let remote = Setup::default().start().await;
    let failed = remote.send("fail out of paper").await;
    assert_eq!((state_of(&failed), said(&failed)), ("FAILED", "out of paper"));
    let rejected = remote.send("reject this").await;
    assert_eq!(state_of(&rejected), "REJECTED");
}

#[tokio::test]
async fn slow_work_tells_how_it_goes() {
    let remote = Setup::default().start().await;
    let mut events = remote.stream("SendStreamingMessage", message("slow 2s hello")).await;
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        let progress = said(&event["statusUpdate"]).to_owned();
        seen.push(format!("{} {progress}", short(&event)));
    }
    assert!(seen.contains(&"status WORKING still working, about 1 s left".to_owned()), "{seen:?}");
    assert_eq!(seen[seen.len() - 2], "artifact response finished: hello. nothing");
}

#[tokio::test]
async fn journal_holds_what_was_received_before_the_work_is_done() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.jsonl");
    let setup = Setup::running(scripted(Arc::new(Journal::to_file(&path).unwrap())));
    let remote = setup.start().await;
    let mut params = message("slow 60s x");
    attach(&mut params);
    params["metadata"] = json!({"volcanic.hops": 2});
    params["configuration"]["returnImmediately"] = true.into();
    let task = remote.call("SendMessage", params.clone()).await["task"].take();
    let entries = Journal::read(&path).unwrap();
    assert_eq!(entries.len(), 1);
    let entry = &entries[0];
    assert_eq!(entry.task_id.as_str(), task["id"].as_str().unwrap());
    assert_eq!(entry.context_id.as_str(), task["contextId"].as_str().unwrap());
    assert_eq!(entry.message_id.as_str(), params["message"]["messageId"].as_str().unwrap());
    assert_eq!(
        (entry.caller.as_str(), entry.text.as_str(), entry.hops),
        ("anyone", "slow 60s x", 2)
    );
    let JournalFile { name, sha256, bytes, .. } = &entry.files[0];
    assert_eq!((name.as_deref(), *bytes), (Some("a.txt"), 3));
    assert_eq!(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[tokio::test]
async fn received_files_are_named_in_the_answer() {
    let journal = Arc::new(Journal::in_memory());
    let remote = Setup::running(scripted(Arc::clone(&journal))).start().await;
    let mut params = message("look at this");
    attach(&mut params);
    let task = remote.call("SendMessage", params).await["task"].take();
    assert_eq!(response_of(&task), "You said: look at this\nFiles received: a.txt (3 bytes)");
    assert_eq!(journal.entries()[0].files.len(), 1);
}

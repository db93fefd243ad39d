//! Tasks as files, and what a restart makes of them.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc};

use serde_json::{Value, json};
use tempfile::TempDir;
use volcanic_a2a_server::{FileTasks, TaskStore as _};
use volcanic_base::ConfinedDir;

use crate::remote::{Remote, Setup, answer_to, message, response_of, said, state_of};

const FOLDER: &str = ".volcanic/a2a/tasks";

fn store(workspace: &Path) -> Arc<FileTasks> {
    Arc::new(FileTasks::new(ConfinedDir::open(workspace).unwrap(), FOLDER, 1 << 24))
}

async fn start(workspace: &Path) -> Remote {
    Setup { store: store(workspace), ..Setup::default() }.start().await
}

fn names(workspace: &Path) -> Vec<String> {
    let entries = fs::read_dir(workspace.join(FOLDER)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn tasks_outlive_the_server() {
    let workspace = TempDir::new().unwrap();
    let remote = start(workspace.path()).await;
    assert_eq!(remote.call("ListTasks", json!({})).await["totalSize"], 0);
    assert_eq!(
        fs::read_dir(workspace.path()).unwrap().count(),
        0,
        "nothing is written before there is a task"
    );
    let done = remote.send("echo kept").await;
    let asked = remote.send("book a table").await;
    remote.stop().await;

    let remote = start(workspace.path()).await;
    let read = remote.call("GetTask", json!({"id": done["id"]})).await;
    assert_eq!(read, done);
    let booked = remote.call("SendMessage", answer_to(&asked, "Friday")).await["task"].take();
    assert_eq!(response_of(&booked), "Booked a table for Friday.");
    assert_eq!(remote.call("ListTasks", json!({})).await["totalSize"], 2);
    let mut kept = names(workspace.path());
    let mut expected: Vec<String> =
        [&done, &asked].map(|task| format!("{}.json", task["id"].as_str().unwrap())).to_vec();
    kept.sort();
    expected.sort();
    assert_eq!(kept, expected, "no temporary files stay");
    for name in kept {
        let mode =
            fs::metadata(workspace.path().join(FOLDER).join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn task_that_a_restart_cut_off_is_failed_when_it_is_next_read() {
    let workspace = TempDir::new().unwrap();
    let remote = start(workspace.path()).await;
    let read = remote.begin("slow 60s x").await;
    let listed = remote.begin("slow 60s y").await;
    remote.stop().await;

    let remote = start(workspace.path()).await;
    let task = remote.call("GetTask", json!({"id": read["id"]})).await;
    assert_eq!((state_of(&task), said(&task)), ("FAILED", "server restarted"));
    let failed = remote.call("ListTasks", json!({"status": "TASK_STATE_FAILED"})).await;
    assert_eq!(failed["totalSize"], 2);
    let kept = fs::read_to_string(
        workspace.path().join(FOLDER).join(format!("{}.json", listed["id"].as_str().unwrap())),
    )
    .unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["task"]["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(kept["caller"], "anyone");
}

#[tokio::test]
async fn members_that_nobody_knows_survive_a_change() {
    let workspace = TempDir::new().unwrap();
    let remote = start(workspace.path()).await;
    let asked = remote.send("book a table").await;
    let file =
        workspace.path().join(FOLDER).join(format!("{}.json", asked["id"].as_str().unwrap()));
    let mut kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    kept["note"] = json!({"by": "the owner"});
    kept["task"]["colour"] = json!("red");
    fs::write(&file, kept.to_string()).unwrap();
    remote.call("SendMessage", answer_to(&asked, "Friday")).await;
    let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(
        (&kept["note"]["by"], &kept["task"]["colour"]),
        (&json!("the owner"), &json!("red"))
    );
}

#[tokio::test]
async fn unusable_files_are_no_tasks_and_harm_nobody() {
    let workspace = TempDir::new().unwrap();
    let remote = start(workspace.path()).await;
    let task = remote.send("echo x").await;
    remote.stop().await;
    let folder = workspace.path().join(FOLDER);
    let good = fs::read(folder.join(format!("{}.json", task["id"].as_str().unwrap()))).unwrap();
    fs::write(folder.join("half.json"), &good[..good.len() / 2]).unwrap();
    fs::write(folder.join("other-name.json"), &good).unwrap();
    fs::write(folder.join("notes.txt"), "not a task").unwrap();
    fs::write(workspace.path().join("outside.json"), &good).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.join("link.json")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.join("fifo.json"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();

    let remote = start(workspace.path()).await;
    for id in ["half", "other-name", "link", "fifo", "../../../outside", "/etc/hostname", "a/b", ""]
    {
        let code = remote.code("GetTask", json!({"id": id})).await;
        assert!([-32001, -32602].contains(&code), "{id}: {code}");
    }
    assert_eq!(remote.call("ListTasks", json!({})).await["totalSize"], 1);
}

#[tokio::test]
async fn store_that_cannot_write_fails_the_call_and_tells_no_path() {
    let workspace = TempDir::new().unwrap();
    fs::write(workspace.path().join(".volcanic"), "a file where a folder should be").unwrap();
    let remote = start(workspace.path()).await;
    let answer = remote.answer("SendMessage", &message("echo x")).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!(!answer.to_string().contains("volcanic/"), "{answer}");
    assert!(store(workspace.path()).summaries().await.is_err());
}

#[tokio::test]
async fn task_too_large_to_be_read_again_is_refused_instead_of_lost() {
    let workspace = TempDir::new().unwrap();
    let root = ConfinedDir::open(workspace.path()).unwrap();
    let store = Arc::new(FileTasks::new(root, FOLDER, 2000));
    let remote = Setup { store, ..Setup::default() }.start().await;
    let large = "x".repeat(3000);
    assert_eq!(remote.code("SendMessage", message(&large)).await, -32603);
    assert_eq!(remote.call("ListTasks", json!({})).await["totalSize"], 0);
    let asked = remote.send("book a table").await;
    assert_eq!(remote.code("SendMessage", answer_to(&asked, &large)).await, -32603);
    assert_eq!(remote.call("GetTask", json!({"id": asked["id"]})).await, asked);
    let booked = remote.call("SendMessage", answer_to(&asked, "Friday")).await["task"].take();
    assert_eq!(remote.call("GetTask", json!({"id": booked["id"]})).await, booked);
}

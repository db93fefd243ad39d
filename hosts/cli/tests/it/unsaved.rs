//! What a person sees when received files cannot be saved.

use std::{fs, process::Stdio};

use tokio::{process::Command, time::timeout};

use crate::world::{Ran, SOON, VOLCANIC, World, task_in};

/// Runs a command whose files may grow to 4 KiB, beyond which every write fails as on a full disk.
async fn run_short_of_space(world: &World, arguments: &[&str]) -> Ran {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"", VOLCANIC])
        .args(arguments)
        .env_clear()
        .env("VOLCANIC_HOME", world.path("home"))
        .current_dir(world.workspace())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(SOON, command.output()).await.expect("it did not end").unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[tokio::test]
async fn text_and_task_are_shown_and_the_files_named_when_something_is_in_the_way() {
    let world = World::new();
    let _remote = world.remote().await;
    let inbox = world.write("workspace/inbox", "mine");
    let ran = world.run(&["send", "demo", "report all is well"]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let told = "is completed.\nThe report is attached.\n\
                Files not saved: report.txt (`inbox` is not a directory)\n";
    assert!(ran.out.ends_with(told), "{ran:?}");
    assert_eq!(fs::read_to_string(&inbox).unwrap(), "mine");
    fs::remove_file(inbox).unwrap();
    let task = task_in(&ran.out).unwrap();
    let ran = world.run(&["status", "demo", task]).await;
    ran.check(0, &["The report is attached.\nFiles: inbox/a2a/demo/report.txt"]);
}

#[tokio::test]
async fn write_that_fails_leaves_the_text_and_no_half_of_the_file() {
    let world = World::new();
    let _remote = world.remote().await;
    let text = "x".repeat(10_000);
    let ran = run_short_of_space(&world, &["send", "demo", &format!("report {text}")]).await;
    assert_eq!(ran.code, 1, "{ran:?}");
    let told = "is completed.\nThe report is attached.\nFiles not saved: report.txt (";
    assert!(ran.out.contains(told) && ran.out.contains("File too large"), "{ran:?}");
    assert_eq!(fs::read_dir(world.workspace().join("inbox/a2a/demo")).unwrap().count(), 0);
    let ran = world.run(&["status", "demo", task_in(&ran.out).unwrap()]).await;
    ran.check(0, &["Files: inbox/a2a/demo/report.txt"]);
}

#[tokio::test]
async fn long_text_that_no_file_takes_is_shown_whole() {
    let world = World::new();
    let _remote = world.remote().await;
    world.write("workspace/inbox", "mine");
    let text = format!("{}end", "long ".repeat(20_000));
    let ran = world.run(&["send", "demo", &format!("echo {text}")]).await;
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains(&text));
    assert!(ran.out.contains("\nFiles not saved: answer.txt (`inbox` is not a directory)"));
}

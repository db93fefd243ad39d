//! What `send` puts on the wire and what it brings home.

use std::fs;

use volcanic_testkit::RecordingProxy;

use crate::world::World;

#[tokio::test]
async fn files_of_the_workspace_arrive_whole() {
    let world = World::new();
    let remote = world.remote().await;
    world.write("workspace/notes/one.txt", "first file");
    let second = world.write("workspace/two.bin", "second");
    let second = second.to_str().unwrap();
    world
        .run(&["send", "demo", "look", "--file", "notes/one.txt", "--file", second])
        .await
        .check(0, &["You said: look", "one.txt", "two.bin"]);
    let files = remote.journal()[0]["files"].clone();
    assert_eq!(files[0]["name"], "one.txt");
    assert_eq!(files[0]["bytes"], 10);
    assert_eq!(files[1]["bytes"], 6);
    // sha256 of "second"
    let digest = "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4";
    assert_eq!(files[1]["sha256"], digest);
}

#[tokio::test]
async fn files_that_may_not_leave_stop_the_send_before_anything_goes_out() {
    let world = World::new();
    let remote = world.remote().await;
    world.write("secret.txt", "outside");
    for file in ["missing.txt", "../secret.txt", ".volcanic/a2a/agents.json", "."] {
        let ran = world.run(&["send", "demo", "look", "--file", file]).await;
        ran.check(2, &["Could not attach"]);
    }
    let small = [("A2AClient__MaxFileBytes", "4")];
    world.write("workspace/big.txt", "12345");
    let ran = world.run_with(&["send", "demo", "look", "--file", "big.txt"], &small).await;
    ran.check(2, &["Could not attach"]);
    assert!(remote.journal().is_empty());
}

#[tokio::test]
async fn received_files_are_saved_and_named_and_never_overwritten() {
    let world = World::new();
    let _remote = world.remote().await;
    for (number, name) in [(1, "report.txt"), (2, "report-2.txt")] {
        let text = format!("report number {number}");
        let path = format!("inbox/a2a/demo/{name}");
        world.run(&["send", "demo", &text]).await.check(0, &[&format!("Files: {path}")]);
        let saved = fs::read_to_string(world.workspace().join(path)).unwrap();
        assert_eq!(saved, format!("number {number}\n"));
    }
}

#[tokio::test]
async fn json_holds_the_files_and_saves_none() {
    let world = World::new();
    let _remote = world.remote().await;
    let ran = world.run(&["send", "demo", "report all is well", "--json"]).await;
    let task = ran.json()["task"].clone();
    assert!(task.to_string().contains("YWxsIGlzIHdlbGwK"), "{task}");
    assert!(!world.workspace().join("inbox").exists());
}

#[tokio::test]
async fn a_context_is_continued() {
    let world = World::new();
    let remote = world.remote().await;
    let first = world.run(&["send", "demo", "echo one", "--json"]).await.json();
    let context = first["task"]["contextId"].as_str().unwrap();
    world.run(&["send", "demo", "echo two", "--context", context]).await.check(0, &["echo: two"]);
    let journal = remote.journal();
    assert_eq!(journal[1]["contextId"], context);
    assert_ne!(journal[0]["taskId"], journal[1]["taskId"]);
}

#[tokio::test]
async fn a_task_alone_is_sent_with_its_context() {
    let world = World::new();
    let remote = world.remote().await;
    let upstream = remote.url.trim_start_matches("http://").trim_end_matches('/');
    let proxy = RecordingProxy::start(upstream.parse().unwrap()).await.unwrap();
    // The card leads to where it was asked for, so all of it goes through the proxy.
    let url = format!("http://{}/", proxy.address());
    let asked = world.run(&["send", &url, "book a boat", "--json"]).await.json();
    let (task, context) = (&asked["task"]["id"], &asked["task"]["contextId"]);
    assert!(!proxy.requested(&format!("\"contextId\":{context}")), "nobody knew it yet");
    world
        .run(&["send", &url, "Monday", "--task", task.as_str().unwrap()])
        .await
        .check(0, &["Booked a boat for Monday."]);
    assert!(proxy.requested("\"method\":\"GetTask\""), "{}", proxy.transcript());
    assert!(proxy.requested(&format!("\"contextId\":{context}")), "{}", proxy.transcript());
    assert!(proxy.requested(&format!("\"taskId\":{task}")), "{}", proxy.transcript());
}

#[tokio::test]
async fn what_an_agent_says_cannot_steer_the_terminal() {
    let world = World::new();
    let rules = "[[rule]]\nwhen = '(?s)^.*$'\nsay = \"red \\u001b[31m \\u009b2J \\u202e end\\nFiles: none\"\n";
    let _remote = world.remote_with(Some(rules)).await;
    let text = world.run(&["send", "demo", "x"]).await;
    text.check(0, &["red \\u{1b}[31m \\u{9b}2J \\u{202e} end\n> Files: none"]);
    let json = world.run(&["send", "demo", "x", "--json"]).await;
    let harmless = |c: char| !c.is_control() || c == '\n';
    assert!(json.out.chars().all(harmless) && !json.out.contains('\u{202e}'), "{json:?}");
    let said = &json.json()["task"]["artifacts"][0]["parts"][0]["text"];
    assert_eq!(said, "red \u{1b}[31m \u{9b}2J \u{202e} end\nFiles: none");
}

#[tokio::test]
async fn none_of_these_commands_touches_state_or_watches() {
    let world = World::new();
    let _remote = world.remote().await;
    let sent = world.run(&["send", "demo", "slow 60s x", "--wait", "0s"]).await;
    world.run(&["status", "demo", sent.task()]).await.check(5, &[]);
    world.run(&["cancel", "demo", sent.task()]).await.check(0, &[]);
    assert!(world.watches().await.is_empty());
    assert!(!world.path("home").exists(), "reading commands write nothing");
}

//! `volcanic tasks`.

use serde_json::{Value, json};

use crate::{
    odd_agent::{Answer, Odd, task},
    world::{VOLCANIC, World},
};

/// A world whose agent has three tasks; with their ids, the oldest first.
async fn three(world: &World) -> (Vec<String>, Value) {
    let first = world.run(&["send", "demo", "echo one", "--json"]).await.json()["task"].clone();
    let context = first["contextId"].as_str().unwrap();
    let second = world.run(&["send", "demo", "echo two", "--context", context, "--json"]).await;
    let third = world.run(&["send", "demo", "fail on purpose", "--json"]).await;
    let id = |task: &Value| task["id"].as_str().unwrap().to_owned();
    let ids = vec![id(&first), id(&second.json()["task"]), id(&third.json()["task"])];
    (ids, first["contextId"].clone())
}

#[tokio::test]
async fn tasks_are_listed_on_lines_that_begin_with_their_ids_the_newest_first() {
    let world = World::new();
    let _remote = world.remote().await;
    world.run(&["tasks", "demo"]).await.check(0, &["No tasks."]);
    let (ids, context) = three(&world).await;
    let ran = world.run(&["tasks", "demo"]).await;
    ran.check(0, &[" completed ", " failed ", "on purpose", context.as_str().unwrap()]);
    let listed: Vec<&str> =
        ran.out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(listed, [&ids[2], &ids[1], &ids[0]], "{ran:?}");
    assert_eq!(ran.err, "", "nothing is left out");
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let world = World::new();
    let _remote = world.remote().await;
    let (ids, context) = three(&world).await;
    let context = context.as_str().unwrap();
    for (filter, wanted) in [
        (&["--status", "failed"][..], vec![&ids[2]]),
        (&["--context", context], vec![&ids[1], &ids[0]]),
        (&["--context", context, "--status", "failed"], vec![]),
        (&["--since", "2999-01-01T00:00:00Z"], vec![]),
        (&["--since", "2020-01-01"], vec![&ids[2], &ids[1], &ids[0]]),
    ] {
        let arguments = [&["tasks", "demo", "--json"], filter].concat();
        let page = world.run(&arguments).await.json();
        let found: Vec<&Value> =
            page["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
        assert_eq!(found, wanted, "{filter:?}");
        assert_eq!(page["totalSize"], json!(wanted.len()), "{page}");
    }
    for wrong in [
        &["--status", "done"][..],
        &["--page-size", "0"],
        &["--page-size", "101"],
        &["--since", "monday"],
    ] {
        let ran = world.run(&[&["tasks", "demo"], wrong].concat()).await;
        ran.check(2, &[wrong[0], wrong[1]]);
    }
}

#[tokio::test]
async fn artifacts_and_history_are_there_when_they_are_asked_for() {
    let world = World::new();
    let _remote = world.remote().await;
    three(&world).await;
    let plain = world.run(&["tasks", "demo", "--json", "--status", "completed"]).await.json();
    assert!(plain["tasks"][0]["artifacts"].is_null() && plain["tasks"][0]["history"].is_null());
    let arguments =
        ["tasks", "demo", "--json", "--status", "completed", "--artifacts", "--history", "5"];
    let full = world.run(&arguments).await.json();
    assert_eq!(full["tasks"][0]["artifacts"][0]["parts"][0]["text"], "echo: two");
    assert_eq!(full["tasks"][0]["history"][0]["parts"][0]["text"], "echo two");
}

#[tokio::test]
async fn pages_follow_each_other_by_the_command_that_is_said_or_all_at_once() {
    let world = World::new();
    let _remote = world.remote().await;
    let (ids, _) = three(&world).await;
    let first = world.run(&["tasks", "demo", "--page-size", "2"]).await;
    assert_eq!(first.out.lines().count(), 2, "{first:?}");
    let hint = first.err.trim();
    let command = hint.strip_prefix("(2 of 3 tasks. More: volcanic ").unwrap();
    let command: Vec<&str> = command.trim_end_matches(')').split(' ').collect();
    let second = world.run(&command).await;
    assert!(second.out.starts_with(&ids[0]), "{second:?}");
    assert_eq!((second.out.lines().count(), second.err.as_str()), (1, ""));

    let all = world.run(&["tasks", "demo", "--page-size", "1", "--all"]).await;
    assert_eq!((all.code, all.out.lines().count(), all.err.as_str()), (0, 3, ""), "{all:?}");
    let all = world.run(&["tasks", "demo", "--page-size", "1", "--all", "--json"]).await;
    let pages: Vec<Value> =
        all.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<&Value> = pages.iter().map(|page| &page["tasks"][0]["id"]).collect();
    assert_eq!(found, [&ids[2], &ids[1], &ids[0]], "a page is a line");
}

#[tokio::test]
async fn an_agent_whose_pages_never_end_is_given_up() {
    let world = World::new();
    let page = |token: &str| json!({ "tasks": [task("TASK_STATE_WORKING", "")], "nextPageToken": token, "pageSize": 1, "totalSize": 7 });
    let same = Odd::start(true, move |_, _| Answer::Result(page("again"))).await;
    let ran = world.run(&["tasks", &same.url, "--all"]).await;
    assert_eq!((ran.code, ran.out.lines().count()), (0, 2), "{ran:?}");
    assert!(ran.err.contains("(2 of 7 tasks. More: "), "{ran:?}");
    let endless = Odd::start(true, move |_, n| Answer::Result(page(&format!("p{n}")))).await;
    let ran = world.run(&["tasks", &endless.url, "--all"]).await;
    assert_eq!((ran.code, endless.asked().len()), (0, 100));
    assert!(ran.err.contains("--page-token p99"), "{ran:?}");
}

#[tokio::test]
async fn the_token_of_a_page_cannot_steer_a_terminal_and_the_command_that_is_said_holds_it() {
    let world = World::new();
    let token = "-a\u{1b}[2J\u{9b}\u{202e} it's\r\n\\$(é)";
    let page = move |n| {
        let next = if n == 0 { token } else { "" };
        Answer::Result(json!({ "tasks": [], "configs": [], "nextPageToken": next }))
    };
    let odd = Odd::start(true, move |_, n| page(n)).await;
    let interface = format!("{}rpc", odd.url);
    let plain = ["--no-card", "--binding", "jsonrpc"];
    for list in [&["tasks", &interface][..], &["push-config", "list", &interface, "t-1"]] {
        let before = odd.asked().len();
        let ran = world.run(&[list, &plain].concat()).await;
        let hint = ran.err.trim_end();
        let steers = |c: char| c.is_control() || c == '\u{202e}';
        assert!(ran.code == 0 && !hint.chars().any(steers), "{ran:?}");
        let (_, command) = hint.split_once("More: volcanic ").unwrap();
        let shell = tokio::process::Command::new("bash")
            .arg("-c")
            .arg(format!("{VOLCANIC} {}", command.strip_suffix(')').unwrap()))
            .env("VOLCANIC_HOME", world.path("home"))
            .current_dir(world.workspace())
            .output();
        let shell = shell.await.unwrap();
        assert!(shell.status.success(), "{shell:?}");
        let asked = odd.asked();
        assert_eq!(asked[before + 1].params["pageToken"], token, "{hint}");
    }
}

#[tokio::test]
async fn a_token_that_fills_the_screen_is_left_to_programs() {
    let world = World::new();
    let odd = Odd::start(true, |_, _| {
        Answer::Result(json!({ "tasks": [], "nextPageToken": "x".repeat(100_000) }))
    });
    let ran = world.run(&["tasks", &odd.await.url]).await;
    assert!(ran.err.contains("--json") && ran.err.len() < 500, "{} bytes", ran.err.len());
}

#[tokio::test]
async fn a_task_that_cannot_be_read_hides_no_others() {
    let world = World::new();
    let odd = Odd::start(false, |_, _| {
        let mut bad = task("TASK_STATE_WORKING", "");
        bad["id"] = json!("bad\u{1b}[31m");
        bad["artifacts"] = json!(5);
        let mut timeless = task("TASK_STATE_WORKING", "");
        timeless["id"] = json!("t-2");
        timeless["status"]["timestamp"] = json!("yesterday");
        Answer::Result(json!({ "tasks": [task("TASK_STATE_COMPLETED", "x"), bad, timeless] }))
    });
    let odd = odd.await;
    let text = world.run(&["tasks", &odd.url]).await;
    text.check(0, &["t-1  completed", "t-2  working"]);
    let told = "(A task cannot be read: bad\\u{1b}[31m: `artifacts`: ";
    assert!(text.err.starts_with(told), "{text:?}");
    assert!(!text.out.contains("bad"), "{text:?}");
    let json = world.run(&["tasks", &odd.url, "--json"]).await;
    assert_eq!(json.code, 0, "{json:?}");
    let page: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(page["tasks"].as_array().unwrap().len(), 2, "{page}");
    assert_eq!(page["unreadable"][0]["taskId"], "bad\u{1b}[31m", "{page}");
    assert!(json.err.contains("A task cannot be read"), "{json:?}");
}

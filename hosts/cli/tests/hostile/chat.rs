//! The assistant in a chat: what its agents do costs it little, and it goes on.

use std::time::Duration;

use serde_json::{Value, json};
use volcanic_testkit::{
    HostileAgent, HostilePlace, HostileTrick, Process, StreamFault, TaskFault, WireFault,
};

use crate::{
    scene::{KEY, Scene},
    table::{GROWTH, judge_files},
};

/// How long an answer may take.
const SOON: Duration = Duration::from_secs(30);

/// Starts the assistant; it waits this many seconds for an agent.
fn chat(scene: &Scene, wait: &str) -> Process {
    let program = scene.program().args(["chat", "--model", "scripted"]);
    program.env("A2AClient__WaitSeconds", wait).start().unwrap()
}

async fn shows(chat: &mut Process, part: &str) {
    let line = chat.line(SOON, part, |line| line.contains(part)).await;
    line.unwrap_or_else(|error| panic!("{error}"));
}

/// The most memory that the process had so far, in bytes.
fn peak(process: &Process) -> u64 {
    memory(process, "VmHWM:")
}

/// What the system counts of a process under this name, in bytes.
fn memory(process: &Process, name: &str) -> u64 {
    let status = format!("/proc/{}/status", process.id().unwrap());
    let status = std::fs::read_to_string(status).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The first agent is friendly, and what it costs is what the others are compared with.
#[tokio::test]
async fn an_assistant_tells_what_its_agents_did_and_goes_on() {
    let broken = "cannot be used";
    let done = "is completed.";
    let tricks = [
        (HostileTrick::NoneStreaming, done),
        (HostileTrick::Stream(StreamFault::HugeEvent(1 << 30)), done),
        (HostileTrick::Stream(StreamFault::EndlessLine), done),
        (HostileTrick::Stream(StreamFault::EndlessComments), done),
        (HostileTrick::Stream(StreamFault::OtherTask), done),
        (HostileTrick::Wire(HostilePlace::Stream, WireFault::GzipBomb), done),
        (HostileTrick::Wire(HostilePlace::Call, WireFault::GzipBomb), broken),
        (HostileTrick::Wire(HostilePlace::Call, WireFault::EndlessBody), "is larger than"),
        (HostileTrick::Wire(HostilePlace::Call, WireFault::Reset), "the connection broke"),
        (HostileTrick::Wire(HostilePlace::Card, WireFault::EndlessBody), "is larger than"),
        (HostileTrick::Task(TaskFault::DeepData(100_000)), "cannot be read"),
        (HostileTrick::Task(TaskFault::Files(10_000)), "Files skipped (9980 more)"),
    ];
    let mut friendly = None;
    for (trick, told) in tricks {
        let peak = asked(&trick, told).await;
        let growth = peak.saturating_sub(*friendly.get_or_insert(peak));
        assert!(growth < GROWTH, "{trick:?}: {} MiB more", growth >> 20);
    }
}

/// Asks one agent in a chat, and returns the most memory that took.
async fn asked(trick: &HostileTrick, told: &str) -> u64 {
    let scene = Scene::new();
    let agent = HostileAgent::start(trick.clone()).await.unwrap();
    scene.knows(agent.url(), true);
    let before = scene.tree();
    let mut assistant = chat(&scene, "5");
    assistant.say("ask demo: plum").await.unwrap();
    shows(&mut assistant, told).await;
    assistant.say("/status").await.unwrap();
    shows(&mut assistant, "Nothing is running.").await;
    let peak = peak(&assistant);
    let (status, lines) = assistant.finish(SOON).await.unwrap();
    assert!(status.success(), "{trick:?}: {status}");
    assert!(!lines.iter().any(|line| line.contains(KEY)), "{trick:?}: {lines:?}");
    assert_eq!(agent.complaints(), Vec::<String>::new(), "{trick:?}");
    let mut after = scene.tree();
    check_state(&mut after);
    assert_eq!(judge_files(&before, &after), Vec::<String>::new(), "{trick:?}");
    peak
}

/// Takes out what the assistant writes for itself: its home, and the view of its watches.
#[track_caller]
fn check_state(tree: &mut std::collections::BTreeMap<String, crate::scene::Standing>) {
    tree.retain(|path, at| {
        let is_own = path == "home"
            || path.starts_with("home/")
            || path == "workspace/.volcanic/a2a/pending.json";
        let has_key = at.bytes.windows(KEY.len()).any(|bytes| bytes == KEY.as_bytes());
        assert!(!(is_own && has_key), "{path} holds the key");
        !is_own
    });
}

/// Hands a task over, starts anew, and reads the task then, as the watch does at its start.
async fn watched(fault: TaskFault, told: &str) -> u64 {
    let scene = Scene::new();
    let agent = HostileAgent::start(HostileTrick::Watched(fault.clone())).await.unwrap();
    scene.knows(agent.url(), true);
    let before = scene.tree();
    let mut assistant = chat(&scene, "0");
    assistant.say("ask demo: plum").await.unwrap();
    shows(&mut assistant, "will be delivered").await;
    assert!(assistant.finish(SOON).await.unwrap().0.success());
    let mut assistant = chat(&scene, "0");
    // The line that begins the news may be all there is.
    shows(&mut assistant, "News from demo").await;
    if !told.is_empty() {
        shows(&mut assistant, told).await;
    }
    let peak = peak(&assistant);
    let (status, lines) = assistant.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(lines.iter().filter(|line| line.contains("News from")).count(), 1, "{lines:?}");
    let mut after = scene.tree();
    check_state(&mut after);
    assert_eq!(judge_files(&before, &after), Vec::<String>::new(), "{fault:?}");
    assert_eq!(agent.complaints(), Vec::<String>::new(), "{fault:?}");
    peak
}

#[tokio::test]
async fn a_watched_task_that_is_huge_is_told_once_and_costs_little() {
    let friendly = watched(TaskFault::Files(1), "inbox/a2a/demo/plum.txt").await;
    for (fault, told) in [
        (TaskFault::Files(10_000), "Files skipped (9980 more)"),
        (TaskFault::LongText(4 << 20), "inbox/a2a/demo/answer.txt"),
        (TaskFault::EmptyParts(1_000_000), ""),
    ] {
        let growth = watched(fault.clone(), told).await.saturating_sub(friendly);
        assert!(growth < GROWTH, "{fault:?}: {} MiB more", growth >> 20);
    }
}

/// Hands a task over, and waits for its result in the same chat.
async fn followed(trick: &HostileTrick, told: &str) -> u64 {
    let scene = Scene::new();
    let agent = HostileAgent::start(trick.clone()).await.unwrap();
    scene.knows(agent.url(), true);
    let before = scene.tree();
    let mut assistant = chat(&scene, "0");
    assistant.say("ask demo: plum").await.unwrap();
    shows(&mut assistant, told).await;
    let peak = peak(&assistant);
    let (status, lines) = assistant.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(lines.iter().filter(|line| line.contains("News from")).count(), 1, "{lines:?}");
    let mut after = scene.tree();
    check_state(&mut after);
    assert_eq!(judge_files(&before, &after), Vec::<String>::new(), "{trick:?}");
    assert_eq!(agent.complaints(), Vec::<String>::new(), "{trick:?}");
    peak
}

#[tokio::test]
async fn a_result_that_is_huge_and_streamed_is_told_once_and_costs_little() {
    let friendly = followed(&HostileTrick::NoneStreaming, "News from demo: done").await;
    let size = 28 << 20;
    for (fault, told) in [
        (StreamFault::LongText(size), "News from demo: done"),
        (StreamFault::LongTask(size), "inbox/a2a/demo/answer.txt"),
    ] {
        let peak = followed(&HostileTrick::Stream(fault.clone()), told).await;
        let growth = peak.saturating_sub(friendly);
        assert!(growth < GROWTH, "{fault:?}: {} MiB more", growth >> 20);
    }
}

/// Asks one agent after the other in the same chat. Returns the memory that it has then, and the most it had.
async fn asked_in_turn(tricks: &[(HostileTrick, &str)]) -> (u64, u64) {
    let scene = Scene::new();
    let mut running = Vec::new();
    let mut entries = Vec::new();
    for (number, (trick, _)) in tricks.iter().enumerate() {
        let agent = HostileAgent::start(trick.clone()).await.unwrap();
        entries.push(json!({"name": format!("demo-{number}"), "url": agent.url()}));
        running.push(agent);
    }
    scene.write("workspace/.volcanic/a2a/agents.json", &Value::from(entries).to_string());
    let mut assistant = chat(&scene, "5");
    for (number, (_, told)) in tricks.iter().enumerate() {
        assistant.say(&format!("ask demo-{number}: plum")).await.unwrap();
        shows(&mut assistant, told).await;
    }
    let left = (memory(&assistant, "VmRSS:"), peak(&assistant));
    assert!(assistant.finish(SOON).await.unwrap().0.success());
    left
}

#[tokio::test]
async fn what_one_agent_costs_is_given_back_before_the_next() {
    let flood = |fault, told| (HostileTrick::Stream(fault), told);
    let done = "is completed.";
    let floods = [
        flood(StreamFault::HugeEvent(1 << 30), done),
        flood(StreamFault::EndlessLine, done),
        (HostileTrick::Wire(HostilePlace::Call, WireFault::EndlessBody), "is larger than"),
        flood(StreamFault::TinyEvents(2_000), done),
        (HostileTrick::Wire(HostilePlace::Call, WireFault::GzipBomb), "cannot be used"),
        (HostileTrick::Task(TaskFault::LargeFile(9 << 20)), "large.bin"),
        (HostileTrick::Wire(HostilePlace::Card, WireFault::EndlessBody), "is larger than"),
    ];
    let mut floods: Vec<_> = floods.iter().cloned().cycle().take(28).collect();
    // To read one takes seconds without optimisation, so there are two: each used to leave its size behind.
    for at in [14, 29] {
        floods.insert(at, flood(StreamFault::LongTask(28 << 20), "answer.txt"));
    }
    let friendly = vec![(HostileTrick::NoneStreaming, done); floods.len()];
    let (friendly, most_friendly) = asked_in_turn(&friendly).await;
    let (left, most) = asked_in_turn(&floods).await;
    for (what, growth) in [
        ("is left", left.saturating_sub(friendly)),
        ("came together", most.saturating_sub(most_friendly)),
    ] {
        assert!(growth < GROWTH, "{} MiB more {what}", growth >> 20);
    }
}

//! Sixty outcomes that mean harm: what of them reaches a terminal and the disk.

use std::time::Duration;

use volcanic_testkit::{HostileResults, Measured, Process, hostile_results};

use crate::scene::Scene;
use crate::table::judge_files;

/// How long a line may take.
const SOON: Duration = Duration::from_mins(1);

/// Starts the assistant, which hands every task over at once.
fn chat(scene: &Scene) -> Process {
    let program = scene.program().args(["chat", "--model", "scripted"]);
    program.env("A2AClient__WaitSeconds", "0").start().unwrap()
}

async fn shows(chat: &mut Process, part: &str) {
    let line = chat.line(SOON, part, |line| line.contains(part)).await;
    line.unwrap_or_else(|error| panic!("{error}"));
}

fn count() -> usize {
    hostile_results().len()
}

/// Nothing in a text steers a terminal or turns its direction.
#[track_caller]
fn check_calm(what: &str, text: &str) {
    let is_raw = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let found = text.find(is_raw).map(|at| text[at..].chars().take(20).collect::<String>());
    assert_eq!(found, None, "{what}");
}

async fn run(scene: &Scene, arguments: &[&str]) -> Measured {
    let ran = scene.run(arguments, &[]).await;
    // Done, failed, or a question.
    assert!(matches!(ran.code, Some(0 | 1 | 6)), "{arguments:?}: {ran:?}");
    check_calm(&format!("{arguments:?}"), &ran.out);
    check_calm(&format!("{arguments:?}"), &ran.err);
    ran
}

#[tokio::test]
async fn sixty_hostile_outcomes_do_not_steer_a_terminal() {
    let agent = HostileResults::start().await.unwrap();
    let scene = Scene::new();
    scene.knows(&agent.url(), false);
    let before = scene.tree();
    for (number, result) in (1..).zip(hostile_results()) {
        let text = format!("now {number:02}");
        let ran = run(&scene, &["send", "demo", &text, "--wait", "60s"]).await;
        let heads = ran.out.lines().filter(|line| line.starts_with("[A2A ")).count();
        assert_eq!(heads, 0, "{}: {}", result.name, ran.out);
        run(&scene, &["status", "demo", result.task_id(), "--json"]).await;
    }
    assert_eq!(agent.sent().len(), count());
    assert_eq!(judge_files(&before, &scene.tree()), Vec::<String>::new());
}

#[tokio::test]
async fn sixty_hostile_outcomes_are_news_in_a_chat_and_nothing_else() {
    let agent = HostileResults::start().await.unwrap();
    let scene = Scene::new();
    scene.knows(&agent.url(), false);
    let before = scene.tree();
    let mut assistant = chat(&scene);
    for number in 1..=count() {
        assistant.say(&format!("ask demo: case {number:02}")).await.unwrap();
        shows(&mut assistant, "will be delivered").await;
    }
    let (status, mut lines) = assistant.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    // Whatever is still followed is read at the start; nobody waits for the next look.
    let mut assistant = chat(&scene);
    let is_news = |line: &String| line.contains("News from demo");
    for _ in lines.iter().filter(|line| is_news(line)).count()..count() {
        shows(&mut assistant, "News from demo").await;
    }
    let (status, more) = assistant.finish(SOON).await.unwrap();
    assert!(status.success(), "{status}");
    lines.extend(more);
    assert_eq!(lines.iter().filter(|line| is_news(line)).count(), count());
    for line in &lines {
        check_calm("a line of the chat", line);
    }
    let ordered = (1..=count()).map(|number| format!("case {number:02}"));
    assert_eq!(agent.sent(), ordered.collect::<Vec<_>>());
    let mut after = scene.tree();
    // What the assistant writes for itself.
    let view = "workspace/.volcanic/a2a/pending.json";
    after.retain(|path, _| path != "home" && !path.starts_with("home/") && path != view);
    assert_eq!(judge_files(&before, &after), Vec::<String>::new());
}

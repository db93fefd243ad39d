//! The chat on a terminal.

use std::{path::PathBuf, time::Duration};

use crate::{
    pty::{COLUMNS, Pty},
    world::{World, signal_id},
};

const SLOW: &str = "delay_ms = 120\n[[rule]]\nsay = \"one two three four five six seven done\"\n";

fn world(rules: &str) -> (World, PathBuf) {
    let world = World::new();
    let rules = world.write("rules.toml", rules);
    (world, rules)
}

#[tokio::test]
async fn an_answer_appears_as_it_is_written_and_what_is_typed_meanwhile_stays_whole() {
    let (world, rules) = world(SLOW);
    let mut chat = Pty::chat(&world, &rules, 1);
    chat.shows(">").await;
    chat.press("go\r");
    chat.shows("one two three").await;
    chat.press("half typ");
    let rows = chat.shows("one two three four five six seven done").await;
    assert_eq!(rows, ["> go", "one two three four five six seven done", "> half typ"]);
    chat.press("ed\r");
    let done = |rows: &[String]| rows.iter().filter(|row| row.ends_with("done")).count();
    let rows = chat.until(|rows| done(rows) == 2 && rows.last().unwrap() == ">").await;
    assert_eq!(rows[2], "> half typed");
}

#[tokio::test]
async fn lines_that_end_at_any_moment_of_an_answer_hold_nothing_up() {
    const TURNS: u64 = 320;
    let (world, rules) = world("delay_ms = 1\n[[rule]]\nsay = \"one two three four done\"\n");
    let mut chat = Pty::chat(&world, &rules, 1);
    chat.shows(">").await;
    for turn in 0..TURNS {
        chat.press("go\r");
        // Another moment each time: around the end of an answer is the dangerous one.
        tokio::time::sleep(Duration::from_micros(turn * 577 % 40_000)).await;
        if turn % 8 == 7 {
            // No more lines than may wait.
            chat.until_raw(|raw| raw.matches("done").count() as u64 > turn).await;
        }
    }
    chat.until_raw(|raw| raw.matches("done").count() as u64 >= TURNS).await;
}

#[tokio::test]
async fn a_line_that_has_to_wait_is_said_to_and_what_is_being_written_goes_on() {
    let (world, rules) = world(SLOW);
    let mut chat = Pty::chat(&world, &rules, 1);
    chat.shows(">").await;
    chat.press("go\r");
    chat.shows("one two").await;
    chat.press("next\r");
    chat.shows("(queued; 1 waits)").await;
    chat.press("last\r");
    chat.shows("(queued; 2 wait)").await;
    let count = |rows: &[String], word: &str| {
        rows.iter().flat_map(|row| row.split(' ')).filter(|shown| *shown == word).count()
    };
    let rows = chat.until(|rows| count(rows, "done") == 3).await;
    assert_eq!(count(&rows, "seven"), 3, "nothing is told twice: {rows:#?}");
}

#[tokio::test]
async fn a_long_task_of_the_demo_is_handed_over_while_somebody_looks() {
    let world = World::new();
    let mut demo = Pty::start(&world, &["demo"], 60);
    demo.shows(">").await;
    demo.press("ask demo: slow 90s tea\r");
    demo.until(|rows| rows.join(" ").contains("will be delivered")).await;
    demo.press("/quit\r");
    demo.shows("1 task is left alone: the demo ends here.").await;
    demo.ended_well().await;
}

#[tokio::test]
async fn leaving_a_terminal_says_last_what_is_followed_on() {
    for way in ["\x04", "/quit\r", "TERM"] {
        let world = World::new();
        let _remote = world.remote().await;
        let mut chat = Pty::start(&world, &["chat", "--model", "scripted"], 0);
        chat.shows(">").await;
        chat.press("ask demo: slow 60s plum\r");
        chat.until(|rows| rows.join(" ").contains("will be delivered")).await;
        if way == "TERM" {
            signal_id(chat.child.id().unwrap(), way).await;
        } else {
            chat.press(way);
        }
        let farewell = "1 task is followed on; start a chat here again to hear of it";
        let rows = chat.shows(farewell).await;
        assert_eq!(rows.iter().filter(|row| row.contains("followed on")).count(), 1, "{rows:#?}");
        chat.ended_well().await;
    }
}

#[tokio::test]
async fn text_over_many_rows_is_streamed_without_a_gap() {
    let text = "word".repeat(40);
    let rules = format!("delay_ms = 10\n[[rule]]\nsay = \"{text} and\\n\\na second line\"\n");
    let (world, rules) = world(&rules);
    let mut chat = Pty::chat(&world, &rules, 1);
    chat.shows(">").await;
    chat.press("go\r");
    let rows = chat.shows("a second line").await;
    let columns = usize::from(COLUMNS);
    let shown = rows[1..rows.len() - 2].concat();
    assert_eq!(shown, format!("{text} and"), "{rows:#?}");
    assert!(rows[1].len() == columns && rows[rows.len() - 2] == "a second line", "{rows:#?}");
}

#[tokio::test]
async fn a_delivery_arrives_above_what_is_being_typed() {
    let world = World::new();
    let remote = world.remote().await;
    // The result is there before the chat: it comes with its start, while somebody types already.
    let mut before = world.chat(0);
    before.say("ask demo: slow 1s plum").await.unwrap();
    crate::world::shows(&mut before, "will be delivered").await;
    before.kill().await.unwrap();
    let task = remote.journal()[0]["taskId"].as_str().unwrap().to_owned();
    world.run(&["status", "demo", &task, "--wait", "15s"]).await.check(0, &[]);
    let rules = "delay_ms = 100\n[[rule]]\nsay = \"news: ${prompt}\"\n";
    let rules = world.write("rules.toml", rules);
    let mut chat = Pty::chat(&world, &rules, 1);
    chat.press("what I am typing");
    let rows = chat.until(|rows| rows.iter().any(|row| row.contains("finished: plum"))).await;
    assert_eq!(rows.last().unwrap(), "> what I am typing", "{rows:#?}");
    assert_eq!(rows.iter().filter(|row| row.contains("plum")).count(), 1, "{rows:#?}");
}

#[tokio::test]
async fn ctrl_c_stops_what_runs_and_leaves_only_when_pressed_twice() {
    let (world, rules) = world(SLOW);
    let mut chat = Pty::chat(&world, &rules, 1);
    chat.shows(">").await;
    chat.press("go\r");
    chat.shows("one two").await;
    chat.press("\x03");
    let rows = chat.shows("(stopped)").await;
    assert!(!rows.iter().any(|row| row.contains("done")), "{rows:#?}");
    let hint = |rows: &[String]| rows.iter().filter(|row| row.starts_with("(Nothing is")).count();
    chat.press("\x03");
    chat.until(|rows| hint(rows) == 1).await;
    // A word in between, and it does not count.
    chat.press("/status\r");
    chat.shows("Nothing is running.").await;
    chat.press("\x03");
    chat.until(|rows| hint(rows) == 2).await;
    chat.press("\x03");
    chat.ended_well().await;
}

#[tokio::test]
async fn ctrl_d_quit_and_signals_leave_the_terminal_as_it_was() {
    for way in ["\x04", "/quit\r", "TERM"] {
        let (world, rules) = world(SLOW);
        let mut chat = Pty::chat(&world, &rules, 1);
        chat.shows(">").await;
        if way == "TERM" {
            assert!(chat.is_editing(), "a line can be edited");
            signal_id(chat.child.id().unwrap(), way).await;
        } else {
            chat.press(way);
        }
        chat.ended_well().await;
    }
}

#[tokio::test]
async fn what_a_model_says_cannot_steer_the_terminal() {
    let (world, rules) =
        world("[[rule]]\nsay = \"red \\u001b[31m \\u009b2J \\u001b]0;title\\u0007\\rover it\"\n");
    let mut chat = Pty::chat(&world, &rules, 1);
    chat.shows(">").await;
    chat.press("go\r");
    let shown = "red \\u{1b}[31m \\u{9b}2J \\u{1b}]0;title\\u{7}over it";
    chat.shows(shown).await;
    let raw = chat.raw();
    assert!(
        !raw.contains("\x1b[31m") && !raw.contains('\u{9b}') && !raw.contains("\x1b]"),
        "{raw:?}"
    );
}

#[tokio::test]
async fn lines_that_are_pasted_together_are_said_together() {
    let (world, rules) =
        world("[[rule]]\nwhen = '^a\\nb$'\nsay = \"both\"\n[[rule]]\nsay = \"one\"\n");
    let mut chat = Pty::chat(&world, &rules, 1);
    chat.shows(">").await;
    chat.press("\x1b[200~a\rb\x1b[201~");
    chat.press("\r");
    chat.shows("both").await;
}

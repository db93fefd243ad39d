//! Frames as files: what cannot be seen is written out, what is long is cut, and the sixty are found again by their tasks.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use volcanic_testkit::hostile_results;

/// How much of a line is written, in characters.
const MOST: usize = 200;

/// The task of each result as the frame shows it, by which its text is found.
fn shown_id(id: &str) -> String {
    id.chars()
        .map(|c| {
            let is_plain = !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}');
            if is_plain { c.to_string() } else { c.escape_unicode().to_string() }
        })
        .collect()
}

/// Every text under the name of its result, in the order of the results.
pub(super) fn shown(texts: &[String]) -> String {
    let mut all = String::new();
    for (number, result) in (1..).zip(hostile_results()) {
        let id = format!("task {}", shown_id(result.task_id()));
        let of_task: Vec<_> = texts
            .iter()
            .filter(|text| {
                let head = text.lines().next().unwrap_or_default();
                // An id may begin like another one.
                head.split_once(&id).is_some_and(|(_, rest)| rest.starts_with([' ', ']']))
            })
            .collect();
        let [text] = of_task[..] else {
            panic!("{number} {}: {} texts of {id}", result.name, of_task.len())
        };
        check_text(&result.task["id"].to_string(), text);
        // Which of two long texts is saved first is a matter of luck.
        let text = text.replace("/answer-2.txt", "/answer.txt");
        let _ = write!(all, "== {number:02} {}\n{}", result.name, lines(&text));
    }
    all
}

/// Nothing in a text steers a display, and only the frame looks like the frame.
#[track_caller]
fn check_text(what: &str, text: &str) {
    let is_raw = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(is_raw), "{what}: {text:?}");
    let breaks = ['\n', '\u{2028}', '\u{2029}'];
    let heads = text.split(breaks).filter(|line| line.trim_start().starts_with("[A2A ")).count();
    assert!(heads <= 1, "{what}: {text}");
    let contexts = text.split(breaks).filter(|line| line.starts_with("Context: ")).count();
    assert!(contexts <= 1, "{what}: {text}");
}

/// Whether a reader of the file would see a character for what it is.
fn is_seen(c: char) -> bool {
    let is_marked = matches!(c, '"' | '\'' | '\\');
    is_marked
        || c.escape_debug().eq([c]) && !matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{3000}')
}

fn lines(text: &str) -> String {
    let mut all = String::new();
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        let mut times = 1;
        while lines.next_if_eq(&line).is_some() {
            times += 1;
        }
        let length = line.chars().count();
        all.push_str("| ");
        for c in line.chars().take(MOST) {
            if is_seen(c) {
                all.push(c);
            } else {
                let _ = write!(all, "<U+{:04X}>", u32::from(c));
            }
        }
        if length > MOST {
            let _ = write!(all, " … ({length} characters)");
        }
        if times > 1 {
            let _ = write!(all, " … ({times} times)");
        }
        all.push('\n');
    }
    all
}

/// Compares with the file of this name, or writes it.
#[track_caller]
pub(super) fn check_frames(name: &str, frames: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/results").join(name);
    if std::env::var("VOLCANIC_SNAPSHOTS").is_ok_and(|value| value == "write") {
        fs::write(&path, frames).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let at = kept.lines().zip(frames.lines()).position(|(kept, now)| kept != now);
    assert!(
        kept == frames,
        "{name} differs from line {} on; now: {:?}",
        at.map_or(0, |at| at + 1),
        at.and_then(|at| frames.lines().nth(at))
    );
}

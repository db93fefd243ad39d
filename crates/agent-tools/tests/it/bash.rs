//! `bash`, with real processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::room::{Room, until};

async fn run(room: &Room, command: &str) -> (String, bool) {
    room.call("bash", json!({ "command": command })).await
}

/// The file that a result names.
fn named_file(text: &str) -> PathBuf {
    let (_, rest) = text.split_once(": /").unwrap();
    let (path, _) = rest.split_once(" (for bash)").unwrap();
    Path::new("/").join(path)
}

/// Whether a process lives; one that only waits to be reaped does not.
fn lives(pid: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(") ").next().unwrap().chars().next().unwrap();
    !matches!(state, 'Z' | 'X')
}

/// A process id that a command writes.
async fn pid_in(room: &Room, file: &str) -> String {
    let path = room.path(file);
    let read = || fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n'));
    until("the process id is there", read).await;
    room.get(file).trim().to_owned()
}

#[tokio::test]
async fn output_of_both_kinds_keeps_its_order() {
    let room = Room::new();
    let said = run(&room, "echo one; echo two >&2; echo three; pwd -P >where").await;
    assert_eq!(said, ("one\ntwo\nthree".to_owned(), false));
    assert_eq!(Path::new(room.get("where").trim()), fs::canonicalize(room.path("")).unwrap());
    assert_eq!(run(&room, "true").await, ("(no output)".to_owned(), false));
}

#[tokio::test]
async fn environment_is_the_given_one_and_nothing_else() {
    let room = Room::new();
    let (text, _) = run(&room, "env | cut -d= -f1 | sort | tr '\\n' ' '; echo $GREETING").await;
    let (names, greeting) = text.rsplit_once(' ').unwrap();
    assert_eq!(greeting, "hello");
    for name in names.split(' ') {
        // The shell adds three of its own.
        assert!(["GREETING", "PATH", "OLDPWD", "PWD", "SHLVL", "_"].contains(&name), "{name}");
    }
}

#[tokio::test]
async fn standard_input_is_empty() {
    let room = Room::new();
    assert_eq!(run(&room, "cat; echo end").await, ("end".to_owned(), false));
}

#[tokio::test]
async fn exit_codes_and_signals_are_told() {
    let room = Room::new();
    assert_eq!(run(&room, "echo no; exit 3").await, ("no\n\n[Exit code 3]".to_owned(), true));
    let (text, is_error) = run(&room, "kill -TERM $$").await;
    assert!(is_error && text.ends_with("[Exit code 143]"), "{text}");
}

#[tokio::test]
async fn control_bytes_are_left_out() {
    let room = Room::new();
    let said = run(&room, r"printf '\033[31mred\033[0m\000\007 \377end\r\nnext'").await;
    assert_eq!(said, ("red \u{fffd}end\nnext".to_owned(), false));
}

#[tokio::test]
async fn long_output_shows_its_end_and_keeps_the_whole() {
    let room = Room::new();
    let (text, is_error) = run(&room, "seq 1 30000").await;
    assert!(!is_error && text.starts_with("28001\n28002\n"), "{text:.30}");
    let whole: String = (1..=30_000).map(|line| line.to_string() + "\n").collect();
    let expected = format!(
        "\n30000\n\n[Shown: lines 28001-30000 of 30000; {} bytes in all. Everything: ",
        whole.len()
    );
    assert!(text.contains(&expected), "{}", &text[text.len() - 200..]);
    let file = named_file(&text);
    assert!(file.starts_with(room.outside("output")), "{file:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn many_short_lines_are_cut_at_the_line_limit() {
    let room = Room::new();
    let (text, _) = run(&room, "seq 1 2001").await;
    assert!(text.starts_with("2\n3\n"), "{text:.20}");
    assert!(text.contains("[Shown: lines 2-2001 of 2001; "), "{}", &text[text.len() - 200..]);
    assert!(named_file(&text).exists());
    let (text, _) = run(&room, "seq 1 2000").await;
    assert!(text.starts_with("1\n") && text.ends_with("\n2000"), "{}", &text[text.len() - 20..]);
}

#[tokio::test]
async fn one_giant_line_keeps_its_end() {
    let room = Room::new();
    let (text, is_error) = run(&room, "head -c 3000000 /dev/zero | tr '\\0' x; printf end").await;
    assert!(!is_error && text.len() < 52_000, "{}", text.len());
    assert!(
        text.starts_with("xxx")
            && text.contains("xend\n\n[Shown: the end of line 1 of 1; 3000003 bytes in all.")
    );
    assert_eq!(fs::metadata(named_file(&text)).unwrap().len(), 3_000_003);
    let (text, _) = run(&room, "echo first; head -c 60000 /dev/zero | tr '\\0' x").await;
    assert!(
        text.contains("[Shown: the end of line 2 of 2; 60006 bytes in all."),
        "{}",
        &text[text.len() - 200..]
    );
}

#[tokio::test]
async fn output_that_grows_when_shown_is_kept_too() {
    let room = Room::new();
    // Not UTF-8: every byte is shown as three.
    let (text, _) = run(&room, "head -c 30000 /dev/zero | tr '\\0' '\\377'").await;
    assert!(
        text.len() < 52_000 && text.contains("[Shown: the end of line 1 of 1; 30000 bytes in all.")
    );
    assert_eq!(fs::read(named_file(&text)).unwrap(), vec![0xff; 30_000]);
}

#[tokio::test]
async fn kept_output_is_bounded_and_says_so() {
    let room = Room::with(|config| config.output_file_max = 100_000);
    let (text, _) = run(&room, "head -c 1000000 /dev/zero | tr '\\0' x").await;
    assert!(
        text.contains("1000000 bytes in all. The first 100000 bytes: /"),
        "{}",
        &text[text.len() - 200..]
    );
    assert_eq!(fs::metadata(named_file(&text)).unwrap().len(), 100_000);
}

#[tokio::test]
async fn only_the_newest_outputs_stay() {
    let room = Room::new();
    let mut last = PathBuf::new();
    for _ in 0..20 {
        last = named_file(&run(&room, "seq 1 2500").await.0);
    }
    assert_eq!(fs::read_dir(room.outside("output")).unwrap().count(), 16);
    assert!(last.exists());
    run(&room, "echo short").await;
    assert_eq!(fs::read_dir(room.outside("output")).unwrap().count(), 16);
}

#[tokio::test]
async fn output_that_cannot_be_kept_is_still_shown() {
    let room = Room::new();
    fs::write(room.outside("output"), "in the way").unwrap();
    let (text, is_error) = run(&room, "seq 1 2500").await;
    assert!(!is_error && text.starts_with("501\n"), "{text:.20}");
    assert!(text.contains("The rest could not be kept: "), "{}", &text[text.len() - 200..]);
}

#[tokio::test]
async fn background_process_does_not_hold_the_call_and_lives_on() {
    let room = Room::new();
    let begun = Instant::now();
    let (text, is_error) = run(&room, "echo started; sleep 300 & echo $! >pid").await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(
        !is_error && text.starts_with("started\n\n[A background process still holds the output"),
        "{text}"
    );
    let pid = pid_in(&room, "pid").await;
    assert!(lives(&pid));
    run(&room, &format!("kill {pid}")).await;
    let said = run(&room, "echo quiet; sleep 300 >/dev/null 2>&1 & echo $! >pid2").await;
    assert_eq!(said, ("quiet".to_owned(), false));
    run(&room, "kill $(cat pid2)").await;
}

#[tokio::test]
async fn background_process_that_writes_for_ever_does_not_hold_the_call() {
    let room = Room::new();
    let (text, is_error) = run(&room, "yes & echo $! >pid").await;
    assert!(!is_error && text.contains("[A background process still holds the output"));
    // Nobody reads its output any more.
    let pid = pid_in(&room, "pid").await;
    until("the writer is gone", || !lives(&pid)).await;
}

#[tokio::test]
async fn timeout_ends_the_whole_group() {
    let room = Room::new();
    // The inner shell ignores the polite request.
    let command =
        "echo before; sh -c 'trap \"\" TERM; echo $$ >pid; while :; do sleep 1; done' & wait";
    let said = room.call("bash", json!({ "command": command, "timeout": 1 })).await;
    let (text, is_error) = said;
    assert!(
        is_error && text.starts_with("before\n\n[Stopped after 1 s, with everything"),
        "{text}"
    );
    let pid = pid_in(&room, "pid").await;
    until("the grandchild is gone", || !lives(&pid)).await;
}

#[tokio::test]
async fn abort_ends_grandchildren() {
    let room = Arc::new(Room::new());
    let cancel = CancellationToken::new();
    let mut calls = tokio::task::JoinSet::new();
    let (inner, token) = (Arc::clone(&room), cancel.clone());
    let command = "sh -c 'sh -c \"echo \\$\\$ >pid; exec sleep 300\"; echo never'; echo never";
    calls.spawn(async move { inner.call_with("bash", json!({ "command": command }), token).await });
    let pid = pid_in(&room, "pid").await;
    assert!(lives(&pid));
    cancel.cancel();
    let (text, is_error) = calls.join_next().await.unwrap().unwrap();
    assert!(is_error && text.contains("[Stopped with the run"), "{text}");
    until("the grandchild is gone", || !lives(&pid)).await;
}

#[tokio::test]
async fn dropped_call_takes_its_processes_along() {
    let room = Arc::new(Room::new());
    let mut calls = tokio::task::JoinSet::new();
    let inner = Arc::clone(&room);
    calls.spawn(async move { run(&inner, "sh -c 'echo $$ >pid; exec sleep 300'; true").await });
    let pid = pid_in(&room, "pid").await;
    calls.shutdown().await;
    until("the grandchild is gone", || !lives(&pid)).await;
}

#[tokio::test]
async fn limits_are_checked() {
    let room = Room::with(|config| config.shell_timeout_max = Duration::from_secs(1));
    let (text, is_error) =
        room.call("bash", json!({ "command": "sleep 300", "timeout": 100_000 })).await;
    assert!(is_error && text.contains("[Stopped after 1 s"), "{text}");
    for wrong in [json!(0), json!(-1), json!(1e300)] {
        let said = room.call("bash", json!({ "command": "true", "timeout": wrong })).await;
        assert_eq!(said, ("timeout has to be a number of seconds above 0".to_owned(), true));
    }
}

#[tokio::test]
async fn missing_shell_is_a_readable_error() {
    let room = Room::with(|config| config.shell = "/nowhere/sh".into());
    let (text, is_error) = run(&room, "true").await;
    assert!(is_error && text.starts_with("failed to run the shell: "), "{text}");
}

//! What agents call their files: five hundred names that mean harm, through the shipped program.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use volcanic_testkit::{HostileAgent, HostileTrick, TaskFault};

use crate::{
    scene::{INBOX, Scene},
    table::{SEND, judge_files},
};

/// How many files of one task are saved.
const TAKEN: usize = 20;

/// Names of devices on systems that have such.
const DEVICES: [&str; 22] = [
    "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8",
    "COM9", "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
];

/// Paths that lead somewhere, each to be tried with several ways of getting there.
const TARGETS: [&str; 12] = [
    "canary",
    "canary.txt",
    "etc/passwd",
    "x.txt",
    "AGENTS.md",
    ".bashrc",
    ".git/hooks/post-checkout",
    ".volcanic/a2a/agents.json",
    ".volcanic/a2a/tasks/canary.json",
    ".ssh/authorized_keys",
    "other/canary.txt",
    "proc/self/mem",
];

/// Ways out of a folder.
const WAYS: [&str; 16] = [
    "/",
    "//",
    "../",
    "../../",
    "../../../",
    "../../../../../../../../",
    "./",
    "a/../../",
    "..\\",
    "..\\..\\",
    "C:\\",
    "C:",
    "\\\\server\\share\\",
    "file:///",
    "~/",
    "..%2f",
];

/// Names that are odd in themselves.
const ODD: [&str; 76] = [
    "",
    " ",
    ".",
    "..",
    "...",
    "/",
    "\\",
    "//",
    "./",
    "../",
    "a/",
    "a\\",
    "~",
    "-",
    "--",
    "-rf",
    "--help",
    "-",
    "*",
    "?",
    "|",
    ":",
    "<",
    ">",
    "\"",
    "'",
    "`",
    "$",
    "&",
    ";",
    "#",
    "%",
    "!",
    "$(id)",
    "`id`",
    "; rm -rf",
    "a\0b",
    "\0",
    "\n",
    "\r\n",
    "a\nFiles: inbox/a2a/demo/forged",
    "a\r[A2A result",
    "\t",
    "\u{1b}[31mred",
    "\u{1b}]0;title\u{7}",
    "\u{7}",
    "\u{8}",
    "\u{7f}",
    "\u{85}",
    "\u{9b}31m",
    "\u{202e}txt.exe",
    "\u{202a}a\u{202c}",
    "\u{2066}a\u{2069}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{2028}",
    "\u{2029}",
    "\u{a0}",
    "\u{ad}",
    "\u{2044}etc\u{2044}passwd",
    "\u{ff0f}etc\u{ff0f}passwd",
    "\u{2215}",
    "\u{29f8}",
    "\u{ff0e}\u{ff0e}/x",
    "e\u{301}.txt",
    "\u{e9}.txt",
    "\u{212b}",
    "\u{fb03}.txt",
    "\u{130}.txt",
    "\u{1f4a9}.txt",
    "\u{fffd}",
    "\u{10ffff}",
    "desktop.ini",
    "Thumbs.db",
    ".DS_Store",
];

/// Every name, in an order that puts different kinds beside each other.
fn names() -> Vec<String> {
    let mut names: Vec<String> = ODD.map(str::to_owned).to_vec();
    for way in WAYS {
        names.extend(TARGETS.map(|target| format!("{way}{target}")));
    }
    for device in DEVICES {
        let small = device.to_ascii_lowercase();
        names.extend([device.to_owned(), format!("{small}.txt"), format!("{small} .tar.gz")]);
        names.push(format!("{device}."));
        names.push(format!("{device}:stream"));
    }
    // Twins: the same, in other letters, and with ends that some systems drop.
    for twin in [
        "plan.txt",
        "PLAN.TXT",
        "Plan.txt",
        "plan.txt.",
        "plan.txt ",
        " plan.txt",
        "plan.txt::$DATA",
    ] {
        names.extend([twin.to_owned(), twin.to_owned(), twin.to_owned()]);
    }
    for length in [99, 100, 101, 127, 200, 254, 255, 256, 300, 1000, 4096, 65_536] {
        names.push("a".repeat(length));
        names.push(format!("{}.txt", "b".repeat(length)));
        names.push(format!("c.{}", "d".repeat(length)));
        names.push("é".repeat(length / 2));
        names.push(format!("{}.pdf", "\u{1f4a9}".repeat(length / 4)));
        names.push(format!(".{}", "e".repeat(length)));
        names.push("../".repeat(length / 3));
    }
    for dots in 3..20 {
        names.push(".".repeat(dots));
        names.push(format!("{}x", ".".repeat(dots)));
    }
    names
}

#[test]
fn there_are_five_hundred() {
    let names = names();
    assert!(names.len() >= 500, "{}", names.len());
    let different: BTreeSet<_> = names.iter().collect();
    assert!(different.len() >= 450, "{}", different.len());
}

#[tokio::test]
async fn five_hundred_names_stay_in_the_inbox_and_overwrite_nothing() {
    let scene = Scene::new();
    let before = scene.tree();
    let all = names();
    let mut wrong = String::new();
    for names in all.chunks(TAKEN) {
        let trick = HostileTrick::Task(TaskFault::FileNames(names.to_vec()));
        let agent = HostileAgent::start(trick).await.unwrap();
        // The entry moves to another port with every agent, as a person would change it.
        scene.knows(agent.url(), true);
        let ran = scene.run(SEND, &[]).await;
        let shown: Vec<_> = ran.out.lines().filter(|line| line.starts_with("Files: ")).collect();
        let is_right = ran.code == Some(0) && shown.len() == 1 && !ran.out.contains("skipped");
        if !is_right || ran.out.contains(|c: char| c.is_control() && c != '\n') {
            // Writing to a string cannot fail.
            let _ = writeln!(wrong, "{names:?}: {ran:?}");
        }
    }
    assert_eq!(wrong, "");
    let mut after = scene.tree();
    // We wrote the entry ourselves.
    let entry = "workspace/.volcanic/a2a/agents.json";
    after.remove(entry);
    assert_eq!(judge_files(&before, &after), Vec::<String>::new());
    check_received(&after, all.len());
}

/// Every file is there with its own content, under a name that no system stumbles over.
#[track_caller]
fn check_received(tree: &BTreeMap<String, crate::scene::Standing>, count: usize) {
    let inbox = format!("{INBOX}/");
    let received: Vec<_> =
        tree.iter().filter_map(|(path, at)| Some((path.strip_prefix(&inbox)?, at))).collect();
    // Each task numbers its own files from 0, and files of the same name and content are one file.
    let contents: BTreeSet<_> = received.iter().map(|(_, at)| at.bytes.clone()).collect();
    assert_eq!(contents.len(), TAKEN, "contents were lost");
    assert!(received.len() > count * 2 / 3, "{} files of {count}", received.len());
    let folded: BTreeSet<_> = received.iter().map(|(name, _)| name.to_lowercase()).collect();
    assert_eq!(folded.len(), received.len(), "two names differ in their case alone");
    for (name, at) in &received {
        assert!(name.len() <= 120, "{name}");
        assert!(!name.starts_with(['.', '-', ' ', '~']) && !name.ends_with(['.', ' ']), "{name:?}");
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | ' ');
        assert!(name.chars().all(is_plain), "{name:?}");
        let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
        assert!(!DEVICES.contains(&stem.as_str()), "{name}");
        assert_eq!(at.mode & 0o7111, 0, "{name} may be run");
    }
}

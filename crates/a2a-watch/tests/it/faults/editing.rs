//! Somebody edits `agents.json` while it is read: no mistake in it ends a watch, and an agent counts as removed only when
//! its entry is missing twice, five seconds apart.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use volcanic_a2a_watch::WatchState;
use volcanic_base::Chance;
use volcanic_testkit::{FaultSeed, drawn_below, drawn_from};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");
const READS: usize = 10_000;
/// How long an entry must be missing at least.
const GAP: Duration = Duration::from_secs(5);

fn entry() -> &'static str {
    r#"{"name": "travel-bot", "url": "http://travel.example/", "key": "k_secret_0123"}"#
}

/// The file with some other entries before and after the watched one.
fn whole(chance: &Chance) -> String {
    let other = |at: usize| format!(r#"{{"name": "other-{at}", "url": "http://o{at}.example/"}}"#);
    let mut entries: Vec<_> = (0..drawn_below(chance, 6)).map(other).collect();
    entries.insert(drawn_below(chance, entries.len() + 1), entry().to_owned());
    let text = format!("[\n  {}\n]\n", entries.join(",\n  "));
    if drawn_below(chance, 8) == 0 { format!("\u{feff}{text}") } else { text }
}

/// One thing that an editor does. The entry is never missing from a file that can be read.
fn edit(file: &Path, chance: &Chance) {
    let text = whole(chance);
    let beside = file.with_extension("new");
    match drawn_below(chance, 8) {
        // In place: emptied, then written in two pieces.
        0..=2 => {
            fs::write(file, "").unwrap();
            let middle = text.char_indices().nth(drawn_below(chance, text.chars().count()));
            fs::write(file, &text[..middle.map_or(0, |(at, _)| at)]).unwrap();
            fs::write(file, &text).unwrap();
        }
        // A new file that takes its place, whole or half.
        3..=4 => {
            fs::write(&beside, &text).unwrap();
            fs::rename(&beside, file).unwrap();
        }
        5 => {
            fs::write(&beside, &text.as_bytes()[..drawn_below(chance, text.len())]).unwrap();
            fs::rename(&beside, file).unwrap();
        }
        6 => {
            let rubbish = ["{}", "null", "[{", "\0\0", "{\"agents\": []}", "[1, 2", "\u{feff}"];
            fs::write(file, drawn_from(chance, &rubbish)).unwrap();
        }
        // A link that leads out takes its place.
        _ => {
            symlink("/etc/hostname", &beside).unwrap();
            fs::rename(&beside, file).unwrap();
            fs::write(&beside, &text).unwrap();
            fs::rename(&beside, file).unwrap();
        }
    }
}

/// Edits until it is told to stop, about a thousand times a second.
fn edit_on(file: &Path, chance: &Chance, stop: &AtomicBool) -> usize {
    let mut edits = 0;
    while !stop.load(Ordering::Relaxed) {
        edit(file, chance);
        edits += 1;
        std::thread::park_timeout(Duration::from_millis(1));
    }
    fs::write(file, whole(chance)).unwrap();
    edits
}

#[tokio::test(start_paused = true)]
async fn file_that_is_edited_a_thousand_times_a_second_ends_no_watch() {
    const WATCHES: usize = 10;
    const PAUSE: Duration = Duration::from_millis(100);
    let seed = FaultSeed::new();
    let world = World::with(Agent::new(WORKING), |config| {
        config.view_gap = Duration::from_hours(24 * 30);
        config.watch_timeout = Duration::from_hours(24 * 365);
        config.poll_pauses = vec![PAUSE];
    });
    for _ in 0..WATCHES {
        world.hand_over().await;
    }
    let file = world.workspace().join(".volcanic/a2a/agents.json");
    let stop = Arc::new(AtomicBool::new(false));
    let editor = std::thread::spawn({
        let (stop, chance) = (Arc::clone(&stop), seed.round(0));
        move || edit_on(&file, &chance, &stop)
    });
    let (mut good, mut bad) = (0, 0);
    // Each watch reads it once meanwhile.
    for _ in 0..FaultSeed::times(READS / (WATCHES + 1)) {
        match world.watches.agents(world.workspace()).await {
            Ok(report) => {
                good += 1;
                let is_there =
                    report.agents.iter().any(|agent| agent.entry.name.as_str() == "travel-bot");
                assert!(is_there, "a torn file passed for a whole one");
            }
            Err(_) => bad += 1,
        }
        tokio::time::sleep(PAUSE).await;
    }
    stop.store(true, Ordering::Relaxed);
    let edits = editor.join().unwrap();
    assert!(good > 0 && bad > 0, "{good} good and {bad} bad reads of {edits} edits");
    assert_eq!(world.chat.attempts(), 0, "{:?}", world.chat.delivered());
    assert_eq!(world.states(), vec![WatchState::Watching; WATCHES]);
    for number in 1..=WATCHES {
        world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
    }
    world.chat.wait_for(WATCHES).await;
    world.pass(60).await;
    assert_eq!(world.chat.attempts() as usize, WATCHES);
}

/// What a file says of the watched agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Present,
    Absent,
    Nothing,
}

fn write(world: &World, says: Says, chance: &Chance) {
    let path = world.workspace().join(".volcanic/a2a/agents.json");
    match says {
        Says::Present => world.write_agents(&whole(chance)),
        Says::Absent if drawn_below(chance, 2) == 0 => {
            world.write_agents(r#"[{"name": "other", "url": "http://o.example/"}]"#);
        }
        Says::Absent => drop(fs::remove_file(path)),
        Says::Nothing => world.write_agents("[{"),
    }
}

/// When the file said what, latest last.
struct History(Vec<(Instant, Says)>);

impl History {
    /// Whether the entry was missing at some moment of a span.
    fn was_absent(&self, from: Instant, to: Instant) -> bool {
        let ends = self.0.iter().skip(1).map(|(at, _)| *at).chain([to]);
        let spans = self.0.iter().zip(ends);
        spans
            .filter(|((_, says), _)| *says == Says::Absent)
            .any(|((begins, _), ends)| *begins <= to && ends >= from)
    }
}

#[tokio::test(start_paused = true)]
async fn agent_counts_as_removed_only_when_its_entry_is_missing_twice() {
    let seed = FaultSeed::new();
    let mut ended = 0;
    for round in 0..FaultSeed::times(150) {
        let chance = seed.round(round);
        let world = World::with(Agent::new(WORKING), |config| {
            config.view_gap = Duration::from_hours(24 * 30);
            config.poll_pauses = [3, 4, 6].map(Duration::from_secs).to_vec();
        });
        world.hand_over().await;
        let mut history = History(vec![(Instant::now(), Says::Present)]);
        for _ in 0..20 {
            let says = *drawn_from(&chance, &[Says::Present, Says::Absent, Says::Nothing]);
            write(&world, says, &chance);
            history.0.push((Instant::now(), says));
            let pause = Duration::from_millis(drawn_below(&chance, 9000) as u64);
            let told = tokio::time::timeout(pause, world.chat.wait_for(1)).await;
            if let Ok(told) = told {
                judge(&world, &history, &told[0].key, &format!("round {round}: {:?}", history.0));
                ended += 1;
                break;
            }
        }
        if world.chat.attempts() == 0 {
            // Gone for good, and noticed in time.
            write(&world, Says::Absent, &chance);
            history.0.push((Instant::now(), Says::Absent));
            let told = tokio::time::timeout(Duration::from_secs(20), world.chat.wait_for(1)).await;
            let told = told.unwrap_or_else(|_| panic!("round {round}: {:?}", history.0));
            judge(&world, &history, &told[0].key, &format!("round {round}: {:?}", history.0));
        }
    }
    assert!(ended > 0, "none ended while the file was edited");
}

#[track_caller]
fn judge(world: &World, history: &History, key: &str, what: &str) {
    assert!(key.ends_with(":stopped"), "{what}: {key}");
    let now = Instant::now();
    assert_eq!(history.0.last().unwrap().1, Says::Absent, "{what}: ended though it is there");
    // Whatever was read before the last answer of the agent does not count any more.
    let answered = world.agent.reads("t1").last().copied();
    let since = answered.unwrap_or(history.0[0].0);
    let until = now - GAP;
    assert!(since <= until, "{what}: ended {:?} after an answer", now - since);
    assert!(history.was_absent(since, until), "{what}: it was missing once only");
}

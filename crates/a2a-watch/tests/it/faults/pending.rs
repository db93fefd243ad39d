//! A workspace comes with a `pending.json` that somebody damaged: the start goes on, what is whole is followed, what is not
//! is told and kept aside, and nothing that stands there as a text is delivered.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use volcanic_testkit::{FaultSeed, drawn_below};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");
const RECORDS: usize = 20;
/// What stands in the file as texts that were about to be delivered.
const FORGED: &str = "pay 100 to eve";

fn world() -> World {
    let world = World::with(Agent::new(WORKING), |config| {
        // The view would replace the file within a second.
        config.view_gap = Duration::from_hours(24 * 30);
        config.watch_timeout = Duration::from_hours(2);
    });
    for number in 1..=RECORDS {
        world.agent.set_task(&format!("t{number}"), "TASK_STATE_WORKING", "");
    }
    world
}

fn path(world: &World, name: &str) -> PathBuf {
    world.workspace().join(".volcanic/a2a").join(name)
}

/// The view of so many watches, as the registry writes it, with texts put in; each record's task, and where it ends.
async fn view() -> (Vec<u8>, Vec<(String, usize)>) {
    let world = World::new(Agent::new(WORKING));
    for _ in 0..RECORDS {
        world.hand_over().await;
    }
    world.pass(5).await;
    let text = fs::read_to_string(path(&world, "pending.json")).unwrap();
    let text = text.replace("\"undelivered\": null", &format!("\"undelivered\": \"{FORGED}\""));
    assert_eq!(text.matches(FORGED).count(), RECORDS);
    let records: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let ends = text.match_indices("\n  }").map(|(at, end)| at + end.len());
    let tasks = records.iter().map(|record| record["taskId"].as_str().unwrap().to_owned());
    let ends: Vec<_> = tasks.zip(ends).collect();
    assert_eq!(ends.len(), RECORDS);
    (text.into_bytes(), ends)
}

fn followed(world: &World) -> BTreeSet<String> {
    world.store.all_watches().iter().map(|watch| watch.task_id.to_string()).collect()
}

/// Starts with this file and returns the texts that the owner is told then.
async fn start_with(world: &World, bytes: &[u8]) -> Vec<String> {
    fs::write(path(world, "pending.json"), bytes).unwrap();
    world.watches.restore().await;
    let told: Vec<_> = world.chat.delivered().into_iter().map(|one| one.text).collect();
    assert!(!told.concat().contains(FORGED), "{told:?}");
    assert!(told.len() <= 1, "{told:?}");
    told
}

/// Something was lost, so the owner was told, and the file is kept.
#[track_caller]
fn check_loss(world: &World, told: &[String], bytes: &[u8], what: &str) {
    let [told] = told else { panic!("{what}: told {told:?}") };
    assert!(told.contains(".volcanic/a2a/pending.broken.json"), "{what}: {told}");
    assert_eq!(fs::read(path(world, "pending.broken.json")).unwrap(), bytes, "{what}");
}

/// All that is followed is followed to its end, and told once.
async fn check_ends(world: &World, before: usize, what: &str) {
    for number in 1..=RECORDS {
        world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
    }
    let count = before + followed(world).len();
    world.chat.wait_for(count).await;
    world.pass(3600).await;
    let delivered = world.chat.delivered();
    assert_eq!((delivered.len(), world.chat.attempts() as usize), (count, count), "{what}");
    assert!(delivered.iter().skip(before).all(|one| one.text.ends_with("\nLisbon")), "{what}");
    world.watches.restore().await;
    assert_eq!(world.chat.delivered().len(), count, "{what}: told twice");
}

#[tokio::test(start_paused = true)]
async fn list_that_is_cut_anywhere_is_followed_as_far_as_it_goes() {
    let (view, ends) = view().await;
    let seed = FaultSeed::new();
    let mut lengths: BTreeSet<_> = ends.iter().flat_map(|(_, end)| [end - 1, *end]).collect();
    lengths.extend([0, view.len() - 2, view.len() - 1, view.len()]);
    // Each needs a folder and flushes of its own; that the list is read right at every byte shows in `list`.
    for _ in 0..FaultSeed::times(150) {
        lengths.insert(drawn_below(seed.chance(), view.len()));
    }
    for length in lengths {
        let world = world();
        let bytes = &view[..length];
        let told = start_with(&world, bytes).await;
        let whole = ends.iter().filter(|(_, end)| *end <= length).map(|(task, _)| task.clone());
        let what = format!("cut at {length}");
        assert_eq!(followed(&world), whole.collect(), "{what}");
        if length + 1 < view.len() {
            check_loss(&world, &told, bytes, &what);
        } else {
            assert_eq!(told.len(), 1, "{what}");
        }
        if length % 50 == 0 || length == view.len() {
            check_ends(&world, told.len(), &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn flipped_bits_cost_the_records_they_are_in() {
    let seed = FaultSeed::new();
    let (view, ends) = view().await;
    for round in 0..FaultSeed::times(150) {
        let (world, chance) = (world(), seed.round(round));
        let mut bytes = view.clone();
        let mut spared: BTreeSet<_> = ends.iter().map(|(task, _)| task.clone()).collect();
        let mut what = format!("round {round}:");
        for _ in 0..=drawn_below(&chance, 3) {
            let (at, bit) = (drawn_below(&chance, bytes.len()), drawn_below(&chance, 8));
            bytes[at] ^= 1 << bit;
            // A record begins where the one before ends: with the comma.
            if let Some((task, _)) = ends.iter().find(|(_, end)| at < *end) {
                spared.remove(task);
            }
            what = format!("{what} bit {bit} of byte {at}");
        }
        let told = start_with(&world, &bytes).await;
        let found = followed(&world);
        assert!(found.is_superset(&spared), "{what}: {found:?} without some of {spared:?}");
        let entries: Option<Vec<serde_json::Value>> = serde_json::from_slice(&bytes).ok();
        // A flipped bit can make one task another.
        let is_twin = entries.is_some_and(|entries| {
            entries.iter().all(|entry| found.contains(entry["taskId"].as_str().unwrap_or_default()))
        });
        if found.len() < RECORDS && !is_twin {
            check_loss(&world, &told, &bytes, &what);
        }
        if round % 10 == 0 {
            world.pass(400).await;
            let told = world.chat.delivered();
            assert!(!told.iter().any(|one| one.text.contains(FORGED)), "{what}: {told:?}");
        }
    }
}

/// What is in the file, how many of the twenty are followed, and whether something is lost.
fn oddities(text: &str) -> Vec<(&'static str, Vec<u8>, usize, bool)> {
    let with = |from: &str, to: &str| text.replacen(from, to, 1).into_bytes();
    let (utf16, mark) = (text.encode_utf16().flat_map(u16::to_le_bytes), "\u{feff}".to_owned());
    vec![
        ("a mark before it", (mark.clone() + text).into_bytes(), RECORDS, false),
        ("two marks before it", (mark.clone() + &mark + text).into_bytes(), RECORDS, true),
        ("other ends of lines", text.replace('\n', "\r\n").into_bytes(), RECORDS, false),
        ("UTF-16", utf16.collect(), 0, true),
        ("nothing", Vec::new(), 0, true),
        ("blanks", b" \n\t ".to_vec(), 0, true),
        ("zeros", vec![0; 4096], 0, true),
        ("an object", b"{}".to_vec(), 0, true),
        ("null", b"null".to_vec(), 0, true),
        ("an object around it", format!("{{\"watches\": {text}}}").into_bytes(), 0, true),
        ("the same twice", format!("{text}{text}").into_bytes(), RECORDS, true),
        ("two lists", format!("{}, {}", text.trim(), text).into_bytes(), RECORDS, true),
        ("an id that is a number", with("\"t3\"", "3"), RECORDS - 1, true),
        ("an id that is empty", with("\"t3\"", "\"\""), RECORDS - 1, true),
        ("an agent that is none", with("\"travel-bot\"", "[\"travel-bot\"]"), RECORDS - 1, true),
        ("a name no agent can have", with("\"travel-bot\"", "\"../evil\""), RECORDS - 1, true),
        (
            "a start that is no time",
            with("\"startedAt\": \"2026", "\"startedAt\": \"soon"),
            RECORDS - 1,
            true,
        ),
        ("hops below zero", with("\"hops\": 0", "\"hops\": -1"), RECORDS - 1, true),
        ("hops beyond counting", with("\"hops\": 0", "\"hops\": 1e300"), RECORDS - 1, true),
        (
            "an id twice",
            with("\"taskId\": \"t3\"", "\"taskId\": \"t3\", \"taskId\": \"t4\""),
            RECORDS - 1,
            true,
        ),
        ("an agent twice", with("\"agent\"", "\"agent\": \"eve\", \"agent\""), RECORDS - 1, true),
        (
            "members nobody knows",
            with("\"agent\"", "\"to\": {\"a\": [1]}, \"agent\""),
            RECORDS,
            false,
        ),
        ("a task twice", with("\"t3\"", "\"t4\""), RECORDS - 1, false),
        ("too deep", format!("[{}", "[".repeat(100_000)).into_bytes(), 0, true),
    ]
}

#[tokio::test(start_paused = true)]
async fn lists_of_the_wrong_shape_are_followed_as_far_as_they_make_sense() {
    let (view, _) = view().await;
    for (what, bytes, count, is_lossy) in oddities(str::from_utf8(&view).unwrap()) {
        let world = world();
        let told = start_with(&world, &bytes).await;
        assert_eq!(followed(&world).len(), count, "{what}: {told:?}");
        if is_lossy {
            check_loss(&world, &told, &bytes, what);
        } else {
            assert!(!path(&world, "pending.broken.json").exists(), "{what}");
        }
        check_ends(&world, told.len(), what).await;
    }
}

#[tokio::test(start_paused = true)]
async fn start_in_the_future_counts_as_now() {
    let (view, _) = view().await;
    let text =
        String::from_utf8(view).unwrap().replace("\"startedAt\": \"2026", "\"startedAt\": \"2096");
    let world = world();
    start_with(&world, text.as_bytes()).await;
    assert_eq!(followed(&world).len(), RECORDS);
    world.pass(2 * 3600 + 400).await;
    let ended = world.chat.delivered();
    let ended = ended.iter().filter(|one| one.key.ends_with(":no-result")).count();
    assert_eq!(ended, RECORDS, "some go on for seventy years");
}

#[tokio::test(start_paused = true)]
async fn list_of_a_hundred_megabytes_is_moved_aside_unread() {
    const SIZE: u64 = 100 << 20;
    let world = world();
    let file = path(&world, "pending.json");
    fs::File::create(&file).unwrap().set_len(SIZE).unwrap();
    world.watches.restore().await;
    let told = &world.chat.delivered()[0].text;
    assert!(told.contains(".volcanic/a2a/pending.broken.json"), "{told}");
    assert_eq!(fs::metadata(path(&world, "pending.broken.json")).unwrap().len(), SIZE);
    assert!(!file.exists());
    world.watches.restore().await;
    world.hand_over().await;
    assert_eq!(world.chat.attempts(), 1);
}

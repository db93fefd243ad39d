use std::time::Duration;

use jiff::Timestamp;
use volcanic_a2a_client::ClientConfig;

use super::{Origins, Reach, Turn};
use crate::config::WatchConfig;
use crate::record::WatchId;

const A: &str = "https://a.example";
const B: &str = "https://b.example";

struct Bench {
    origins: Origins,
    now: Timestamp,
    config: WatchConfig,
}

impl Bench {
    fn new() -> Self {
        let mut config = WatchConfig::new(ClientConfig::default(), 1);
        (config.max_calls, config.calls_per_origin) = (5, 2);
        (config.max_streams, config.streams_per_origin) = (3, 2);
        Self { origins: Origins::default(), now: "2026-11-30T12:00:00Z".parse().unwrap(), config }
    }

    fn wait(&mut self, origin: &str, ids: &[&str]) {
        for id in ids {
            self.origins.wait(origin, WatchId::new(*id));
        }
    }

    /// All calls that may begin now.
    fn begin(&mut self) -> Vec<Turn> {
        std::iter::from_fn(|| self.origins.next(self.now, &self.config)).collect()
    }

    fn end(&mut self, turn: &Turn, reach: Reach) -> bool {
        self.origins.ended(turn, reach, self.now, &self.config)
    }
}

fn ids(turns: &[Turn]) -> Vec<&str> {
    turns.iter().map(|turn| turn.id.as_str()).collect()
}

#[test]
fn origins_take_turns_and_none_has_more_than_its_share() {
    let mut bench = Bench::new();
    bench.wait(A, &["a1", "a2", "a3", "a4"]);
    bench.wait(B, &["b1", "b2"]);
    let begun = bench.begin();
    assert_eq!(ids(&begun), ["a1", "b1", "a2", "b2"]);
    assert!(!bench.end(&begun[0], Reach::Answered));
    assert_eq!(ids(&bench.begin()), ["a3"]);
    bench.wait("https://c.example", &["c1", "c2"]);
    assert_eq!(ids(&bench.begin()), ["c1"], "there are five in all");
}

#[test]
fn origin_that_is_out_of_reach_is_probed_by_one_watch_per_pause() {
    let mut bench = Bench::new();
    bench.wait(A, &["a1", "a2", "a3", "a4"]);
    let begun = bench.begin();
    assert!(bench.end(&begun[0], Reach::Unreached));
    assert!(!bench.end(&begun[1], Reach::Unreached), "they failed together");
    assert_eq!(bench.begin(), []);
    for (seconds, reach) in [(15, Reach::Unanswered), (30, Reach::Unreached)] {
        let opens_at = bench.now + Duration::from_secs(seconds);
        assert_eq!(bench.origins.next_opening(bench.now), Some(opens_at));
        bench.now = opens_at;
        bench.wait(A, &["more"]);
        let probe = bench.begin();
        assert_eq!(probe.len(), 1);
        assert!(bench.end(&probe[0], reach));
    }
    bench.now += Duration::from_mins(1);
    let probe = bench.begin();
    assert_eq!(probe.len(), 1);
    assert!(!bench.end(&probe[0], Reach::Answered));
    bench.wait(A, &["more"]);
    assert_eq!(bench.begin().len(), 2, "all may go on");
}

#[test]
fn probe_that_says_nothing_is_followed_by_the_next() {
    let mut bench = Bench::new();
    bench.wait(A, &["a1", "a2", "a3"]);
    let begun = bench.begin();
    bench.end(&begun[0], Reach::Unreached);
    bench.end(&begun[1], Reach::Nothing);
    bench.wait(A, &["a4"]);
    bench.now += Duration::from_secs(15);
    let probe = bench.begin();
    assert_eq!(ids(&probe), ["a3"]);
    assert!(!bench.end(&probe[0], Reach::Nothing));
    assert_eq!(ids(&bench.begin()), ["a4"]);
}

#[test]
fn one_call_without_an_answer_says_little_and_three_say_that_nobody_is_there() {
    let mut bench = Bench::new();
    let mut found = Vec::new();
    for reach in [
        Reach::Unanswered,
        Reach::Unanswered,
        Reach::Answered,
        Reach::Unanswered,
        Reach::Unanswered,
        Reach::Unanswered,
    ] {
        bench.wait(A, &["a"]);
        let begun = bench.begin();
        found.push(bench.end(&begun[0], reach));
    }
    assert_eq!(found, [false, false, false, false, false, true]);
}

#[test]
fn origin_that_asks_for_time_gets_it_up_to_the_cap() {
    let mut bench = Bench::new();
    bench.origins.put_off(A, Duration::from_hours(20), bench.now, Duration::from_hours(1));
    bench.origins.put_off(A, Duration::from_secs(1), bench.now, Duration::from_hours(1));
    bench.wait(A, &["a"]);
    assert_eq!(bench.begin(), []);
    bench.now += Duration::from_hours(1);
    assert_eq!(ids(&bench.begin()), ["a"]);
}

#[test]
fn watch_that_is_withdrawn_has_no_turn() {
    let mut bench = Bench::new();
    bench.wait(A, &["a1", "a2"]);
    assert!(bench.origins.withdraw(A, &WatchId::new("a1")));
    assert!(!bench.origins.withdraw(A, &WatchId::new("a1")));
    assert_eq!(ids(&bench.begin()), ["a2"]);
}

#[test]
fn place_that_frees_goes_to_a_watch_that_can_have_it() {
    let mut bench = Bench::new();
    let Bench { origins, config, .. } = &mut bench;
    assert!(origins.take_place(A, config) && origins.take_place(A, config));
    assert!(!origins.take_place(A, config), "two of an origin");
    assert!(origins.take_place(B, config) && !origins.take_place(B, config), "three in all");
    for (origin, id) in [(A, "a3"), (B, "b2"), (B, "b2"), (B, "b3")] {
        origins.want_place(origin, WatchId::new(id));
    }
    assert_eq!(origins.next_wanting(B, config), None);
    origins.free_place(A);
    assert_eq!(origins.next_wanting(A, config), Some(WatchId::new("a3")));
    assert!(origins.take_place(A, config));
    origins.free_place(A);
    assert_eq!(origins.next_wanting(A, config), Some(WatchId::new("b2")));
    assert!(origins.take_place(B, config));
    assert_eq!(origins.next_wanting(A, config), None);
}

#[test]
fn origins_that_nothing_is_known_about_are_forgotten() {
    let mut bench = Bench::new();
    bench.wait(A, &["a"]);
    let begun = bench.begin();
    bench.end(&begun[0], Reach::Unreached);
    bench.origins.tidy(bench.now);
    assert_eq!(bench.origins.all.len(), 1);
    bench.now += Duration::from_mins(10);
    bench.origins.tidy(bench.now);
    assert_eq!(bench.origins.all.len(), 1, "a watch that waits its pause finds it out of reach");
    bench.now += Duration::from_hours(1);
    bench.origins.tidy(bench.now);
    assert_eq!(bench.origins.all.len(), 0);
}

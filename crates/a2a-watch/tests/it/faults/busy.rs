//! Agents that put their callers off: `429` and `503` with every kind of `Retry-After`.

use std::time::Duration;

use tokio::time::Instant;
use volcanic_base::Chance;
use volcanic_testkit::{FaultSeed, drawn_below, drawn_from};

use crate::agent::{Agent, OnSend, Refusal};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");
/// The largest share of a pause that chance adds, as it ships.
const JITTER: f64 = 0.1;
/// The longest time that an agent can ask for.
const CAP: Duration = Duration::from_hours(1);
/// What a polling watch waits by itself after so many reads.
const PAUSES: [u64; 5] = [15, 30, 60, 120, 300];
/// What a pause may take longer than it should in paused time, which goes by milliseconds.
const GRAIN: Duration = Duration::from_millis(20);

/// A refusal, and how long it asks to be left alone for; `None` if that is nothing to go by.
fn refusal(chance: &Chance) -> (Refusal, Option<Duration>) {
    let date = |seconds: i64| {
        let now: jiff::Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let at = now + jiff::SignedDuration::from_secs(seconds);
        at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    };
    let own_date = ("date", date(0));
    let seconds = *drawn_from(chance, &[0, 1, 7, 14, 16, 45, 200, 301, 900, 3599, 3600]);
    let asked = Duration::from_secs(seconds);
    let (mut headers, wait) = match drawn_below(chance, 8) {
        0..=2 => (vec![("retry-after", format!("{seconds}"))], Some(asked)),
        // By the agent's own clock, which need not be ours.
        3 => {
            let value = date(seconds.cast_signed());
            (vec![own_date, ("retry-after", value)], Some(asked))
        }
        4 => (vec![own_date, ("retry-after", date(-3600))], Some(Duration::ZERO)),
        5 => {
            let huge = ["3601", "86400", "18446744073709551615", "99999999999999999999999"];
            (vec![("retry-after", (*drawn_from(chance, &huge)).to_owned())], Some(CAP))
        }
        6 => (vec![own_date, ("retry-after", date(30 * 24 * 3600))], Some(CAP)),
        _ => {
            let rubbish = ["soon", "-5", "1.5", "5s", "0x10", "", "Mon, 30 Nov 2026", "1 2", "٣"];
            (vec![("retry-after", (*drawn_from(chance, &rubbish)).to_owned())], None)
        }
    };
    if drawn_below(chance, 4) == 0 {
        headers.push(("cache-control", "no-store".to_owned()));
    }
    let refusal = Refusal {
        status: *drawn_from(chance, &[429, 503]),
        headers,
        speaks: drawn_below(chance, 2) == 0,
        hides: drawn_below(chance, 3) == 0,
    };
    (refusal, wait)
}

/// Waits for the next request that comes after `since`.
async fn next_asked(world: &World, since: Instant) -> Instant {
    let asked = tokio::time::timeout(Duration::from_hours(3), world.agent.next_asked(since));
    asked.await.expect("nobody asked any more")
}

/// One watch, refused after it has read so many times.
async fn refuse_once(chance: &Chance, what: &str) {
    let world = World::with(Agent::new(WORKING), |config| {
        config.jitter = JITTER;
        config.view_gap = Duration::from_hours(24 * 30);
    });
    world.hand_over().await;
    let reads = drawn_below(chance, 6);
    for _ in 0..reads {
        next_asked(&world, Instant::now()).await;
        world.pass(1).await;
    }
    let (refusal, wait) = refusal(chance);
    let what = format!("{what}: {refusal:?} after {reads} reads");
    let before = Instant::now();
    world.agent.refuse(Some(refusal));
    let refused = next_asked(&world, before).await;
    world.agent.refuse(None);
    let next = next_asked(&world, refused + Duration::from_millis(1)).await;
    let own = Duration::from_secs(PAUSES[(reads + 1).min(PAUSES.len() - 1)]);
    let least = own.max(wait.unwrap_or_default().min(CAP));
    let most = least.mul_f64(1.0 + JITTER) + GRAIN;
    let waited = next - refused;
    assert!((least..=most).contains(&waited), "{what}: waited {waited:?} for {least:?}");
    // It is followed as before.
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].text.ends_with("\nLisbon"), "{what}: {delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn agent_that_puts_a_watch_off_is_asked_again_when_it_may_be() {
    let seed = FaultSeed::new();
    for round in 0..FaultSeed::times(150) {
        refuse_once(&seed.round(round), &format!("round {round}")).await;
    }
}

/// Many watches of one agent: while one of them is put off, none of the others asks either.
#[tokio::test(start_paused = true)]
async fn what_one_watch_is_asked_to_wait_holds_for_all_of_its_origin() {
    let seed = FaultSeed::new();
    for round in 0..FaultSeed::times(50) {
        let chance = seed.round(round);
        let world = World::with(Agent::new(WORKING), |config| {
            config.jitter = JITTER;
            config.view_gap = Duration::from_hours(24 * 30);
        });
        for _ in 0..5 {
            world.hand_over().await;
            world.pass(drawn_below(&chance, 40) as u64).await;
        }
        world.pass(drawn_below(&chance, 300) as u64).await;
        let (refusal, wait) = refusal(&chance);
        let before = Instant::now();
        world.agent.refuse(Some(refusal.clone()));
        let refused = next_asked(&world, before).await;
        // Calls that had begun by then are refused as well.
        world.pass(1).await;
        world.agent.refuse(None);
        let next = next_asked(&world, Instant::now()).await;
        let least = wait.unwrap_or_default().min(CAP);
        assert!(next - refused >= least, "round {round}: {refusal:?}: {:?}", next - refused);
        for number in 1..=5 {
            world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
        }
        world.chat.wait_for(5).await;
        let latest =
            least.mul_f64(1.0 + JITTER).max(Duration::from_mins(6)) + Duration::from_mins(6);
        assert!(refused.elapsed() < latest, "round {round}: {refusal:?}: {:?}", refused.elapsed());
    }
}

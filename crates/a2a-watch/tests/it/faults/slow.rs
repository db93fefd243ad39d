//! Bodies that come a byte a second, or stall: the call ends with its time, and nobody else waits for it. In paused time,
//! so unscaled.

use std::time::Duration;

use tokio::time::Instant;
use volcanic_testkit::{FaultSeed, drawn_below, drawn_from};

use crate::agent::{Agent, OnSend, Slowness};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");
/// Tasks that are answered slowly, more than calls run at once, and others.
const SLOW: usize = 6;
const OTHERS: usize = 12;
/// How long a call may take.
const LIMIT: Duration = Duration::from_mins(1);

/// Agents at two origins: the names of all tasks are told apart by their numbers.
async fn world() -> World {
    let world = World::with(Agent::new(WORKING), |config| {
        config.view_gap = Duration::from_hours(24 * 30);
    });
    world.write_agents(
        r#"[{"name": "slow-bot", "url": "http://slow.example/"},
            {"name": "travel-bot", "url": "http://travel.example/"}]"#,
    );
    for number in 0..SLOW + OTHERS {
        let mut order = world.order("plan a trip");
        if number < SLOW {
            order.agent = "slow-bot".to_owned();
        }
        world.send(order, 0).await.unwrap();
    }
    world
}

#[tokio::test(start_paused = true)]
async fn slow_bodies_end_with_the_time_of_a_call_and_others_keep_their_pace() {
    let seed = FaultSeed::new();
    for round in 0..FaultSeed::times(20) {
        let chance = seed.round(round);
        let world = world().await;
        let begun = Instant::now();
        let slowness = Slowness {
            begins: drawn_below(&chance, 40),
            pause: *drawn_from(&chance, &[1, 1, 7, 59].map(Duration::from_secs)),
            stalls_after: *drawn_from(&chance, &[0, 1, 20, 1000]),
        };
        let what = format!("round {round}: {slowness:?}");
        for number in 1..=SLOW {
            world.agent.answer_slowly(&format!("t{number}"), slowness);
        }
        world.pass(900).await;
        let mut delays = Vec::new();
        for number in SLOW + 1..=SLOW + OTHERS {
            let reads = world.agent.reads(&format!("t{number}"));
            let mut due = begun;
            // Each pause counts from the read before.
            for (read, pause) in reads.iter().zip([15, 30, 60, 120, 300, 300]) {
                delays.push(read.saturating_duration_since(due + Duration::from_secs(pause)));
                due = *read;
            }
            assert_eq!(reads.len(), 6, "{what}: t{number} fell behind");
        }
        delays.sort();
        let late = delays[delays.len() * 95 / 100];
        assert!(late < Duration::from_secs(1), "{what}: {late:?}");
        check_slow(&world, &what);
        for number in 1..=SLOW + OTHERS {
            world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
            world.agent.mend(&format!("t{number}"));
        }
        let delivered = world.chat.wait_for(SLOW + OTHERS).await;
        assert_eq!(delivered.len(), SLOW + OTHERS, "{what}");
    }
}

/// Every slow answer was given up when its call's time was over, and the watches go on.
#[track_caller]
fn check_slow(world: &World, what: &str) {
    let mut begun: Vec<_> =
        (1..=SLOW).flat_map(|number| world.agent.reads(&format!("t{number}"))).collect();
    begun.sort();
    let mut ended = world.agent.given_up();
    ended.sort();
    assert!(ended.len() >= 4, "{what}: {} ended", ended.len());
    for (begun, ended) in begun.iter().zip(&ended) {
        let took = *ended - *begun;
        assert!(took <= LIMIT + Duration::from_millis(20), "{what}: a call took {took:?}");
        assert!(took + Duration::from_millis(20) >= LIMIT, "{what}: a call ended after {took:?}");
    }
    assert_eq!(world.chat.attempts(), 0, "{what}");
}

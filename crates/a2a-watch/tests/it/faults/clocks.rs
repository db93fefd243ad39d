//! The wall clock is set, a machine sleeps: no watch gives up early, none asks more than once too often, none waits longer.

use std::time::Duration;

use volcanic_a2a_watch::WatchState;
use volcanic_base::Chance;
use volcanic_testkit::{FaultSeed, drawn_below, drawn_from};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// What the wall clock is set by, in seconds. One hour is also what a change to summer time does to a machine that keeps local
/// time.
const SET: [i64; 8] = [HOUR, -HOUR, DAY, -DAY, 8 * HOUR, -300, 300, 60];
/// How long a machine sleeps, in seconds.
const SLEPT: [i64; 5] = [60, 300, HOUR, 8 * HOUR, DAY];
/// Jumps in one world.
const JUMPS_EACH: usize = 5;
const WATCHES: usize = 8;
/// Between two reads of a watch that has been polling for a while, in seconds.
const PACE: u64 = 300;
/// How often clocks are compared, in seconds.
const LOOK: u64 = 30;

/// What happens to the wall clock.
#[derive(Debug, Clone, Copy)]
enum Jump {
    Set(i64),
    Slept(i64),
}

impl Jump {
    fn drawn(chance: &Chance) -> Self {
        if drawn_below(chance, 2) == 0 {
            Self::Set(*drawn_from(chance, &SET))
        } else {
            Self::Slept(*drawn_from(chance, &SLEPT))
        }
    }

    /// How much is slept by it.
    fn slept(self) -> i64 {
        match self {
            Self::Set(_) => 0,
            Self::Slept(by) => by,
        }
    }

    fn happen(self, world: &World) {
        match self {
            Self::Set(by) if by < 0 => world.set_back(by.unsigned_abs()),
            Self::Set(by) => world.set_ahead(by.unsigned_abs()),
            Self::Slept(by) => world.sleep(by.unsigned_abs()),
        }
    }
}

/// So many watches that read every five minutes. What each read writes for people to see is of no interest here.
async fn at_pace(timeout: Duration) -> World {
    let world = World::with(Agent::new(WORKING), |config| {
        config.watch_timeout = timeout;
        config.view_gap = Duration::from_hours(24 * 30);
    });
    for _ in 0..WATCHES {
        world.hand_over().await;
    }
    world.pass(15 + 30 + 60 + 120 + 10).await;
    // Reads are due at full seconds: between them, what is left and what was read belong together.
    tokio::time::sleep(Duration::from_millis(500)).await;
    world
}

fn counts(world: &World) -> Vec<usize> {
    (1..=WATCHES).map(|number| world.agent.reads(&format!("t{number}")).len()).collect()
}

/// One jump, or one that is taken back soon after, and what the watches do after it.
async fn jump_and_judge(world: &World, chance: &Chance) {
    world.pass(drawn_below(chance, 400) as u64).await;
    let jump = Jump::drawn(chance);
    let is_taken_back = drawn_below(chance, 3) == 0;
    let left =
        world.watches.watches(None).await.iter().filter_map(|watch| watch.next_check_in).max();
    let before = counts(world);
    let is_overdue = left.is_some_and(|left| left.as_secs().cast_signed() < jump.slept());
    jump.happen(world);
    if let Jump::Set(by) = jump
        && is_taken_back
    {
        world.pass(1 + drawn_below(chance, 100) as u64).await;
        Jump::Set(-by).happen(world);
    }
    let what = format!("{jump:?}, taken back: {is_taken_back}");
    world.pass(LOOK + 1).await;
    let soon = counts(world);
    if is_overdue {
        let all_read = before.iter().zip(&soon).all(|(before, soon)| soon > before);
        assert!(all_read, "{what}: what was due was put off: {before:?} {soon:?}");
    }
    world.pass(3 * PACE - LOOK - 1).await;
    for (number, (before, after)) in before.iter().zip(counts(world)).enumerate() {
        let reads = after - before;
        // A sleep has one read come sooner; by a clock that is set none does, but for what is due until it is set again.
        let expected = if jump.slept() > 0 || is_taken_back { 3..=4 } else { 3..=3 };
        assert!(expected.contains(&reads), "{what}: t{} was read {reads} times", number + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn clock_that_jumps_makes_no_storm_and_puts_nothing_off() {
    let seed = FaultSeed::new();
    for round in 0..FaultSeed::times(14) {
        let chance = seed.round(round);
        let world = at_pace(Duration::from_hours(24 * 365)).await;
        for _ in 0..JUMPS_EACH {
            jump_and_judge(&world, &chance).await;
        }
        for number in 1..=WATCHES {
            world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
        }
        world.pass(PACE + LOOK).await;
        assert_eq!(world.chat.delivered().len(), WATCHES);
        assert_eq!(world.chat.attempts() as usize, WATCHES);
    }
}

#[tokio::test(start_paused = true)]
async fn no_watch_gives_up_early_or_never_when_the_clock_jumps() {
    let seed = FaultSeed::new();
    for round in 0..FaultSeed::times(30) {
        let chance = seed.round(round);
        let world = World::with(Agent::new(WORKING), |config| {
            config.view_gap = Duration::from_hours(24 * 30);
        });
        world.hand_over().await;
        let (mut awake, mut asleep) = (0, 0);
        let mut log = Vec::new();
        loop {
            // Long enough for somebody to look at the clock.
            let seconds =
                LOOK.cast_signed() + 1 + i64::try_from(drawn_below(&chance, 4 * 3600)).unwrap();
            let seconds = seconds.min(DAY - 1 - awake - asleep);
            if seconds <= 0 {
                break;
            }
            world.pass(seconds.unsigned_abs()).await;
            awake += seconds;
            log.push(format!("{seconds}"));
            let lived = awake + asleep;
            assert_eq!(world.chat.attempts(), 0, "gave up after {lived} s, round {round}: {log:?}");
            let jump = Jump::drawn(&chance);
            if drawn_below(&chance, 3) == 0 && lived + jump.slept() < DAY - 1 {
                jump.happen(&world);
                asleep += jump.slept();
                log.push(format!("{jump:?}"));
            }
        }
        world.pass(2 + 2 * PACE).await;
        let delivered = world.chat.delivered();
        assert_eq!(delivered.len(), 1, "round {round}: {log:?}");
        assert!(delivered[0].key.ends_with(":no-result"), "{delivered:?}");
        assert_eq!(world.states(), [WatchState::Done]);
    }
}

//! Everything that can end a watch at once, in an order drawn by chance: the outcome is told once.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use volcanic_a2a_watch::WatchState;
use volcanic_base::Chance;

use crate::agent::{Agent, OnSend};
use crate::world::World;

/// How many orders are drawn.
const SEEDS: u64 = 200;

#[derive(Debug, Clone, Copy)]
enum Act {
    Complete,
    Push,
    Stream,
    Cut,
    Status,
    Cancel,
    Flush,
    Forget,
    Crash,
    Outage(bool),
    Failing(bool),
}

/// What happens, and when in milliseconds after the one before.
fn acts(chance: &Chance) -> Vec<(u64, Act)> {
    let mut acts = vec![
        Act::Complete,
        Act::Push,
        Act::Push,
        Act::Stream,
        Act::Status,
        Act::Status,
        Act::Flush,
    ];
    let sometimes = [
        (0.5, Act::Cancel),
        (0.5, Act::Cut),
        (0.4, Act::Crash),
        (0.3, Act::Forget),
        (0.3, Act::Crash),
        (0.3, Act::Outage(true)),
        (0.3, Act::Failing(true)),
    ];
    acts.extend(
        sometimes.into_iter().filter(|(often, _)| chance.fraction() < *often).map(|it| it.1),
    );
    let mut drawn: Vec<_> = acts.into_iter().map(|act| (chance.fraction(), act)).collect();
    drawn.sort_by(|one, other| one.0.total_cmp(&other.0));
    let pause = || {
        let spread = if chance.fraction() < 0.5 { 5.0 } else { 20_000.0 };
        Duration::from_secs_f64(chance.fraction() * spread / 1000.0).as_millis()
    };
    let mut acts: Vec<_> =
        drawn.into_iter().map(|(_, act)| (u64::try_from(pause()).unwrap(), act)).collect();
    acts.extend([(60_000, Act::Outage(false)), (0, Act::Failing(false))]);
    acts
}

async fn race(seed: u64) {
    let chance = Arc::new(Chance::seeded(seed));
    let agent = Agent::new(OnSend::Task("TASK_STATE_WORKING"));
    let agent = match seed % 3 {
        0 => agent,
        1 => agent.streams(),
        _ => agent.pushes(),
    };
    let mut world = World::with(agent, |config| {
        config.push_base = Some("https://me.example/".parse().unwrap());
    });
    world.hand_over().await;
    tokio::time::sleep(Duration::from_secs_f64(3.0 * chance.fraction())).await;
    let watch = world.store.all_watches()[0].clone();
    let token = watch.push_token.map(|token| token.expose().to_owned()).unwrap_or_default();
    let mut calls = JoinSet::new();
    for (pause, act) in acts(&chance) {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        match act {
            Act::Complete => world.agent.complete("t1"),
            Act::Push => {
                world.watches.on_push(watch.id.as_str(), &token, b"").await;
            }
            Act::Stream => world.agent.stream_status("t1", "TASK_STATE_COMPLETED").await,
            Act::Cut => world.agent.cut_streams(),
            Act::Status | Act::Cancel => {
                let (watches, query) = (world.watches.clone(), world.query("t1"));
                let (chat, chance) = (Arc::clone(&world.chat), Arc::clone(&chance));
                calls.spawn(async move {
                    let asked = match act {
                        Act::Cancel => watches.cancel(query).await,
                        _ => watches.status(query).await,
                    };
                    let Some(settle) = asked.ok().and_then(|report| report.settle) else { return };
                    tokio::time::sleep(Duration::from_secs_f64(chance.fraction())).await;
                    let drawn = chance.fraction();
                    if drawn < 0.6 {
                        chat.try_commit(settle.delivery_key());
                    }
                    // Sometimes it is on disk, and nobody comes to say so.
                    if drawn < 0.4 {
                        settle.confirm();
                    }
                });
            }
            Act::Flush => {
                world.chat.set_known(true);
                world.watches.flush(watch.target.clone()).await;
            }
            Act::Forget => world.chat.set_known(false),
            Act::Crash => world.crash().await,
            Act::Outage(is_out) => world.agent.set_unreachable(is_out),
            Act::Failing(is_failing) => world.store.set_failing(is_failing),
        }
    }
    world.agent.complete("t1");
    while calls.join_next().await.is_some() {}
    world.chat.set_known(true);
    world.watches.flush(watch.target.clone()).await;
    world.reach(&[WatchState::Done]).await;
    world.crash().await;
    world.pass(3600).await;
    let told = world.chat.taken();
    assert_eq!(told.len(), 1, "seed {seed}: {told:?}");
    assert!(told[0].ends_with(":completed") || told[0].ends_with(":canceled"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn whatever_races_for_an_outcome_it_is_told_once() {
    for seed in 0..SEEDS {
        race(seed).await;
    }
}

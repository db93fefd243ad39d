//! An imported task and a message that leads to the same one, in an order drawn by chance, with kills: told once.
//!
//! | import on disk | message known while | one watch, because |
//! |---|---|---|
//! | without origin | it looks for its agent | the commit that keeps the message's watch ends it |
//! | with origin | it reads, rests or holds a stream | the message is counted at it |
//! | claimed | its text is delivered | the message is counted at it, and the outcome it told is no news to the round |
//! | over | – | the message's watch knows what was told while it was on its way |

use std::sync::Arc;
use std::time::Duration;

use volcanic_a2a_watch::{SendState, WatchState};
use volcanic_base::Chance;

use crate::agent::{Agent, OnSend};
use crate::world::World;

/// How many orders are drawn.
const SEEDS: u64 = 60;

#[derive(Debug, Clone, Copy)]
enum Act {
    /// The file of agents can be read from here on.
    Mend,
    Send,
    Kill,
}

fn acts(chance: &Chance) -> Vec<(Duration, Act)> {
    let kills = if chance.fraction() < 0.3 { 0 } else { 1 + u32::from(chance.fraction() < 0.5) };
    let mut acts = vec![Act::Mend, Act::Send];
    acts.extend((0..kills).map(|_| Act::Kill));
    let drawn = acts.into_iter().map(|act| {
        let longest = if chance.fraction() < 0.5 { 1.0 } else { 90.0 };
        (Duration::from_secs_f64(chance.fraction() * longest), act)
    });
    let mut drawn: Vec<_> = drawn.collect();
    drawn.sort_by_key(|(at, _)| *at);
    drawn
}

async fn race(seed: u64) {
    let chance = Arc::new(Chance::seeded(seed));
    let mut world = World::new(Agent::new(OnSend::Task("TASK_STATE_WORKING")));
    world.agent.same_task();
    world.agent.set_task("t1", "TASK_STATE_WORKING", "");
    let path = world.workspace().join(".volcanic/a2a/pending.json");
    std::fs::write(path, r#"[{"agent": "travel-bot", "taskId": "t1"}]"#).unwrap();
    let agents = world.agents();
    if chance.fraction() < 0.7 {
        world.write_agents("[{");
    }
    world.watches.restore().await;
    world.store.set_slow(Chance::seeded(seed));
    let begun = tokio::time::Instant::now();
    let mut is_mended = false;
    for (at, act) in acts(&chance) {
        tokio::time::sleep_until(begun + at).await;
        match act {
            Act::Mend => {
                world.write_agents(&agents);
                is_mended = true;
            }
            // Without the file it would not leave.
            Act::Send if is_mended => world.leave(world.order("plan a trip")).await,
            Act::Send => {}
            Act::Kill => world.crash().await,
        }
    }
    world.write_agents(&agents);
    // The task goes on until the agent has the message, if it gets one: what it ends with is an answer to it as well.
    let arrived = async {
        while world.agent.calls("SendMessage").is_empty() {
            world.pass(1).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_mins(10), arrived).await;
    tokio::time::sleep(Duration::from_secs_f64(20.0 * chance.fraction())).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    if chance.fraction() < 0.5 {
        tokio::time::sleep(Duration::from_secs_f64(90.0 * chance.fraction())).await;
        world.crash().await;
    }
    let ended = async {
        while has_open_send(&world) || world.states().iter().any(|state| *state != WatchState::Done)
        {
            world.pass(10).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_hours(48), ended).await;
    assert!(ended.is_ok(), "seed {seed}: {:?} {:?}", world.states(), world.store.sends());
    world.crash().await;
    world.pass(3600).await;
    let delivered = world.chat.delivered();
    let told = delivered.iter().filter(|one| one.text.ends_with("\nLisbon")).count();
    assert_eq!(told, 1, "seed {seed}: {delivered:#?}");
}

fn has_open_send(world: &World) -> bool {
    world.store.sends().iter().any(|send| send.state == SendState::Sending)
}

#[tokio::test(start_paused = true)]
async fn imported_task_that_a_message_leads_to_as_well_is_told_once_whatever_comes_first() {
    for seed in 0..SEEDS {
        race(seed).await;
    }
}

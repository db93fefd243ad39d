//! Everything that can end a watch at once, in an order drawn by chance: pushes, streams, polls, questions about the task,
//! its cancel, new messages for it, the watch's time, crashes. The outcome is told once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use volcanic_a2a_watch::{SendEnd, SendError, SettleTicket, WatchHandle};
use volcanic_base::Chance;
use volcanic_testkit::{FaultSeed, drawn_below, drawn_from};

use crate::agent::{Agent, OnSend};
use crate::world::{Chat, World};

/// How many orders are drawn.
const RACES: usize = 2_000;

/// Who races at a time.
const WORKERS: usize = 2;

/// A watch's time where that is part of the race.
const WATCH_TIMEOUT: Duration = Duration::from_secs(45);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Complete,
    Ask,
    Push,
    Stream,
    Cut,
    Status,
    Cancel,
    /// Another message for the task, waited for so many seconds.
    Send(u64),
    Flush,
    Forget,
    Crash,
    Outage(bool),
    Failing(bool),
}

/// What happened, as far as it decides what may be told.
#[derive(Debug, Default)]
struct Course {
    /// Questions that the agent asked.
    asked: usize,
    /// Further messages that may have reached it.
    sent: usize,
    /// How often an outcome was told and nobody came to say so.
    unconfirmed: usize,
    /// What callers of `cancel` told as canceled before anybody else did.
    canceled: Vec<String>,
    /// What happened when, in milliseconds.
    log: Vec<(u128, String)>,
}

impl Course {
    fn note(&mut self, began: Instant, what: impl Into<String>) {
        self.log.push((began.elapsed().as_millis(), what.into()));
    }
}

/// How a race ended, for the count of what was put to the test.
type Ends = HashMap<&'static str, usize>;

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
    let wait = *drawn_from(chance, &[0, 0, 1, 5, 30]);
    let sometimes = [
        (0.6, Act::Cancel),
        (0.2, Act::Cancel),
        (0.5, Act::Send(wait)),
        (0.2, Act::Send(0)),
        (0.4, Act::Ask),
        (0.5, Act::Cut),
        (0.3, Act::Crash),
        (0.2, Act::Crash),
        (0.3, Act::Forget),
        (0.3, Act::Outage(true)),
        (0.3, Act::Failing(true)),
    ];
    acts.extend(
        sometimes.into_iter().filter(|(often, _)| chance.fraction() < *often).map(|it| it.1),
    );
    let mut drawn: Vec<_> = acts.into_iter().map(|act| (chance.fraction(), act)).collect();
    drawn.sort_by(|one, other| one.0.total_cmp(&other.0));
    let pause = || match drawn_below(chance, 4) {
        // At one moment.
        0 => 0,
        1 => drawn_below(chance, 5),
        2 => drawn_below(chance, 1_000),
        _ => drawn_below(chance, 20_000),
    };
    let mut acts: Vec<_> = drawn.into_iter().map(|(_, act)| (pause() as u64, act)).collect();
    acts.extend([(60_000, Act::Outage(false)), (0, Act::Failing(false))]);
    acts
}

/// A caller that has an outcome in its hands: it tells it or not, and says so or not. Whether it told what nobody had
/// told before.
async fn tell(
    chat: &Chat,
    settle: SettleTicket,
    chance: &Chance,
    course: &Mutex<Course>,
) -> Option<String> {
    tokio::time::sleep(Duration::from_millis(drawn_below(chance, 1_000) as u64)).await;
    let key = settle.delivery_key().to_owned();
    let (tells, confirms) = (drawn_below(chance, 10) < 6, drawn_below(chance, 10) < 6);
    let is_new = tells && !chat.taken().contains(&key);
    if tells {
        chat.try_commit(&key);
        if confirms {
            settle.confirm();
        } else {
            // It is on disk, and the registry goes on as if it were not.
            course.lock().unwrap().unconfirmed += 1;
        }
    }
    is_new.then_some(key)
}

struct Race {
    world: World,
    chance: Arc<Chance>,
    course: Arc<Mutex<Course>>,
    calls: JoinSet<()>,
    began: Instant,
}

impl Race {
    fn new(number: usize, chance: Chance) -> Self {
        let agent = Agent::new(OnSend::Task("TASK_STATE_WORKING")).strict();
        let agent = match number % 3 {
            0 => agent,
            1 => agent.streams(),
            _ => agent.pushes(),
        };
        let times_out = drawn_below(&chance, 4) == 0;
        let world = World::with(agent, |config| {
            config.push_base = Some("https://me.example/".parse().unwrap());
            if times_out {
                config.watch_timeout = WATCH_TIMEOUT;
            }
        });
        let (course, calls) = (Arc::default(), JoinSet::new());
        Self { world, chance: Arc::new(chance), course, calls, began: Instant::now() }
    }

    async fn act(&mut self, act: Act) {
        self.course.lock().unwrap().note(self.began, format!("{act:?}"));
        let world = &mut self.world;
        match act {
            Act::Complete => world.agent.complete("t1"),
            Act::Ask => {
                if world.agent.state("t1") == "TASK_STATE_WORKING" {
                    let mut course = self.course.lock().unwrap();
                    course.asked += 1;
                    let question = format!("question {}", course.asked);
                    world.agent.set_task("t1", "TASK_STATE_INPUT_REQUIRED", &question);
                }
            }
            Act::Push => {
                for watch in world.store.all_watches() {
                    let token = watch.push_token.as_ref().map_or("", |token| token.expose());
                    world.watches.on_push(watch.id.as_str(), token, b"").await;
                }
            }
            Act::Stream => {
                let state = world.agent.state("t1");
                world.agent.stream_status("t1", &state).await;
            }
            Act::Cut => world.agent.cut_streams(),
            Act::Status | Act::Cancel => self.ask(act == Act::Cancel),
            Act::Send(wait) => self.send(wait),
            Act::Flush => self.flush().await,
            Act::Forget => world.chat.set_known(false),
            Act::Crash => world.crash().await,
            Act::Outage(is_out) => world.agent.set_unreachable(is_out),
            Act::Failing(is_failing) => world.store.set_failing(is_failing),
        }
    }

    async fn flush(&self) {
        self.world.chat.set_known(true);
        let target = self.world.store.all_watches()[0].target.clone();
        self.world.watches.flush(target).await;
    }

    /// Asks for the task, or cancels it.
    fn ask(&mut self, cancels: bool) {
        let (watches, query) = (self.world.watches.clone(), self.world.query("t1"));
        let (chat, chance) = (Arc::clone(&self.world.chat), Arc::clone(&self.chance));
        let (course, began) = (Arc::clone(&self.course), self.began);
        self.calls.spawn(async move {
            let asked =
                if cancels { watches.cancel(query).await } else { watches.status(query).await };
            let Ok(report) = asked else { return };
            let went_through = cancels && report.refused.is_none() && report.settled;
            let Some(settle) = report.settle else { return };
            let key = settle.delivery_key().to_owned();
            let told = tell(&chat, settle, &chance, &course).await;
            let is_told = chat.taken().contains(&key);
            course.lock().unwrap().note(began, format!("asked, told {is_told}: {key}"));
            if went_through {
                course.lock().unwrap().canceled.extend(told);
            }
        });
    }

    /// Sends another message for the task.
    fn send(&mut self, wait: u64) {
        let mut order = self.world.order("and a hotel");
        (order.task_id, order.context_id) = (Some("t1".into()), Some("c1".into()));
        let watches: WatchHandle = self.world.watches.clone();
        let (chat, chance) = (Arc::clone(&self.world.chat), Arc::clone(&self.chance));
        let course = Arc::clone(&self.course);
        course.lock().unwrap().sent += 1;
        self.calls.spawn(async move {
            let cancel = tokio_util::sync::CancellationToken::new();
            let sent = watches.send(order, Duration::from_secs(wait), cancel).await;
            let settle = match sent {
                Ok(SendEnd::Settled { settle, .. }) => settle,
                Err(SendError::Unknown { settle, .. }) => Some(settle),
                Ok(_) | Err(_) => None,
            };
            if let Some(settle) = settle {
                tell(&chat, settle, &chance, &course).await;
            }
        });
    }

    /// Lets everything come to its end, and looks what was told.
    async fn end(mut self, number: usize) -> Ends {
        while self.calls.join_next().await.is_some() {}
        let works = self.world.agent.state("t1") == "TASK_STATE_WORKING";
        self.world.agent.complete("t1");
        self.flush().await;
        self.world.reach_ends().await;
        self.world.crash().await;
        self.world.pass(3600).await;
        self.world.reach_ends().await;
        let told = self.world.chat.taken();
        let course = self.course.lock().unwrap();
        let what = format!("race {number}: {told:?}, {course:#?}");
        let count = |wanted: &str| told.iter().filter(|key| label(key) == wanted).count();
        let outcomes = count("completed") + count("canceled");
        let (questions, timeouts) = (count("input-required"), count("no-result"));
        let unknown = told.iter().filter(|key| key.ends_with(":unknown")).count();
        // A task that has ended stays so, whatever is said to it.
        assert!(outcomes <= 1, "{what}");
        assert!(questions <= course.asked, "{what}");
        // A question ends the watch as an outcome does; a message for the task begins it anew. So does what nobody knows
        // to be told: the task may have got further by then.
        let all = outcomes + questions + timeouts;
        assert!((1..=1 + course.sent + course.unconfirmed).contains(&all), "{what}");
        // What works is followed, unless nobody knows whether the message that made it work arrived.
        assert!(!works || outcomes + timeouts + unknown > 0, "{what}");
        let known = ["completed", "canceled", "no-result", "input-required"];
        let strange =
            told.iter().find(|key| !known.contains(&label(key)) && !key.starts_with("a2a-send:"));
        assert_eq!(strange, None, "{what}");
        let delivered: Vec<_> =
            self.world.chat.delivered().into_iter().map(|delivery| delivery.key).collect();
        if !course.canceled.is_empty() {
            let late = delivered.iter().find(|key| label(key) == "canceled");
            assert_eq!(late, None, "{what}");
        }
        let by_caller = told.len() > delivered.len();
        let ends = [
            ("completed", count("completed") > 0),
            ("canceled", count("canceled") > 0),
            ("canceled by who asked for it", !course.canceled.is_empty()),
            ("timed out", timeouts > 0),
            ("asked something", questions > 0),
            ("went on", course.sent > 0 && self.world.store.sends().len() > 1),
            ("told by a caller", by_caller),
            ("delivered", !delivered.is_empty()),
        ];
        ends.into_iter().map(|(end, came)| (end, usize::from(came))).collect()
    }
}

/// What a key tells.
fn label(key: &str) -> &str {
    key.strip_prefix("a2a:").and_then(|rest| rest.split(':').nth(1)).unwrap_or_default()
}

async fn race(number: usize, chance: Chance) -> Ends {
    let mut race = Race::new(number, chance);
    race.world.hand_over().await;
    tokio::time::sleep(Duration::from_millis(drawn_below(&race.chance, 3_000) as u64)).await;
    for (pause, act) in acts(&race.chance) {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        race.act(act).await;
    }
    race.end(number).await
}

#[test]
fn whatever_races_for_an_outcome_it_is_told_once() {
    let seed = FaultSeed::new();
    let races = FaultSeed::times(RACES);
    let mut all = Ends::new();
    thread::scope(|scope| {
        let work = |worker: usize| {
            let mut ends = Ends::new();
            for number in (worker..races).step_by(WORKERS) {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .start_paused(true)
                    .build()
                    .unwrap();
                for (end, came) in runtime.block_on(race(number, seed.round(number))) {
                    *ends.entry(end).or_default() += came;
                }
            }
            ends
        };
        let workers: Vec<_> =
            (0..WORKERS).map(|worker| scope.spawn(move || work(worker))).collect();
        for worker in workers {
            for (end, came) in worker.join().unwrap() {
                *all.entry(end).or_default() += came;
            }
        }
    });
    println!("{races} races: {all:?}");
    // Else the race was none.
    for (end, came) in all {
        assert!(came * 50 >= races, "only {came} of {races} races {end}");
    }
}

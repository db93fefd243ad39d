//! Outcomes that nobody can take just now: the chat is not allowed, its session is not open, the provider is down, the
//! disk takes nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use volcanic_a2a_watch::{WatchState, WatchTarget};
use volcanic_agent_core::{
    ModelErrorKind, RetryConfig, ScriptedModel, ScriptedReply, ScriptedStep, SessionStore as _,
};
use volcanic_base::Chance;
use volcanic_testkit::{FaultSeed, drawn_below, drawn_from};

use crate::assistant::{Assistant, Home, Setup, says, send, target};
use crate::remote::Remote;

const ROUNDS: usize = 50;

/// How many run at a time.
const AT_ONCE: usize = 4;

/// Nothing here takes so long, whatever else the machine does.
const PATIENCE: Duration = Duration::from_mins(1);

/// The first pause before the provider is asked again, scaled down from two seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The pause before a delivery is tried again: two seconds, scaled down as all pauses of watches.
const STORE_PAUSE: Duration = Duration::from_millis(20);

const FAILING: [ModelErrorKind; 4] = [
    ModelErrorKind::Transport,
    ModelErrorKind::Overloaded,
    ModelErrorKind::RateLimited,
    ModelErrorKind::Truncated,
];

const FINAL: [ModelErrorKind; 3] =
    [ModelErrorKind::Auth, ModelErrorKind::Quota, ModelErrorKind::BadRequest];

/// Why nobody takes an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The conversation is not allowed any more.
    Revoked,
    /// No session of it is open.
    Closed,
    /// The provider fails so often, and then works.
    ProviderFails(usize),
    /// The provider fails until the run is given up.
    ProviderIsDown(ModelErrorKind),
    /// The store refuses the delivery so often.
    DiskFull(u64),
}

fn drawn(number: usize, chance: &Chance) -> Fault {
    match number % 5 {
        0 => Fault::Revoked,
        1 => Fault::Closed,
        2 => Fault::ProviderFails(1 + drawn_below(chance, 3)),
        3 if drawn_below(chance, 2) == 0 => Fault::ProviderIsDown(*drawn_from(chance, &FAILING)),
        3 => Fault::ProviderIsDown(*drawn_from(chance, &FINAL)),
        _ => Fault::DiskFull(1 + drawn_below(chance, 6) as u64),
    }
}

/// One conversation, its agent, and when its model was asked.
struct Case {
    what: String,
    remote: Remote,
    home: Home,
    asked: Arc<Mutex<Vec<Instant>>>,
    screen: Vec<String>,
}

impl Case {
    fn setup(known: bool, session: bool) -> Setup {
        Setup {
            known,
            session,
            retry: RetryConfig { base: FIRST_PAUSE, ..RetryConfig::default() },
            ..Setup::at_once()
        }
    }

    /// The process ends, in order or not.
    async fn end(&mut self, assistant: Assistant, chance: &Chance) {
        // What a screen shows is told to the store, so that nothing of it counts as shown twice.
        self.screen.extend(assistant.screen(&self.remote).await);
        if drawn_below(chance, 2) == 0 {
            assistant.kill().await;
        } else {
            assistant.stop().await;
        }
    }

    /// A reply that fails, and notes when.
    fn failing(&self, kind: ModelErrorKind) -> ScriptedStep {
        let asked = Arc::clone(&self.asked);
        ScriptedStep::made(move |_| {
            asked.lock().unwrap().push(Instant::now());
            ScriptedReply::fail(kind, "the provider is down")
        })
    }

    fn check(&self, is_so: bool, what: &str) {
        assert!(is_so, "{}: {what}", self.what);
    }

    /// Hands a task over and says so.
    async fn hand_over(&self, steps: Vec<ScriptedStep>) -> Assistant {
        let steps = [send("hold it"), says("It runs.")].into_iter().chain(steps);
        let model = ScriptedModel::steps(steps);
        let assistant = self.home.start_with(Self::setup(true, true), model).await;
        assistant.say("go").await;
        assistant
    }

    /// The chat may not be delivered into, or is not open, while the outcome comes.
    async fn absent(&mut self, known: bool, chance: &Chance) {
        let assistant = self.hand_over(Vec::new()).await;
        self.end(assistant, chance).await;
        self.remote.release("it");
        for _ in 0..=drawn_below(chance, 2) {
            let setup = Self::setup(known, false);
            let assistant = self.home.start(setup, [] as [ScriptedStep; 0]).await;
            if known {
                assistant.wait_watches(&[]).await;
                self.check(assistant.waiting(&self.remote).await.len() == 1, "it waits");
            } else {
                assistant.wait_watches(&[WatchState::Claimed]).await;
                assistant.watches.flush(WatchTarget::new(target().as_str())).await;
                assistant.wait_watches(&[WatchState::Claimed]).await;
                self.check(assistant.waiting(&self.remote).await.is_empty(), "nothing is let in");
            }
            self.end(assistant, chance).await;
        }
        let steps = [says("It is there.")];
        let assistant = self.home.start(Self::setup(true, true), steps).await;
        self.judge(assistant, "It is there.", chance).await;
    }

    /// The provider fails and comes back while the run waits.
    async fn provider_fails(&mut self, times: usize, chance: &Chance) {
        let failing = (0..times).map(|_| self.failing(*drawn_from(chance, &FAILING)));
        let steps = failing.chain([says("It is there.")]).collect();
        let assistant = self.hand_over(steps).await;
        self.remote.release("it");
        assistant.wait_line(&self.remote, "It is there.").await;
        self.check(self.asked.lock().unwrap().len() == times, "it is asked until it answers");
        self.judge(assistant, "It is there.", chance).await;
        self.check_pauses();
    }

    /// The provider does not come back in time: the owner sees the outcome itself.
    async fn provider_is_down(&mut self, kind: ModelErrorKind, chance: &Chance) {
        let attempts = if kind.is_transient() { 4 } else { 1 };
        let failing: Vec<_> = (0..attempts).map(|_| self.failing(kind)).collect();
        let steps = failing.into_iter().chain([says("I am back.")]).collect();
        let assistant = self.hand_over(steps).await;
        self.remote.release("it");
        assistant.wait_line(&self.remote, "last: true").await;
        self.check_pauses();
        let shown = assistant.screen(&self.remote).await;
        let told = shown.iter().filter(|text| text.contains("the provider is down"));
        self.check(told.count() == 1, "the owner is told once");
        self.screen.extend(shown);
        assistant.say("are you there?").await;
        self.judge(assistant, "finished: it", chance).await;
    }

    /// The disk takes no delivery for a while.
    async fn disk_is_full(&mut self, times: u64, chance: &Chance) {
        let assistant = self.hand_over(vec![says("It is there.")]).await;
        assistant.store.refuse(times);
        self.remote.release("it");
        assistant.wait_line(&self.remote, "It is there.").await;
        let refused = assistant.store.refused();
        self.check(refused.len() as u64 == times, "it is tried until it is taken");
        for two in refused.windows(2) {
            self.check(two[1] - two[0] >= STORE_PAUSE, "it is tried again after a pause");
        }
        self.judge(assistant, "It is there.", chance).await;
    }

    /// Each pause before the provider is asked again is at least twice the one before.
    fn check_pauses(&self) {
        let asked = self.asked.lock().unwrap().clone();
        let mut pause = FIRST_PAUSE;
        for two in asked.windows(2) {
            self.check(two[1] - two[0] >= pause, "the provider is asked again after a pause");
            pause *= 2;
        }
    }

    /// The outcome is in the conversation once and on the screen once, in this life and in the next.
    async fn judge(&mut self, assistant: Assistant, shown: &str, chance: &Chance) {
        let result = "delivery: [A2A result from \"bot\", task T1 (completed)]";
        let is_result = |line: &&String| line.starts_with(result);
        assistant.wait_line(&self.remote, result).await;
        assistant.wait_watches(&[]).await;
        let transcript = assistant.transcript(&self.remote).await;
        let results = transcript.iter().filter(is_result).count();
        self.check(results == 1, &format!("{results} results: {transcript:#?}"));
        self.end(assistant, chance).await;
        let assistant = self.home.start(Self::setup(true, true), [says("Again?")]).await;
        assistant.session().wait_idle().await;
        let after = assistant.transcript(&self.remote).await;
        self.check(after == transcript, &format!("{after:#?} instead of {transcript:#?}"));
        let late = assistant.store.next_outbox(&target()).await.unwrap();
        self.check(late.is_none(), "nothing is left to show");
        let times = self.screen.iter().filter(|text| text.contains(shown)).count();
        self.check(times == 1, &format!("{:#?}", self.screen));
        self.check(self.remote.texts() == ["hold it"], "it was sent once");
        assistant.stop().await;
    }
}

async fn round(number: usize, chance: Chance) {
    let fault = drawn(number, &chance);
    let remote = Remote::new().await;
    let home = Home::with(&remote);
    let (what, asked) = (format!("round {number}, {fault:?}"), Arc::default());
    let mut case = Case { what, remote, home, asked, screen: Vec::new() };
    match fault {
        Fault::Revoked => case.absent(false, &chance).await,
        Fault::Closed => case.absent(true, &chance).await,
        Fault::ProviderFails(times) => case.provider_fails(times, &chance).await,
        Fault::ProviderIsDown(kind) => case.provider_is_down(kind, &chance).await,
        Fault::DiskFull(times) => case.disk_is_full(times, &chance).await,
    }
}

#[tokio::test]
async fn outcome_that_nobody_can_take_stays_and_is_told_once_when_somebody_can() {
    let seed = FaultSeed::new();
    let rounds = FaultSeed::times(ROUNDS);
    let mut running = JoinSet::new();
    for number in 0..rounds {
        if running.len() >= AT_ONCE {
            running.join_next().await.unwrap().unwrap();
        }
        let round = round(number, seed.round(number));
        running.spawn(async move { tokio::time::timeout(PATIENCE, round).await.unwrap() });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
}

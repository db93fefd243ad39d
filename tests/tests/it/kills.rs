//! Ends of the process at every write of a whole delegation, by a kill or in good order: nothing is lost, nothing is
//! doubled.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::task::JoinSet;
use volcanic_a2a_watch::WatchStore as _;
use volcanic_agent_core::{ScriptedModel, ScriptedRules, SessionStore as _};

use crate::assistant::{Assistant, Home, Setup, target};
use crate::mortal::End;
use crate::remote::{Remote, within};

/// What the model does, whatever came before: no step depends on which life it is in.
const RULES: &str = r#"
[[rule]]
when = '^continue (\S+) (.+)$'
call = { tool = "a2a", arguments = { action = "send", agent = "bot", taskId = "$1", message = "$2" } }

[[rule]]
when = '^delegate (.+)$'
call = { tool = "a2a", arguments = { action = "send", agent = "bot", message = "$1" } }

[[rule]]
after = "tool:a2a"
say = "The tool said: $result"

[[rule]]
when = '(?s)^\[A2A '
say = "There is news: $prompt"
"#;

/// How many ends are tried at a time.
const AT_ONCE: usize = 6;

/// What is delegated, and what comes of it.
#[derive(Debug, Clone, Copy)]
struct Errand {
    message: &'static str,
    outcome: &'static str,
    /// What the owner says to that on the same task, and what comes of it.
    then: Option<(&'static str, &'static str)>,
    /// Whether the tool waits for outcomes.
    waits: bool,
}

/// One home, one agent, and what its screen showed in all lives.
struct Case {
    errand: Errand,
    remote: Remote,
    home: Home,
    shown: Mutex<Vec<(String, bool)>>,
}

impl Case {
    async fn new(errand: Errand) -> Self {
        let remote = Remote::new().await;
        let home = Home::with(&remote);
        remote.release("it");
        Self { errand, remote, home, shown: Mutex::default() }
    }

    async fn start(&self, end: Option<End>) -> Assistant {
        let wait = if self.errand.waits { Duration::from_secs(10) } else { Duration::ZERO };
        let setup = Setup {
            wait,
            end,
            change: |config| config.poll_pauses = vec![Duration::from_millis(20)],
            ..Setup::default()
        };
        let rules = ScriptedRules::parse("rules.toml", RULES).unwrap();
        self.home.start_with(setup, ScriptedModel::rules(rules)).await
    }

    /// A whole life: the owner's messages come in (again, if need be), everything is done and shown.
    async fn live(&self, assistant: &Assistant) {
        assistant.accept("m1", &format!("delegate {}", self.errand.message)).await;
        self.rest(assistant).await;
        let Some((message, _)) = self.errand.then else { return };
        let Some(task_id) = self.remote.received().first().map(|one| one.task_id.clone()) else {
            return;
        };
        let text = format!("continue {task_id} {message}");
        // Told that nobody knows whether it arrived, an owner says it again.
        for attempt in 2.. {
            assistant.accept(&format!("m{attempt}"), &text).await;
            self.rest(assistant).await;
            if self.remote.received().len() > 1 {
                return;
            }
        }
    }

    /// Waits until nothing is left to do here; a task that waits for the owner is watched on.
    async fn rest(&self, assistant: &Assistant) {
        let store = &assistant.store;
        loop {
            assistant.session().wait_idle().await;
            self.show(assistant).await;
            // In the order in which things move on: what leaves one place is found in the next one.
            let all_sent = store.open_sends().await.unwrap().is_empty();
            let watched = store.live().await.unwrap();
            let settled =
                watched.iter().all(|watch| watch.told.iter().any(|label| label == "auth-required"));
            let rests = all_sent
                && (settled && self.remote.received().len() < 2 || watched.is_empty())
                && store.waiting(&target()).await.unwrap().is_empty()
                && store.targets_with_work().await.unwrap().is_empty();
            if rests {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn show(&self, assistant: &Assistant) {
        while let Some(item) = assistant.store.next_outbox(&target()).await.unwrap() {
            self.shown.lock().unwrap().push((item.key, item.may_repeat));
            assistant.store.outbox_sent(item.id, None).await.unwrap();
        }
    }

    /// Judges what is left in the end.
    async fn judge(&self, assistant: &Assistant, end: End) {
        let transcript = assistant.transcript(&self.remote).await;
        let shown = self.shown.lock().unwrap().clone();
        let watched = assistant.store.live().await.unwrap();
        let what = format!("{end:?}: {transcript:#?}\nshown: {shown:#?}\nwatched: {watched:#?}");
        let count = |part: &str| {
            let from_outside = |line: &&String| {
                ["delivery: ", "tool: ", "error: "].iter().any(|who| line.starts_with(who))
            };
            transcript.iter().filter(from_outside).filter(|line| line.contains(part)).count()
        };
        let received = self.remote.texts();
        let then = self.errand.then;
        for (place, (message, outcome)) in
            [(self.errand.message, self.errand.outcome)].into_iter().chain(then).enumerate()
        {
            let arrived = received.get(place).is_some_and(|text| text == message);
            assert_eq!(count(outcome), usize::from(arrived), "{outcome}, {what}");
        }
        assert!(
            received.len() <= 1 + usize::from(then.is_some()),
            "sent twice: {received:?}, {what}"
        );
        let runs = transcript
            .iter()
            .filter(|line| line.starts_with("owner: ") || line.starts_with("delivery: "));
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for (key, may_repeat) in &shown {
            let times = times.entry(key).or_default();
            assert!(*times == 0 || *may_repeat, "shown again without a label, {what}");
            *times += 1;
        }
        assert_eq!(times.len(), runs.count(), "one answer for each run, {what}");
    }
}

/// Counts the writes of a life that nothing ends early.
async fn writes(errand: Errand) -> u64 {
    let case = Case::new(errand).await;
    let assistant = case.start(None).await;
    within(case.live(&assistant)).await;
    case.judge(&assistant, End::After(u64::MAX)).await;
    assert_eq!(case.remote.received().len(), 1 + usize::from(errand.then.is_some()));
    assistant.store.writes()
}

/// One life that ends early, and one more. Whether it did end early.
async fn end_and_live(errand: Errand, end: End) -> bool {
    let case = Case::new(errand).await;
    let assistant = case.start(Some(end)).await;
    let came = tokio::select! {
        () = assistant.store.over() => true,
        () = within(case.live(&assistant)) => false,
    };
    match end {
        End::Told(_) => assistant.stop().await,
        End::Before(_) | End::After(_) => assistant.kill().await,
    }
    let assistant = case.start(None).await;
    within(case.live(&assistant)).await;
    case.judge(&assistant, end).await;
    assistant.stop().await;
    came
}

async fn check(errand: Errand, ends: &[fn(u64) -> End]) {
    let writes = writes(errand).await;
    let mut left: Vec<_> = ends.iter().flat_map(|end| (0..writes).map(end)).collect();
    let tried = left.len();
    let mut running = JoinSet::new();
    let mut came = 0;
    while !left.is_empty() || !running.is_empty() {
        while running.len() < AT_ONCE
            && let Some(end) = left.pop()
        {
            running.spawn(end_and_live(errand, end));
        }
        if let Some(ended) = running.join_next().await {
            came += usize::from(ended.unwrap());
        }
    }
    // The last writes are notes that may not be needed; all others must have been reached.
    assert!(came * 10 >= tried * 8, "only {came} of {tried} ends came");
}

const HANDED_OVER: Errand =
    Errand { message: "hold it", outcome: "finished: it", then: None, waits: false };
const WAITED_FOR: Errand =
    Errand { message: "echo it", outcome: "echo: it", then: None, waits: true };
const QUESTION: Errand = Errand {
    message: "book it",
    outcome: "Which day?",
    then: Some(("Friday", "Booked it for Friday.")),
    waits: false,
};
const LOGIN: Errand = Errand {
    message: "gate it",
    outcome: "Please log in.",
    then: Some(("hold it", "finished: it")),
    waits: true,
};

#[tokio::test]
async fn kill_at_any_write_of_a_task_that_is_handed_over_loses_and_doubles_nothing() {
    check(HANDED_OVER, &[End::Before, End::After]).await;
}

#[tokio::test]
async fn kill_at_any_write_of_a_task_that_is_waited_for_loses_and_doubles_nothing() {
    check(WAITED_FOR, &[End::Before, End::After]).await;
}

#[tokio::test]
async fn kill_at_any_write_of_a_question_and_its_answer_loses_and_doubles_nothing() {
    check(QUESTION, &[End::After]).await;
}

#[tokio::test]
async fn kill_at_any_write_of_a_login_loses_and_doubles_nothing() {
    check(LOGIN, &[End::After]).await;
}

#[tokio::test]
async fn orderly_end_at_any_write_of_a_task_loses_and_doubles_nothing() {
    check(HANDED_OVER, &[End::Told]).await;
    check(WAITED_FOR, &[End::Told]).await;
}

#[tokio::test]
async fn orderly_end_at_any_write_of_a_login_loses_and_doubles_nothing() {
    check(LOGIN, &[End::Told]).await;
}

//! Rows of fault and command, and what every run is held to.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use volcanic_testkit::{
    HostileAgent, HostileHeard, HostilePlace, HostileProtocol, HostileTrick, Measured,
};

use crate::scene::{INBOX, KEY, Scene, Standing};

/// How much more memory a hostile agent may cost than a friendly one.
pub(crate) const GROWTH: u64 = 64 << 20;

/// How long a command may take, if a row does not say otherwise: the most that one below is told to wait, and twice that for
/// a machine that is busy.
const IN_TIME: Duration = Duration::from_secs(30);

/// How many requests a command may make: card, message, stream, and some reads.
const MOST_ASKED: usize = 12;

pub(crate) const SEND: &[&str] = &["send", "demo", "plum", "--wait", "5s"];
pub(crate) const STATUS: &[&str] = &["status", "demo", "task-1"];
pub(crate) const CANCEL: &[&str] = &["cancel", "demo", "task-1"];
pub(crate) const AGENTS: &[&str] = &["agents"];
pub(crate) const TASKS: &[&str] = &["tasks", "demo"];
pub(crate) const SUBSCRIBE: &[&str] = &["subscribe", "demo", "task-1", "--timeout", "10s"];
pub(crate) const WATCH: &[&str] = &["watch", "demo", "task-1", "--timeout", "10s"];
pub(crate) const WEBHOOKS: &[&str] = &["push-config", "list", "demo", "task-1"];

/// One fault and one command, and what comes of it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) trick: HostileTrick,
    pub(crate) protocol: HostileProtocol,
    pub(crate) command: &'static [&'static str],
    pub(crate) variables: &'static [(&'static str, &'static str)],
    /// How it may end.
    pub(crate) codes: Vec<i32>,
    /// What is told, on whichever output.
    pub(crate) told: String,
    /// What must not be told.
    pub(crate) untold: Option<&'static str>,
    /// How much the agent may have sent until it was left alone, in bytes.
    pub(crate) most_sent: u64,
    pub(crate) in_time: Duration,
    /// Whether the entry has a key.
    pub(crate) has_key: bool,
    /// Whether a file stands where the agent's files go.
    pub(crate) blocks_inbox: bool,
    /// An agent that nobody may turn to.
    pub(crate) bystander: Option<Arc<HostileAgent>>,
}

impl Row {
    pub(crate) fn new(
        trick: HostileTrick,
        command: &'static [&'static str],
        code: i32,
        told: &str,
    ) -> Self {
        Self {
            trick,
            protocol: HostileProtocol::JsonRpc,
            command,
            variables: &[],
            codes: vec![code],
            told: told.to_owned(),
            untold: None,
            // An answer may be thirty mebibytes, and the system buffers some.
            most_sent: 48 << 20,
            in_time: IN_TIME,
            has_key: true,
            blocks_inbox: false,
            bystander: None,
        }
    }

    pub(crate) fn over(mut self, protocol: HostileProtocol) -> Self {
        self.protocol = protocol;
        self
    }

    pub(crate) fn with(mut self, variables: &'static [(&'static str, &'static str)]) -> Self {
        self.variables = variables;
        self
    }

    pub(crate) fn keyless(mut self) -> Self {
        self.has_key = false;
        self
    }

    /// Sees to it that nobody turns to this agent.
    pub(crate) fn spares(mut self, bystander: &Arc<HostileAgent>) -> Self {
        self.bystander = Some(Arc::clone(bystander));
        self
    }

    /// Sees to it that this is not told.
    pub(crate) fn without(mut self, untold: &'static str) -> Self {
        self.untold = Some(untold);
        self
    }

    /// It may also end like that, as it depends on how fast the machine is.
    pub(crate) fn or(mut self, code: i32) -> Self {
        self.codes.push(code);
        self
    }

    fn label(&self) -> String {
        let trick: String = format!("{:?}", self.trick).chars().take(60).collect();
        format!("{trick} × {} over {:?}", self.command[0], self.protocol)
    }
}

/// Memory of a command against a friendly agent, by command.
#[derive(Default)]
struct Baselines {
    peaks: BTreeMap<&'static str, u64>,
}

impl Baselines {
    async fn of(&mut self, command: &'static [&'static str]) -> u64 {
        if let Some(peak) = self.peaks.get(command[0]) {
            return *peak;
        }
        let follows = matches!(command[0], "subscribe" | "watch");
        let trick = if follows { HostileTrick::NoneStreaming } else { HostileTrick::None };
        let agent = HostileAgent::start(trick).await.unwrap();
        let scene = Scene::new();
        scene.knows(agent.url(), true);
        let ran = scene.run(command, &[]).await;
        // Its task is completed, which is not what who cancels it wants.
        let code = i32::from(command[0] == "cancel");
        assert_eq!(ran.code, Some(code), "{command:?} against a friendly agent: {ran:?}");
        assert_eq!(agent.complaints(), Vec::<String>::new());
        self.peaks.insert(command[0], ran.peak);
        ran.peak
    }
}

/// Runs every row, one after the other, and tells all that is wrong at once.
pub(crate) async fn check(rows: impl IntoIterator<Item = Row>) {
    let mut baselines = Baselines::default();
    let (mut wrong, mut count) = (String::new(), 0);
    for row in rows {
        count += 1;
        let baseline = baselines.of(row.command).await;
        let faults = run(&row, baseline).await;
        if !faults.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(wrong, "{}:\n  {}", row.label(), faults.join("\n  "));
        }
    }
    assert!(count > 0, "there are no rows");
    assert!(wrong.is_empty(), "\n{wrong}");
}

async fn run(row: &Row, baseline: u64) -> Vec<String> {
    let agent = HostileAgent::start_over(row.protocol, row.trick.clone()).await.unwrap();
    let scene = Scene::new();
    scene.knows(agent.url(), row.has_key);
    if row.blocks_inbox {
        scene.write(INBOX, "untouched");
    }
    let before = scene.tree();
    let ran = scene.run(row.command, row.variables).await;
    let mut faults = judge(row, &ran, baseline);
    faults.extend(judge_files(&before, &scene.tree()));
    faults.extend(agent.complaints());
    if agent.sent() > row.most_sent {
        faults.push(format!("it read on: {} bytes were sent", agent.sent()));
    }
    let asked = agent.asked();
    let wants_stream =
        matches!(row.trick, HostileTrick::Stream(_) | HostileTrick::Wire(HostilePlace::Stream, _));
    if asked.is_empty() || (wants_stream && !agent.heard().iter().any(HostileHeard::is_stream)) {
        faults.push(format!("the fault was never met: {asked:?}"));
    }
    if asked.len() > MOST_ASKED {
        faults.push(format!("it asked on and on: {asked:?}"));
    }
    if row.bystander.as_ref().is_some_and(|bystander| bystander.connections() > 0) {
        faults.push("it turned to another agent".to_owned());
    }
    println!(
        "{}: {:?}, {} MiB more, {:?}, {} KiB sent",
        row.label(),
        ran.code,
        ran.peak.saturating_sub(baseline) >> 20,
        ran.took,
        agent.sent() >> 10
    );
    faults
}

fn judge(row: &Row, ran: &Measured, baseline: u64) -> Vec<String> {
    let mut faults = Vec::new();
    let all = format!("{}{}", ran.out, ran.err);
    let head: String = all.chars().take(600).collect();
    if !ran.code.is_some_and(|code| row.codes.contains(&code)) {
        faults.push(format!("it ended with {:?}, not {:?}: {head}", ran.code, row.codes));
    }
    if !all.contains(&row.told) {
        faults.push(format!("`{}` is not told: {head}", row.told));
    }
    if row.untold.is_some_and(|untold| all.contains(untold)) {
        faults.push(format!("{:?} is told: {head}", row.untold));
    }
    let growth = ran.peak.saturating_sub(baseline);
    if growth >= GROWTH {
        faults.push(format!("it took {} MiB more than with a friendly agent", growth >> 20));
    }
    if ran.took > row.in_time {
        faults.push(format!("it took {:?}", ran.took));
    }
    if all.contains(KEY) {
        faults.push(format!("it shows the key: {head}"));
    }
    if all.contains("panicked") {
        faults.push(format!("it panicked: {head}"));
    }
    let steers = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    if all.contains(steers) {
        faults.push(format!("it prints what steers a terminal: {head:?}"));
    }
    faults
}

/// New files are plain ones for their owner, in the inbox of the agent; nothing else changes.
pub(crate) fn judge_files(
    before: &BTreeMap<String, Standing>,
    after: &BTreeMap<String, Standing>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        faults.push(format!("{path} is gone"));
    }
    for (path, now) in after {
        let is_new = match before.get(path) {
            Some(was) if was == now => continue,
            Some(_) => false,
            None => true,
        };
        let inside = path.strip_prefix(INBOX);
        let is_right = match inside {
            Some("") => is_new && !now.is_file,
            Some(name) => {
                let name = name.strip_prefix('/').unwrap_or_default();
                is_new
                    && now.is_file
                    && now.mode == 0o600
                    && !name.contains('/')
                    && !name.is_empty()
            }
            None => false,
        };
        if !is_right {
            faults.push(format!("{path} was written: mode {:o}", now.mode));
        }
        if now.bytes.windows(KEY.len()).any(|bytes| bytes == KEY.as_bytes()) {
            faults.push(format!("{path} holds the key"));
        }
    }
    faults
}

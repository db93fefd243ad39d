//! `cargo xtask bench watches`: what ten thousand watches take. Agents in one process, the registry under measurement in
//! another, a fresh one for each figure.

use std::{
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{build_ours, median, talk::Talk};
use crate::shell::{built, command, root, run};

/// Tasks that are followed.
const WATCHES: u32 = 10_000;
/// Workspaces they are spread over, each with an agent of its own.
const WORKSPACES: u32 = 100;
/// Streams that a registry holds.
const STREAMS: u32 = 512;
/// Pushes in a second.
const PUSH_RATE: u32 = 200;
/// Who hands work over at once.
const ASKERS: u32 = 64;
/// What is added to each flush then, in microseconds.
const FLUSH: u32 = 5000;
/// The pause between first checks that brings every watch to its pace at once, in microseconds…
const AT_ONCE: u32 = 200;
/// …and the one that spreads them over the five minutes that are between two checks.
const AT_PACE: u32 = 30_000;
/// How long a pause with all that is added by chance takes, from the first check of the first watch.
const ONE_PACE: Duration = Duration::from_secs(335);
/// How long threads that have nothing to do any more take to end, and more.
const SETTLE: Duration = Duration::from_secs(15);
/// The longest that a step may take.
const LIMIT: Duration = Duration::from_mins(2);

/// How much is done.
struct Extent {
    rounds: usize,
    pushes: u32,
    /// What is waited for before idle time is measured, and how long it is.
    before_idle: Duration,
    idle: u32,
    hand_over: u32,
}

/// Builds everything as it ships and measures.
pub(crate) fn watches(quick: bool) -> Result<()> {
    let bench = Bench { programs: build_ours()?, home: built("bench-watches") };
    let extent = if quick {
        let (pushes, before_idle) = (1000, Duration::from_secs(15));
        Extent { rounds: 1, pushes, before_idle, idle: 30, hand_over: 12 }
    } else {
        Extent { rounds: 3, pushes: 4000, before_idle: ONE_PACE, idle: 120, hand_over: 24 }
    };
    println!(
        "\n{WATCHES} watches over {WORKSPACES} workspaces and as many agents, who are in another process"
    );
    let mut restarts = Vec::new();
    let mut memory = Vec::new();
    for kind in ["push", "poll", "subscribe"] {
        let mut taken = Vec::new();
        for _ in 0..extent.rounds {
            let mut scene = bench.scene(kind, AT_ONCE, None)?;
            let (grown, took) = scene.settle(kind)?;
            taken.push(grown);
            restarts.push(took);
        }
        memory.push(median(&mut taken));
    }
    let [push, poll, with_streams] = memory[..] else { bail!("three kinds were measured") };
    let each = |grown: f64| grown / f64::from(WATCHES) / 1024.0;
    let stream = (with_streams - poll) / f64::from(STREAMS) / 1024.0 + each(poll);
    let (push, poll) = (each(push), each(poll));
    println!(
        "memory, resident, before the restart against after all were read:\n  pushed    {push:.2} KiB a watch\n  polled    {poll:.2} KiB a watch\n  streamed  {stream:.2} KiB a watch that holds one of {STREAMS} streams, beside {} that poll",
        WATCHES - STREAMS
    );
    let restart = median(&mut restarts) * 1e3;
    println!("restart     {restart:.0} ms from opening the state until every timer is set");
    let push_times = bench.push(&extent)?;
    let idle = bench.idle(&extent)?;
    let hand_overs = bench.hand_over(&extent)?;
    println!(
        "\nfigures: KiB a watch {push:.2} pushed, {poll:.2} polled, {stream:.2} streamed; idle {idle:.2} % of a core; push to \
         accepted prompt p50 {:.2} ms, p99 {:.2} ms at {PUSH_RATE}/s; restart {restart:.0} ms; {hand_overs:.0} hand-overs/s of \
         {ASKERS} askers with {} ms a flush",
        push_times.0,
        push_times.1,
        FLUSH / 1000,
    );
    std::fs::remove_dir_all(&bench.home)?;
    Ok(())
}

struct Bench {
    programs: PathBuf,
    /// The folder with workspaces and state, on the disk that programs are built on.
    home: PathBuf,
}

/// The two processes of a figure.
struct Scene {
    agents: Talk,
    watches: Talk,
    push_address: String,
    /// How long the state took to open, in seconds.
    opening: f64,
}

impl Bench {
    /// Agents of a kind, a state full of watches, and the process that takes it up.
    fn scene(&self, kind: &str, stagger: u32, shim: Option<&Path>) -> Result<Scene> {
        if self.home.exists() {
            std::fs::remove_dir_all(&self.home)?;
        }
        std::fs::create_dir_all(&self.home)?;
        let agents = self.programs.join("bench-agents");
        let mut agents = Talk::start(command(agents).args([kind, &WORKSPACES.to_string()]))?;
        let urls = agents.read()?;
        let program = self.programs.join("bench-watches");
        let seeded = command(&program)
            .arg("seed")
            .arg(&self.home)
            .args([kind, &WATCHES.to_string()])
            .args(urls.split(' '))
            .status()?;
        ensure!(seeded.success(), "no state could be made");
        let mut watches = command(&program);
        watches.arg("run").arg(&self.home).args([kind, &stagger.to_string()]).args(urls.split(' '));
        if let Some(shim) = shim {
            watches.env("LD_PRELOAD", shim).env("SLOW_FLUSH", FLUSH.to_string());
        }
        let mut watches = Talk::start(&mut watches)?;
        let ready = watches.read()?;
        let (push_address, opening) = ready.split_once(' ').context("no address")?;
        let opening = opening.parse::<f64>()? / 1e9;
        Ok(Scene { agents, watches, push_address: push_address.to_owned(), opening })
    }

    /// From a push to the prompt that it leads to: the median and what one in a hundred exceeds, in milliseconds.
    fn push(&self, extent: &Extent) -> Result<(f64, f64)> {
        let mut scene = self.scene("push", AT_ONCE, None)?;
        scene.settle("push")?;
        let count = extent.pushes;
        let order = format!("push {} {PUSH_RATE} 0 {count}", scene.push_address);
        let cpu_before = scene.cpu()?;
        let began = Instant::now();
        let taken = scene.agents.ask(&order)?;
        let (took, cpu) = (began.elapsed().as_secs_f64(), scene.cpu()? - cpu_before);
        ensure!(taken == count.to_string(), "{taken} of {count} pushes were taken");
        let mut times = Vec::new();
        let limit = Instant::now() + LIMIT;
        while times.len() < count as usize {
            ensure!(Instant::now() < limit, "{} of {count} outcomes came", times.len());
            sleep(Duration::from_millis(200));
            times.extend(numbers(&scene.watches.ask("latencies")?)?);
        }
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = times.len() - 1;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a place in a list of thousands"
            )]
            let place = (last as f64 * share) as usize;
            times[place.min(last)] / 1e6
        };
        println!(
            "pushes      {count} at {PUSH_RATE}/s: accepted after {:.2} ms (p50), {:.2} ms (p99), {:.2} ms (worst); {:.0} % of a core",
            at(0.5),
            at(0.99),
            at(1.0),
            cpu / took * 100.0
        );
        Ok((at(0.5), at(0.99)))
    }

    /// The share of a core that watches at their pace take, in per cent.
    fn idle(&self, extent: &Extent) -> Result<f64> {
        let mut scene = self.scene("subscribe", AT_PACE, None)?;
        scene.watches.ask("restore")?;
        sleep(extent.before_idle);
        let (reads, streams, _) = scene.counts()?;
        let answer = numbers(&scene.watches.ask(&format!("cpu {}", extent.idle))?)?;
        let [took, cpu] = answer[..] else { bail!("no times") };
        let (more_reads, more_streams, _) = scene.counts()?;
        let share = cpu / took * 100.0;
        let a_second = |count: u32| f64::from(count) * 1e9 / took;
        println!(
            "idle        {share:.2} % of a core over {:.0} s, with {:.1} reads and {:.1} new streams a second",
            took / 1e9,
            a_second(more_reads - reads),
            a_second(more_streams - streams)
        );
        Ok(share)
    }

    /// Durable hand-overs in a second, with slow flushes.
    fn hand_over(&self, extent: &Extent) -> Result<f64> {
        let shim = built("bench-shim.so");
        run(command("cc")
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .arg(&shim)
            .arg(root().join("bench/src/slow_flush.c"))
            .arg("-ldl"))?;
        let mut scene = self.scene("poll", AT_PACE, Some(&shim))?;
        scene.watches.ask("restore")?;
        let order = format!("hand-overs {ASKERS} {}", extent.hand_over);
        let answer = numbers(&scene.watches.ask(&order)?)?;
        let [ended, took, commits, writes, cpu] = answer[..] else { bail!("no counts") };
        let seconds = took / 1e9;
        let rate = ended / seconds;
        println!(
            "hand-overs  {rate:.0}/s of {ASKERS} askers with {} ms a flush, over {seconds:.0} s: {:.0} commits a second, {:.1} writes in each; {:.0} % of a core",
            FLUSH / 1000,
            commits / seconds,
            writes / commits,
            cpu / took * 100.0
        );
        Ok(rate)
    }
}

impl Scene {
    /// Takes the state up and waits until every watch was read. Returns by how many bytes the process has grown then, and
    /// the seconds from opening the state until every timer was set.
    fn settle(&mut self, kind: &str) -> Result<(f64, f64)> {
        let before = self.memory()?;
        let restored = self.watches.ask("restore")?.parse::<f64>()? / 1e9 + self.opening;
        let limit = Instant::now() + LIMIT;
        loop {
            let (reads, streams, _) = self.counts()?;
            if reads >= WATCHES && (kind != "subscribe" || streams >= STREAMS) {
                break;
            }
            ensure!(Instant::now() < limit, "{reads} reads and {streams} streams so far");
            sleep(Duration::from_millis(200));
        }
        sleep(SETTLE);
        Ok((self.memory()? - before, restored))
    }

    /// The resident memory of the process, in bytes.
    fn memory(&mut self) -> Result<f64> {
        Ok(self.watches.ask("memory")?.parse()?)
    }

    /// The processor time of the process so far, in seconds.
    fn cpu(&mut self) -> Result<f64> {
        Ok(self.watches.ask("cpu-so-far")?.parse::<f64>()? / 1e9)
    }

    /// Reads, streams and sends that the agents have seen.
    fn counts(&mut self) -> Result<(u32, u32, u32)> {
        let counts: Vec<u32> =
            self.agents.ask("counts")?.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [reads, streams, sends] = counts[..] else { bail!("no counts") };
        Ok((reads, streams, sends))
    }
}

fn numbers(answer: &str) -> Result<Vec<f64>> {
    answer.split_whitespace().map(|word| Ok(word.parse()?)).collect()
}

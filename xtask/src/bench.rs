//! `cargo xtask bench client`: our client, the official SDK's, reqwest and a socket alone against one server, each a process
//! of its own, in turn, so that what the machine does meanwhile meets all of them.

mod talk;
mod watches;

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};

use crate::shell::{built, command, root, run};
use talk::Talk;

pub(crate) use watches::watches;

/// The clients, ours first, and in the end what is left without one.
const CLIENTS: [&str; 4] = ["volcanic", "a2a-lf", "reqwest", "socket"];
/// Where they are in it.
const OURS: usize = 0;
const SDK: usize = 1;
const REQWEST: usize = 2;
const SOCKET: usize = 3;

/// Where server and client run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Wherever the system puts them.
    Anywhere,
    /// Both on one core, so that none has to be woken for the other: what there is to do is all that takes time.
    OneCore,
    /// The server on a core of its own, the client on the others: whoever is measured does not share with it.
    Apart,
}

/// One row of the bench.
struct Measure {
    order: &'static str,
    title: &'static str,
    place: Place,
    /// How many of it a round of the short and of the full run has.
    counts: [u32; 2],
}

const fn measure(
    order: &'static str,
    title: &'static str,
    place: Place,
    counts: [u32; 2],
) -> Measure {
    Measure { order, title, place, counts }
}

const MEASURES: [Measure; 7] = [
    measure("one", "GetTask, one after the other", Place::Anywhere, [300, 3000]),
    measure("one", "GetTask, one after the other, on one core", Place::OneCore, [300, 3000]),
    measure("many", "GetTask, 64 at once", Place::Apart, [2000, 20_000]),
    measure("events", "events of a stream", Place::OneCore, [5, 100]),
    measure("large-65536", "event of 64 KiB", Place::OneCore, [20, 200]),
    measure("large-1048576", "event of 1 MiB", Place::OneCore, [5, 40]),
    measure("large-8388608", "event of 8 MiB", Place::OneCore, [2, 10]),
];

/// Builds everything as it ships and runs the rounds.
pub(crate) fn client(quick: bool) -> Result<()> {
    let (ours, peers) = build()?;
    let cores = Cores::of_this_process()?;
    let rounds = if quick { 3 } else { 15 };
    println!(
        "\nper call or event: median time (fastest to slowest of {rounds} rounds), processor time, rate"
    );
    let mut taken = Vec::new();
    for Measure { order, title, place, counts } in MEASURES {
        let (server, client) = cores.at(place);
        let mut server = Talk::start(&mut placed(server, ours.join("bench-server")))?;
        let url = server.read()?;
        let mut clients = CLIENTS
            .into_iter()
            .map(|name| {
                let is_ours = matches!(name, "volcanic" | "socket");
                let folder = if is_ours { &ours } else { &peers };
                let program = folder.join(format!("bench-{name}"));
                Talk::start(placed(client, program).arg(&url))
            })
            .collect::<Result<Vec<_>>>()?;
        let order = format!("{order} {}", counts[usize::from(!quick)]);
        let mut rows = CLIENTS.map(|_| Row::default());
        for round in 0..rounds {
            // Who is first changes, as the one before it warms the server.
            for turn in 0..CLIENTS.len() {
                let who = (round + turn) % CLIENTS.len();
                rows[who].note(&clients[who].ask(&order)?)?;
            }
        }
        println!("{title}");
        for (name, row) in CLIENTS.iter().zip(&rows) {
            println!("  {name:<10}{}", row.shown());
        }
        taken.push(rows);
    }
    println!("\n{}", summary(&taken));
    Ok(())
}

/// The cores that this process may use, as `taskset` names them.
struct Cores {
    first: String,
    others: String,
}

impl Cores {
    fn of_this_process() -> Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Self::parse(allowed.context("the system does not say which cores there are")?.trim())
    }

    /// Reads a list like `0-3,8`.
    fn parse(list: &str) -> Result<Self> {
        let mut numbers = Vec::new();
        for range in list.split(',') {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            numbers.extend(from.parse::<u32>()?..=to.parse()?);
        }
        let mut numbers = numbers.iter().map(u32::to_string);
        let first = numbers.next().context("there are no cores")?;
        let others = numbers.collect::<Vec<_>>().join(",");
        if others.is_empty() {
            bail!("the bench needs two cores: one for the server, one for the client");
        }
        Ok(Self { first, others })
    }

    /// The cores for the server and for the client, if they are to be on certain ones.
    fn at(&self, place: Place) -> (Option<&str>, Option<&str>) {
        match place {
            Place::Anywhere => (None, None),
            Place::OneCore => (Some(&self.first), Some(&self.first)),
            Place::Apart => (Some(&self.first), Some(&self.others)),
        }
    }
}

/// A program that runs on these cores alone.
fn placed(cores: Option<&str>, program: PathBuf) -> Command {
    let Some(cores) = cores else { return command(program) };
    let mut pinned = command("taskset");
    pinned.args(["--cpu-list", cores]).arg(program);
    pinned
}

/// Builds both sides; returns where their programs are.
fn build() -> Result<(PathBuf, PathBuf)> {
    let ours = build_ours()?;
    let target = built("peers").join("bench");
    run(command("cargo")
        .args(["build", "--locked", "--release", "--manifest-path"])
        .arg(root().join("bench/peers/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target))?;
    Ok((ours, target.join("release")))
}

/// Builds our programs as they ship; returns where they are.
fn build_ours() -> Result<PathBuf> {
    run(command("cargo")
        .args(["build", "--locked", "--profile", "dist"])
        .args(["--package", "volcanic-bench"]))?;
    Ok(built("dist"))
}

/// What all clients took in one measure.
type Rows = [Row; CLIENTS.len()];

/// What one client took in the rounds of one measure, in nanoseconds for each call or event.
#[derive(Default)]
struct Row {
    times: Vec<f64>,
    cpus: Vec<f64>,
}

impl Row {
    /// Notes an answer: nanoseconds, nanoseconds of processor time, how many were done.
    fn note(&mut self, answer: &str) -> Result<()> {
        let numbers: Vec<f64> =
            answer.split(' ').map(str::parse).collect::<Result<_, _>>().context("no numbers")?;
        let [time, cpu, done] = numbers[..] else { bail!("a client answered `{answer}`") };
        self.times.push(time / done);
        self.cpus.push(cpu / done);
        Ok(())
    }

    fn time(&self) -> f64 {
        median(&mut self.times.clone())
    }

    fn shown(&self) -> String {
        let time = self.time();
        let fastest = self.times.iter().copied().fold(f64::INFINITY, f64::min);
        let slowest = self.times.iter().copied().fold(0.0, f64::max);
        format!(
            "{:>10} ({} to {}) {:>10} cpu {:>10.0}/s",
            shown(time),
            shown(fastest),
            shown(slowest),
            shown(median(&mut self.cpus.clone())),
            1e9 / time
        )
    }
}

/// How many times as much `theirs` is as `ours`: of each round by itself, so that what the machine did in one does not count in
/// another, and then the middle.
fn ratio(theirs: &[f64], ours: &[f64]) -> f64 {
    median(&mut theirs.iter().zip(ours).map(|(theirs, ours)| theirs / ours).collect::<Vec<_>>())
}

/// Sorts, and takes the middle.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

fn shown(nanoseconds: f64) -> String {
    if nanoseconds < 1e6 {
        format!("{:.2} µs", nanoseconds / 1e3)
    } else {
        format!("{:.2} ms", nanoseconds / 1e6)
    }
}

/// The last line: how many times as fast as the others ours is, how many times as fast as the SDK's no client at all would
/// be, and what a large event takes.
fn summary(taken: &[Rows]) -> String {
    let [anywhere, one_core, many, events, small, middle, large] = taken else {
        return String::new();
    };
    let to = |peer: usize, rows: &Rows| {
        let rate = ratio(&rows[peer].times, &rows[OURS].times);
        format!("{rate:.2} ({:.2})", ratio(&rows[peer].cpus, &rows[OURS].cpus))
    };
    let calls = |peer: usize| {
        format!(
            "GetTask {}, on one core {}, 64 at once {}",
            to(peer, anywhere),
            to(peer, one_core),
            to(peer, many)
        )
    };
    let most = |rows: &Rows| ratio(&rows[SDK].times, &rows[SOCKET].times);
    let per_byte = |rows: &Rows, bytes: u32| rows[OURS].time() / f64::from(bytes);
    format!(
        "ratios, rate (cpu): to a2a-lf {}, events {}; to reqwest {}; a socket alone to a2a-lf GetTask {:.2}, on one core \
         {:.2}, 64 at once {:.2}, events {:.2}; ns per byte 64 KiB {:.2}, 1 MiB {:.2}, 8 MiB {:.2}; 8 MiB in {}",
        calls(SDK),
        to(SDK, events),
        calls(REQWEST),
        most(anywhere),
        most(one_core),
        most(many),
        most(events),
        per_byte(small, 64 << 10),
        per_byte(middle, 1 << 20),
        per_byte(large, 8 << 20),
        shown(large[OURS].time()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(answers: &[&str]) -> Row {
        let mut row = Row::default();
        for answer in answers {
            row.note(answer).unwrap();
        }
        row
    }

    #[test]
    fn answers_are_divided_by_what_was_done_and_the_middle_counts() {
        let mut row = row(&["1000 500 10", "9000 100 10", "2000 300 10"]);
        assert!((row.time() - 200.0).abs() < 1e-9);
        assert!((median(&mut row.cpus) - 30.0).abs() < 1e-9);
        assert!(row.note("1000 500").is_err() && row.note("a b c").is_err());
    }

    #[test]
    fn ratios_say_how_many_times_as_fast_ours_is() {
        let rows = || {
            ["1000 500 1", "2000 1500 1", "1500 500 1", "800 400 1"].map(|answer| row(&[answer]))
        };
        let line = summary(&[(); 7].map(|()| rows()));
        let to_sdk =
            "to a2a-lf GetTask 2.00 (3.00), on one core 2.00 (3.00), 64 at once 2.00 (3.00), ";
        assert!(
            line.starts_with(&format!("ratios, rate (cpu): {to_sdk}events 2.00 (3.00);")),
            "{line}"
        );
        assert!(line.contains("to reqwest GetTask 1.50 (1.00), "), "{line}");
        assert!(line.contains("a socket alone to a2a-lf GetTask 2.50, "), "{line}");
    }

    #[test]
    fn rounds_are_compared_one_by_one() {
        // The machine was ten times slower in the second round.
        assert!((ratio(&[20.0, 180.0, 22.0], &[10.0, 100.0, 11.0]) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn first_core_is_for_the_server_and_the_others_are_for_the_client() {
        let cores = Cores::parse("0-3,8").unwrap();
        assert_eq!(cores.at(Place::Apart), (Some("0"), Some("1,2,3,8")));
        assert_eq!(cores.at(Place::OneCore), (Some("0"), Some("0")));
        assert_eq!(cores.at(Place::Anywhere), (None, None));
        for list in ["5", "", "3-1", "a"] {
            assert!(Cores::parse(list).is_err(), "{list:?}");
        }
    }
}

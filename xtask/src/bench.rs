//! `cargo xtask bench client`: our client, the official SDK's, reqwest and a socket alone against one server, each a process
//! of its own, in turn, so that what the machine does meanwhile meets all of them.

mod talk;
mod watches;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::shell::{built, command, root, run};
use talk::Talk;

pub(crate) use watches::watches;

/// The clients, ours first, and in the end what is left without one.
const CLIENTS: [&str; 4] = ["volcanic", "a2a-lf", "reqwest", "socket"];

/// What is measured: the order, what is counted, and how many of it a round of the short and of the full run has.
const MEASURES: [(&str, &str, u32, u32); 6] = [
    ("one", "GetTask, one after the other", 300, 3000),
    ("many", "GetTask, 64 at once", 2000, 20_000),
    ("events", "events of a stream", 5, 100),
    ("large-65536", "event of 64 KiB", 20, 200),
    ("large-1048576", "event of 1 MiB", 5, 40),
    ("large-8388608", "event of 8 MiB", 2, 10),
];

/// Builds everything as it ships and runs the rounds.
pub(crate) fn client(quick: bool) -> Result<()> {
    let (ours, peers) = build()?;
    let rounds = if quick { 3 } else { 9 };
    let mut server = Talk::start(&mut command(ours.join("bench-server")))?;
    let url = server.read()?;
    let mut clients = CLIENTS
        .into_iter()
        .map(|name| {
            let is_ours = matches!(name, "volcanic" | "socket");
            let folder = if is_ours { &ours } else { &peers };
            Talk::start(command(folder.join(format!("bench-{name}"))).arg(&url))
        })
        .collect::<Result<Vec<_>>>()?;
    println!(
        "\nper call or event: median time (fastest to slowest of {rounds} rounds), processor time, rate"
    );
    let mut taken = Vec::new();
    for (order, title, short, full) in MEASURES {
        let order = format!("{order} {}", if quick { short } else { full });
        let mut rows = CLIENTS.map(|_| Row::default());
        for round in 0..rounds {
            // Who is first changes, as the one before it warms the server.
            for turn in 0..CLIENTS.len() {
                let who = (round + turn) % CLIENTS.len();
                rows[who].note(&clients[who].ask(&order)?)?;
            }
        }
        println!("{title}");
        for (name, row) in CLIENTS.iter().zip(&mut rows) {
            println!("  {name:<10}{}", row.shown());
        }
        taken.push(rows.map(|mut row| (row.time(), row.cpu())));
    }
    println!("\n{}", summary(&taken));
    Ok(())
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

/// What each client took of time and of processor time, in nanoseconds.
type Taken = [(f64, f64); CLIENTS.len()];

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

    fn time(&mut self) -> f64 {
        median(&mut self.times)
    }

    fn cpu(&mut self) -> f64 {
        median(&mut self.cpus)
    }

    fn shown(&mut self) -> String {
        let (time, cpu) = (self.time(), self.cpu());
        let (fastest, slowest) = (self.times[0], self.times[self.times.len() - 1]);
        format!(
            "{:>10} ({} to {}) {:>10} cpu {:>10.0}/s",
            shown(time),
            shown(fastest),
            shown(slowest),
            shown(cpu),
            1e9 / time
        )
    }
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
fn summary(taken: &[Taken]) -> String {
    let [one, many, events, small, middle, large] = taken else { return String::new() };
    let times = |row: &Taken, peer: usize| row[peer].0 / row[0].0;
    let cpus = |row: &Taken, peer: usize| row[peer].1 / row[0].1;
    let most = |row: &Taken| row[1].0 / row[3].0;
    let per_byte = |row: &Taken, bytes: u32| row[0].0 / f64::from(bytes);
    format!(
        "ratios, rate (cpu): to a2a-lf GetTask {:.2} ({:.2}), 64 at once {:.2} ({:.2}), events {:.2} ({:.2}); to reqwest \
         GetTask {:.2} ({:.2}), 64 at once {:.2} ({:.2}); a socket alone to a2a-lf GetTask {:.2}, 64 at once {:.2}, \
         events {:.2}; ns per byte 64 KiB {:.2}, 1 MiB {:.2}, 8 MiB {:.2}; 8 MiB in {}",
        times(one, 1),
        cpus(one, 1),
        times(many, 1),
        cpus(many, 1),
        times(events, 1),
        cpus(events, 1),
        times(one, 2),
        cpus(one, 2),
        times(many, 2),
        cpus(many, 2),
        most(one),
        most(many),
        most(events),
        per_byte(small, 64 << 10),
        per_byte(middle, 1 << 20),
        per_byte(large, 8 << 20),
        shown(large[0].0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_divided_by_what_was_done_and_the_middle_counts() {
        let mut row = Row::default();
        for answer in ["1000 500 10", "9000 100 10", "2000 300 10"] {
            row.note(answer).unwrap();
        }
        assert!((row.time() - 200.0).abs() < 1e-9 && (row.cpu() - 30.0).abs() < 1e-9);
        assert!(row.note("1000 500").is_err() && row.note("a b c").is_err());
    }

    #[test]
    fn ratios_say_how_many_times_as_fast_ours_is() {
        let row = [(1000.0, 500.0), (2000.0, 1500.0), (1500.0, 500.0), (800.0, 400.0)];
        let line = summary(&[row, row, row, row, row, row]);
        assert!(line.starts_with("ratios, rate (cpu): to a2a-lf GetTask 2.00 (3.00), "), "{line}");
        assert!(line.contains("to reqwest GetTask 1.50 (1.00), "), "{line}");
        assert!(line.contains("a socket alone to a2a-lf GetTask 2.50, "), "{line}");
    }
}

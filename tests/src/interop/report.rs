//! The verdicts, and the matrix that they make.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    time::Duration,
};

use anyhow::Result;

use super::{blame::Blame, following::FollowingReport, peer::Column, scenario::Row};

/// How wide a column of the matrix is.
pub(super) const WIDTH: usize = 18;

/// What a cell came to.
#[derive(Debug)]
pub(super) enum Verdict {
    Green,
    /// What is not as it must be, with the record.
    Red(String),
    /// The agent is at fault, as its record shows; this stands only if another agent is green in the same row.
    Peer {
        blame: &'static Blame,
        record: String,
    },
    /// The check did not see that the agent was broken.
    Blind(String),
}

/// The verdicts of a run.
#[derive(Debug, Default)]
pub struct InteropReport {
    sound: HashMap<(Row, Column), Verdict>,
    broken: HashMap<(Row, Column), Verdict>,
    models: Option<Result<(), String>>,
    pub(super) following: FollowingReport,
    pub(super) took: Duration,
}

/// How many cells came to what.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) green: usize,
    pub(super) proven: usize,
    pub(super) peer: usize,
    pub(super) not_applicable: usize,
    pub(super) red: usize,
}

impl InteropReport {
    /// Whether every cell is as it must be, and there was one.
    pub fn is_green(&self) -> bool {
        let counts = self.counts();
        counts.red == 0 && counts.green > 0
    }

    pub(super) fn add(
        &mut self,
        row: Row,
        column: Column,
        is_broken: bool,
        verdict: Verdict,
        took: Duration,
    ) {
        let broken = if is_broken { ", broken on purpose" } else { "" };
        let name = format!("{row} on {column}{broken} ({:.1} s)", took.as_secs_f32());
        match &verdict {
            Verdict::Green => println!("green  {name}"),
            Verdict::Peer { blame, record } => {
                println!("peer   {name}: {}\n{record}", blame.what);
            }
            Verdict::Red(why) => println!("RED    {name}\n{why}"),
            Verdict::Blind(why) => println!("BLIND  {name}\n{why}"),
        }
        let cells = if is_broken { &mut self.broken } else { &mut self.sound };
        cells.insert((row, column), verdict);
    }

    pub(super) fn add_models(&mut self, played: Result<()>) {
        let played = played.map_err(|error| format!("{error:#}"));
        match &played {
            Ok(()) => println!("green  {}", super::models::NAME),
            Err(why) => println!("RED    {}\n{why}", super::models::NAME),
        }
        self.models = Some(played);
    }

    /// An agent is to blame only while another one is green in the same row.
    pub(super) fn settle_blame(&mut self) {
        let green: Vec<(Row, Column)> = self
            .sound
            .iter()
            .filter(|(_, verdict)| matches!(verdict, Verdict::Green))
            .map(|(cell, _)| *cell)
            .collect();
        for ((row, column), verdict) in &mut self.sound {
            let Verdict::Peer { blame, .. } = verdict else { continue };
            let is_backed =
                green.iter().any(|(other, at)| other == row && at.sdk() != column.sdk());
            if !is_backed {
                let why =
                    format!("no other agent is green in this row, so it is not {}", blame.what);
                println!("RED    {row} on {column}: {why}");
                *verdict = Verdict::Red(why);
            }
        }
    }

    fn counts(&self) -> Counts {
        let mut counts = self.following.counts();
        for verdict in self.sound.values() {
            match verdict {
                Verdict::Green => counts.green += 1,
                Verdict::Peer { .. } => counts.peer += 1,
                Verdict::Red(_) | Verdict::Blind(_) => counts.red += 1,
            }
        }
        for verdict in self.broken.values() {
            match verdict {
                Verdict::Green => counts.proven += 1,
                Verdict::Peer { .. } | Verdict::Red(_) | Verdict::Blind(_) => counts.red += 1,
            }
        }
        match &self.models {
            Some(Ok(())) => counts.green += 1,
            Some(Err(_)) => counts.red += 1,
            None => {}
        }
        for row in Row::all() {
            let cells = Column::ALL.into_iter();
            counts.not_applicable +=
                cells.filter(|column| row.not_applicable(*column).is_some()).count();
        }
        counts
    }

    fn cell(&self, row: Row, column: Column) -> &'static str {
        if row.not_applicable(column).is_some() {
            return "n/a";
        }
        match (self.sound.get(&(row, column)), self.broken.get(&(row, column))) {
            (None, None) => ".",
            (Some(Verdict::Red(_) | Verdict::Blind(_)), _) => "RED",
            (_, Some(Verdict::Red(_) | Verdict::Blind(_) | Verdict::Peer { .. })) => "BLIND",
            (Some(Verdict::Peer { .. }), _) => "peer",
            (Some(Verdict::Green), Some(Verdict::Green)) => "green+",
            (Some(Verdict::Green), None) => "green",
            (None, Some(Verdict::Green)) => "+",
        }
    }
}

impl fmt::Display for InteropReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Row> = Row::all().collect();
        let first = rows.iter().map(|row| row.to_string().len()).max().unwrap_or_default() + 2;
        for line in 0..2 {
            write!(f, "{:first$}", "")?;
            for column in Column::ALL {
                write!(f, "{:WIDTH$}", column.heading()[line])?;
            }
            writeln!(f)?;
        }
        let mut notes: Vec<String> = Vec::new();
        for row in rows {
            let mut line = format!("{:first$}", row.to_string());
            for column in Column::ALL {
                // Writing to a string cannot fail.
                let _ = write!(line, "{:WIDTH$}", self.cell(row, column));
                if let Some(why) = row.not_applicable(column) {
                    let whole = (!row.is_played()).then(|| format!("n/a {row}: {why}"));
                    let note = whole.unwrap_or_else(|| format!("n/a {row} on {column}: {why}"));
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                }
                if let Some(Verdict::Peer { blame, .. }) = self.sound.get(&(row, column)) {
                    notes.push(format!("peer {row} on {column}: {blame}"));
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(
            f,
            "\ngreen+ as it must be, and a broken agent turned it red for the right reason; green the first only; peer the\n\
             agent is at fault; n/a nothing to play; . not played; RED not as it must be; BLIND did not see the broken agent"
        )?;
        for note in notes {
            writeln!(f, "{note}")?;
        }
        if !self.following.is_empty() {
            let took = self.following.took.as_secs_f32();
            writeln!(f, "\n{}following took {took:.0} s", self.following)?;
        }
        if let Some(models) = &self.models {
            let verdict = if models.is_ok() { "green" } else { "RED" };
            writeln!(f, "{verdict} {}", super::models::NAME)?;
        }
        let Counts { green, proven, peer, not_applicable, red } = self.counts();
        write!(
            f,
            "interop: {}: {green} green, {proven} proven by a broken agent, {peer} the peer's fault, {not_applicable} n/a, \
             {red} red or blind, in {:.0} s",
            if self.is_green() { "as it must be" } else { "NOT as it must be" },
            self.took.as_secs_f32()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::{actor::Player, blame, scenario::Scenario};

    const ROW: Row = Row { scenario: Scenario::Streaming, player: Player::Tool };

    fn report(cells: impl IntoIterator<Item = (Column, bool, Verdict)>) -> InteropReport {
        let mut report = InteropReport::default();
        for (column, is_broken, verdict) in cells {
            report.add(ROW, column, is_broken, verdict, Duration::ZERO);
        }
        report.settle_blame();
        report
    }

    fn blamed() -> (Column, bool, Verdict) {
        let verdict = Verdict::Peer { blame: blame::example(), record: String::new() };
        (Column::Python03Rpc, false, verdict)
    }

    #[test]
    fn agent_is_blamed_only_while_one_on_another_sdk_is_green() {
        assert!(!report([blamed()]).is_green());
        assert!(!report([blamed(), (Column::RustRpc, true, Verdict::Green)]).is_green());
        let backed = report([blamed(), (Column::RustRpc, false, Verdict::Green)]);
        assert!(backed.is_green());
        assert_eq!(backed.cell(ROW, Column::Python03Rpc), "peer");
    }

    #[test]
    fn check_that_does_not_see_the_broken_agent_is_no_better_than_a_red_one() {
        let blind = Verdict::Blind("it stayed green".to_owned());
        let report = report([
            (Column::RustRpc, false, Verdict::Green),
            (Column::RustRpc, true, blind),
            (Column::RustRest, false, Verdict::Green),
        ]);
        assert!(!report.is_green());
        assert_eq!(report.cell(ROW, Column::RustRpc), "BLIND");
        assert_eq!(report.cell(ROW, Column::RustRest), "green");
        assert_eq!(report.cell(ROW, Column::PythonRpc), ".");
    }

    #[test]
    fn every_row_and_every_reason_why_nothing_is_played_is_printed() {
        let text = report([(Column::RustRpc, false, Verdict::Green)]).to_string();
        for row in Row::all() {
            assert!(text.contains(&row.to_string()), "{row} is missing");
            for column in Column::ALL {
                if let Some(why) = row.not_applicable(column) {
                    assert!(text.contains(why), "{why} is missing");
                }
            }
        }
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("interop: as it must be: 1 green, 0 proven"), "{last}");
        assert!(!InteropReport::default().is_green());
    }
}

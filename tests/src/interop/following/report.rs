//! The verdicts on following, and the matrix that they make.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    time::Duration,
};

use super::{FollowJob, FollowRow};
use crate::interop::{
    peer::Column,
    report::{Counts, Verdict, WIDTH},
};

/// The verdicts of a run.
#[derive(Debug, Default)]
pub(in crate::interop) struct FollowingReport {
    sound: HashMap<(FollowRow, Column), Verdict>,
    broken: HashMap<(FollowRow, Column), Verdict>,
    pub(in crate::interop) took: Duration,
}

impl FollowingReport {
    pub(super) fn add(&mut self, job: FollowJob, verdict: Verdict, found: String, took: Duration) {
        let found = if found.is_empty() { found } else { format!("; found by {found}") };
        let name = format!("{job} ({:.1} s{found})", took.as_secs_f32());
        match &verdict {
            Verdict::Green => println!("green  {name}"),
            Verdict::Peer { record: why, .. } | Verdict::Red(why) => {
                println!("RED    {name}\n{why}");
            }
            Verdict::Blind(why) => println!("BLIND  {name}\n{why}"),
        }
        let cells = if job.is_broken { &mut self.broken } else { &mut self.sound };
        cells.insert((job.row, job.column), verdict);
    }

    pub(in crate::interop) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for verdict in self.sound.values() {
            match verdict {
                Verdict::Green => counts.green += 1,
                Verdict::Peer { .. } | Verdict::Red(_) | Verdict::Blind(_) => counts.red += 1,
            }
        }
        for verdict in self.broken.values() {
            match verdict {
                Verdict::Green => counts.proven += 1,
                Verdict::Peer { .. } | Verdict::Red(_) | Verdict::Blind(_) => counts.red += 1,
            }
        }
        for row in FollowRow::all() {
            let cells = Column::ALL.into_iter();
            counts.not_applicable +=
                cells.filter(|column| row.not_applicable(*column).is_some()).count();
        }
        counts
    }

    pub(in crate::interop) fn is_empty(&self) -> bool {
        self.sound.is_empty() && self.broken.is_empty()
    }

    fn cell(&self, row: FollowRow, column: Column) -> &'static str {
        if row.not_applicable(column).is_some() {
            return "n/a";
        }
        match (self.sound.get(&(row, column)), self.broken.get(&(row, column))) {
            (None, None) => ".",
            (Some(Verdict::Green), Some(Verdict::Green)) => "green+",
            (Some(Verdict::Green), None) => "green",
            (None, Some(Verdict::Green)) => "+",
            (None | Some(Verdict::Green), Some(_)) => "BLIND",
            (Some(_), _) => "RED",
        }
    }
}

impl fmt::Display for FollowingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<FollowRow> = FollowRow::all().collect();
        let first = rows.iter().map(|row| row.to_string().len()).max().unwrap_or_default() + 2;
        let mut notes: Vec<String> = Vec::new();
        for row in rows {
            let mut line = format!("{:first$}", row.to_string());
            for column in Column::ALL {
                // Writing to a string cannot fail.
                let _ = write!(line, "{:WIDTH$}", self.cell(row, column));
                if let Some(why) = row.not_applicable(column) {
                    let note = format!("n/a following by push on {column}: {why}");
                    if !notes.contains(&note) {
                        notes.push(note);
                    }
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        notes.iter().try_for_each(|note| writeln!(f, "{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::following::{Source, Trouble};

    #[test]
    fn cell_is_as_good_as_the_worse_of_its_two_verdicts() {
        let row = FollowRow { source: Source::Poll, trouble: Trouble::Cut };
        let mut report = FollowingReport::default();
        assert!(report.is_empty());
        let mut add = |column, is_broken, verdict| {
            let job = FollowJob { row, column, is_broken, tasks: 1 };
            report.add(job, verdict, String::new(), Duration::ZERO);
        };
        add(Column::RustRpc, false, Verdict::Green);
        add(Column::RustRpc, true, Verdict::Green);
        add(Column::RustRest, false, Verdict::Green);
        add(Column::RustRest, true, Verdict::Blind("it stayed green".to_owned()));
        add(Column::PythonRpc, false, Verdict::Red("twice".to_owned()));
        add(Column::PythonRpc, true, Verdict::Green);
        let cells = Column::ALL.map(|column| report.cell(row, column));
        assert_eq!(cells, ["RED", ".", ".", "green+", "BLIND"]);
        let counts = report.counts();
        assert_eq!((counts.green, counts.proven, counts.red), (2, 2, 2));
        assert!(report.to_string().contains("following by poll, connections cut"));
    }
}

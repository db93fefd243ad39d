//! What came of a run: how often what was put to the test, and every broken promise.

use std::{collections::BTreeMap, fmt};

use super::phase::Phase;

/// Figures and faults of a run, or of a part of it.
#[derive(Debug, Default)]
pub struct Tally {
    /// Kills by what was newly under way; one kill can hit several.
    phases: BTreeMap<Phase, u32>,
    /// Ends by the moment they were for: how many there were, and how many of them came then.
    ends: BTreeMap<&'static str, (u32, u32)>,
    /// How lives ended, and what else was counted.
    counts: BTreeMap<&'static str, u64>,
    faults: Vec<String>,
    notes: Vec<String>,
}

impl Tally {
    /// Broken promises; none, if all is well.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    pub(super) fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    pub(super) fn faults_of(&mut self, place: &str, faults: impl IntoIterator<Item = String>) {
        self.faults.extend(faults.into_iter().map(|fault| format!("{place}: {fault}")));
    }

    /// Something worth a line that is no fault.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub(super) fn hit(&mut self, phase: Phase) {
        *self.phases.entry(phase).or_default() += 1;
    }

    pub(super) fn hits(&self, phase: Phase) -> u32 {
        self.phases.get(&phase).copied().unwrap_or_default()
    }

    pub(super) fn end(&mut self, moment: &'static str, is_in_time: bool) {
        let (all, in_time) = self.ends.entry(moment).or_default();
        *all += 1;
        *in_time += u32::from(is_in_time);
    }

    /// The moments that ends were for, each with how many there were and how many of them came then.
    pub(super) fn ends(&self) -> impl Iterator<Item = (&'static str, (u32, u32))> {
        self.ends.iter().map(|(moment, counts)| (*moment, *counts))
    }

    pub(super) fn count(&mut self, what: &'static str, by: u64) {
        *self.counts.entry(what).or_default() += by;
    }

    pub(super) fn counted(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    /// The figures alone.
    pub(super) fn without_faults(mut self) -> Self {
        self.faults.clear();
        self
    }

    pub(super) fn add(&mut self, other: Self) {
        for (phase, count) in other.phases {
            *self.phases.entry(phase).or_default() += count;
        }
        for (moment, (all, in_time)) in other.ends {
            let counts = self.ends.entry(moment).or_default();
            *counts = (counts.0 + all, counts.1 + in_time);
        }
        for (what, count) in other.counts {
            self.count(what, count);
        }
        self.faults.extend(other.faults);
        self.notes.extend(other.notes);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.phases.is_empty() {
            writeln!(f, "kills per phase (one kill can hit several):")?;
            for phase in Phase::ALL {
                writeln!(f, "  {:>5}  {phase}", self.hits(phase))?;
            }
        }
        if !self.ends.is_empty() {
            writeln!(f, "ends by SIGTERM per moment, and how many came then:")?;
            for (moment, (all, in_time)) in &self.ends {
                writeln!(f, "  {in_time:>5} of {all}  {moment}")?;
            }
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        for fault in &self.faults {
            writeln!(f, "FAULT: {fault}")?;
        }
        for (what, count) in &self.counts {
            write!(f, "{count} {what}, ")?;
        }
        write!(f, "{} faults", self.faults.len())
    }
}

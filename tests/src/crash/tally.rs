//! What came of a run: how often what was put to the test, and every broken promise.

use std::{collections::BTreeMap, fmt};

use super::phase::Phase;

/// Figures and faults of a run, or of a part of it.
#[derive(Debug, Default)]
pub struct Tally {
    /// Kills by what was newly under way; one kill can hit several.
    phases: BTreeMap<Phase, u32>,
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

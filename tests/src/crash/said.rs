//! What is typed, and how its outcome is told from all others.

use volcanic_base::Chance;

/// What was typed.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// Nothing else has it.
    pub(super) word: String,
    pub(super) task: SaidTask,
}

/// What the remote agent is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaidTask {
    /// The word comes back at once.
    Echo,
    /// It comes back after a moment.
    Slow,
    /// It comes back in a file at once.
    Report,
    /// It comes back in a file after a moment.
    Late,
}

impl Said {
    pub(super) fn new(task: SaidTask, chance: &Chance) -> Self {
        Self { word: format!("w{}", &chance.uuid().simple().to_string()[..16]), task }
    }

    /// A task that most ways through the assistant get a share of.
    pub(super) fn any(chance: &Chance) -> Self {
        let task = match chance.fraction() {
            share if share < 0.2 => SaidTask::Echo,
            share if share < 0.65 => SaidTask::Slow,
            share if share < 0.8 => SaidTask::Report,
            _ => SaidTask::Late,
        };
        Self::new(task, chance)
    }

    pub(super) fn line(&self) -> String {
        let what = match self.task {
            SaidTask::Echo => "echo",
            SaidTask::Slow => "slow",
            SaidTask::Report => "report",
            SaidTask::Late => "late",
        };
        format!("ask demo: {what} {}", self.word)
    }

    /// Whether the word comes back in a file.
    pub(super) fn in_file(&self) -> bool {
        matches!(self.task, SaidTask::Report | SaidTask::Late)
    }
}

//! How a life is to end.

use volcanic_base::Chance;
use volcanic_testkit::Program;

use super::{phase::Phase, said::SaidTask, scene::Scene, tally::Tally};

/// How a life is to end, if it does not outlive that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// At some moment of so many milliseconds.
    Time(u64),
    /// At the k-th operation on files.
    Operation { at: u64, torn: Option<u64>, done: bool },
    /// At the k-th thing sent to the network.
    Sending { at: u64, done: bool },
    /// At the k-th operation on `pending.json`.
    View { at: u64 },
    /// When the judge sees that something is newly in a phase; flushes are slow, so that there is something to see.
    Sight(Phase),
}

/// Flushes of a life that is watched: long enough to be seen.
const SLOW_FLUSH: &str = "15000";

/// Operations on `pending.json` that are aimed at: a life replaces it once or twice.
const VIEW_OPERATIONS: u64 = 9;

/// Things sent that are aimed at: the card is asked for, the message leaves, the task is asked for.
const SENDINGS: u64 = 5;

/// The longest part of a life that ends at a random moment.
const RANDOM_LIFE: u64 = 1_100;

/// Of a hundred kills: so many before or in the middle of the k-th operation on files, …
const AT_OPERATION: u64 = 33;
/// … so many around the k-th thing sent, …
const AT_SENDING: u64 = 9;
/// … so many at a random time; the others go where kills are rarest.
const AT_RANDOM: u64 = 18;

impl Aim {
    /// Chooses one; a part of the kills goes to the phase that `so_far` has the fewest of.
    pub(super) fn choose(chance: &Chance, operations: u64, so_far: &Tally) -> Self {
        let share = below(chance, 100);
        if share < AT_OPERATION {
            // A third dies in the middle of a write, a tenth right after what it did.
            let torn = (below(chance, 3) == 0).then(|| 1 + below(chance, 999));
            let done = torn.is_none() && below(chance, 10) == 0;
            return Self::Operation { at: 1 + below(chance, operations), torn, done };
        }
        if share < AT_OPERATION + AT_SENDING {
            return Self::Sending { at: 1 + below(chance, SENDINGS), done: below(chance, 2) == 0 };
        }
        if share < AT_OPERATION + AT_SENDING + AT_RANDOM {
            return Self::Time(below(chance, RANDOM_LIFE));
        }
        // The view comes first of those that are as rare: nothing else hits it.
        let others = Phase::ASKED_FOR.into_iter().rev().chain([Phase::ResultRun]);
        Self::at_rarest(chance, others, so_far)
    }

    /// Goes to that of some phases that `so_far` has the fewest of.
    pub(super) fn at_rarest(
        chance: &Chance,
        phases: impl IntoIterator<Item = Phase>,
        so_far: &Tally,
    ) -> Self {
        match phases.into_iter().min_by_key(|phase| so_far.hits(*phase)) {
            Some(Phase::View) => Self::View { at: 1 + below(chance, VIEW_OPERATIONS) },
            Some(Phase::SendIntent) => Self::Sending { at: 2, done: false },
            Some(phase) => Self::Sight(phase),
            None => Self::Time(0),
        }
    }

    /// The wait inside `send`, in seconds, and a task, that lead there; `None` leaves it to chance.
    pub(super) fn way(self) -> Option<(&'static str, SaidTask)> {
        match self {
            Self::Sight(Phase::AttendedWait) => Some(("1", SaidTask::Slow)),
            Self::Sight(_) | Self::View { .. } => Some(("0", SaidTask::Slow)),
            Self::Time(_) | Self::Operation { .. } | Self::Sending { .. } => None,
        }
    }

    /// Puts the shim before a program, as far as it is needed.
    pub(super) fn arm(self, program: Program, scene: &Scene) -> Program {
        match self {
            Self::Time(_) => program,
            Self::Operation { at, torn, done } => {
                let program = scene.shimmed(program).env("CRASH_AT", at.to_string());
                match (torn, done) {
                    (Some(share), _) => program.env("CRASH_TORN", share.to_string()),
                    (None, true) => program.env("CRASH_AFTER", "1"),
                    (None, false) => program,
                }
            }
            Self::Sending { at, done } => {
                let program = scene
                    .shimmed(program)
                    .env("CRASH_ON", "sockets")
                    .env("CRASH_AT", at.to_string());
                if done { program.env("CRASH_AFTER", "1") } else { program }
            }
            Self::View { at } => scene
                .shimmed(program)
                .env("CRASH_PATH", ".volcanic/a2a")
                .env("CRASH_AT", at.to_string()),
            Self::Sight(_) => scene.shimmed(program).env("CRASH_SLOW", SLOW_FLUSH),
        }
    }
}

/// A number below `limit`, evenly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a small count"
)]
pub(super) fn below(chance: &Chance, limit: u64) -> u64 {
    (chance.fraction() * limit as f64) as u64
}

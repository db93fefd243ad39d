//! Running a turn: the executor at work, and what its end makes of the task.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::Core;
use crate::executor::{SinkError, TaskSink, Turn};

impl Core {
    /// Runs a turn to its end, whatever the executor does.
    pub(super) async fn run_turn(&self, turn: Turn, sink: &TaskSink, cancel: CancellationToken) {
        if turn.hops > self.config.max_hops {
            let reason = format!("the work came through more than {} agents", self.config.max_hops);
            end(sink, Ending::Failed(&reason)).await;
            return;
        }
        let work = self.executor.execute(turn, sink.clone(), cancel.clone());
        let grace = async {
            cancel.cancelled().await;
            tokio::time::sleep(self.config.cancel_grace).await;
        };
        let ending = tokio::select! {
            biased;
            ended = AssertUnwindSafe(work).catch_unwind() => match ended {
                // A task that a stop of the server cuts off is failed by whoever reads it next.
                Ok(()) if self.cancel.is_cancelled() => Ending::CutOff,
                Ok(()) => Ending::Returned,
                Err(_) => {
                    tracing::error!("executor panicked");
                    Ending::Failed("The run failed unexpectedly.")
                }
            },
            () = grace => Ending::CutOff,
        };
        end(sink, ending).await;
    }
}

/// How an executor ended.
enum Ending<'r> {
    /// It returned.
    Returned,
    /// It broke.
    Failed(&'r str),
    /// The server stops, or the task was canceled and the executor did not return in time.
    CutOff,
}

/// Ends a turn that said nothing final: with a failure, or without a word.
async fn end(sink: &TaskSink, ending: Ending<'_>) {
    let ended = match ending {
        Ending::Returned => sink.fail_unless_waiting("The run ended without a result.").await,
        Ending::Failed(reason) => sink.fail(reason).await,
        Ending::CutOff => Ok(()),
    };
    match ended {
        Ok(()) | Err(SinkError::Closed) => sink.abandon().await,
        Err(error) => {
            tracing::error!(%error, "failed to keep the end of a task");
            sink.orphan().await;
        }
    }
}

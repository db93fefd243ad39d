//! The sentences that a session itself says, to the model and to the person.

use crate::{model::StopReason, prompt::Origin};

use super::{answer::AnswerKind, log::RunPrompt};

/// A call whose run the owner stopped.
pub(super) const ABORTED: &str = "Operation aborted";
/// A call that a restart came between.
pub(super) const INTERRUPTED: &str =
    "This call was interrupted by a restart; its effect is unknown, check before repeating it.";
/// A call of a reply that was cut or refused.
pub(super) const NOT_RUN: &str = "This call was not run: the reply that holds it did not come to its end. \
    Make the call again if it is still wanted.";
/// A call that has no result on record.
pub(super) const NO_RESULT: &str = "There is no result of this call on record.";
/// A result whose outcome came into the conversation by another way.
pub(super) const ALREADY_DELIVERED: &str =
    "This outcome was already delivered to this conversation.";
/// Added to the system prompt of a run's last turn.
pub(super) const WRAP_UP: &str = "The limit of tool calls for this request is reached and no tool is available now. \
    Say in text what was found and done, and what is left to do.";
/// Why a run that the owner stopped has no answer.
pub(super) const STOPPED: &str = "stopped by the owner";
/// A failing store, to the person. The details are in the log.
pub(super) const STORE_FAILED: &str = "The conversation could not be saved. Nothing that was sent is lost; \
    it will be taken up again.";

/// What a finished reply shows: its text, or why there is none. `outcomes` are what the run took from its tools.
pub(super) fn reply_text(
    run: &RunPrompt,
    outcomes: &[&str],
    text: &str,
    stop: StopReason,
) -> (AnswerKind, String) {
    let reason = match stop {
        StopReason::Refusal => "the model declined to answer",
        StopReason::Length => "the model reached its output limit before it said anything",
        StopReason::Stop | StopReason::ToolUse => "the model ended without an answer",
    };
    if text.trim().is_empty() {
        return failure_text(run, outcomes, reason);
    }
    let text = if stop == StopReason::Length {
        format!("{text}\n\n(The reply was cut at the model's output limit.)")
    } else {
        text.to_owned()
    };
    (AnswerKind::Reply, text)
}

/// What a run that failed for good shows. What was delivered, and what the run took from its tools as the outcome of a
/// delivery, is shown itself, so that it reaches the person.
pub(super) fn failure_text(
    run: &RunPrompt,
    outcomes: &[&str],
    reason: &str,
) -> (AnswerKind, String) {
    let (mut text, kind) = match (run.origin, outcomes) {
        (Origin::Owner, []) => {
            (format!("The assistant could not answer: {reason}."), AnswerKind::Failure)
        }
        (Origin::Owner, [_, ..]) => (
            format!(
                "The assistant could not answer: {reason}. This had come in before; here it is as it came:"
            ),
            AnswerKind::Unanswered,
        ),
        (Origin::Delivery, _) => (
            format!(
                "The assistant could not answer about this ({reason}). Here it is as it came:\n\n{}",
                run.text
            ),
            AnswerKind::Unanswered,
        ),
    };
    for outcome in outcomes {
        text.push_str("\n\n");
        text.push_str(outcome);
    }
    (kind, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::PromptKey;

    fn run(origin: Origin) -> RunPrompt {
        RunPrompt {
            key: PromptKey::new("k"),
            origin,
            hops: 0,
            source: None,
            text: "[A2A result]".to_owned(),
        }
    }

    #[test]
    fn empty_reply_is_told_and_shows_what_was_delivered() {
        assert_eq!(
            reply_text(&run(Origin::Owner), &[], " \n", StopReason::Stop),
            (
                AnswerKind::Failure,
                "The assistant could not answer: the model ended without an answer.".to_owned()
            )
        );
        assert_eq!(
            reply_text(&run(Origin::Delivery), &[], "", StopReason::Refusal),
            (
                AnswerKind::Unanswered,
                "The assistant could not answer about this (the model declined to answer). \
                 Here it is as it came:\n\n[A2A result]"
                    .to_owned()
            )
        );
    }

    #[test]
    fn cut_reply_says_so() {
        let (kind, text) = reply_text(&run(Origin::Owner), &[], "One, two", StopReason::Length);
        assert_eq!(kind, AnswerKind::Reply);
        assert_eq!(text, "One, two\n\n(The reply was cut at the model's output limit.)");
    }
}

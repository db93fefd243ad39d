//! The seam between a finished run and what the host shows.

use std::fmt;

use crate::{
    prompt::{Origin, PromptKey, SourceRef},
    store::NewOutbox,
};

/// What a run has to say to the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Names this answer within its conversation, for ever: a base for [`NewOutbox::key`].
    pub id: &'a str,
    /// The prompt that is answered.
    pub key: &'a PromptKey,
    /// Who wrote the prompt.
    pub origin: Origin,
    /// The message it belongs to.
    pub source: Option<&'a SourceRef>,
    /// What the text is.
    pub kind: AnswerKind,
    /// The whole text, never empty.
    pub text: &'a str,
}

/// What an [`Answer`]'s text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// The model's words, in Markdown.
    Reply,
    /// Our own words on why there is no reply; plain text.
    Failure,
    /// Our own words and below them delivered texts that the model could not speak about; plain text, in part from
    /// outside.
    Unanswered,
}

/// Encodes answers for a host's screen.
pub trait AnswerFormat: Send + Sync + fmt::Debug {
    /// The outbox rows that show the answer, in order; they are committed together with the end of its run.
    fn outbox(&self, answer: &Answer<'_>) -> Vec<NewOutbox>;
}

/// One row per answer, the text as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainAnswers;

impl AnswerFormat for PlainAnswers {
    fn outbox(&self, answer: &Answer<'_>) -> Vec<NewOutbox> {
        vec![NewOutbox {
            key: answer.id.to_owned(),
            body: answer.text.to_owned(),
            source: answer.source.cloned(),
        }]
    }
}

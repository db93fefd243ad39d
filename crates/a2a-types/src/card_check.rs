//! What is wrong with a card, for the people who wrote it.
//!
//! Reading a card forgives ([`AgentCard`](crate::AgentCard)); this does not: it names every fault with its place, the
//! sentence of the specification that it breaks, and how to mend it.

use std::fmt;

use serde_json::Value;

use crate::{naming::json_kind, v03};

mod meaning;
mod old;
mod served;
mod shape;
mod walk;

/// How much is told of why a card cannot be read, and of where, in characters.
const REASON: usize = 300;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CardSeverity {
    /// The specification forbids it: callers may refuse the card.
    Error,
    /// It is allowed, and unlikely to be meant.
    Warning,
}

impl fmt::Display for CardSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// Something that is wrong with a card. Words of the card in it are cut where they are long, and else as the card has them:
/// whoever shows them makes them harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardFinding {
    /// How bad it is.
    pub severity: CardSeverity,
    /// Where, as a path of member names and indexes: `supportedInterfaces[0].url`; empty for the card itself.
    pub path: String,
    /// What was read there, and how to mend it.
    pub problem: String,
    /// Which rule that breaks, with its section of the specification.
    pub rule: &'static str,
}

/// What [`check_card`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardCheck {
    /// The findings, the errors first, then in the order of the card's members; at most
    /// [`MAX_FINDINGS`](Self::MAX_FINDINGS).
    pub findings: Vec<CardFinding>,
    /// How many errors there are, listed or not.
    pub errors: usize,
    /// How many warnings there are, listed or not.
    pub warnings: usize,
}

impl CardCheck {
    /// How many findings are listed; further ones are only counted.
    pub const MAX_FINDINGS: usize = 100;

    /// Whether the card breaks no rule.
    pub fn is_valid(&self) -> bool {
        self.errors == 0
    }

    fn add(&mut self, finding: CardFinding) {
        let count = match finding.severity {
            CardSeverity::Error => &mut self.errors,
            CardSeverity::Warning => &mut self.warnings,
        };
        *count += 1;
        // An error counts more than a warning that came before it.
        if self.findings.len() == Self::MAX_FINDINGS && finding.severity == CardSeverity::Error {
            let last = self.findings.iter().rposition(|f| f.severity == CardSeverity::Warning);
            if let Some(last) = last {
                self.findings.remove(last);
            }
        }
        if self.findings.len() < Self::MAX_FINDINGS {
            self.findings.push(finding);
        }
    }
}

/// What an agent says about its card beside the card, as headers of the answer that holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardHeaders {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Cache-Control`, all lines of it in one.
    pub cache_control: Option<String>,
    /// `ETag`.
    pub etag: Option<String>,
}

/// As [`check_card`], and whether the card is served as the specification wants it.
pub fn check_served_card(card: &str, headers: &CardHeaders) -> CardCheck {
    let mut found = Findings(check_card(card));
    served::check(headers, &mut found);
    found.0
}

/// Checks the text of a card against A2A 1.0, or against 0.3 if it names only an address of 0.3.
///
/// A card that is both (as some agents serve for old callers) is checked as one of 1.0, and its members of 0.3 are let
/// pass. If that finds no error, the card is read as callers read it. Takes time in proportion to the card.
pub fn check_card(card: &str) -> CardCheck {
    let mut found = Findings::default();
    let text = card.trim_start_matches('\u{feff}');
    match serde_json::from_str::<Value>(text) {
        Err(error) => {
            found.error("", format!("it is not JSON: {error}"), "8.2: a card is a JSON document");
        }
        Ok(card) if !card.is_object() => {
            let rule = "4.4.1: AgentCard is an object";
            found.error("", format!("it is {}, not an object", json_kind(&card)), rule);
        }
        Ok(card) if old::is_old(&card) => old::check(&card, &mut found),
        Ok(card) => {
            walk::object(&card, &shape::AGENT_CARD, "", &mut found);
            meaning::check(&card, &mut found);
        }
    }
    if found.0.is_valid() {
        readable(text, &mut found);
    }
    found.0.findings.sort_by_key(|finding| finding.severity);
    found.0
}

/// Finds what only reading a card tells, such as a member that is there twice.
fn readable(card: &str, found: &mut Findings) {
    let Err(error) = v03::read_card(card) else { return };
    let error = error.to_string();
    let placed = error.strip_prefix('`').and_then(|placed| placed.split_once("`: "));
    let (place, reason) = placed.unwrap_or(("", &error));
    let cut = |text: &str| text.chars().take(REASON).collect::<String>();
    let problem = format!("callers cannot read it: {}", cut(reason));
    found.error(cut(place), problem, "8.2: a card is a JSON document that callers can read");
}

/// What was found so far.
#[derive(Default)]
struct Findings(CardCheck);

impl Findings {
    fn error(&mut self, path: impl Into<String>, problem: impl Into<String>, rule: &'static str) {
        self.add(CardSeverity::Error, path.into(), problem.into(), rule);
    }

    fn warning(&mut self, path: impl Into<String>, problem: impl Into<String>, rule: &'static str) {
        self.add(CardSeverity::Warning, path.into(), problem.into(), rule);
    }

    fn add(&mut self, severity: CardSeverity, path: String, problem: String, rule: &'static str) {
        self.0.add(CardFinding { severity, path, problem, rule });
    }
}

#[cfg(test)]
mod tests;

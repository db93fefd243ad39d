//! The rules of a scripted agent: what it does with which text.

use std::time::Duration;

use regex::{Captures, Regex};
use serde::Deserialize;

use super::template::{Template, Values};

const BUILT_IN: &str = include_str!("builtin.toml");

/// The longest a rule may keep a task working.
pub(crate) const MAX_AFTER: Duration = Duration::from_hours(24);

/// A scripted agent's rules, in order; the first that fits decides.
#[derive(Debug, Clone)]
pub struct ScriptRules {
    rules: Vec<Rule>,
}

/// A rule file that cannot be used, with everything that is wrong in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unusable rules: {}", problems.join("; "))]
pub struct ScriptRulesError {
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
}

/// What a rule does.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    name: Option<String>,
    answer_to: Option<String>,
    when: Option<Regex>,
    pub(crate) after: Option<Template>,
    pub(crate) outcome: Outcome,
}

/// How a rule ends the turn.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The task is completed with an answer, a file, or both.
    Done { say: Option<Template>, file: Option<FileTemplate>, chunks: usize },
    /// The task asks a question.
    Ask(Template),
    /// The task fails.
    Fail(Template),
    /// The task is rejected.
    Reject(Template),
    /// There is no task, only a message.
    Reply(Template),
}

/// A file that a rule produces.
#[derive(Debug, Clone)]
pub(crate) struct FileTemplate {
    pub(crate) name: Template,
    pub(crate) media_type: String,
    pub(crate) text: Template,
}

/// A rule that fits, with what its templates stand for.
#[derive(Debug, Clone)]
pub(crate) struct Match<'r> {
    pub(crate) rule: &'r Rule,
    pub(crate) values: Values,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: Option<String>,
    when: Option<String>,
    answer_to: Option<String>,
    after: Option<String>,
    say: Option<String>,
    file: Option<RawFile>,
    chunks: Option<usize>,
    ask: Option<String>,
    fail: Option<String>,
    reject: Option<String>,
    reply: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: String,
    #[serde(default = "plain_text")]
    media_type: String,
    text: String,
}

fn plain_text() -> String {
    "text/plain".to_owned()
}

impl ScriptRules {
    /// The rules of the demo agent: echo, report, book, slow, fail, reject, and an answer to anything else.
    ///
    /// # Panics
    ///
    /// Never: a test parses them.
    pub fn built_in() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "the text is part of this crate and a test parses it"
        )]
        Self::parse(BUILT_IN).expect("the built-in rules parse")
    }

    /// Reads rules from the text of a TOML file: `[[rule]]` tables as in the built-in rules.
    ///
    /// # Errors
    ///
    /// [`ScriptRulesError`] with every problem at once.
    pub fn parse(text: &str) -> Result<Self, ScriptRulesError> {
        let file: RuleFile = toml::from_str(text)
            .map_err(|error| ScriptRulesError { problems: vec![error.to_string()] })?;
        let names: Vec<String> = file.rule.iter().filter_map(|rule| rule.name.clone()).collect();
        let mut problems = Vec::new();
        let mut rules = Vec::new();
        for (index, raw) in file.rule.into_iter().enumerate() {
            match Rule::from_raw(raw, &names) {
                Ok(rule) => rules.push(rule),
                Err(problem) => problems.push(format!("rule {}: {problem}", index + 1)),
            }
        }
        if rules.is_empty() && problems.is_empty() {
            problems.push("there is no [[rule]]".to_owned());
        }
        if problems.is_empty() { Ok(Self { rules }) } else { Err(ScriptRulesError { problems }) }
    }

    /// The rules that a first message can meet and that have a name.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &Rule)> {
        let first = self.rules.iter().filter(|rule| rule.answer_to.is_none());
        first.filter_map(|rule| Some((rule.name.as_deref()?, rule)))
    }

    /// Finds the rule for the last of a task's user messages, oldest first. Earlier ones say which question it answers,
    /// so nothing has to be remembered between turns.
    pub(crate) fn find(&self, messages: &[String], files: &str) -> Option<Match<'_>> {
        let mut current: Option<Match<'_>> = None;
        for (index, text) in messages.iter().enumerate() {
            let files = if index + 1 == messages.len() { files } else { "" };
            current = match current {
                Some(asked) if matches!(asked.rule.outcome, Outcome::Ask(_)) => {
                    self.answer(&asked, text, files).or_else(|| self.first(text, files))
                }
                Some(_) | None => self.first(text, files),
            };
        }
        current
    }

    fn first(&self, text: &str, files: &str) -> Option<Match<'_>> {
        self.rules.iter().filter(|rule| rule.answer_to.is_none()).find_map(|rule| {
            let groups = groups(&rule.when.as_ref()?.captures(text)?);
            let values = Values::new(groups, text, files);
            Some(Match { rule, values })
        })
    }

    fn answer<'r>(&'r self, asked: &Match<'_>, text: &str, files: &str) -> Option<Match<'r>> {
        let asked_name = asked.rule.name.as_deref()?;
        let rules = self.rules.iter().filter(|rule| rule.answer_to.as_deref() == Some(asked_name));
        rules.into_iter().find_map(|rule| {
            let own = match &rule.when {
                Some(when) => groups(&when.captures(text)?),
                None => Vec::new(),
            };
            // Without groups of its own, `$1` means the question's.
            let groups = if own.len() > 1 { own } else { asked.values.groups().to_vec() };
            let values = Values::new(groups, text, files).answering(text);
            Some(Match { rule, values })
        })
    }
}

impl Default for ScriptRules {
    fn default() -> Self {
        Self::built_in()
    }
}

impl Rule {
    /// What it does, in words.
    pub(crate) fn description(&self) -> String {
        let end = match &self.outcome {
            Outcome::Done { file: Some(_), .. } => "Answers with a file",
            Outcome::Done { file: None, .. } => "Answers",
            Outcome::Ask(_) => "Asks back",
            Outcome::Fail(_) => "Fails",
            Outcome::Reject(_) => "Declines",
            Outcome::Reply(_) => "Answers without a task",
        };
        let after = if self.after.is_some() { " after a while" } else { "" };
        format!("{end}{after}.")
    }

    fn from_raw(raw: RawRule, names: &[String]) -> Result<Self, String> {
        if raw.when.is_none() && raw.answer_to.is_none() {
            return Err("needs `when` or `answer_to`".to_owned());
        }
        if let Some(asked) = &raw.answer_to
            && !names.contains(asked)
        {
            return Err(format!("`answer_to` names no rule: {asked:?}"));
        }
        let when = match &raw.when {
            Some(pattern) => Some(Regex::new(pattern).map_err(|error| format!("`when`: {error}"))?),
            None => None,
        };
        if let Some(after) = &raw.after
            && !after.contains('$')
        {
            parse_after(after)?;
        }
        if raw.ask.is_some() && raw.name.is_none() {
            return Err(
                "a rule that asks needs a `name`, so that `answer_to` can mean it".to_owned()
            );
        }
        let after = raw.after.as_deref().map(Template::parse);
        let (name, answer_to) = (raw.name.clone(), raw.answer_to.clone());
        let outcome = Outcome::from_raw(raw)?;
        if after.is_some() && matches!(outcome, Outcome::Reply(_)) {
            return Err("`after` needs a task, and `reply` makes none".to_owned());
        }
        Ok(Self { name, answer_to, when, after, outcome })
    }
}

impl Outcome {
    fn from_raw(raw: RawRule) -> Result<Self, String> {
        let done = raw.say.is_some() || raw.file.is_some();
        if raw.chunks.is_some() && raw.say.is_none() {
            return Err("`chunks` needs `say`".to_owned());
        }
        let template = |text: Option<String>| text.as_deref().map(Template::parse);
        let others = [
            template(raw.ask).map(Self::Ask),
            template(raw.fail).map(Self::Fail),
            template(raw.reject).map(Self::Reject),
            template(raw.reply).map(Self::Reply),
        ];
        let mut others = others.into_iter().flatten();
        match (done, others.next(), others.next()) {
            (true, None, _) => Ok(Self::Done {
                say: template(raw.say),
                file: raw.file.map(FileTemplate::from_raw),
                chunks: raw.chunks.unwrap_or(1).max(1),
            }),
            (false, Some(outcome), None) => Ok(outcome),
            (true, Some(_), _) | (false, Some(_), Some(_)) | (false, None, _) => {
                Err("needs either `say` and/or `file`, or one of `ask`, `fail`, `reject`, `reply`"
                    .to_owned())
            }
        }
    }
}

impl FileTemplate {
    fn from_raw(raw: RawFile) -> Self {
        Self {
            name: Template::parse(&raw.name),
            media_type: raw.media_type,
            text: Template::parse(&raw.text),
        }
    }
}

/// Reads a length such as `500ms`, `5s`, `2m` or `1h`.
pub(crate) fn parse_after(text: &str) -> Result<Duration, String> {
    let problem = || {
        format!("`after` is {text:?}; write a length such as 500ms, 5s, 2m or 1h, a day at most")
    };
    let split = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(problem)?;
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| problem())?;
    let length = match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    };
    length.filter(|length| *length <= MAX_AFTER).ok_or_else(problem)
}

fn groups(captures: &Captures<'_>) -> Vec<String> {
    captures
        .iter()
        .map(|group| group.map_or_else(String::new, |group| group.as_str().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests;

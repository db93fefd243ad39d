//! Rules by which a scripted model answers.

use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use super::{
    reply::ScriptedReply,
    template::{Template, ValueTemplate, Values},
};
use crate::{
    content::{Message, ToolReply},
    header::without_header,
    model::{ModelErrorKind, ModelRequest},
};

/// Rules read from a TOML file.
///
/// Each `[[rule]]` has conditions and exactly one of `say`, `call` and `fail`; the first rule that fits is taken.
///
/// - `when`: a regular expression that the text must match. The text is the last prompt without its timestamp header
///   or, with `after`, the results of the tool. Left out, every text fits.
/// - `after`: `"tool:NAME"` or `"tool"`: the rule is for the turn after a result of that tool, or of any. Without it the
///   rule is for the turn after a prompt.
/// - `say`: a text. `call = { tool = "…", arguments = { … } }`: a call. `fail`: the reason of a failure.
///
/// `$1`, `$name` and `${name}` stand for groups of `when`, `$prompt` for the last prompt and, with `after`, `$result`
/// for the results; `$$` is a dollar. `delay_ms` at the top is the pause before each word, in milliseconds.
#[derive(Debug, Clone)]
pub struct ScriptedRules {
    delay: Duration,
    rules: Vec<Rule>,
}

/// An error in a rule file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct ScriptedRulesError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what is allowed.
    pub problem: String,
}

#[derive(Debug, Clone)]
struct Rule {
    after: Option<After>,
    when: Option<Regex>,
    then: Then,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum After {
    AnyTool,
    Tool(String),
}

#[derive(Debug, Clone)]
enum Then {
    Say(Template),
    Call { tool: String, arguments: ValueTemplate },
    Fail(Template),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    #[serde(default)]
    delay_ms: u64,
    #[serde(default, rename = "rule")]
    rules: Vec<Spanned<RuleText>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    after: Option<Spanned<String>>,
    when: Option<Spanned<String>>,
    say: Option<Spanned<String>>,
    call: Option<Spanned<CallText>>,
    fail: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallText {
    tool: String,
    #[serde(default)]
    arguments: serde_json::Map<String, Value>,
}

/// A problem and where in the text it begins.
type Flaw = (usize, String);

impl ScriptedRules {
    /// Reads rules. `file` names them in errors.
    ///
    /// # Errors
    ///
    /// [`ScriptedRulesError`], with the first problem.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScriptedRulesError> {
        read(text).map_err(|(at, problem)| {
            let before = text.as_bytes().iter().take(at);
            let line = 1 + before.filter(|byte| **byte == b'\n').count();
            ScriptedRulesError { file: file.to_owned(), line, problem }
        })
    }

    /// The rules that come with the model; their last one tells the others.
    pub fn built_in() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "the text is part of this crate and read by its tests"
        )]
        Self::parse("built_in.toml", include_str!("built_in.toml"))
            .expect("the built-in rules are valid")
    }

    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    pub(super) fn reply(&self, request: &ModelRequest) -> ScriptedReply {
        let turn = Turn::of(request);
        self.rules.iter().find_map(|rule| rule.apply(&turn, request)).unwrap_or_else(|| {
            // What a tool said is of use even to somebody who wrote no rule for it.
            ScriptedReply::say(turn.result(None).unwrap_or_else(|| "No rule fits this.".to_owned()))
        })
    }
}

/// What the model was asked last.
#[derive(Debug)]
struct Turn<'a> {
    prompt: &'a str,
    /// The results since the last reply; empty after a prompt.
    results: Vec<&'a ToolReply>,
}

impl<'a> Turn<'a> {
    fn of(request: &'a ModelRequest) -> Self {
        let mut results: Vec<&ToolReply> = request
            .messages
            .iter()
            .rev()
            .map_while(|message| match message {
                Message::Tool(reply) => Some(reply),
                Message::User { .. } | Message::Assistant { .. } => None,
            })
            .collect();
        results.reverse();
        let prompt = request.messages.iter().rev().find_map(|message| match message {
            Message::User { text } => Some(without_header(text)),
            Message::Assistant { .. } | Message::Tool(_) => None,
        });
        Self { prompt: prompt.unwrap_or_default(), results }
    }

    /// The results of a tool, or of all, one below the other.
    fn result(&self, tool: Option<&str>) -> Option<String> {
        let texts: Vec<&str> = self
            .results
            .iter()
            .filter(|reply| tool.is_none_or(|tool| tool == reply.name))
            .map(|reply| reply.text.as_str())
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

impl Rule {
    /// The reply, if the rule fits.
    fn apply(&self, turn: &Turn<'_>, request: &ModelRequest) -> Option<ScriptedReply> {
        let mut values = Values::from([("prompt".to_owned(), turn.prompt.to_owned())]);
        let subject = match &self.after {
            None if turn.results.is_empty() => turn.prompt.to_owned(),
            None => return None,
            Some(after) => {
                let result = match after {
                    After::AnyTool => turn.result(None)?,
                    After::Tool(name) => turn.result(Some(name))?,
                };
                values.insert("result".to_owned(), result.clone());
                result
            }
        };
        if let Some(when) = &self.when {
            let captures = when.captures(&subject)?;
            for (at, name) in when.capture_names().enumerate() {
                let group = captures.get(at).map_or("", |group| group.as_str());
                values.insert(at.to_string(), group.to_owned());
                if let Some(name) = name {
                    values.insert(name.to_owned(), group.to_owned());
                }
            }
        }
        Some(match &self.then {
            Then::Say(text) => ScriptedReply::say(text.fill(&values)),
            Then::Fail(reason) => {
                ScriptedReply::fail(ModelErrorKind::BadRequest, reason.fill(&values))
            }
            Then::Call { tool, arguments } => {
                if request.tools.iter().any(|spec| spec.name == *tool) {
                    ScriptedReply::call(tool, arguments.fill(&values))
                } else {
                    ScriptedReply::say(format!("The tool `{tool}` is not available here."))
                }
            }
        })
    }
}

fn read(text: &str) -> Result<ScriptedRules, Flaw> {
    let file: FileText = toml::from_str(text)
        .map_err(|error| (error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    let rules = file.rules.into_iter().map(read_rule).collect::<Result<_, _>>()?;
    Ok(ScriptedRules { delay: Duration::from_millis(file.delay_ms), rules })
}

fn read_rule(rule: Spanned<RuleText>) -> Result<Rule, Flaw> {
    let start = rule.span().start;
    let RuleText { after, when, say, call, fail } = rule.into_inner();
    let after = after.as_ref().map(read_after).transpose()?;
    let when = when.as_ref().map(read_pattern).transpose()?;
    let known = places(after.as_ref(), when.as_ref())?;
    let then = match (say, call, fail) {
        (Some(say), None, None) => Then::Say(read_template(&say, &known)?),
        (None, None, Some(fail)) => Then::Fail(read_template(&fail, &known)?),
        (None, Some(call), None) => {
            let at = call.span().start;
            let CallText { tool, arguments } = call.into_inner();
            let arguments = ValueTemplate::parse(&Value::Object(arguments), &known)
                .map_err(|problem| (at, problem))?;
            Then::Call { tool, arguments }
        }
        (None, None, None) | (Some(_), ..) | (_, Some(_), _) => {
            let problem = "a rule has exactly one of `say`, `call` and `fail`";
            return Err((start, problem.to_owned()));
        }
    };
    Ok(Rule { after, when: when.map(|(_, pattern)| pattern), then })
}

fn read_after(after: &Spanned<String>) -> Result<After, Flaw> {
    match after.as_ref().split_once(':') {
        None if after.as_ref() == "tool" => Ok(After::AnyTool),
        Some(("tool", name)) if !name.is_empty() => Ok(After::Tool(name.to_owned())),
        None | Some(_) => Err((
            after.span().start,
            format!("`after` is \"tool\" or \"tool:NAME\", not \"{}\"", after.as_ref()),
        )),
    }
}

fn read_pattern(when: &Spanned<String>) -> Result<(usize, Regex), Flaw> {
    let at = when.span().start;
    match Regex::new(when.as_ref()) {
        Ok(pattern) => Ok((at, pattern)),
        // The last line of the error says what is wrong; those before it draw the pattern.
        Err(error) => {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Err((at, format!("`when` is not a regular expression: {reason}")))
        }
    }
}

fn read_template(text: &Spanned<String>, known: &[String]) -> Result<Template, Flaw> {
    Template::parse(text.as_ref(), known).map_err(|problem| (text.span().start, problem))
}

/// The names that stand for something in a rule.
fn places(after: Option<&After>, when: Option<&(usize, Regex)>) -> Result<Vec<String>, Flaw> {
    let mut known = vec!["prompt".to_owned()];
    if after.is_some() {
        known.push("result".to_owned());
    }
    if let Some((at, pattern)) = when {
        for (group, name) in pattern.capture_names().enumerate() {
            known.push(group.to_string());
            match name {
                Some(name @ ("prompt" | "result")) => {
                    return Err((*at, format!("a group cannot be named `{name}`")));
                }
                Some(name) => known.push(name.to_owned()),
                None => {}
            }
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests;

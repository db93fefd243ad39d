//! Texts with places for what a rule's pattern captured.

use std::collections::HashMap;

use serde_json::Value;

/// A text with `$1`, `$name` or `${name}` in it; `$$` stands for one dollar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(String),
}

/// What the places of a template stand for.
pub(super) type Values = HashMap<String, String>;

impl Template {
    /// Reads a template whose places are all among `known`.
    pub(super) fn parse(text: &str, known: &[String]) -> Result<Self, String> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(dollar) = rest.find('$') {
            plain.push_str(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                plain.push('$');
                rest = after;
                continue;
            }
            let (name, after) = place(rest)?;
            if !known.iter().any(|known| known == name) {
                let known: Vec<String> = known.iter().map(|name| format!("${name}")).collect();
                return Err(format!(
                    "`${name}` stands for nothing here; there is {}",
                    known.join(", ")
                ));
            }
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Place(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Self { pieces })
    }

    /// The text with its places filled; a group that took no part is empty.
    pub(super) fn fill(&self, values: &Values) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Place(name) => values.get(name).map_or("", String::as_str),
            })
            .collect()
    }
}

/// The name after a dollar, and what follows it.
fn place(rest: &str) -> Result<(&str, &str), String> {
    if let Some(braced) = rest.strip_prefix('{') {
        return braced.split_once('}').ok_or_else(|| "`${` has no `}`".to_owned());
    }
    let end = rest
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .unwrap_or(rest.len());
    if end == 0 {
        return Err("a single `$` names nothing; write `$$` for a dollar".to_owned());
    }
    Ok(rest.split_at(end))
}

/// A JSON value whose texts are templates.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueTemplate {
    Fixed(Value),
    Text(Template),
    List(Vec<Self>),
    Members(Vec<(String, Self)>),
}

impl ValueTemplate {
    pub(super) fn parse(value: &Value, known: &[String]) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::Text(Template::parse(text, known)?),
            Value::Array(items) => Self::List(
                items.iter().map(|item| Self::parse(item, known)).collect::<Result<_, _>>()?,
            ),
            Value::Object(members) => Self::Members(
                members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), Self::parse(value, known)?)))
                    .collect::<Result<_, String>>()?,
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::Fixed(value.clone()),
        })
    }

    pub(super) fn fill(&self, values: &Values) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(template) => Value::String(template.fill(values)),
            Self::List(items) => items.iter().map(|item| item.fill(values)).collect(),
            Self::Members(members) => Value::Object(
                members.iter().map(|(name, value)| (name.clone(), value.fill(values))).collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<String> {
        ["0", "1", "agent"].map(str::to_owned).to_vec()
    }

    #[track_caller]
    fn check(template: &str, expected: Result<&str, &str>) {
        let values = Values::from([
            ("1".to_owned(), "one".to_owned()),
            ("agent".to_owned(), "$1".to_owned()),
        ]);
        let filled = Template::parse(template, &known()).map(|template| template.fill(&values));
        assert_eq!(filled, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn places_are_filled_once() {
        check("a $1 b", Ok("a one b"));
        check("${1}1 $agent, ${agent}.", Ok("one1 $1, $1."));
        check("$0", Ok(""));
        check("costs $$1", Ok("costs $1"));
    }

    #[test]
    fn unknown_places_are_refused() {
        check("$agents", Err("`$agents` stands for nothing here; there is $0, $1, $agent"));
        check("5 $ each", Err("a single `$` names nothing; write `$$` for a dollar"));
        check("${1", Err("`${` has no `}`"));
    }

    #[test]
    fn values_are_filled_all_the_way_down() {
        let value = serde_json::json!({"files": ["$1", 3], "deep": {"agent": "${1}!"}, "on": true});
        let filled = ValueTemplate::parse(&value, &known())
            .map(|template| template.fill(&Values::from([("1".to_owned(), "x".to_owned())])));
        let expected = serde_json::json!({"files": ["x", 3], "deep": {"agent": "x!"}, "on": true});
        assert_eq!(filled, Ok(expected));
    }
}

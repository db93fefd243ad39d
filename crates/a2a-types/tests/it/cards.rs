//! The cards that official SDKs write, in the eyes of the check.

use std::{fs, path::Path};

use serde_json::Value;
use volcanic_a2a_types::{CardSeverity, check_card};

/// The card in a sample: the whole of it, or the body of an answer over HTTP.
fn card_in(sample: &Value) -> Option<&Value> {
    let places = ["/response/body/result", "/response/body", "/result", ""];
    places
        .iter()
        .filter_map(|place| sample.pointer(place))
        .find(|value| value.get("skills").is_some() && value.get("capabilities").is_some())
}

fn cards_below(folder: &Path, cards: &mut Vec<(String, Value)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            cards_below(&path, cards);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            let sample = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap_or_default();
            if let Some(card) = card_in(&sample) {
                let name = path.strip_prefix(corpus()).unwrap().display().to_string();
                cards.push((name, card.clone()));
            }
        }
    }
}

fn corpus() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/corpus"))
}

#[test]
fn cards_of_official_agents_break_no_rule_but_the_one_on_empty_lists() {
    let mut cards = Vec::new();
    cards_below(corpus(), &mut cards);
    assert!(cards.len() > 30, "{} cards", cards.len());
    for (name, card) in cards {
        let check = check_card(&card.to_string());
        let errors =
            check.findings.iter().filter(|finding| finding.severity == CardSeverity::Error);
        let others: Vec<_> = errors.filter(|error| !error.problem.contains("is empty")).collect();
        assert!(others.is_empty(), "{name}: {others:#?}");
    }
}

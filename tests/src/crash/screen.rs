//! Holds what was to be shown beside what was on the screen.

use std::collections::BTreeMap;

use anyhow::Result;

use super::{judge::Judge, tally::Tally};

/// What the screen puts before an answer that it may have shown before.
const LABEL: &str = "(may be a repeat) ";

/// Every answer is on the screen once; again only with the label.
pub(super) fn judge(judge: &Judge, screen: &str, tally: &mut Tally) -> Result<()> {
    // Some answers read alike, such as that a call was interrupted: as many as there are must be on the screen.
    let mut bodies: BTreeMap<String, usize> = BTreeMap::new();
    for body in judge.answers()? {
        *bodies.entry(body.trim_end().to_owned()).or_default() += 1;
    }
    for (body, answers) in bodies {
        let labelled = screen.matches(&format!("{LABEL}{body}")).count();
        let plain = screen.matches(&body).count() - labelled;
        tally.count("answers shown again with a label", labelled as u64);
        if plain > answers {
            tally.fault(format!(
                "{answers} answers were shown {plain} times without a label: {body}"
            ));
        }
        if plain + labelled < answers {
            tally.fault(format!("of {answers} answers {} were shown: {body}", plain + labelled));
        }
    }
    Ok(())
}

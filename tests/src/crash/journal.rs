//! Holds the conversation beside what the remote agent says it received.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{CrashReport, Said, SaidTask, judge::Judge, scene::Scene};

/// Judges every word that was typed and every message that was begun; returns the files that the outcomes name, with
/// the word that each must hold.
pub(super) fn judge(
    judge: &Judge,
    scene: &Scene,
    said: &[Said],
    in_flight: &BTreeSet<String>,
    report: &mut CrashReport,
) -> Result<BTreeMap<String, String>> {
    let received = scene.journal()?;
    let mut files = BTreeMap::new();
    for said in said {
        let messages: Vec<&Value> = received
            .iter()
            .filter(|line| line["text"].as_str().is_some_and(|text| text.contains(&said.word)))
            .collect();
        report.received += messages.len();
        match messages.as_slice() {
            // It was killed before it had taken or sent the line; the sends below tell which.
            [] => {}
            [message] => judge_word(judge, said, message, &mut files, report)?,
            _ => report.fault(format!("{} was sent {} times", said.word, messages.len())),
        }
    }
    let arrived: BTreeSet<&str> =
        received.iter().filter_map(|line| line["messageId"].as_str()).collect();
    for id in judge.sends()? {
        let announced = judge.announcements(&id)?;
        if announced > 0 && !in_flight.contains(&id) {
            report.fault(format!("message {id} was announced as unknown, but no kill hit it"));
        }
        let refused = judge.refusals(&id)?;
        if arrived.contains(id.as_str()) {
            if refused > 0 {
                report.fault(format!("message {id} arrived, but was told to be not sent"));
            }
        } else if announced + refused != 1 {
            report.fault(format!(
                "message {id} never arrived, and what became of it was told {} times",
                announced + refused
            ));
        }
    }
    Ok(files)
}

fn judge_word(
    judge: &Judge,
    said: &Said,
    message: &Value,
    files: &mut BTreeMap<String, String>,
    report: &mut CrashReport,
) -> Result<()> {
    let word = &said.word;
    let id = message["messageId"].as_str().context("the journal has no messageId")?;
    let task = message["taskId"].as_str().context("the journal has no taskId")?;
    let outcomes = judge.outcomes(task)?;
    report.entered += outcomes.len();
    let outcome = match (outcomes.as_slice(), judge.announcements(id)?) {
        ([outcome], 0) => outcome,
        ([], 1) => {
            report.unknown += 1;
            return Ok(());
        }
        ([], 0) => {
            report.fault(format!("the outcome of {word} is lost"));
            return Ok(());
        }
        (outcomes, announced) => {
            let outcomes = outcomes.len();
            report.fault(format!(
                "{word} has {outcomes} outcomes in the conversation and {announced} notices that it is unknown"
            ));
            return Ok(());
        }
    };
    match said.task {
        SaidTask::Echo | SaidTask::Slow => {
            if !outcome.contains(word.as_str()) {
                report.fault(format!("the outcome of {word} is another one: {outcome}"));
            }
        }
        SaidTask::Report => match outcome.lines().find_map(|line| line.strip_prefix("Files: ")) {
            Some(path) => {
                if files.insert(path.to_owned(), word.clone()).is_some() {
                    report.fault(format!("two outcomes name the file {path}"));
                }
            }
            None => report.fault(format!("the outcome of {word} names no file: {outcome}")),
        },
    }
    Ok(())
}

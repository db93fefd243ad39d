//! Holds the conversation beside what the remote agent says it received.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{judge::Judge, said::Said, scene::Scene, tally::Tally};

/// What outcomes say of files.
#[derive(Debug, Default)]
pub(super) struct ToldFiles {
    /// Those that they name, with the word that each must hold.
    pub(super) saved: BTreeMap<String, String>,
    /// The words of those that could not be saved, as was said.
    pub(super) unsaved: BTreeSet<String>,
}

/// Judges every word that was typed and every message that was begun; returns what the outcomes say of files.
pub(super) fn judge(
    judge: &Judge,
    scene: &Scene,
    said: &[Said],
    in_flight: &BTreeSet<String>,
    tally: &mut Tally,
) -> Result<ToldFiles> {
    let received = scene.journal()?;
    let mut files = ToldFiles::default();
    for said in said {
        let messages: Vec<&Value> = received
            .iter()
            .filter(|line| line["text"].as_str().is_some_and(|text| text.contains(&said.word)))
            .collect();
        tally.count("messages received by the remote", messages.len() as u64);
        match messages.as_slice() {
            // It was killed before it had taken or sent the line; the sends below tell which.
            [] => {}
            [message] => judge_word(judge, scene, said, message, &mut files, tally)?,
            _ => tally.fault(format!("{} was sent {} times", said.word, messages.len())),
        }
    }
    let arrived: BTreeSet<&str> =
        received.iter().filter_map(|line| line["messageId"].as_str()).collect();
    // Whoever asked for a message hears by the result of the call that its agent was not there.
    let mut untold = 0;
    for id in judge.sends()? {
        let announced = judge.announcements(&id)?;
        if announced > 0 && !in_flight.contains(&id) && !scene.had_bad_agent() {
            tally.fault(format!("message {id} was announced as unknown, but no kill hit it"));
        }
        let refused = judge.refusals(&id)?;
        if arrived.contains(id.as_str()) {
            if refused > 0 {
                tally.fault(format!("message {id} arrived, but was told to be not sent"));
            }
        } else if announced + refused == 0 && scene.had_bad_agent() {
            untold += 1;
        } else if announced + refused != 1 {
            tally.fault(format!(
                "message {id} never arrived, and what became of it was told {} times",
                announced + refused
            ));
        }
    }
    let told = if scene.had_bad_agent() { judge.unreached()? } else { 0 };
    if told != untold {
        tally.fault(format!(
            "{untold} messages did not leave, and results of calls say so {told} times"
        ));
    }
    tally.count("messages that did not leave, as the agent was away", told as u64);
    Ok(files)
}

fn judge_word(
    judge: &Judge,
    scene: &Scene,
    said: &Said,
    message: &Value,
    files: &mut ToldFiles,
    tally: &mut Tally,
) -> Result<()> {
    let word = &said.word;
    let id = message["messageId"].as_str().context("the journal has no messageId")?;
    let task = message["taskId"].as_str().context("the journal has no taskId")?;
    let outcomes = judge.outcomes(task)?;
    tally.count("outcomes entered", outcomes.len() as u64);
    let outcome = match (outcomes.as_slice(), judge.announcements(id)?) {
        ([outcome], 0) => outcome,
        ([], 1) => {
            tally.count("announced as unknown", 1);
            return Ok(());
        }
        ([], 0) => {
            tally.fault(format!("the outcome of {word} is lost"));
            return Ok(());
        }
        (outcomes, announced) => {
            let outcomes = outcomes.len();
            tally.fault(format!(
                "{word} has {outcomes} outcomes in the conversation and {announced} notices that it is unknown"
            ));
            return Ok(());
        }
    };
    let has_failed = outcome.contains("(failed)") || outcome.contains(" is failed");
    if scene.had_bad_agent() && has_failed && outcome.contains("restarted") {
        tally.count("tasks that ended with their agent", 1);
    } else if !said.in_file() {
        if !outcome.contains(word.as_str()) {
            tally.fault(format!("the outcome of {word} is another one: {outcome}"));
        }
    } else if let Some(path) = outcome.lines().find_map(|line| line.strip_prefix("Files: ")) {
        if files.saved.insert(path.to_owned(), word.clone()).is_some() {
            tally.fault(format!("two outcomes name the file {path}"));
        }
    } else if scene.had_bad_disk() && outcome.contains("Files not saved: ") {
        files.unsaved.insert(word.clone());
        tally.count("files that a bad disk did not take, and that was said", 1);
    } else {
        tally.fault(format!("the outcome of {word} names no file: {outcome}"));
    }
    Ok(())
}

//! Where settings come from: names are matched to keys here, and doubles among them found.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use config::{Config, ConfigError as MergeError, Map, Source, Value};

use super::file::file_entries;
use super::problem::{ConfigProblem, as_written};
use crate::keys::{self, Key, SECTIONS};

/// The largest file that counts as a secret.
const MAX_SECRET: u64 = 64 * 1024;

/// A value and where it was found.
#[derive(Debug, Clone)]
struct Reading {
    name: String,
    value: String,
    /// The value is the path of a file that holds the real one.
    in_file: bool,
}

/// One layer, ready to be merged: key ids with values whose origin is the name they were read under.
#[derive(Debug, Clone, Default)]
struct Layer(HashMap<String, Value>);

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, MergeError> {
        Ok(self.0.iter().map(|(id, value)| (id.clone(), value.clone())).collect())
    }
}

/// The layers, lowest first.
#[derive(Debug)]
pub(super) struct Layers {
    defaults: Layer,
    file: Layer,
    environment: Layer,
}

impl Layers {
    pub(super) fn collect(
        environment: &BTreeMap<String, String>,
        home: &Path,
        file: Option<&Path>,
        read: &'static [&'static Key],
        problems: &mut Vec<ConfigProblem>,
    ) -> Self {
        let defaults = read.iter().filter_map(|key| {
            let value = key.default?;
            Some((key.id(), Value::new(Some(&"default".to_owned()), value)))
        });
        let defaults = Layer(defaults.collect());
        let entries = file_entries(home, file, read, problems);
        let file = layer(entries.into_iter(), read, problems);
        let names =
            environment.iter().map(|(name, value)| (name.clone(), name.clone(), value.clone()));
        let environment = layer(names, read, problems);
        Self { defaults, file, environment }
    }

    /// Puts the layers on top of each other. A merge of plain texts under known names has nothing to fail on; should it,
    /// every required key is reported as missing.
    pub(super) fn merge(self) -> Config {
        Config::builder()
            .add_source(self.defaults)
            .add_source(self.file)
            .add_source(self.environment)
            .build()
            .unwrap_or_default()
    }
}

/// Matches `(place, name, value)`s to keys.
fn layer(
    entries: impl Iterator<Item = (String, String, String)>,
    read: &'static [&'static Key],
    problems: &mut Vec<ConfigProblem>,
) -> Layer {
    let mut found: BTreeMap<String, Vec<Reading>> = BTreeMap::new();
    for (place, name, value) in entries {
        match match_name(&name, read) {
            Match::Key { key, in_file } => {
                let reading = Reading { name: place, value, in_file };
                found.entry(key.id()).or_default().push(reading);
            }
            Match::Wrong(text) => problems.push(ConfigProblem { name: place, read: None, text }),
            Match::OthersRead | Match::NotOurs => {}
        }
    }
    let settled = found.into_iter().filter_map(|(id, readings)| {
        let reading = settle(&readings, problems)?;
        let value = if reading.in_file { read_secret(&reading, problems)? } else { reading.value };
        Some((id, Value::new(Some(&reading.name), value)))
    });
    Layer(settled.collect())
}

/// What a name means to a host that reads certain keys.
pub(super) enum Match {
    Key {
        key: &'static Key,
        in_file: bool,
    },
    Wrong(String),
    /// A setting of ours that this host does not read: whatever it says is no business of this one.
    OthersRead,
    NotOurs,
}

pub(super) fn match_name(name: &str, read: &'static [&'static Key]) -> Match {
    let lower = name.to_ascii_lowercase();
    let found = |key: &'static Key, in_file| {
        if read.contains(&key) { Match::Key { key, in_file } } else { Match::OthersRead }
    };
    for key in keys::ALL {
        // Flat names are matched as they are written: other programs have names like them.
        let flat = if key.has_section() { key.flat } else { Some(key.name) };
        let section = key.has_section().then(|| key.name.to_ascii_lowercase());
        if flat == Some(name) || section.as_ref() == Some(&lower) {
            return found(key, false);
        }
        if key.secret {
            let flat = flat.is_some_and(|flat| name.strip_suffix("_FILE") == Some(flat));
            let section =
                section.is_some_and(|section| lower.strip_suffix("_file") == Some(&section));
            if flat || section {
                return found(key, true);
            }
        }
    }
    match lower.split_once("__") {
        Some((section, _)) if SECTIONS.contains(&section) => {
            let is_read = read.iter().any(|key| key.is_in(section));
            if is_read { Match::Wrong(keys::refuse(&lower)) } else { Match::OthersRead }
        }
        _ => Match::NotOurs,
    }
}

/// Chooses among several readings of one key: equal values are fine under different names, all else is an error.
fn settle(readings: &[Reading], problems: &mut Vec<ConfigProblem>) -> Option<Reading> {
    let (first, rest) = readings.split_first()?;
    let kept = as_written(&first.name);
    let mut agree = true;
    for other in rest {
        let twins = first.name.eq_ignore_ascii_case(&other.name);
        let text = if twins {
            format!("`{kept}` is the same name in other letters; keep one of them")
        } else if first.in_file != other.in_file {
            format!("`{kept}` is set too; keep one of them")
        } else if first.value != other.value {
            format!("`{kept}` says something else for the same setting; keep one of them")
        } else {
            continue;
        };
        agree = false;
        problems.push(ConfigProblem { name: other.name.clone(), read: None, text });
    }
    agree.then(|| first.clone())
}

fn read_secret(reading: &Reading, problems: &mut Vec<ConfigProblem>) -> Option<String> {
    let wrong = |text: String| ConfigProblem {
        name: reading.name.clone(),
        read: Some(reading.value.clone()),
        text,
    };
    let path = PathBuf::from(&reading.value);
    match std::fs::metadata(&path) {
        Ok(metadata) if !metadata.is_file() => {
            problems.push(wrong("it is not a file".to_owned()));
            return None;
        }
        Ok(metadata) if metadata.len() > MAX_SECRET => {
            problems.push(wrong("the file is too large for a secret".to_owned()));
            return None;
        }
        Ok(_) | Err(_) => {}
    }
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().is_empty() => {
            problems.push(wrong("the file is empty".to_owned()));
            None
        }
        Ok(text) => Some(text.trim().to_owned()),
        Err(error) => {
            problems.push(wrong(format!("the file cannot be read ({})", error.kind())));
            None
        }
    }
}

//! The settings file, taken apart.

use std::path::Path;

use volcanic_base::read_text_to_limit;

use super::layers::{Match, match_name};
use super::problem::ConfigProblem;
use crate::keys::{HOME, Key};

/// The largest settings file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The name of the settings file in the home folder.
const FILE_NAME: &str = "volcanic.toml";

/// The settings of the file as place, `Section__Name` and text.
pub(super) fn file_entries(
    home: &Path,
    file: Option<&Path>,
    read: &'static [&'static Key],
    problems: &mut Vec<ConfigProblem>,
) -> Vec<(String, String, String)> {
    let path = file.map_or_else(|| home.join(FILE_NAME), Path::to_owned);
    let mut wrong = |text: String| {
        problems.push(ConfigProblem { name: path.display().to_string(), read: None, text });
    };
    let text = match read_text_to_limit(&path, MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && file.is_none() => {
            return Vec::new();
        }
        Err(error) => {
            wrong(format!("the file cannot be read ({})", error.kind()));
            return Vec::new();
        }
    };
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            // The parser's own message quotes the line, which may hold a secret.
            let error: &toml::de::Error = &error;
            let before = error.span().map_or(0, |span| span.start).min(text.len());
            let line = text.get(..before).unwrap_or_default().matches('\n').count() + 1;
            wrong(format!("line {line} is not valid TOML"));
            return Vec::new();
        }
    };
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut flat = Flat { file, read, entries: Vec::new(), problems };
    flat.add_table("", &table);
    flat.entries
}

/// A file whose tables have become names.
struct Flat<'a> {
    file: String,
    read: &'static [&'static Key],
    entries: Vec<(String, String, String)>,
    problems: &'a mut Vec<ConfigProblem>,
}

impl Flat<'_> {
    fn add_table(&mut self, prefix: &str, table: &toml::Table) {
        for (name, value) in table {
            let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}__{name}") };
            match value {
                toml::Value::Table(table) => self.add_table(&name, table),
                value => self.add(name, value),
            }
        }
    }

    fn add(&mut self, name: String, value: &toml::Value) {
        let place = format!("{name} in {}", self.file);
        let known = match_name(&name, self.read);
        let text = match (known, plain(value)) {
            _ if name == HOME => "the home folder cannot be set in the file that lies in it",
            (Match::OthersRead, _) => return,
            (Match::NotOurs, _) => "there is no such setting",
            (Match::Key { .. } | Match::Wrong(_), Some(value)) => {
                if !value.trim().is_empty() {
                    self.entries.push((place, name, value));
                }
                return;
            }
            (Match::Key { .. } | Match::Wrong(_), None) => {
                "allowed are texts, numbers, true and false, and lists of them"
            }
        };
        self.problems.push(ConfigProblem { name: place, read: None, text: text.to_owned() });
    }
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(items) => {
            items.iter().map(plain).collect::<Option<Vec<_>>>().map(|items| items.join(","))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

//! What can be read of a `pending.json`, whoever wrote it and whatever became of it.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use volcanic_a2a_client::AgentName;

/// The most tasks that are taken up.
const MAX_TASKS: usize = 200;
/// How often reading begins again behind a damaged place…
const MAX_PLACES: usize = 1000;
/// …and how many bytes are read in vain before that: what is damaged at its beginning may be read to its end each time.
const MAX_IN_VAIN: usize = 64 << 20;

/// What is read of a watch in the file.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed {
    pub(super) watch_id: Option<String>,
    pub(super) agent: String,
    pub(super) task_id: String,
    pub(super) context_id: Option<String>,
    pub(super) started_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) hops: u32,
    #[serde(rename = "ref")]
    pub(super) source_ref: Option<String>,
}

/// What a file lists, as far as it can be read.
#[derive(Debug, Default)]
pub(super) struct List {
    /// One for each task.
    pub(super) listed: Vec<Listed>,
    /// How many of its entries cannot be taken up.
    pub(super) left_out: usize,
    /// Whether it is a list, and all of it is there.
    pub(super) is_whole: bool,
}

impl List {
    /// Whether something of the file is not taken up.
    pub(super) fn is_lossy(&self) -> bool {
        !self.is_whole || self.left_out > 0
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut list = Self::default();
        let mut tasks = HashSet::new();
        let rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut reader = Reader { rest, in_vain: 0 };
        list.is_whole = reader.begins_a_list();
        let mut places = 0;
        loop {
            match reader.next() {
                Next::Entry(entry) => match usable(entry) {
                    Some(listed) if list.listed.len() < MAX_TASKS => {
                        if tasks.insert((listed.agent.clone(), listed.task_id.clone())) {
                            list.listed.push(listed);
                        }
                    }
                    Some(_) | None => list.left_out += 1,
                },
                Next::End => return list,
                Next::Damage => {
                    list.is_whole = false;
                    places += 1;
                    let is_enough = places > MAX_PLACES || reader.in_vain > MAX_IN_VAIN;
                    if is_enough || !reader.skip_to_an_object() {
                        return list;
                    }
                }
            }
        }
    }
}

/// An entry as it is to be. A member that is there twice, with one value or two, is a mistake.
fn usable(entry: &str) -> Option<Listed> {
    let listed: Listed = serde_json::from_str(entry).ok()?;
    // No entry of agents.json can have another name, and no task an empty id.
    (AgentName::new(&listed.agent).is_some() && !listed.task_id.is_empty()).then_some(listed)
}

/// Reads a list entry by entry, so that damage costs only the entries it is in.
struct Reader<'a> {
    rest: &'a [u8],
    /// How many bytes were read that are no entry, each as often as it was.
    in_vain: usize,
}

enum Next<'a> {
    Entry(&'a str),
    End,
    Damage,
}

impl<'a> Reader<'a> {
    fn begins_a_list(&mut self) -> bool {
        self.skip(u8::is_ascii_whitespace);
        self.take(b'[')
    }

    fn next(&mut self) -> Next<'a> {
        self.skip(|byte| byte.is_ascii_whitespace() || *byte == b',');
        if self.take(b']') {
            self.skip(u8::is_ascii_whitespace);
            return if self.rest.is_empty() { Next::End } else { Next::Damage };
        }
        let mut values = serde_json::Deserializer::from_slice(self.rest).into_iter::<&RawValue>();
        let entry = match values.next() {
            Some(Ok(entry)) => entry,
            end => {
                self.in_vain +=
                    end.and_then(Result::err).map_or(0, |error| self.read_until(&error));
                self.rest = self.rest.get(1..).unwrap_or_default();
                return Next::Damage;
            }
        };
        self.rest = self.rest.get(values.byte_offset()..).unwrap_or_default();
        Next::Entry(entry.get())
    }

    /// How far was read until an error.
    fn read_until(&self, error: &serde_json::Error) -> usize {
        let lines = self.rest.split_inclusive(|byte| *byte == b'\n');
        let before = error.line().saturating_sub(1);
        lines.take(before).map(<[u8]>::len).sum::<usize>() + error.column()
    }

    /// Goes on to where the next object may begin. What stands in a text is none: its quotes are escaped.
    fn skip_to_an_object(&mut self) -> bool {
        self.skip(|byte| *byte != b'{');
        !self.rest.is_empty()
    }

    fn skip(&mut self, is_skipped: impl Fn(&u8) -> bool) {
        let count = self.rest.iter().take_while(|byte| is_skipped(byte)).count();
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    fn take(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

#[cfg(test)]
mod faults;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, tasks: &[&str], left_out: usize, is_whole: bool) {
        let list = List::read(text.as_bytes());
        let found: Vec<_> = list.listed.iter().map(|listed| listed.task_id.as_str()).collect();
        assert_eq!((&found[..], list.left_out, list.is_whole), (tasks, left_out, is_whole));
    }

    fn entry(task: &str) -> String {
        format!(r#"{{"agent": "bot", "taskId": "{task}", "undelivered": "{{\"agent\": 1}} ]"}}"#)
    }

    #[test]
    fn whole_list_is_read_with_or_without_a_mark_before_it() {
        let text = format!("\n[{}, {}]\n", entry("t1"), entry("t2"));
        check(&text, &["t1", "t2"], 0, true);
        check(&format!("\u{feff}{}", text.trim()), &["t1", "t2"], 0, true);
        check("[]", &[], 0, true);
    }

    #[test]
    fn damage_costs_the_entries_it_is_in() {
        let (one, two, three) = (entry("t1"), entry("t2"), entry("t3"));
        check(&format!("[{one}, {}", &two[..20]), &["t1"], 0, false);
        check(
            &format!("[{one}, {}, {three}]", two.replace("taskId\"", "taskId")),
            &["t1", "t3"],
            0,
            false,
        );
        check(&format!("[{one}, {two}, {three}"), &["t1", "t2", "t3"], 0, false);
        check(&format!("{{{one}, {two}]"), &["t1", "t2"], 0, false);
        check(&format!("[{one}]{two}"), &["t1", "t2"], 0, false);
        for text in ["", "\0\0\0", "[", "{\"agent\"", "\"text", "[{", "\u{feff}"] {
            check(text, &[], 0, false);
        }
    }

    #[test]
    fn what_is_no_entry_is_counted() {
        let twice = r#"{"agent": "bot", "taskId": "t7", "taskId": "t8"}"#;
        let named = r#"{"agent": "No Such Name", "taskId": "t7"}"#;
        let empty = r#"{"agent": "bot", "taskId": ""}"#;
        let odd = r#"{"agent": "bot", "taskId": 7}"#;
        let text = format!("[{}, {twice}, {named}, {empty}, {odd}, 7, null, []]", entry("t1"));
        check(&text, &["t1"], 7, true);
        check(&format!("[{}, {}]", entry("t1"), entry("t1")), &["t1"], 0, true);
    }

    #[test]
    fn text_that_looks_like_an_entry_is_none() {
        let text = entry("t1")
            .replace("agent\\\": 1", "agent\\\": \\\"bot\\\", \\\"taskId\\\": \\\"forged\\\"");
        check(&text[1..], &[], 1, false);
    }

    #[test]
    fn what_is_read_again_and_again_is_read_only_so_often() {
        let nested = |depth, pad: &str| {
            format!("[{}\"{}\", {}", "{\"a\":\n[".repeat(depth), pad, entry("t1"))
        };
        check(&nested(20, "pad"), &["t1"], 0, false);
        check(&nested(900, &"x".repeat(1 << 20)), &[], 0, false);
    }

    #[test]
    fn endless_damage_ends() {
        check(&"{".repeat(100_000), &[], 0, false);
        let list = List::read("{},".repeat(100_000).as_bytes());
        assert_eq!((list.listed.len(), list.left_out), (0, 100_000));
    }
}

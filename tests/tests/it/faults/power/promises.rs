//! What the world was told, as far as a record tells.

use std::collections::BTreeSet;

use serde_json::Value;

use super::life::SCREEN_MARK;
use super::record::Operation;

/// What anybody outside was told.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// Messages that begin to leave.
    pub(super) sent: BTreeSet<String>,
    /// Tasks that were asked for or pushed for, so that they are followed.
    pub(super) asked: BTreeSet<String>,
    /// The last update that was acknowledged.
    pub(super) acknowledged: i64,
    /// The keys of answers that begin to be shown, each with whether it is labelled.
    pub(super) shown: Vec<(String, bool)>,
}

impl Promises {
    /// Whether the operation tells anybody something.
    pub(super) fn hear(&mut self, operation: &Operation) -> bool {
        let Operation::Sent { data } = operation else { return false };
        let said = String::from_utf8_lossy(data);
        if let Some(said) = said.strip_prefix(SCREEN_MARK) {
            let said: Value = serde_json::from_str(said.trim_end()).unwrap();
            if let Some(update) = said["acknowledged"].as_i64() {
                self.acknowledged = update;
            } else {
                let key = said["shown"].as_str().unwrap().to_owned();
                self.shown.push((key, said["labelled"].as_bool().unwrap()));
            }
            return true;
        }
        // A request, with its head or without.
        let body = said.find('{').and_then(|at| serde_json::from_str::<Value>(&said[at..]).ok());
        let Some(body) = body.filter(|body| body["method"].is_string()) else { return false };
        let params = &body["params"];
        if let Some(id) = params["message"]["messageId"].as_str() {
            return self.sent.insert(id.to_owned());
        }
        let task = [&params["taskId"], &params["id"]].into_iter().find_map(Value::as_str);
        task.is_some_and(|task| self.asked.insert(task.to_owned()))
    }

    pub(super) fn count(&self) -> usize {
        let acknowledged = usize::from(self.acknowledged > 0);
        self.sent.len() + self.asked.len() + self.shown.len() + acknowledged
    }

    pub(super) fn kinds(&self) -> Vec<&'static str> {
        let kinds = [
            ("sent", self.sent.is_empty()),
            ("asked", self.asked.is_empty()),
            ("acknowledged", self.acknowledged == 0),
            ("shown", self.shown.is_empty()),
        ];
        kinds.into_iter().filter(|(_, is_empty)| !is_empty).map(|(kind, _)| kind).collect()
    }
}

//! A page of tasks, as far as it can be read: one odd task must not hide the others.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use volcanic_a2a_types::{FromWire, ListTasksResponse, Task, TaskId, WireLimits};

use super::glimpse;

/// The largest page that is taken apart task by task, in bytes. A page of a hundred tasks without artifacts is smaller.
const MAX_PAGE: usize = 1 << 20;
/// The most tasks of such a page.
const MAX_TASKS: usize = 1000;

/// A page of tasks (specification: `ListTasksResponse`), and those of its tasks that cannot be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page begins; empty on the last one.
    pub next_page_token: String,
    /// How many tasks a page has at most.
    pub page_size: i32,
    /// How many tasks match, on all pages.
    pub total_size: i32,
    /// The tasks of this page that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableListed>,
}

/// A task of a page that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnreadableListed {
    /// Its id, if that much can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// What is wrong with it, in words that may be the agent's.
    pub reason: String,
}

impl FromWire for TaskPage {
    fn from_wire(json: &str, limits: WireLimits) -> serde_json::Result<Self> {
        let error = match ListTasksResponse::from_wire(json, limits) {
            Ok(page) => return Ok(Self::of(page, Vec::new())),
            Err(error) => error,
        };
        // The pieces could be read from a list as well.
        if json.len() > MAX_PAGE || !json.trim_start().starts_with('{') {
            return Err(error);
        }
        let Ok(mut page) = serde_json::from_str::<Pieces<'_>>(json) else { return Err(error) };
        let mut unreadable = Vec::new();
        page.tasks.0.retain(|task| match Task::from_wire(task.get(), limits) {
            Ok(_) => true,
            Err(error) => {
                let (task_id, reason) = (glimpse::id_of(task.get()), error.to_string());
                unreadable.push(UnreadableListed { task_id, reason });
                false
            }
        });
        // Read again together, since what is kept of a page has one bound and not one for each task.
        match ListTasksResponse::from_wire(&page.json(), limits) {
            Ok(page) => Ok(Self::of(page, unreadable)),
            Err(_) => Err(error),
        }
    }
}

impl TaskPage {
    fn of(page: ListTasksResponse, unreadable: Vec<UnreadableListed>) -> Self {
        let ListTasksResponse { tasks, next_page_token, page_size, total_size, .. } = page;
        Self { tasks, next_page_token, page_size, total_size, unreadable }
    }
}

/// A page before it is understood.
#[derive(Deserialize)]
struct Pieces<'a> {
    #[serde(borrow)]
    tasks: FewTasks<'a>,
    #[serde(borrow, default, rename = "nextPageToken", alias = "next_page_token")]
    next_page_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "pageSize", alias = "page_size")]
    page_size: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "totalSize", alias = "total_size")]
    total_size: Option<&'a RawValue>,
}

impl Pieces<'_> {
    /// The page as JSON.
    fn json(&self) -> String {
        let tasks: Vec<_> = self.tasks.0.iter().map(|task| task.get()).collect();
        let member = |name: &str, value: Option<&RawValue>| {
            format!(",\"{name}\":{}", value.map_or("null", RawValue::get))
        };
        let token = member("nextPageToken", self.next_page_token);
        let size = member("pageSize", self.page_size);
        let total = member("totalSize", self.total_size);
        format!("{{\"tasks\":[{}]{token}{size}{total}}}", tasks.join(","))
    }
}

/// Tasks before they are understood, not more than [`MAX_TASKS`].
struct FewTasks<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for FewTasks<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tasks;

        impl<'de> Visitor<'de> for Tasks {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tasks")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut tasks = Vec::new();
                while let Some(task) = list.next_element()? {
                    if tasks.len() == MAX_TASKS {
                        return Err(A::Error::custom("there are too many tasks"));
                    }
                    tasks.push(task);
                }
                Ok(tasks)
            }
        }

        deserializer.deserialize_seq(Tasks).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"id": "t1", "status": {"state": "TASK_STATE_WORKING"}}"#;

    fn read(json: &str) -> serde_json::Result<TaskPage> {
        TaskPage::from_wire(json, WireLimits::Answer)
    }

    #[test]
    fn tasks_that_cannot_be_read_hide_no_others() {
        let bad = r#"{"id": "t2", "status": {"state": "TASK_STATE_WORKING"}, "artifacts": 5}"#;
        let page = read(&format!(
            r#"{{"tasks": [{GOOD}, {bad}, 7, {GOOD}], "nextPageToken": "n", "totalSize": 9, "pageSize": 4}}"#
        ));
        let page = page.unwrap();
        assert_eq!((page.tasks.len(), page.total_size, page.page_size), (2, 9, 4));
        assert_eq!(page.next_page_token, "n");
        let ids: Vec<_> = page.unreadable.iter().map(|bad| bad.task_id.as_ref()).collect();
        assert_eq!(ids, [Some(&"t2".into()), None]);
        assert!(page.unreadable[0].reason.contains("artifacts"), "{page:?}");
    }

    #[test]
    fn a_page_that_is_none_stays_an_error() {
        let many = format!(r#"{{"tasks": [7{}]}}"#, ",7".repeat(MAX_TASKS));
        let large = format!(r#"{{"tasks": [7, "{}"]}}"#, "x".repeat(MAX_PAGE));
        let list = format!("[[{GOOD}]]");
        let wrong = [r#"{"tasks": 7}"#, r#"{"tasks": [7], "totalSize": []}"#, r#"[[7], "n"]"#];
        for json in wrong.into_iter().chain(["7", &list, &many, &large]) {
            read(json).unwrap_err();
        }
        assert_eq!(read(r#"{"tasks": [7]}"#).unwrap().unreadable.len(), 1);
    }

    #[test]
    fn tasks_beside_one_that_cannot_be_read_have_one_room_together() {
        let parts = format!("{{}}{}", ",{}".repeat(15_000));
        let task = |id: u32| {
            format!(
                r#"{{"id": "t{id}", "status": {{"state": "TASK_STATE_WORKING"}},
                "artifacts": [{{"artifactId": "a", "parts": [{parts}]}}]}}"#
            )
        };
        let tasks: Vec<_> = (0..22).map(task).collect();
        let tasks = tasks.join(",");
        let kept = |tasks: &str| {
            let page = read(&format!(r#"{{"tasks": [{tasks}]}}"#)).unwrap();
            let artifacts = page.tasks.iter().flat_map(|task| &task.artifacts);
            (artifacts.map(|artifact| artifact.parts.len()).sum::<usize>(), page.unreadable.len())
        };
        let (parts, none) = kept(&tasks);
        assert!(parts < 22 * 15_001, "the page must be too large for what is kept of it");
        assert_eq!((kept(&format!("7,{tasks}")), none), ((parts, 1), 0));
    }

    #[test]
    fn json_names_what_cannot_be_read_only_where_there_is_some() {
        let json = |tasks: &str| {
            let page = read(&format!(r#"{{"tasks": [{tasks}]}}"#)).unwrap();
            serde_json::to_value(page).unwrap()
        };
        assert!(json(GOOD).get("unreadable").is_none());
        assert!(json("7")["unreadable"][0]["reason"].is_string());
    }
}

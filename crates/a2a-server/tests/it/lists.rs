//! Lists of tasks.

use serde_json::{Value, json};

use crate::remote::{Remote, Setup, message};

async fn ids(remote: &Remote, params: Value) -> Vec<String> {
    let listed = remote.call("ListTasks", params).await;
    let tasks = listed["tasks"].as_array().unwrap();
    tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_hold_every_task_once_newest_first() {
    let remote = Setup::default().start().await;
    let mut sent = Vec::new();
    for number in 0..7 {
        let task = remote.send(&format!("echo {number}")).await;
        sent.push((
            task["status"]["timestamp"].as_str().unwrap().to_owned(),
            task["id"].as_str().unwrap().to_owned(),
        ));
    }
    sent.sort();
    sent.reverse();
    let expected: Vec<String> = sent.into_iter().map(|(_, id)| id).collect();
    let mut found = Vec::new();
    let mut token = json!(null);
    let mut sizes = Vec::new();
    loop {
        let page = remote.call("ListTasks", json!({"pageSize": 3, "pageToken": token})).await;
        assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(7), &json!(3)));
        let tasks = page["tasks"].as_array().unwrap();
        sizes.push(tasks.len());
        found.extend(tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()));
        token = page["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
    assert_eq!(found, expected);
}

#[tokio::test]
async fn filters_narrow_the_list() {
    let remote = Setup::default().start().await;
    let done = remote.send("echo x").await;
    let asked = remote.send("book a table").await;
    let id = |task: &Value| vec![task["id"].as_str().unwrap().to_owned()];
    assert_eq!(ids(&remote, json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await, id(&asked));
    assert_eq!(ids(&remote, json!({"contextId": done["contextId"]})).await, id(&done));
    let both = json!({"contextId": done["contextId"], "status": "TASK_STATE_INPUT_REQUIRED"});
    assert!(ids(&remote, both).await.is_empty());
    let at = asked["status"]["timestamp"].clone();
    assert!(ids(&remote, json!({"statusTimestampAfter": at})).await.contains(&id(&asked)[0]));
    assert!(ids(&remote, json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"})).await.is_empty());
}

#[tokio::test]
async fn artifacts_and_history_come_when_asked_for() {
    let remote = Setup::default().start().await;
    remote.send("echo x").await;
    let listed = remote.call("ListTasks", json!({"historyLength": 0})).await;
    assert_eq!(listed["tasks"][0].get("artifacts"), None);
    assert_eq!(listed["tasks"][0].get("history"), None);
    let listed = remote.call("ListTasks", json!({"includeArtifacts": true})).await;
    assert_eq!(listed["tasks"][0]["artifacts"][0]["artifactId"], "response");
    assert_eq!(listed["tasks"][0]["history"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn wrong_parameters_of_a_list_are_refused() {
    let remote = Setup::default().start().await;
    remote.call("SendMessage", message("echo x")).await;
    for params in [
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"pageToken": "what?"}),
        json!({"status": "TASK_STATE_RELAXED"}),
        json!({"historyLength": -1}),
    ] {
        assert_eq!(remote.code("ListTasks", params.clone()).await, -32602, "{params}");
    }
}

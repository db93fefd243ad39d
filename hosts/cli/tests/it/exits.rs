//! Every exit code that is promised, and what is told with it.

use serde_json::json;

use crate::{
    keyed_agent::{self, with_key},
    odd_agent::{Answer, Odd, task},
    world::{World, nobody},
};

#[tokio::test]
async fn a_completed_task_ends_with_0_and_is_told_as_text_or_json() {
    let world = World::new();
    let _remote = world.remote().await;
    let text = world.run(&["send", "demo", "echo plum"]).await;
    text.check(0, &["Agent \"demo\": task ", " is completed.\necho: plum\n"]);
    let json = world.run(&["send", "demo", "echo plum", "--json"]).await;
    json.check(0, &[]);
    let task = &json.json()["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "echo: plum");
    assert_eq!(json.out.lines().count(), 1, "{json:?}");
}

#[tokio::test]
async fn a_reply_without_a_task_ends_with_0() {
    let world = World::new();
    let rules = "[[rule]]\nwhen = '(?s)^(.*)$'\nreply = \"just: $1\"\n";
    let _remote = world.remote_with(Some(rules)).await;
    world.run(&["send", "demo", "plum"]).await.check(0, &["Agent \"demo\" replied", "just: plum"]);
    let json = world.run(&["send", "demo", "plum", "--json"]).await.json();
    assert_eq!(json["message"]["parts"][0]["text"], "just: plum");
}

#[tokio::test]
async fn a_failed_or_rejected_task_ends_with_1() {
    let world = World::new();
    let _remote = world.remote().await;
    let failed = world.run(&["send", "demo", "fail out of paper"]).await;
    assert_eq!(failed.code, 1);
    assert!(failed.out.contains(" is failed.\nout of paper"), "{failed:?}");
    let rejected = world.run(&["send", "demo", "reject this", "--json"]).await;
    assert_eq!(rejected.code, 1);
    assert_eq!(rejected.json()["task"]["status"]["state"], "TASK_STATE_REJECTED");
}

#[tokio::test]
async fn what_the_agent_refuses_ends_with_1() {
    let world = World::new();
    let _remote = world.remote().await;
    for command in ["status", "cancel"] {
        let text = world.run(&[command, "demo", "no-such-task"]).await;
        text.check(1, &["Agent \"demo\" refused: ", "-32001"]);
        let json = world.run(&[command, "demo", "no-such-task", "--json"]).await;
        assert_eq!(json.code, 1);
        let error = &json.json()["error"];
        assert_eq!((&error["kind"], &error["code"]), (&json!("taskNotFound"), &json!(-32001)));
        assert_eq!((&error["exitCode"], &error["agent"]), (&json!(1), &json!("demo")));
    }
    let done = world.run(&["send", "demo", "echo x"]).await;
    world.run(&["cancel", "demo", done.task()]).await.check(1, &["-32002"]);
    world.run(&["send", "demo", "x", "--task", "no-such-task"]).await.check(1, &["-32001"]);
}

#[tokio::test]
async fn an_agent_that_is_not_there_ends_with_3() {
    let world = World::new();
    let nobody = nobody();
    world.knows(&nobody.url);
    for arguments in
        [&["send", "demo", "hello"][..], &["status", "demo", "t"], &["cancel", "demo", "t"]]
    {
        world.run(arguments).await.check(3, &["Could not reach agent \"demo\""]);
    }
    let json = world.run(&["send", "demo", "hello", "--json"]).await;
    assert_eq!(json.code, 3);
    let error = &json.json()["error"];
    assert_eq!((&error["kind"], &error["exitCode"]), (&json!("unreachable"), &json!(3)));
    assert!(error["message"].as_str().unwrap().starts_with("Could not reach"), "{error}");
    assert_eq!(error["mayHaveArrived"], false, "{error}");
}

#[tokio::test]
async fn a_key_that_is_wrong_or_missing_ends_with_4_and_is_not_shown() {
    let world = World::new();
    let agent = with_key("right-key-0123456789").await;
    let wrong = "wrong-key-9876543210";
    world.agents(&json!([
        { "name": "wrong", "url": agent.url, "key": wrong },
        { "name": "none", "url": agent.url },
    ]));
    let refused = world.run(&["send", "wrong", "echo x"]).await;
    refused.check(4, &["rejected the key (401)"]);
    assert!(!format!("{refused:?}").contains(wrong), "{refused:?}");
    world.run(&["send", "none", "echo x"]).await.check(4, &["asks for a key (401)"]);
    assert_eq!(world.run(&["status", "none", "t", "--json"]).await.code, 4);
}

#[tokio::test]
async fn a_task_that_takes_longer_ends_with_5_and_says_how_to_go_on() {
    let world = World::new();
    let _remote = world.remote().await;
    let sent = world.run(&["send", "demo", "slow 2s plum", "--wait", "0s"]).await;
    sent.check(5, &[" is working."]);
    let task = sent.task();
    let hint = format!("volcanic watch demo {task}\n");
    assert!(sent.err.contains(&hint), "{sent:?}");
    world.run(&["status", "demo", task]).await.check(5, &[" is working."]);
    let waited = world.run(&["status", "demo", task, "--wait", "15s"]).await;
    waited.check(0, &[" is completed.\nfinished: plum"]);
    let json = world.run(&["status", "demo", task, "--json"]).await;
    assert_eq!(json.json()["task"]["id"], task);
}

#[tokio::test]
async fn an_agent_that_says_nothing_ends_with_5() {
    let world = World::new();
    let agent = keyed_agent::silent().await;
    world.knows(&agent.url);
    let ran =
        world.run_with(&["send", "demo", "hello"], &[("A2AClient__CardTimeoutSeconds", "1")]).await;
    assert_eq!((ran.code, ran.out.as_str()), (5, ""));
    assert!(ran.err.contains("did not answer in time"), "{ran:?}");
}

#[tokio::test]
async fn a_question_ends_with_6_and_its_answer_with_0() {
    let world = World::new();
    let remote = world.remote().await;
    let asked = world.run(&["send", "demo", "book a boat"]).await;
    asked.check(6, &[" is input-required.\nWhich day?"]);
    assert!(!asked.out.contains("action=send"), "{asked:?}");
    let hint = format!("To answer: volcanic send demo TEXT --task {}\n", asked.task());
    assert_eq!(asked.err, hint);
    assert_eq!(world.run(&["status", "demo", asked.task()]).await.err, hint);
    let answered = world.run(&["send", "demo", "Monday", "--task", asked.task()]).await;
    answered.check(0, &["Booked a boat for Monday."]);
    let journal = remote.journal();
    assert_eq!(journal.len(), 2);
    assert_eq!(journal[0]["taskId"], journal[1]["taskId"]);
    assert_eq!(journal[0]["hops"], 1, "work handed on has come through one agent: us");
}

#[tokio::test]
async fn a_canceled_task_ends_with_0_for_the_one_who_canceled_and_1_for_others() {
    let world = World::new();
    let _remote = world.remote().await;
    let sent = world.run(&["send", "demo", "slow 60s plum", "--wait", "0s"]).await;
    world.run(&["cancel", "demo", sent.task()]).await.check(0, &[" is canceled."]);
    assert_eq!(world.run(&["status", "demo", sent.task()]).await.code, 1);
    let again = world.run(&["cancel", "demo", sent.task(), "--json"]).await;
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(again.json()["task"]["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn a_task_that_is_over_instead_of_canceled_ends_with_1() {
    let world = World::new();
    let odd = Odd::start(false, |_, _| Answer::Result(task("TASK_STATE_COMPLETED", "too late")));
    let odd = odd.await;
    let ran = world.run(&["cancel", &odd.url, "t-1"]).await;
    assert!(ran.code == 1 && ran.out.contains(" is completed.\ntoo late"), "{ran:?}");
}

#[tokio::test]
async fn an_agent_that_refuses_to_cancel_twice_is_asked_whether_it_did_once() {
    let world = World::new();
    let refusing = |told: fn() -> Answer| {
        Odd::start(false, move |method, _| match method {
            "CancelTask" => Answer::Error(-32002, "it is over"),
            _ => told(),
        })
    };
    let canceled = refusing(|| Answer::Result(task("TASK_STATE_CANCELED", ""))).await;
    world.run(&["cancel", &canceled.url, "t-1"]).await.check(0, &[" is canceled."]);
    let json = world.run(&["cancel", &canceled.url, "t-1", "--json"]).await;
    assert_eq!(json.code, 0, "{json:?}");
    assert_eq!(json.json()["task"]["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(canceled.methods(), ["CancelTask", "GetTask", "CancelTask", "GetTask"]);

    let completed = refusing(|| Answer::Result(task("TASK_STATE_COMPLETED", "done"))).await;
    let forgotten = refusing(|| Answer::Error(-32001, "no such task")).await;
    for odd in [completed, forgotten] {
        let text = world.run(&["cancel", &odd.url, "t-1"]).await;
        text.check(1, &["refused: it is over (-32002)"]);
        let json = world.run(&["cancel", &odd.url, "t-1", "--json"]).await;
        assert_eq!(json.json()["error"]["kind"], "taskNotCancelable", "{json:?}");
    }
}

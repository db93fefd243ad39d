//! `volcanic push-config`.

use serde_json::json;
use volcanic_testkit::RecordingProxy;

use crate::{keyed_agent::with_key, world::World};

const TOKEN: &str = "hook-token-0123456789";
const HOOK: &str = "http://127.0.0.1:9/hook";

#[tokio::test]
async fn webhooks_are_made_read_listed_and_removed_and_their_secrets_only_sent() {
    let world = World::new();
    let remote = world.remote().await;
    let upstream = remote.url.trim_start_matches("http://").trim_end_matches('/');
    let proxy = RecordingProxy::start(upstream.parse().unwrap()).await.unwrap();
    let url = format!("http://{}/", proxy.address());
    let sent = world.run(&["send", &url, "slow 60s plum", "--async"]).await;
    let task = sent.task();
    let variables = [("A2A_KEY_HOOK", TOKEN)];
    world.write("workspace/hook.key", "hook-secret-0123456789\n");
    let create = ["push-config", "create", &url, task, HOOK, "--id", "c-1"];
    let secrets =
        ["--token-env", "A2A_KEY_HOOK", "--auth-scheme", "Bearer", "--auth-file", "hook.key"];
    let made = world.run_with(&[&create[..], &secrets].concat(), &variables).await;
    made.check(0, &["c-1  http://127.0.0.1:9/hook, with a token, by Bearer"]);
    for secret in [TOKEN, "hook-secret-0123456789"] {
        assert!(proxy.requested(secret), "{}", proxy.transcript());
    }

    let json = world.run(&["push-config", "get", &url, task, "c-1", "--json"]).await;
    let config = &json.json()["config"];
    assert_eq!(
        (&config["id"], &config["url"], &config["taskId"]),
        (&json!("c-1"), &json!(HOOK), &json!(task))
    );
    assert_eq!(
        (&config["token"], &config["authentication"]["credentials"]),
        (&json!("***"), &json!("***"))
    );
    let other =
        world.run(&["push-config", "create", &url, task, "http://127.0.0.1:9/two", "--json"]).await;
    let id = other.json()["config"]["id"].as_str().unwrap().to_owned();

    let listed = world.run(&["push-config", "list", &url, task]).await;
    listed.check(0, &["c-1  ", &format!("{id}  http://127.0.0.1:9/two\n")]);
    let listed = world.run(&["push-config", "list", &url, task, "--json"]).await;
    assert_eq!(listed.json()["configs"].as_array().unwrap().len(), 2);
    for ran in [&made, &json, &listed] {
        assert!(!format!("{ran:?}").contains("0123456789"), "{ran:?}");
    }

    world
        .run(&["push-config", "delete", &url, task, "c-1"])
        .await
        .check(0, &["Webhook c-1 is removed."]);
    let gone = world.run(&["push-config", "delete", &url, task, &id, "--json"]).await;
    assert_eq!(gone.json(), json!({ "deleted": { "taskId": task, "id": id } }));
    world.run(&["push-config", "list", &url, task]).await.check(0, &["No webhooks."]);
    let missing = world.run(&["push-config", "get", &url, task, "c-1"]).await;
    missing.check(1, &["refused"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_webhook_is_told() {
    let world = World::new();
    let _remote = world.remote().await;
    let create = ["push-config", "create", "demo", "no-such-task"];
    world.run(&[&create[..], &[HOOK]].concat()).await.check(1, &["-32001"]);
    for (rest, told) in [
        (&["ftp://x/"][..], "`ftp://x/` is no http or https URL"),
        (&[HOOK, "--token-file", "missing"], "the key file `missing` cannot be used"),
        (&[HOOK, "--token-env", "HOME"], "begin with A2A_KEY_"),
        (&[HOOK, "--token-env", "A2A_KEY_UNSET"], "A2A_KEY_UNSET is not set"),
        (&[HOOK, "--auth-file", "missing"], "--auth-scheme"),
    ] {
        world.run(&[&create[..], rest].concat()).await.check(2, &[told]);
    }
}

#[tokio::test]
async fn an_agent_that_calls_no_webhooks_is_told_as_such() {
    let world = World::new();
    let agent = with_key("right-key-0123456789").await;
    let variables = [("A2A_KEY_TEST", "right-key-0123456789")];
    for command in [&["list"][..], &["get"], &["delete"], &["create"]] {
        let last = if command == ["list"] { None } else { Some(HOOK) };
        let mut arguments = vec!["push-config", command[0], &agent.url, "t-1"];
        arguments.extend(last);
        arguments.extend(["--key-env", "A2A_KEY_TEST"]);
        world
            .run_with(&arguments, &variables)
            .await
            .check(1, &["does not say that it calls webhooks"]);
        arguments.push("--json");
        let json = world.run_with(&arguments, &variables).await.json();
        assert_eq!(json["error"]["kind"], "pushNotificationNotSupported", "{json}");
    }
}

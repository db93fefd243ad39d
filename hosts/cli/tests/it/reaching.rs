//! How an agent is found and called.

use std::fs;

use serde_json::json;
use volcanic_testkit::RecordingProxy;

use crate::{
    keyed_agent::with_key,
    odd_agent::{Answer, Asked, Odd, task},
    world::{Remote, World},
};

const KEY: &str = "right-key-0123456789";

async fn proxied(remote: &Remote) -> RecordingProxy {
    let upstream = remote.url.trim_start_matches("http://").trim_end_matches('/');
    RecordingProxy::start(upstream.parse().unwrap()).await.unwrap()
}

#[tokio::test]
async fn an_agent_is_reached_by_its_host_or_by_a_card_at_hand() {
    let world = World::new();
    let remote = world.remote().await;
    let host = remote.url.trim_start_matches("http://").trim_end_matches('/');
    world.run(&["send", host, "echo host"]).await.check(0, &["Agent \"agent\"", "echo: host"]);

    let card = world.run(&["agents", "--json"]).await.json()["agents"][0]["card"].clone();
    world.write("workspace/card.json", &card.to_string());
    fs::rename(world.workspace().join("card.json"), world.path("a card")).unwrap();
    let path = world.path("a card");
    let url = format!("file://{}", path.display());
    for card in [path.to_str().unwrap(), "../a card", &url] {
        world.run(&["send", card, "echo card"]).await.check(0, &["echo: card"]);
    }
    world.write("workspace/bad.json", "{}");
    world.write("workspace/nowhere.json", "{\"name\": \"x\", \"supportedInterfaces\": []}");
    for (file, told) in [
        ("missing.json", "the card `missing.json` cannot be used: No such file"),
        ("bad.json", "the card `bad.json` cannot be used: "),
        ("nowhere.json", "it names no http(s) address"),
        ("./.", "it is no regular file"),
    ] {
        world.run(&["send", file, "x"]).await.check(2, &[told]);
    }
}

#[tokio::test]
async fn an_interface_is_called_without_a_card() {
    let world = World::new();
    let remote = world.remote().await;
    let proxy = proxied(&remote).await;
    let url = format!("http://{}/a2a", proxy.address());
    let ran = world.run(&["send", &url, "echo plum", "--no-card", "--binding", "jsonrpc"]).await;
    ran.check(0, &["echo: plum"]);
    assert!(!proxy.requested("agent-card.json"), "{}", proxy.transcript());
    let wrong = world.run(&["send", &url, "x", "--no-card", "--binding", "rest"]).await;
    assert_eq!(wrong.code, 1, "{wrong:?}");
    for (rest, told) in [
        (&["--no-card"][..], "--binding"),
        (&["--no-card", "--binding", "rest,jsonrpc"], "needs one --binding"),
    ] {
        world.run(&[&["send", &url, "x"][..], rest].concat()).await.check(2, &[told]);
    }
    let named = world.run(&["send", "demo", "x", "--no-card", "--binding", "rest"]).await;
    named.check(2, &["`demo` is no URL of an interface"]);
}

#[tokio::test]
async fn a_binding_and_a_version_may_be_insisted_on() {
    let world = World::new();
    let _remote = world.remote().await;
    world.run(&["send", "demo", "echo x", "--binding", "JSONRPC"]).await.check(0, &["echo: x"]);
    world.run(&["send", "demo", "echo x", "--protocol", "1.0"]).await.check(0, &["echo: x"]);
    for wanted in [["--binding", "HTTP+JSON"], ["--protocol", "0.3"]] {
        let ran = world.run(&[&["send", "demo", "echo x"][..], &wanted].concat()).await;
        ran.check(1, &["The card of agent \"demo\" cannot be used", "it offers JSONRPC 1.0"]);
    }
    let either = ["send", "demo", "echo x", "--binding", "rest", "--binding", "jsonrpc"];
    world.run(&either).await.check(0, &["echo: x"]);
    world.run(&["send", "demo", "x", "--binding", "grpc"]).await.check(2, &["jsonrpc, rest"]);
}

#[tokio::test]
async fn a_tenant_and_headers_are_sent_along() {
    let world = World::new();
    let odd = Odd::start(false, |_, _| Answer::Result(task("TASK_STATE_COMPLETED", "ok"))).await;
    let arguments = [
        "status",
        &odd.url,
        "t-1",
        "--tenant",
        "t-7",
        "--header",
        "X-Trace: abc",
        "--header",
        "Authorization: env:A2A_KEY_AUTH",
    ];
    let ran = world.run_with(&arguments, &[("A2A_KEY_AUTH", "Bearer planted-0123")]).await;
    ran.check(0, &["ok"]);
    let asked = &odd.asked()[0];
    assert_eq!(asked.params["tenant"], "t-7");
    assert_eq!(asked.headers["x-trace"], "abc");
    assert_eq!(asked.headers["authorization"], "Bearer planted-0123");
    for (header, told) in [
        ("no colon", "written `NAME: VALUE`"),
        ("b ad: x", "not the name of a header"),
        ("Host: x", "the header host cannot be set here"),
        ("Authorization: Bearer planted-0123", "keys are never given on the command line"),
        ("X: env:HOME", "begin with A2A_KEY_"),
    ] {
        let ran = world.run(&["status", &odd.url, "t-1", "--header", header]).await;
        ran.check(2, &[told]);
        assert!(!ran.err.contains("planted"), "{ran:?}");
    }
    assert_eq!(odd.asked().len(), 1);
}

#[tokio::test]
async fn headers_of_the_command_line_overrule_those_of_the_entry() {
    let world = World::new();
    let odd = Odd::start(false, |_, _| Answer::Result(task("TASK_STATE_COMPLETED", "ok"))).await;
    let headers = json!({ "X-Trace": "entry", "X-Gate": "entry" });
    world.agents(&json!([{ "name": "demo", "url": odd.url, "headers": headers }]));
    let status = ["status", "demo", "t-1"];
    world.run(&status).await.check(0, &["ok"]);
    world.run(&[&status[..], &["--header", "x-trace: one"]].concat()).await.check(0, &["ok"]);
    let twice = ["--header", "x-trace: one", "--header", "X-Trace: two"];
    world.run(&[&status[..], &twice].concat()).await.check(0, &["ok"]);
    let sent = |name: &str| -> Vec<Vec<String>> {
        let of = |asked: &Asked| {
            let values = asked.headers.get_all(name).iter();
            values.map(|value| value.to_str().unwrap().to_owned()).collect()
        };
        odd.asked().iter().map(of).collect()
    };
    assert_eq!(sent("x-trace"), [vec!["entry"], vec!["one"], vec!["one", "two"]]);
    assert_eq!(sent("x-gate"), [["entry"]; 3]);
}

#[tokio::test]
async fn hints_lead_to_the_same_agent() {
    let world = World::new();
    let odd = Odd::start(false, |_, _| Answer::Result(task("TASK_STATE_WORKING", ""))).await;
    let workspace = world.workspace();
    let workspace = workspace.to_str().unwrap();
    let arguments = [
        "status",
        &odd.url,
        "t-1",
        "--tenant",
        "it's",
        "--binding",
        "jsonrpc",
        "--protocol",
        "1.0",
        "--header",
        "X-Trace: abc",
        "--workspace",
        workspace,
    ];
    let ran = world.run(&arguments).await;
    let wanted = format!(
        "volcanic watch {} t-1 --header 'X-Trace: abc' --binding jsonrpc --protocol 1.0 --tenant 'it'\\''s' --workspace {workspace}\n",
        odd.url
    );
    assert!(ran.err.ends_with(&wanted), "{ran:?}");
}

#[tokio::test]
async fn a_key_of_an_agent_given_by_url_comes_from_a_variable() {
    let world = World::new();
    let agent = with_key(KEY).await;
    let variables = [("A2A_KEY_TEST", KEY)];
    let ran = world
        .run_with(&["send", &agent.url, "echo x", "--key-env", "A2A_KEY_TEST"], &variables)
        .await;
    ran.check(0, &["echo: x"]);
    assert!(!format!("{ran:?}").contains(KEY), "{ran:?}");
    let unset = world.run(&["send", &agent.url, "x", "--key-env", "A2A_KEY_TEST", "--json"]).await;
    assert_eq!((unset.code, &unset.json()["error"]["kind"]), (2, &json!("key")), "{unset:?}");
    world
        .run(&["send", &agent.url, "x", "--key-env", "HOME"])
        .await
        .check(2, &["begin with A2A_KEY_"]);
    world.knows(&agent.url);
    let named =
        world.run_with(&["send", "demo", "x", "--key-env", "A2A_KEY_TEST"], &variables).await;
    named.check(2, &["--key-env is for an agent given by URL", "agents.json"]);
    let both = ["send", &agent.url, "x", "--key-env", "A2A_KEY_TEST", "--key-file", "k"];
    world.run(&both).await.check(2, &["--key-file"]);
}

#[tokio::test]
async fn a_password_in_a_url_is_refused_and_not_repeated() {
    let world = World::new();
    for url in ["http://me:planted@127.0.0.1:9/", "http://planted@127.0.0.1:9/"] {
        let ran = world.run(&["send", url, "x"]).await;
        ran.check(2, &["keys are never given on the command line"]);
        assert!(!ran.err.contains("planted"), "{ran:?}");
    }
}

#[tokio::test]
async fn an_entry_that_cannot_be_used_is_told_with_its_faults() {
    let world = World::new();
    world.agents(&json!([{ "name": "demo", "url": "ftp://x/" }]));
    world.run(&["tasks", "demo"]).await.check(2, &["cannot be used", "does not begin with http"]);
}

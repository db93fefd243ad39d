//! What messages are made of.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    odd_agent::{Answer, Odd, task},
    world::World,
};

/// An agent that takes everything, and the parts of the last message that it took.
async fn taker() -> Odd {
    Odd::start(false, |_, _| Answer::Result(json!({ "task": task("TASK_STATE_COMPLETED", "ok") })))
        .await
}

fn parts(odd: &Odd) -> Value {
    odd.asked().last().unwrap().params["message"]["parts"].clone()
}

#[tokio::test]
async fn parts_of_every_kind_arrive_in_the_order_of_the_command_line() {
    let world = World::new();
    let odd = taker().await;
    world.write("workspace/a.txt", "abc");
    world.write("order.json", " [1, {\"two\": null}] ");
    let arguments = [
        "send",
        &odd.url,
        "--file",
        "a.txt",
        "look here",
        "--data",
        "{\"seats\":2}",
        "--media-type",
        "application/x-seats+json",
        "--url",
        "https://maps.example/rome.png",
        "--data",
        "@../order.json",
        "--text",
        "and that",
    ];
    world.run(&arguments).await.check(0, &["ok"]);
    let wanted = json!([
        { "raw": "YWJj", "filename": "a.txt", "mediaType": "text/plain" },
        { "text": "look here" },
        { "data": { "seats": 2 }, "mediaType": "application/x-seats+json" },
        { "url": "https://maps.example/rome.png", "filename": "rome.png" },
        { "data": [1, { "two": null }] },
        { "text": "and that" },
    ]);
    assert_eq!(parts(&odd), wanted);
}

#[tokio::test]
async fn standard_input_is_a_text_or_data() {
    let world = World::new();
    let odd = taker().await;
    world.run_input(&["send", &odd.url, "-"], "a long\ntext\n").await.check(0, &[]);
    assert_eq!(parts(&odd), json!([{ "text": "a long\ntext\n" }]));
    for data in ["-", "@-"] {
        world.run_input(&["send", &odd.url, "x", "--data", data], "{\"n\": 1}").await.check(0, &[]);
        assert_eq!(parts(&odd), json!([{ "text": "x" }, { "data": { "n": 1 } }]));
    }
    let twice = world.run_input(&["send", &odd.url, "-", "--data", "-"], "1").await;
    twice.check(2, &["standard input can be used for one part only"]);
    let large = world
        .run_input_with(&["send", &odd.url, "-"], "12345", &[("A2AClient__MaxFileBytes", "4")])
        .await;
    large.check(2, &["standard input is larger than 4 bytes"]);
    assert_eq!(odd.asked().len(), 3, "what cannot be read is not sent");
}

#[tokio::test]
async fn parts_that_cannot_be_read_stop_the_send() {
    let world = World::new();
    let odd = taker().await;
    let fifo = world.workspace().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    world.write("workspace/large.json", "\"1234567890\"");
    world.write("workspace/bad.json", "{\"a\": }");
    for (part, told) in [
        (["--data", "{seats: 2}"], "--data: what was given is no JSON: "),
        (["--data", "@bad.json"], "the file `bad.json` is no JSON"),
        (["--data", "@missing.json"], "`missing.json` cannot be read: No such file"),
        (["--data", "@fifo"], "`fifo` cannot be read: it is no regular file"),
        (["--data", "@large.json"], "`large.json` cannot be read: it is larger than 8 bytes"),
        (["--file", "fifo"], "Could not attach"),
        (["--url", "no url"], "--url: `no url` is no URL"),
        (["--media-type", "a/b"], "--media-type"),
    ] {
        let arguments = [&["send", &odd.url][..], &part].concat();
        let ran = world.run_with(&arguments, &[("A2AClient__MaxFileBytes", "8")]).await;
        ran.check(2, &[told]);
    }
    assert!(odd.asked().is_empty());
}

#[tokio::test]
async fn what_else_may_be_said_of_the_answer_is_sent() {
    let world = World::new();
    let odd = taker().await;
    let arguments = [
        "send",
        &odd.url,
        "x",
        "--accept",
        "text/plain",
        "--accept",
        "image/png",
        "--history",
        "3",
    ];
    world.run(&arguments).await.check(0, &[]);
    let wanted = json!({
        "acceptedOutputModes": ["text/plain", "image/png"],
        "historyLength": 3,
        "returnImmediately": true,
    });
    assert_eq!(odd.asked()[0].params["configuration"], wanted);
}

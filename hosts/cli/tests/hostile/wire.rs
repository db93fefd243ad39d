//! Answers that are spoilt as HTTP: of the card, of calls, of streams.

use std::sync::Arc;

use volcanic_testkit::{FORGED_TEXT, HostileAgent, HostilePlace, HostileTrick, WireFault};

use crate::table::{AGENTS, Row, SEND, STATUS, check};

/// A card may take a second here, so that what is slow is known to be soon.
const HASTY: &[(&str, &str)] = &[("A2AClient__CardTimeoutSeconds", "1")];

const BROKE: &str = "Could not reach agent \"demo\": the connection broke";
const TOO_LARGE: &str = "The answer of agent \"demo\" is larger than ";
const LATE: &str = "Agent \"demo\" did not answer in time.";
const DONE: &str = " is completed.\ndone";

fn on(place: HostilePlace, fault: &WireFault, code: i32, told: &str) -> Row {
    Row::new(HostileTrick::Wire(place, fault.clone()), SEND, code, told)
}

/// A stream that fails is not missed: the task is read instead.
fn on_stream(fault: &WireFault) -> Row {
    on(HostilePlace::Stream, fault, 0, DONE)
}

/// The same at every place; of a stream nothing is told.
fn everywhere(faults: Vec<(WireFault, i32, &str)>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (fault, code, told) in faults {
        rows.push(on(HostilePlace::Card, &fault, code, told));
        rows.push(on(HostilePlace::Call, &fault, code, told));
        rows.push(on_stream(&fault));
    }
    rows
}

#[tokio::test]
async fn an_answer_without_an_end_costs_little_and_is_told() {
    check(everywhere(vec![
        (WireFault::EndlessHeader, 3, BROKE),
        (WireFault::EndlessHeaders, 3, BROKE),
        (WireFault::EndlessChunkExtension, 3, BROKE),
        (WireFault::HugeChunk, 1, TOO_LARGE),
        (WireFault::EndlessTrailer, 3, BROKE),
        (WireFault::EndlessBody, 1, TOO_LARGE),
        (WireFault::EndlessBlanks, 1, TOO_LARGE),
        (WireFault::BoastfulLength, 1, TOO_LARGE),
    ]))
    .await;
    // Very many interim answers come at once, and are looked through before the exchange is given up; how much that is in
    // the time of the user depends on the machine.
    let flood = WireFault::InterimFlood;
    let rows = [
        on(HostilePlace::Card, &flood, 3, BROKE),
        on(HostilePlace::Call, &flood, 3, BROKE),
        on(HostilePlace::Stream, &flood, 0, "gent \"demo\": task task-1").or(5),
    ];
    check(rows.map(|row| Row { most_sent: 256 << 20, ..row })).await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_none_is_told() {
    check(everywhere(vec![
        (WireFault::Reset, 3, BROKE),
        (WireFault::ShortBody, 3, BROKE),
        (WireFault::TwoLengths, 3, BROKE),
        (WireFault::NotHttp, 3, BROKE),
        (WireFault::Http2Settings, 3, BROKE),
        (WireFault::Http2Pings, 3, BROKE),
        (WireFault::Http2Resets, 3, BROKE),
    ]))
    .await;
    // What is too much may be seen with the answer, or by the connection first.
    let long = everywhere(vec![(WireFault::LongBody, 1, "gent \"demo\"")]);
    check(long.into_iter().map(|row| row.or(3))).await;
}

#[tokio::test]
async fn what_stands_behind_or_beside_a_right_answer_is_never_a_result() {
    let other = bystander().await;
    let refresh = WireFault::Refresh(other.url().to_owned());
    check(everywhere(vec![(refresh, 0, DONE)]).into_iter().map(|row| row.spares(&other))).await;
    // How the bytes come decides: the other answer is dropped with its connection, or the exchange is given up, or it is
    // taken for the answer to the next request to the same origin, to which it does not fit.
    let trailing = everywhere(vec![(WireFault::TrailingAnswer, 0, "gent \"demo\"")]);
    check(trailing.into_iter().map(|row| row.or(3).or(1).without(FORGED_TEXT))).await;
}

#[tokio::test]
async fn a_card_that_is_slow_is_given_up_in_its_time() {
    let faults = [WireFault::Silence, WireFault::SlowHead, WireFault::SlowBody, WireFault::OpenEnd];
    check(faults.into_iter().flat_map(|fault| {
        let trick = HostileTrick::Wire(HostilePlace::Card, fault);
        [
            Row::new(trick.clone(), SEND, 5, LATE).with(HASTY),
            Row::new(trick, AGENTS, 0, "unreachable (Agent \"demo\" did not answer").with(HASTY),
        ]
    }))
    .await;
}

#[tokio::test]
async fn a_stream_that_is_slow_takes_no_longer_than_the_user_waits() {
    const WAIT: &[&str] = &["send", "demo", "plum", "--wait", "1s"];
    let on_stream = |fault| HostileTrick::Wire(HostilePlace::Stream, fault);
    let faults = [WireFault::Silence, WireFault::SlowHead, WireFault::SlowBody];
    check(faults.map(|fault| Row::new(on_stream(fault), WAIT, 5, " is working."))).await;
    // What was reported counts, whether or not the stream ends.
    check([Row::new(on_stream(WireFault::OpenEnd), WAIT, 0, DONE)]).await;
}

#[tokio::test]
async fn ten_gigabytes_of_gzip_are_not_unpacked() {
    check(everywhere(vec![(WireFault::GzipBomb, 1, "it is compressed (gzip)")])).await;
}

#[tokio::test]
async fn the_status_is_told_whatever_stands_behind_it() {
    check(everywhere(vec![
        (WireFault::HugeErrorBody(400), 1, "answered with HTTP 400."),
        (WireFault::HugeErrorBody(500), 1, "answered with HTTP 500."),
        (WireFault::HugeErrorBody(503), 1, "answered with HTTP 503."),
    ]))
    .await;
    let missing = WireFault::HugeErrorBody(404);
    check([
        on(HostilePlace::Card, &missing, 1, "there is none at "),
        on(HostilePlace::Call, &missing, 1, "answered with HTTP 404."),
        on_stream(&missing),
    ])
    .await;
    let trick = HostileTrick::Wire(HostilePlace::Call, WireFault::HugeErrorBody(401));
    check([
        Row::new(trick.clone(), SEND, 4, "rejected the key (401)"),
        Row::new(trick, STATUS, 4, "rejected the key (401)"),
    ])
    .await;
}

/// An agent that is there to be left alone.
async fn bystander() -> Arc<HostileAgent> {
    Arc::new(HostileAgent::start(HostileTrick::None).await.unwrap())
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let other = bystander().await;
    let told =
        |status: u16| format!("answered with HTTP {status}, a redirect, which is not followed.");
    let mut rows = Vec::new();
    for status in [300, 301, 302, 303, 305, 307, 308] {
        let there = WireFault::Redirect(status, format!("{}rpc", other.url()));
        rows.extend(everywhere(vec![(there, 1, &told(status))]));
    }
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        // To itself, for ever.
        "/rpc",
        "/.well-known/agent-card.json",
        "javascript:alert(1)",
        "",
    ] {
        let there = WireFault::Redirect(307, url.to_owned());
        rows.extend(everywhere(vec![(there, 1, &told(307))]));
    }
    check(rows.into_iter().map(|row| row.spares(&other))).await;
}

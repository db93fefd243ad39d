//! Planted keys: a peer for every way in which a call ends, which carries our own key back to us wherever it can put a
//! word.
//!
//! Each path runs twice. With our secrets left in, it must show the key, which proves that the path carries one; as
//! shipped, it must not. Paths that carry nothing say why, and must show nothing either way.

use std::{future::Future, pin::Pin};

use volcanic_a2a_client::ClientConfig;

use crate::agent::KEY;

mod answers;
mod connections;
mod failures;
mod seen;
mod writings;

use seen::{Capture, is_spelled};

/// Whether a path can bring the key back.
enum Carries {
    /// It can.
    Key,
    /// It cannot, and why.
    Nothing(&'static str),
}

use Carries::{Key, Nothing};

/// Runs a path and returns all that can be seen of it.
type Run = fn(ClientConfig) -> Pin<Box<dyn Future<Output = String>>>;

/// A way in which a call ends.
struct Path {
    name: &'static str,
    carries: Carries,
    run: Run,
}

const fn path(name: &'static str, carries: Carries, run: Run) -> Path {
    Path { name, carries, run }
}

/// Runs every path both ways.
async fn check(paths: &[Path]) {
    let mut wrong = Vec::new();
    for Path { name, carries, run } in paths {
        for shows_secrets in [true, false] {
            let config = ClientConfig { shows_secrets, ..ClientConfig::default() };
            let capture = Capture::start();
            let seen = run(config).await;
            let log = capture.finish();
            assert!(!log.is_empty(), "{name}: nothing is logged, so nothing is looked at");
            if !shows_secrets && is_spelled(&log, KEY) {
                let lines: Vec<_> = log.lines().filter(|line| is_spelled(line, KEY)).collect();
                wrong.push(format!("{name}: the log has it: {lines:#?}"));
            }
            let is_expected = shows_secrets && matches!(carries, Key);
            if is_spelled(&seen, KEY) != is_expected {
                let why = match carries {
                    Key => "carries the key",
                    Nothing(why) => why,
                };
                wrong.push(format!("{name} ({why}), secrets left in: {shows_secrets}: {seen}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn key_that_comes_back_while_connecting_is_not_shown() {
    check(&connections::PATHS).await;
}

#[tokio::test]
async fn key_that_comes_back_in_a_failure_is_not_shown() {
    check(&failures::PATHS).await;
}

#[tokio::test]
async fn key_that_comes_back_in_an_answer_is_not_shown() {
    check(&answers::PATHS).await;
}

#[tokio::test]
async fn key_in_any_writing_is_not_shown() {
    writings::check_all().await;
}

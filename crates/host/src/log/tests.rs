use std::process::{Command, Output};

use super::*;

const KEY: &str = "k_planted_3f9c2a7e";

/// Runs a test of this module in a process of its own: a hook is for the whole process.
fn run_apart(name: &str) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = format!("log::tests::{name}");
    child.args(["--exact", &name, "--ignored", "--nocapture"]).env_remove("RUST_BACKTRACE");
    child.output().unwrap()
}

#[test]
fn panics_are_logged_without_what_was_put_into_their_texts() {
    let output = run_apart("panics_in_many_ways");
    let seen = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{seen}");
    assert!(!seen.contains(KEY), "{seen}");
    assert_eq!(seen.matches("panicked place=\"").count(), 5, "{seen}");
    assert_eq!(seen.matches("log/tests.rs:").count(), 5, "{seen}");
    assert!(seen.contains("a text of the code"), "{seen}");
    assert!(seen.contains("it went on"), "{seen}");
}

/// Not a test by itself: see above.
#[test]
#[ignore = "started by panics_are_logged_without_what_was_put_into_their_texts"]
#[expect(clippy::disallowed_methods, reason = "a process for this alone")]
fn panics_in_many_ways() {
    tracing_subscriber::fmt().with_ansi(false).with_writer(std::io::stderr).init();
    log_panics();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for how in 0..4 {
            assert!(tokio::spawn(async move { fail(how) }).await.unwrap_err().is_panic());
        }
        assert!(tokio::task::spawn_blocking(|| fail(4)).await.unwrap_err().is_panic());
    });
    println!("it went on");
}

fn refused() -> Result<(), String> {
    Err(format!("with {KEY}"))
}

fn fail(how: u8) {
    match how {
        0 => panic!("with {KEY}"),
        1 => refused().unwrap(),
        2 => std::panic::panic_any(KEY.to_owned()),
        3 => panic!("a text of the code"),
        _ => assert_eq!(KEY, "another", "{KEY}"),
    }
}

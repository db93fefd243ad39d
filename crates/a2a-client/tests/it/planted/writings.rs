//! The key in every writing, at every place of an answer that is told.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use volcanic_a2a_client::{ClientConfig, render_delivery, render_result};
use volcanic_base::ConfinedDir;

use super::seen::{Capture, is_spelled};
use crate::agent::{KEY, Running, Script, connect_with, keyed, network, result, task};

/// How an agent may write the key. The answer is text: what is escaped here is escaped once more by JSON.
fn writings() -> Vec<(&'static str, String)> {
    let escaped = KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect::<Vec<_>>().concat();
    let percent = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    vec![
        ("as it is", KEY.to_owned()),
        ("after its kind", format!("Bearer {KEY}")),
        ("in a query", format!("https://a.example/?key={KEY}&x=1")),
        ("percent-encoded", percent.clone()),
        ("percent-encoded in a query", format!("https://a.example/?key={percent}")),
        ("percent-encoded twice", percent.replace('%', "%25")),
        ("escaped for JSON", escaped),
        ("in base64", STANDARD.encode(KEY)),
        ("in base64 after something", STANDARD.encode(format!("a {KEY} b"))),
        ("in base64 after something else", STANDARD.encode(format!("ab {KEY}"))),
        ("over two lines", format!("{}\n{}", &KEY[..7], &KEY[7..])),
        ("with nothing visible between", format!("{}\u{200b}{}", &KEY[..4], &KEY[4..])),
    ]
}

/// A settled task that says `word` wherever it is told.
fn answer(word: &str) -> Value {
    let mut task = task("t1", "COMPLETED");
    task["artifacts"] = json!([{"artifactId": word, "name": word, "parts": [
        {"text": word}, {"data": {"word": word}}, {"url": word},
        {"raw": STANDARD.encode(format!("In a file: {word}")), "filename": format!("{word}.txt")},
        {"raw": STANDARD.encode("x".repeat(2000)), "filename": word}
    ]}]);
    task
}

pub(super) async fn check_all() {
    for shows_secrets in [true, false] {
        for (name, word) in writings() {
            let config = ClientConfig { shows_secrets, ..ClientConfig::default() };
            let capture = Capture::start();
            let script = Script::new(move |seen| result(seen, &answer(&word)));
            let running = Running::start(&script).await;
            let agent = connect_with(&keyed(running.entry()), network(), &config).await.unwrap();
            let task = agent.get_task(&"t1".into(), None).await.unwrap();
            let outcome = agent.outcome_of(task, 1000);
            let mut seen = outcome.answer.clone();
            assert_eq!(is_spelled(&seen, KEY), shows_secrets, "{name}: {seen}");
            for part in [&outcome.links, &outcome.skipped] {
                let part = part.join(" ");
                assert_eq!(is_spelled(&part, KEY), shows_secrets, "{name}: {part}");
            }
            let folder = tempfile::tempdir().unwrap();
            let workspace = ConfinedDir::open(folder.path()).unwrap();
            let saved = outcome.save(&workspace, "travel-bot");
            for path in &saved.saved {
                let file = std::fs::read_to_string(folder.path().join(path)).unwrap();
                assert!(file.starts_with("In a file: "), "{name}: {file}");
                // A file is bytes: the key is looked for as it is and in base64, not behind the escapes of some format.
                let is_plain = file.contains(KEY) || name.contains("base64");
                assert!(!is_plain || is_spelled(&file, KEY) == shows_secrets, "{name}: {file}");
                assert!(shows_secrets || !file.contains(KEY), "{name}: {file}");
            }
            seen = render_result("travel-bot", &saved) + &render_delivery("travel-bot", &saved);
            assert_eq!(is_spelled(&seen, KEY), shows_secrets, "{name}: {seen}");
            let log = capture.finish();
            assert!(!is_spelled(&log, KEY), "{name}: {log}");
        }
    }
}

//! A document that is read as a large one says the same as a small one.

use proptest::prelude::*;
use volcanic_a2a_types::{FromWire as _, Task, WireLimits};

/// What is read as a large document is.
const LARGE: usize = 8 << 20;
/// Longer than the pieces that long strings are read in.
const LONG: usize = 200 << 10;

/// What a string is made of as JSON: plain, escaped, of up to four bytes a character, base64 of both alphabets, and padding.
const PIECES: [&str; 14] = [
    "QUJD",
    "Pz8/",
    r"Pz8\/",
    "-_-_",
    "=",
    "a",
    r"\n",
    r"\u00e9",
    r"\ud83d\ude00",
    "é",
    "€",
    "😀",
    "%",
    " ",
];

#[test]
fn large_document_says_the_same_as_a_small_one() {
    let text = prop::collection::vec(prop::sample::select(&PIECES[..]), 1..6);
    let end = prop::sample::select(&["", "=", "==", "QQ==", "QQ", "é"][..]);
    let member = prop::sample::select(&["raw", "text", "url", "filename", "data", "else"][..]);
    let times = prop_oneof![1..4_usize, Just(LONG)];
    let config = ProptestConfig { cases: 96, ..ProptestConfig::default() };
    proptest!(config, |(text in text, end in end, member in member, times in times)| {
        let text = text.concat();
        let text = text.repeat(times.min(LONG / text.len()).max(1));
        let small = format!(
            r#"{{"id":"t","contextId":"c","status":{{"state":"TASK_STATE_COMPLETED"}},"artifacts":[{{"artifactId":"a",
            "parts":[{{"{member}":"{text}{end}"}}]}}]}}"#
        );
        let mut large = small.clone();
        large.push_str(&" ".repeat(LARGE + 1 - large.len()));
        let read = |json: &str| Task::from_wire(json, WireLimits::Answer);
        let (small, large) = (read(&small), read(&large));
        match (small, large) {
            (Ok(small), Ok(large)) => prop_assert!(small == large, "{member}: {} bytes", text.len()),
            (Err(_), Err(_)) => {}
            (small, large) => prop_assert!(false, "{member}: small {:?}, large {:?}", small.err(), large.err()),
        }
    });
}

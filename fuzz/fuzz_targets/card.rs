//! Any body as a card of 1.0, of 0.3 or both: no panic, and what is read is written and read again alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volcanic_a2a_types::{AgentCard, v03};

fuzz_target!(|body: &[u8]| {
    let _ = serde_json::from_slice::<AgentCard>(body);
    let Ok(text) = std::str::from_utf8(body) else { return };
    let Ok(card) = v03::read_card(text) else { return };
    let written = serde_json::to_string(&card).unwrap();
    let again: AgentCard = serde_json::from_str(&written).expect("what is written can be read");
    assert_eq!(serde_json::to_string(&again).unwrap(), written);
    let old = v03::write_card(&card).unwrap();
    let _ = v03::read_card(&old.to_string());
});

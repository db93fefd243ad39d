use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const KEY: &str = "k_planted/3f9c2a";

fn scrubber(secret: &str) -> Scrubber {
    Scrubber::new(vec![Secret::new(secret)])
}

#[track_caller]
fn check(secret: &str, text: &str, expected: &str) {
    assert_eq!(scrubber(secret).scrub(Bytes::copy_from_slice(text.as_bytes())), expected);
    assert_eq!(scrubber(secret).scrub_text(text.into()), expected);
}

#[track_caller]
fn check_text(text: &str, expected: &str) {
    assert_eq!(scrubber(KEY).text(text.to_owned()), expected);
}

#[test]
fn secrets_are_masked_wherever_they_stand() {
    check(
        "k_planted",
        r#"{"a":"k_planted k_planted","k_planted":1}"#,
        r#"{"a":"*** ***","***":1}"#,
    );
    check("k\"planted\\", r#"{"a":"k\"planted\\"}"#, r#"{"a":"***"}"#);
    check("k/planted", r#"{"a":"k\/planted k/planted"}"#, r#"{"a":"*** ***"}"#);
    check("k_planted\"", r#"{"a":"k_planted\""}"#, r#"{"a":"***"}"#);
    check("k_planted", "k_plante d", "k_plante d");
}

#[test]
fn short_values_are_left_alone() {
    check("kind", r#"{"kind":"kind"}"#, r#"{"kind":"kind"}"#);
}

#[test]
fn secret_behind_escapes_is_masked_and_json_stays_json() {
    check(KEY, r#"{"a":"\u006b_planted/3f9c2a!"}"#, r#"{"a":"***!"}"#);
    check(KEY, r#"{"a":"?key=k%5Fplanted%2f3f9c2a&b"}"#, r#"{"a":"?key=***&b"}"#);
    check(KEY, r#"{"a":"k%255Fplanted%252F3f9c2a"}"#, r#"{"a":"***"}"#);
    check(KEY, r#"{"a":"k\u0025\u0035Fplanted\/3f9c2a"}"#, r#"{"a":"***"}"#);
    check(KEY, r#"{"a":"{\"b\":\"\\u006b_planted\\/3f9c2a\"}"}"#, r#"{"a":"{\"b\":\"***\"}"}"#);
}

#[test]
fn end_of_a_string_is_no_part_of_a_secret() {
    check("k_planted\"", r#"{"a":"k_planted","b":"\/"}"#, r#"{"a":"k_planted","b":"\/"}"#);
    check("k_plan\",\"ted", r#"["k_plan","ted\/"]"#, r#"["k_plan","ted\/"]"#);
}

#[test]
fn percent_signs_and_escapes_of_others_stay() {
    for text in [r#"{"a":"100% %zz %C3%A9 \n \u00e9 \\ \/ %2"}"#, "\\", "%", "\\u00", "\\u006"] {
        check(KEY, text, text);
    }
}

#[test]
fn base64_with_the_secret_in_it_stays_base64() {
    let file = format!("x-api-key: {KEY}\r\n");
    let body =
        json!({"raw": STANDARD.encode(&file), "text": format!("Basic {}", STANDARD.encode(KEY))});
    let clean = scrubber(KEY).scrub(body.to_string().into());
    let clean: Value = serde_json::from_slice(&clean).unwrap();
    let file = String::from_utf8_lossy(&STANDARD.decode(clean["raw"].as_str().unwrap()).unwrap())
        .into_owned();
    assert!(file.starts_with("x-api-key: ") && file.ends_with("\r\n"), "{file:?}");
    assert!(file.contains(&"*".repeat(KEY.len() - 2)), "{file:?}");
    let text = clean["text"].as_str().unwrap();
    assert!(text.starts_with("Basic KioqKioqKioq"), "{text}");
}

#[test]
fn value_of_a_header_is_masked_without_its_kind_too() {
    check("Bearer k_planted", r#"["Bearer k_planted","k_planted"]"#, r#"["***","***"]"#);
    let basic = format!("Basic {}", STANDARD.encode("ann:hunter2hunter2"));
    check(&basic, r#"["hunter2hunter2"]"#, r#"["***"]"#);
}

#[test]
fn text_is_masked_across_line_breaks_and_what_has_no_width() {
    check_text("a k_planted/3f9c2a b", "a *** b");
    check_text("a k_plan\nted/3f9c2a\nb", "a ***\nb");
    check_text("k_plan\r\n\tted/3f9c2a", "***");
    check_text("k_plan\u{200b}ted\u{feff}/3f\u{ad}9c2a é", "*** é");
    check_text("k_plan\\u200bted%2F3f9c2a", "***");
    check_text(r#"{"a":"k_plan\r\nted/3f9c2a"}"#, r#"{"a":"***"}"#);
    check_text("k_plan ted/3f9c2a", "k_plan ted/3f9c2a");
    check_text("“é” \u{200b} 漢", "“é” \u{200b} 漢");
}

#[test]
fn file_keeps_its_length() {
    let file = scrubber(KEY).file(Bytes::from(format!("a\0{KEY}\0b")));
    assert_eq!(file, format!("a\0{}\0b", "*".repeat(KEY.len())));
}

#[test]
fn secret_of_a_single_call_is_known_from_then_on() {
    let scrubber = scrubber(KEY);
    assert_eq!(scrubber.text("token_of_a_watch".to_owned()), "token_of_a_watch");
    drop(scrubber.learn([&Secret::new("token_of_a_watch")]));
    drop(scrubber.learn([&Secret::new("short")]));
    assert_eq!(scrubber.text(format!("token_of_a_watch {KEY} short")), "*** *** short");
    for number in 0..REMEMBERED {
        drop(scrubber.learn([&Secret::new(format!("token number {number}"))]));
    }
    assert_eq!(scrubber.text(format!("token_of_a_watch {KEY}")), "token_of_a_watch ***");
}

#[test]
fn secret_that_is_used_again_is_remembered_as_a_new_one() {
    let scrubber = scrubber(KEY);
    let (again, number) = ("token_that_is_used_again", |number| format!("token number {number}"));
    drop(scrubber.learn([&Secret::new(again)]));
    for other in 1..REMEMBERED {
        drop(scrubber.learn([&Secret::new(number(other))]));
    }
    drop(scrubber.learn([&Secret::new(again)]));
    drop(scrubber.learn([&Secret::new(number(REMEMBERED))]));
    assert_eq!(scrubber.text(format!("{again} {}", number(1))), "*** token number 1");
}

#[test]
fn secret_of_a_call_that_goes_on_is_known_however_many_others_come() {
    let scrubber = scrubber(KEY);
    let slow = scrubber.learn([&Secret::new("token_of_a_slow_call")]);
    let number = |number: usize| format!("token number {number}");
    for other in 0..100 {
        drop(scrubber.learn([&Secret::new(number(other))]));
    }
    assert_eq!(scrubber.text("token_of_a_slow_call".to_owned()), "***");
    let again = scrubber.learn([&Secret::new("token_of_a_slow_call")]);
    drop(slow);
    for other in 100..200 {
        drop(scrubber.learn([&Secret::new(number(other))]));
    }
    assert_eq!(scrubber.text(format!("token_of_a_slow_call {}", number(199))), "*** ***");
    drop(again);
    for other in 200..300 {
        drop(scrubber.learn([&Secret::new(number(other))]));
    }
    assert_eq!(scrubber.text("token_of_a_slow_call".to_owned()), "token_of_a_slow_call");
    let kept = scrubber.known.read().unwrap().learned.len();
    assert_eq!(kept, REMEMBERED, "what nobody holds is not kept without end");
}

#[test]
fn text_without_secrets_is_not_copied() {
    let text = Bytes::from(r#"{"a":"\u006b \\ %20"}"#.as_bytes().to_vec());
    assert_eq!(scrubber(KEY).scrub(text.clone()).as_ptr(), text.as_ptr());
}

#[test]
fn secrets_that_stand_close_are_masked_across_windows() {
    for (unit, expected) in [
        (KEY, "***"),
        ("k_planted%2F3f9c2a", "***"),
        ("\\u006b_planted/3f9c2a", "***"),
        ("%6b_planted%252F3f9c2a-\\\\", "***-\\\\"),
    ] {
        let count = 2 * WINDOW / unit.len();
        let clean = scrubber(KEY).scrub(unit.repeat(count).into());
        assert_eq!(clean, expected.repeat(count), "{unit}");
    }
}

/// Writes each byte of the secret in one of several ways.
fn written(secret: &str, ways: &[u8]) -> String {
    let writings = secret.bytes().zip(ways.iter().cycle()).map(|(byte, way)| match way % 5 {
        0 => char::from(byte).to_string(),
        1 => format!("\\u{byte:04x}"),
        2 => format!("%{byte:02X}"),
        3 => format!("\\u0025{byte:02x}"),
        _ if byte == b'/' => "\\/".to_owned(),
        _ => format!("%25{byte:02X}"),
    });
    writings.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_writing_is_found_at_any_place(
        ways in proptest::collection::vec(any::<u8>(), 1..20),
        before in "[a-z%\\\\ ]{0,20}",
        far in 0_usize..(WINDOW + 400),
    ) {
        let before = serde_json::to_string(&before).unwrap();
        let text = format!(r#"{{"far":"{}","a":{before},"b":"{}"}}"#, "x".repeat(far), written(KEY, &ways));
        let clean = scrubber(KEY).scrub(text.into());
        let clean: Value = serde_json::from_slice(&clean).unwrap();
        prop_assert_eq!(clean["b"].as_str(), Some("***"));
        prop_assert_eq!(clean["far"].as_str().unwrap().len(), far);
    }

    #[test]
    fn text_with_a_split_secret_is_masked(at in 1_usize..KEY.len(), far in 0_usize..(WINDOW + 200), gap in "[\n\r\u{200b}\u{2060}\u{ad}]{1,5}") {
        let (first, second) = KEY.split_at(at);
        let text = format!("{}{first}{gap}{second} end", "é".repeat(far / 2));
        prop_assert_eq!(scrubber(KEY).text(text), format!("{}*** end", "é".repeat(far / 2)));
    }

    #[test]
    fn any_json_stays_json(text in "\\PC{0,200}", key in "[!-~]{8,20}") {
        let json = json!({"a": text, "b": [format!("{text}{key}{text}")], "c": key}).to_string();
        let clean = Scrubber::new(vec![Secret::new(key)]).scrub(json.into());
        let clean: Result<Value, _> = serde_json::from_slice(&clean);
        prop_assert!(clean.is_ok(), "{:?}", clean);
        prop_assert_eq!(&clean.unwrap()["c"], "***");
    }
}

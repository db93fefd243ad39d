use serde_json::json;

use super::*;
use crate::SendMessageRequest;

#[track_caller]
fn check(json: &str, part: &Part) {
    let read: Part = serde_json::from_str(json).unwrap();
    assert_eq!(&read, part);
    assert_eq!(serde_json::from_value::<Part>(serde_json::from_str(json).unwrap()).unwrap(), read);
    let written = serde_json::to_string(&read).unwrap();
    assert_eq!(serde_json::from_str::<Part>(&written).unwrap(), read);
}

#[track_caller]
fn check_error(json: &str, message: &str) {
    let error = serde_json::from_str::<Part>(json).unwrap_err().to_string();
    assert!(error.starts_with(message), "{error}");
}

/// What a request with this part is refused for; nothing if it is taken.
#[track_caller]
fn check_sent(json: &str, fault: &str) {
    let request = format!(
        r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"first"}},{json}]}}}}"#
    );
    let read = serde_json::from_str::<SendMessageRequest>(&request).map_err(|e| e.to_string());
    let error = read.err().unwrap_or_default();
    let found =
        error.trim_start_matches("`message.parts[1]").trim_start_matches(['`', ':', ' ', '.']);
    assert!(found.starts_with(fault) && found.is_empty() == fault.is_empty(), "{error}");
}

fn odd(content: PartContent, extra: Value) -> Part {
    let Value::Object(extra) = extra else { panic!("{extra}") };
    Part { extra, ..Part::new(content) }
}

#[test]
fn presence_is_what_counts() {
    check(r#"{"text":""}"#, &Part::text(""));
    check(r#"{"raw":""}"#, &Part::new(PartContent::Raw(Bytes::new())));
    check(r#"{"data":null}"#, &Part::data(Value::Null));
    check(r#"{"data":false}"#, &Part::data(false));
    check(r#"{"data":[]}"#, &Part::data(json!([])));
    check(r#"{"url":""}"#, &Part::url(""));
}

#[test]
fn null_is_absent_except_as_data() {
    check(r#"{"text":null,"raw":null,"url":"u","filename":null,"metadata":null}"#, &Part::url("u"));
    check(r#"{"text":null}"#, &odd(PartContent::Unknown, json!({})));
    check_sent(r#"{"text":"t","raw":null,"url":null}"#, "");
    check_sent(r#"{"text":"t","data":null}"#, "only one of `text` and `data` may be given");
    check_sent(r#"{"text":null}"#, "exactly one of `text`, `raw`, `url`, `data` is needed");
}

#[test]
fn part_without_content_is_readable_and_cannot_be_sent() {
    let json = r#"{"stream":"s","filename":"f"}"#;
    check(json, &odd(PartContent::Unknown, json!({"stream": "s"})).with_filename("f"));
    check_sent(json, "exactly one of `text`, `raw`, `url`, `data` is needed");
    check_sent("{}", "exactly one of `text`, `raw`, `url`, `data` is needed");
    check_error("[]", "invalid type");
}

#[test]
fn of_several_kinds_of_content_the_first_counts_and_the_rest_is_kept() {
    let text = |extra| odd(PartContent::Text("a".to_owned()), extra);
    let json = r#"{"text":"a","url":"b","raw":"AQID","data":{"n":1}}"#;
    check(json, &text(json!({"url": "b", "raw": "AQID", "data": {"n": 1}})));
    check_sent(json, "only one of `text` and `raw` may be given");
    check(r#"{"text":"a","data":null,"url":null}"#, &text(json!({"data": null})));
    check(r#"{"data":1,"url":"b","text":"a"}"#, &text(json!({"url": "b", "data": 1})));
    check_sent(r#"{"url":"a","text":"b"}"#, "only one of `text` and `url` may be given");
    check_error(r#"{"text":"a","text":"b"}"#, "`text`: given twice");
}

#[test]
fn broken_base64_is_kept_as_it_came() {
    for text in ["@@@", "A"] {
        let json = json!({"raw": text, "filename": "f"}).to_string();
        check(&json, &odd(PartContent::Unknown, json!({"raw": text})).with_filename("f"));
        check_sent(&json, "raw`: Invalid");
    }
    check(r#"{"raw":"@@@","text":"a"}"#, &odd(Part::text("a").content, json!({"raw": "@@@"})));
    check_error(r#"{"raw":[1]}"#, "`raw`: ");
}

#[test]
fn empty_strings_beside_the_content_read_as_absent() {
    check(r#"{"text":"t","filename":"","mediaType":""}"#, &Part::text("t"));
}

#[test]
fn names_in_snake_case_are_read() {
    let part = Part::raw(vec![1, 2, 3], "image/png", "a.png");
    check(r#"{"raw":"AQID","media_type":"image/png","filename":"a.png"}"#, &part);
    assert_eq!(
        serde_json::to_value(&part).unwrap(),
        json!({"raw": "AQID", "mediaType": "image/png", "filename": "a.png"})
    );
}

#[test]
fn base64_is_read_in_all_its_dialects_and_written_in_one() {
    let part = Part::new(PartContent::Raw(Bytes::from_static(&[0xfb, 0xff, 0xfe, 0xff])));
    for text in ["+//+/w==", "+//+/w", "-__-_w==", "-__-_w"] {
        check(&format!(r#"{{"raw":"{text}"}}"#), &part);
    }
    check(r#"{"raw":"\u002b//+/w=="}"#, &part);
    assert_eq!(serde_json::to_string(&part).unwrap(), r#"{"raw":"+//+/w=="}"#);
}

#[test]
fn unknown_members_survive() {
    let json = r#"{"kind":"text","text":"t","x":{"deep":[1,null]}}"#;
    let part: Part = serde_json::from_str(json).unwrap();
    assert_eq!(part.extra, *json!({"kind": "text", "x": {"deep": [1, null]}}).as_object().unwrap());
    assert_eq!(serde_json::to_value(&part).unwrap(), serde_json::from_str::<Value>(json).unwrap());
}

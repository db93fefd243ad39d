use serde_json::json;

use super::*;

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
    check_error(r#"{"text":"t","data":null}"#, "only one of `text` and `data` may be given");
    check_error(r#"{"text":null}"#, "exactly one of `text`, `raw`, `url`, `data` is needed");
}

#[test]
fn none_or_two_kinds_of_content_are_refused_by_name() {
    check_error(
        r#"{"mediaType":"text/plain"}"#,
        "exactly one of `text`, `raw`, `url`, `data` is needed",
    );
    check_error(r#"{"text":"a","url":"b"}"#, "only one of `text` and `url` may be given");
    check_error(r#"{"text":"a","text":"b"}"#, "only one of `text` and `text` may be given");
    check_error("[]", "invalid type");
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
    check_error(r#"{"raw":"@@@"}"#, "`raw`: ");
    check_error(r#"{"raw":"A"}"#, "`raw`: ");
    check_error(r#"{"raw":[1]}"#, "`raw`: ");
}

#[test]
fn unknown_members_survive() {
    let json = r#"{"kind":"text","text":"t","x":{"deep":[1,null]}}"#;
    let part: Part = serde_json::from_str(json).unwrap();
    assert_eq!(part.extra, *json!({"kind": "text", "x": {"deep": [1, null]}}).as_object().unwrap());
    assert_eq!(serde_json::to_value(&part).unwrap(), serde_json::from_str::<Value>(json).unwrap());
}

//! How much memory reading takes: documents as large as a transport takes them, or large enough, made of as much as fits
//! into them.

use std::{
    fmt::Write as _,
    sync::{Mutex, PoisonError},
};

use peak_alloc::PeakAlloc;
use volcanic_a2a_types::{
    A2aErrorKind, AgentCard, FromWire, HttpError, ListTaskPushNotificationConfigsResponse,
    ListTasksResponse, PartContent, RpcError, RpcOutcome, RpcRequest, RpcResponse,
    SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskPushNotificationConfig,
    WireLimits, v03,
};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;
/// Tests of one process must not count each other's memory.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;
/// The largest answer of a call: two files of ten mebibytes in base64, and four more.
const ANSWER: usize = 10 * MIB * 8 / 3 + 4 * MIB;
/// What is read as a large document is, and no larger, as that takes time.
const LONG: usize = 8 * MIB + MIB / 4;
/// What suffices to be many times as much in memory.
const MANY: usize = 3 * MIB / 2;
/// More than any room of a document takes of one string.
const NOTICED: usize = 9 * MIB / 2;
/// The largest card.
const CARD: usize = MIB;
/// What may be allocated beside the document when it is not text.
const STRUCTURE: usize = 12 * MIB;
/// What may be allocated beside the document and one copy of its text.
const SLACK: usize = 2 * MIB;

/// A document of `size` bytes: as many items between `before` and `after` as fit. `$` in an item is its number.
fn filled(size: usize, before: &str, item: &str, after: &str) -> String {
    let room = size - before.len() - after.len();
    let items = if item.contains('$') {
        let mut items = String::with_capacity(room);
        for number in 0.. {
            let item = item.replace('$', &number.to_string());
            if items.len() + item.len() + 1 > room {
                break;
            }
            items.push_str(&item);
            items.push(',');
        }
        items
    } else {
        format!("{item},").repeat(room / (item.len() + 1))
    };
    let json = format!("{before}{}{after}", items.trim_end_matches(','));
    assert!(json.len() > size - 1000, "{} of {size}", json.len());
    json
}

/// Reads and measures: what came of it, and the most that was allocated at a time beside what there was before.
fn measured<T>(read: impl FnOnce() -> T) -> (T, usize) {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let value = read();
    (value, HEAP.peak_usage() - before)
}

#[track_caller]
fn check<T>(name: &str, limit: usize, read: impl FnOnce() -> T) -> T {
    let (value, peak) = measured(read);
    println!("{name}: {} KiB", peak >> 10);
    assert!(peak < limit, "{name} takes {} MiB, more than {} MiB", peak / MIB, limit / MIB);
    value
}

fn alone() -> impl Drop {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer<T: FromWire>(json: &str) -> T {
    T::from_wire(json, WireLimits::Answer).unwrap()
}

const TASK: &str = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"#;
const PARTS: &str = r#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":["#;

#[track_caller]
fn check_task(name: &str, before: &str, item: &str, after: &str) -> Task {
    let json = filled(MANY, before, item, after);
    check(name, STRUCTURE, || answer(&json))
}

#[test]
fn many_parts_cost_no_more_than_their_text() {
    let _alone = alone();
    for item in [
        r#"{"text":""}"#,
        "{}",
        r#"{"data":0}"#,
        r#"{"url":""}"#,
        r#"{"raw":""}"#,
        r#"{"filename":"f"}"#,
        r#"{"text":"","metadata":{"a":1}}"#,
        r#"{"text":"","x":{"y":{"z":[]}}}"#,
        r#"{"":""}"#,
        r#"{"text":"","metadata":{"a":[1,2,3,[[]]]}}"#,
        r#"{"data":{"a":1},"url":"u","x":"y"}"#,
    ] {
        let is_data = item.starts_with(r#"{"data"#);
        let json = filled(MANY, PARTS, item, "]}]}");
        let limit = if is_data { MANY + STRUCTURE } else { STRUCTURE };
        let task: Task = check(item, limit, || answer(&json));
        assert_eq!((task.id.as_str(), task.artifacts.len()), ("t", 1), "{item}");
    }
}

#[test]
fn files_beyond_those_kept_are_counted_and_their_text_is_kept() {
    let _alone = alone();
    // As long as the largest answer, which has the least room.
    let item = r#"{"raw":"QQ==","filename":"$.txt"},{"text":"$;"}"#;
    let mut json = filled(2 * MANY, PARTS, item, "]}]}");
    json.push_str(&" ".repeat(ANSWER - json.len()));
    let files = json.matches("\"raw\"").count();
    let task: Task = check("files and texts", STRUCTURE, || answer(&json));
    let artifact = &task.artifacts[0];
    let kept =
        artifact.parts.iter().filter(|part| matches!(part.content, PartContent::Raw(_))).count();
    assert!(kept > 20, "{kept}");
    assert_eq!(kept + artifact.omitted.files, files);
    let texts: String = artifact.parts.iter().filter_map(|part| part.as_text()).collect();
    let mut expected = String::new();
    for number in 0..files {
        write!(expected, "{number};").unwrap();
    }
    assert!(texts == expected, "{} of {} bytes", texts.len(), expected.len());
}

#[test]
fn many_artifacts_cost_no_more_than_their_text() {
    let _alone = alone();
    let artifacts = format!(r#"{TASK}"artifacts":["#);
    for item in [
        r#"{"artifactId":"a$","parts":[{"text":""}]}"#,
        r#"{"artifactId":"a"}"#,
        r#"{"artifactId":"a","parts":[{"raw":""}]}"#,
        r#"{"artifactId":"a","metadata":{"a":{}},"extensions":["x"]}"#,
    ] {
        check_task(item, &artifacts, item, "]}");
    }
    let json = filled(MANY, &artifacts, r#"{"artifactId":"a$","parts":[{"text":"$"}]}"#, "]}");
    let task: Task = check("artifacts with text", MANY + STRUCTURE, || answer(&json));
    let lines: Vec<&str> = task
        .artifacts
        .iter()
        .flat_map(|artifact| &artifact.parts)
        .flat_map(|part| part.as_text().unwrap().split('\n'))
        .collect();
    let numbered = lines.iter().enumerate().all(|(number, line)| *line == number.to_string());
    assert!(numbered && lines.len() == json.matches("artifactId").count(), "{}", lines.len());
}

#[test]
fn long_histories_and_free_form_values_are_left_out() {
    let _alone = alone();
    let message = r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":""}]}"#;
    let history = check_task("history", &format!(r#"{TASK}"history":["#), message, "]}");
    assert!(history.omitted.others > 10_000 && history.history.len() > 100);
    let parts = format!(r#"{TASK}"history":[{{"messageId":"m","role":1,"parts":["#);
    check_task("parts of the history", &parts, r#"{"text":""}"#, "]}]}");
    let said = r#"{"id":"t","status":{"state":3,"message":{"messageId":"m","role":2,"parts":["#;
    check_task("parts of the status", said, r#"{"text":""}"#, "]}}}");
    for (name, before, item, after) in [
        ("metadata", r#""metadata":{"#, r#""$":{}"#, "}}"),
        ("metadata of one member", r#""metadata":{"a":{"#, r#""$":0"#, "}}}"),
        ("a list in the metadata", r#""metadata":{"a":["#, "0", "]}}"),
        ("lists in the metadata", r#""metadata":{"a":["#, "[[],{}]", "]}}"),
        ("objects in the metadata", r#""metadata":{"a":["#, r#"{"":[]}"#, "]}}"),
        ("unknown members", "", r#""x$":0"#, "}"),
        ("an unknown list", r#""x":["#, r#""y""#, "]}"),
        ("extensions", r#""artifacts":[{"artifactId":"a","extensions":["#, r#""e""#, "]}]}"),
    ] {
        let task = check_task(name, &format!("{TASK}{before}"), item, after);
        assert!(
            task.omitted.others > 0 || !task.artifacts.is_empty(),
            "{name}: {:?}",
            task.omitted
        );
    }
}

#[test]
fn content_that_is_as_long_as_the_document_is_there_once() {
    let _alone = alone();
    let long = LONG - 300;
    let whole = |text: &str| format!(r#"{PARTS}{{"{text}"}}]}}]}}"#);
    let plain = whole(&format!(r#"text":"{}"#, "x".repeat(long)));
    let task: Task = check("plain text", LONG + SLACK, || answer(&plain));
    assert_eq!(task.artifacts[0].parts[0].as_text().map(str::len), Some(long));
    drop((task, plain));
    let lines = whole(&format!(r#"text":"{}"#, r"line\u00e9\n".repeat(long / 12)));
    let task: Task = check("text with escapes", LONG + SLACK, || answer(&lines));
    assert_eq!(task.artifacts[0].parts[0].as_text(), Some("lineé\n".repeat(long / 12).as_str()));
    drop((task, lines));
    let file = whole(&format!(r#"raw":"{}"#, "abcd".repeat(long / 4)));
    let task: Task = check("a file", LONG / 4 * 3 + SLACK, || answer(&file));
    drop((task, file));
    let file = whole(&format!(r#"raw":"{}=="#, r"Pz8\/".repeat(long / 5) + "PA"));
    let task: Task = check("a file with escapes", LONG / 4 * 3 + SLACK, || answer(&file));
    let PartContent::Raw(bytes) = &task.artifacts[0].parts[0].content else { panic!("no file") };
    assert!(bytes.len() == long / 5 * 3 + 1 && bytes.ends_with(b"???<"), "{}", bytes.len());
    drop((task, file));
    for character in ["é", "€", "😀"] {
        // What is no base64 stays a member of the part.
        let text = character.repeat(long / character.len());
        let file = whole(&format!(r#"raw":"\/{text}"#));
        let task: Task = check("no file", 2 * LONG + SLACK, || answer(&file));
        let part = &task.artifacts[0].parts[0];
        assert_eq!(part.content, PartContent::Unknown);
        let kept = part.extra["raw"].as_str().unwrap();
        assert!(kept.strip_prefix('/') == Some(&text), "{} bytes", kept.len());
    }
    let zeros = filled(MANY, &format!(r#"{PARTS}{{"data":["#), "0", "]}]}]}");
    let task: Task = check("a list as data", MANY + SLACK / 2, || answer(&zeros));
    drop((task, zeros));
    let spaced = filled(MANY, &format!(r#"{PARTS}{{"data":["#), " 0 ", "]}]}]}");
    let task: Task = check("a spaced list as data", MANY + SLACK / 2, || answer(&spaced));
    let PartContent::Data(data) = &task.artifacts[0].parts[0].content else { panic!("no data") };
    assert!(data.as_str().starts_with("[0,0,0,") && data.as_str().len() < MANY);
}

#[test]
fn long_names_and_wrong_types_are_not_copied() {
    let _alone = alone();
    let long = "x".repeat(NOTICED);
    let escaped = r"\n".repeat(NOTICED / 2);
    for text in [&long, &escaped] {
        for (name, json) in [
            ("id", format!(r#"{{"id":"{text}","status":{{}}}}"#)),
            ("name", format!(r#"{TASK}"artifacts":[{{"artifactId":"a","name":"{text}"}}]}}"#)),
            ("member", format!(r#"{TASK}"{text}":1}}"#)),
            ("member of metadata", format!(r#"{TASK}"metadata":{{"{text}":1}}}}"#)),
            ("metadata", format!(r#"{TASK}"metadata":{{"a":"{text}"}}}}"#)),
            ("state", format!(r#"{{"id":"t","status":{{"state":"{text}"}}}}"#)),
            ("artifacts", format!(r#"{TASK}"artifacts":"{text}"}}"#)),
            ("artifact", format!(r#"{TASK}"artifacts":["{text}"]}}"#)),
            ("part", format!(r#"{PARTS}"{text}"]}}]}}"#)),
            ("status", format!(r#"{{"id":"t","status":"{text}"}}"#)),
            ("timestamp", format!(r#"{{"id":"t","status":{{"timestamp":"{text}"}}}}"#)),
            ("base64", format!(r#"{PARTS}{{"raw":"{text}","filename":"f"}}]}}]}}"#)),
            ("task", format!("\"{text}\"")),
        ] {
            // The parser keeps a copy of a text with escapes while it reads it.
            let copies = usize::from(text == &escaped || name == "base64");
            let limit = copies * NOTICED + SLACK;
            let (read, peak) = measured(|| Task::from_wire(&json, WireLimits::Answer));
            println!("{name}: {} KiB, {}", peak >> 10, read.is_ok());
            assert!(peak < limit, "{name} takes {} MiB", peak / MIB);
            if let Err(error) = read {
                assert!(error.to_string().len() < 1000, "{name}");
            }
        }
    }
}

#[test]
fn answers_of_every_kind_are_bounded() {
    let _alone = alone();
    let message =
        filled(MANY, r#"{"message":{"messageId":"m","role":2,"parts":["#, r#"{"text":""}"#, "]}}");
    check("a message", STRUCTURE, || answer::<SendMessageResponse>(&message));
    check("an event with a message", STRUCTURE, || answer::<StreamResponse>(&message));
    let chunk = filled(
        MANY,
        r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":["#,
        r#"{"text":""}"#,
        "]}}}",
    );
    check("an event with a chunk", STRUCTURE, || answer::<StreamResponse>(&chunk));
    let tasks = filled(MANY, r#"{"tasks":["#, r#"{"id":"t","status":{}}"#, "]}");
    let page: ListTasksResponse = check("a list of tasks", STRUCTURE, || answer(&tasks));
    assert!(page.tasks.len() > 500);
    let configs = filled(MANY, r#"{"configs":["#, r#"{"url":"u","token":"t"}"#, "]}");
    check("a list of webhooks", STRUCTURE, || {
        answer::<ListTaskPushNotificationConfigsResponse>(&configs)
    });
    for (name, before, item, after) in [
        ("skills", r#""skills":["#, "{}", "]}"),
        ("tags", r#""skills":[{"tags":["#, r#""""#, "]}]}"),
        (
            "interfaces",
            r#""supportedInterfaces":["#,
            r#"{"url":"u","protocolBinding":"b","protocolVersion":"1.0"}"#,
            "]}",
        ),
        ("schemes", r#""securitySchemes":{"#, r#""$":{}"#, "}}"),
        ("requirements", r#""securityRequirements":["#, r#"{"schemes":{"a":{}}}"#, "]}"),
        ("parameters", r#""capabilities":{"extensions":[{"params":{"#, r#""$":{"":{}}"#, "}}]}}"),
        ("signatures", r#""signatures":["#, r#"{"header":{"":0}}"#, "]}"),
    ] {
        let json = filled(CARD, &format!(r#"{{"name":"n",{before}"#), item, after);
        check(name, STRUCTURE, || v03::read_card(&json).unwrap());
        let old = filled(
            CARD,
            &format!(r#"{{"name":"n","url":"https://a.example",{before}"#),
            item,
            after,
        );
        let _: Result<AgentCard, _> = check(name, 2 * STRUCTURE, || v03::read_card(&old));
    }
}

#[test]
fn errors_are_bounded() {
    let _alone = alone();
    let info = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"#;
    for (name, before, item, after) in [
        ("data", r#""data":["#.to_owned(), "{}", "]"),
        ("data members", r#""data":{"#.to_owned(), r#""$":0"#, "}"),
        ("details", format!(r#""data":[{info}"#), r#""$":"v""#, "}}]"),
    ] {
        let before =
            format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32001,"message":"no",{before}"#);
        let json = filled(MANY, &before, item, &format!("{after}}}}}"));
        let error: RpcError = check(name, STRUCTURE, || {
            match RpcResponse::decode(json.as_bytes()).unwrap().outcome {
                RpcOutcome::Error(error) => error,
                RpcOutcome::Result(_) => panic!("no error"),
            }
        });
        assert_eq!(
            (error.message.as_str(), error.kind().and_then(A2aErrorKind::rpc_code)),
            ("no", Some(-32001))
        );
    }
    let json = filled(
        MANY,
        &format!(r#"{{"error":{{"code":404,"message":"no","details":[{info}"#),
        r#""$":"v""#,
        "}}]}}",
    );
    check("details over HTTP", STRUCTURE, || HttpError::decode(404, json.as_bytes()));
    let long = "x".repeat(NOTICED);
    for json in [
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-1,"message":"{long}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":"{long}"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":"{long}","result":{{}}}}"#),
        format!(r#"{{"jsonrpc":"{long}","id":1,"result":{{}}}}"#),
        format!("\"{long}\""),
    ] {
        let decoded = check("a long member", SLACK, || {
            RpcResponse::decode(json.as_bytes()).map(|response| response.id)
        });
        assert!(decoded.is_err() || decoded.is_ok_and(|id| id == 1_u64.into()));
    }
}

#[test]
fn the_old_dialect_is_bounded_too() {
    let _alone = alone();
    let old = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"},"#;
    for (name, before, item, after) in [
        (
            "old parts",
            r#""artifacts":[{"artifactId":"a","parts":["#,
            r#"{"kind":"text","text":""}"#,
            "]}]}",
        ),
        (
            "old files",
            r#""artifacts":[{"artifactId":"a","parts":["#,
            r#"{"kind":"file","file":{"bytes":"QQ=="}}"#,
            "]}]}",
        ),
        (
            "old artifacts",
            r#""artifacts":["#,
            r#"{"artifactId":"a","parts":[{"kind":"text","text":""}]}"#,
            "]}",
        ),
        (
            "old history",
            r#""history":["#,
            r#"{"kind":"message","messageId":"m","role":"agent","parts":[]}"#,
            "]}",
        ),
        ("old metadata", r#""metadata":{"#, r#""$":{}"#, "}}"),
    ] {
        let json = filled(MANY, &format!("{old}{before}"), item, after);
        let task: Task = check(name, STRUCTURE, || v03::read_result(&json).unwrap());
        assert!(task.status.state.is_terminal());
        let files = json.matches("bytes").count();
        let kept = task
            .artifacts
            .iter()
            .flat_map(|artifact| &artifact.parts)
            .filter(|part| matches!(part.content, PartContent::Raw(_)))
            .count();
        let omitted: usize = task.artifacts.iter().map(|artifact| artifact.omitted.files).sum();
        assert_eq!(kept + omitted, files, "{name}");
        check(name, STRUCTURE, || v03::read_result::<SendMessageResponse>(&json).unwrap());
        check(name, STRUCTURE, || v03::read_event(&json).unwrap());
    }
    let configs = filled(MANY, "[", r#"{"taskId":"t","pushNotificationConfig":{"url":"u"}}"#, "]");
    check("old webhooks", STRUCTURE, || {
        v03::read_result::<ListTaskPushNotificationConfigsResponse>(&configs)
    })
    .unwrap_err();
    let config = filled(MANY, r#"{"url":"u","x":["#, "0", "]}");
    check("an old webhook", STRUCTURE, || v03::read_result::<TaskPushNotificationConfig>(&config))
        .unwrap_err();
}

#[test]
fn requests_are_refused_by_the_place_that_is_too_large() {
    let _alone = alone();
    let message = r#""message":{"messageId":"m","role":"ROLE_USER","parts":["#;
    for (place, before, item, after) in [
        ("message.parts", message.to_owned(), r#"{"text":""}"#, "]}}"),
        ("message.parts", message.to_owned(), r#"{"raw":"QQ=="}"#, "]}}"),
        ("message.parts[0].data", format!(r#"{message}{{"data":["#), "0", "]}]}}"),
        (
            "message.parts[0].metadata.a",
            format!(r#"{message}{{"text":"","metadata":{{"a":["#),
            "0",
            "]}}]}}",
        ),
        ("message.parts[0].x", format!(r#"{message}{{"text":"","x":{{"#), r#""$":0"#, "}}]}}"),
        (
            "message.extensions",
            r#""message":{"messageId":"m","role":1,"extensions":["#.to_owned(),
            r#""e""#,
            "]}}",
        ),
        ("metadata.a", r#""metadata":{"a":["#.to_owned(), r#"{"":[]}"#, "]}}"),
        (
            "configuration.acceptedOutputModes",
            r#""configuration":{"acceptedOutputModes":["#.to_owned(),
            r#""a""#,
            "]}}",
        ),
    ] {
        let is_data = place.ends_with("data");
        let size = if is_data { 5 * MIB } else { MANY };
        let json = filled(
            size,
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{{before}"#),
            item,
            &format!("{after}}}"),
        );
        let limit = if is_data { SLACK } else { STRUCTURE };
        let error = check(place, limit, || {
            RpcRequest::decode(json.as_bytes()).unwrap().params::<SendMessageRequest>().unwrap_err()
        });
        assert_eq!(error.code, -32602);
        let start = format!("Invalid parameters: `{place}`: ");
        assert!(error.message.starts_with(&start), "{place}: {}", error.message);
        let data = error.data.unwrap();
        assert_eq!(data[1]["fieldViolations"][0]["field"], place);
    }
    let long = "x".repeat(LONG - 300);
    for text in ["text", "url"] {
        let json = format!(r#"{{{message}{{"{text}":"{long}"}}]}}}}"#);
        let error = check(text, 4 * MIB + SLACK, || {
            SendMessageRequest::from_wire(&json, WireLimits::Request)
        })
        .unwrap_err();
        assert!(error.to_string().starts_with(&format!("`message.parts[0].{text}`: with this the request has more than 4194304 bytes of text")), "{error}");
    }
    let json = format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"x"}}"#);
    check("a long id", SLACK, || RpcRequest::decode(json.as_bytes()).unwrap_err());
    let json = format!(r#"{{"message":{{"messageId":"{long}"}}}}"#);
    let error = check("a long messageId", SLACK, || {
        SendMessageRequest::from_wire(&json, WireLimits::Request)
    })
    .unwrap_err();
    assert!(
        error.to_string().starts_with("`message.messageId`: longer than 65536 bytes"),
        "{error}"
    );
}

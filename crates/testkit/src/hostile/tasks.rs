//! Answers to calls, good and bad.

use serde_json::{Value, json};

use super::{
    HostileHeard, HostileProtocol, TaskFault,
    content::Content,
    dialect::{Dialect, Frame, items, nested, response, task_of},
};

/// The answer to a call that is not a stream.
pub(super) fn answer(
    dialect: Dialect,
    heard: &HostileHeard,
    is_slow: bool,
    fault: Option<&TaskFault>,
) -> Content {
    if let Some(fault) = fault {
        return spoilt(dialect, heard, fault);
    }
    let id = task_of(heard);
    let said = match heard.asks.as_str() {
        "SendMessage" | "GetTask" if is_slow => {
            dialect.answer(heard, &dialect.task(&id, "WORKING", Value::Null))
        }
        "ListTasks" => dialect.wrap(heard, &json!({"tasks": [dialect.done(&id)]})),
        "ListTaskPushNotificationConfigs" => dialect.wrap(heard, &json!({"configs": []})),
        _ => dialect.answer(heard, &dialect.done(&id)),
    };
    Content::of(said.to_string())
}

#[expect(clippy::too_many_lines, reason = "a table, with an arm for each fault")]
fn spoilt(dialect: Dialect, heard: &HostileHeard, fault: &TaskFault) -> Content {
    let id = task_of(heard);
    let whole = |task: &Value| Content::of(dialect.answer(heard, task).to_string());
    let around = |task: &Value| Frame::around(&dialect.answer(heard, task));
    let with_parts = |parts: Value| dialect.task(&id, "COMPLETED", response(&parts));
    let with = |name: &str, value: Value| {
        let mut task = dialect.done(&id);
        task[name] = value;
        task
    };
    match fault {
        TaskFault::DeepData(depth) => {
            around(&with_parts(json!([dialect.data(&"@".into())]))).with(nested(*depth))
        }
        TaskFault::DeepUnknown(depth) => around(&with("odd", "@".into())).with(nested(*depth)),
        TaskFault::Files(count) => {
            let artifact =
                json!({"artifactId": "a", "parts": [dialect.file("plum.txt", "cGx1bQ==")]});
            around(&dialect.task(&id, "COMPLETED", json!(["@"]))).with(items(&artifact, *count))
        }
        TaskFault::FileNames(names) => {
            let files: Vec<Value> = names
                .iter()
                .enumerate()
                .map(|(number, name)| dialect.file(name, &base64_of_number(number)))
                .collect();
            whole(&with_parts(files.into()))
        }
        TaskFault::LyingBase64 => whole(&with_parts(json!([
            dialect.text("read what can be read"),
            dialect.file("alphabet.txt", "!!!not base64!!!"),
            dialect.file("middle.txt", "cGx1=bQ="),
            dialect.file("padding.txt", "cGx1bQ===="),
            dialect.file("length.txt", "cGx1b"),
            dialect.file("bits.txt", "cGx1bR=="),
            dialect.file("right.txt", "cGx1bQ=="),
            dialect.file("bare.txt", "cGx1bQ"),
        ]))),
        TaskFault::LargeFile(size) => {
            let zeros = Content::of("\"").times("AAAA", size.div_ceil(3)).then("\"");
            around(&with_parts(json!([dialect.text("here"), dialect.file("large.bin", "@")])))
                .with(zeros)
        }
        TaskFault::EmptyParts(count) => {
            around(&with_parts(json!(["@"]))).with(items(&dialect.text(""), *count))
        }
        TaskFault::EmptyArtifacts(count) => {
            let artifact = json!({"artifactId": "a", "parts": [dialect.text("")]});
            around(&dialect.task(&id, "COMPLETED", json!(["@"]))).with(items(&artifact, *count))
        }
        TaskFault::Links(count) => around(&with_parts(json!(["@"])))
            .with(items(&dialect.link("https://plum.example/f"), *count)),
        TaskFault::History(count) => {
            let message =
                json!({"messageId": "m", "role": role(dialect), "parts": [dialect.text("")]});
            around(&with("history", json!(["@"]))).with(items(&message, *count))
        }
        TaskFault::Metadata(count) => around(&with("metadata", "@".into())).with(members(*count)),
        TaskFault::UnknownMembers(count) => {
            let members = Content::of("0").numbered(",\"", "\":0", *count);
            around(&with("odd", "@".into())).with(members)
        }
        TaskFault::DataItems(count) => {
            around(&with_parts(json!([dialect.data(&json!(["@"]))]))).with(items(&0.into(), *count))
        }
        TaskFault::DataObjects(count) => around(&with_parts(json!([dialect.data(&json!(["@"]))])))
            .with(items(&json!({}), *count)),
        TaskFault::LongText(size) => {
            let lines = Content::of("\"").times("plum\\n", size / 5).then("\"");
            around(&with_parts(json!([dialect.text("@")]))).with(lines)
        }
        TaskFault::LongLine(size) => {
            let text = Content::of("\"").times("plum ", size / 5).then("\"");
            around(&with_parts(json!([dialect.text("@")]))).with(text)
        }
        TaskFault::OtherRequest => {
            let mut answer = dialect.answer(heard, &dialect.done(&id));
            answer["id"] = "another".into();
            Content::of(answer.to_string())
        }
        TaskFault::OtherTask => whole(&dialect.done("another")),
        TaskFault::OtherContext => whole(&with("contextId", "another".into())),
        TaskFault::LongId(size) => {
            let long = Content::of("\"").times("i", *size).then("\"");
            around(&with("id", "@".into())).with(long)
        }
        TaskFault::ErrorDetails(count) => {
            error(dialect, heard, &json!("out of plums"), &json!(["@"]))
                .with(items(&json!({"@type": "x"}), *count))
        }
        TaskFault::LongError(size) => {
            let long = Content::of("\"").times("plum ", size / 5).then("\"");
            error(dialect, heard, &json!("@"), &json!([])).with(long)
        }
        TaskFault::ListItems(count) => {
            let (name, item) = match heard.asks.as_str() {
                "ListTasks" => ("tasks", dialect.task("t", "WORKING", Value::Null)),
                _ => ("configs", json!({"id": "c", "url": "https://plum.example/"})),
            };
            let list = if dialect.is_old() { json!(["@"]) } else { json!({name: ["@"]}) };
            Frame::around(&dialect.wrap(heard, &list)).with(items(&item, *count))
        }
        TaskFault::Repeated(count) => repeated(dialect, heard, &id, *count),
    }
}

/// The member that holds the answer, `count` times.
fn repeated(dialect: Dialect, heard: &HostileHeard, id: &str, count: u64) -> Content {
    let task = dialect.done(id);
    let answer = dialect.answer(heard, &task);
    let (before, member) = match (dialect.protocol, heard.asks.as_str()) {
        (HostileProtocol::HttpJson, "SendMessage") => (json!({"odd": 0}), json!({"task": task})),
        (HostileProtocol::HttpJson, _) => (json!({"id": id}), json!({"status": task["status"]})),
        (HostileProtocol::JsonRpc | HostileProtocol::OldJsonRpc, _) => {
            (json!({"jsonrpc": "2.0", "id": answer["id"]}), json!({"result": answer["result"]}))
        }
    };
    let inner = |object: &Value| {
        let text = object.to_string();
        text[1..text.len() - 1].to_owned()
    };
    let member = format!(",{}", inner(&member));
    Content::of(format!("{{{}", inner(&before))).times(member, count).then("}")
}

fn role(dialect: Dialect) -> &'static str {
    if dialect.is_old() { "agent" } else { "ROLE_AGENT" }
}

/// An object of so many members.
fn members(count: u64) -> Content {
    Content::of("{\"a\":0").numbered(",\"", "\":{}", count).then("}")
}

fn error(dialect: Dialect, heard: &HostileHeard, message: &Value, details: &Value) -> Frame {
    Frame::around(&match dialect.protocol {
        HostileProtocol::HttpJson => json!({"error": {
            "code": 400, "status": "FAILED_PRECONDITION", "message": message, "details": details,
        }}),
        HostileProtocol::JsonRpc | HostileProtocol::OldJsonRpc => json!({
            "jsonrpc": "2.0", "id": heard.body["id"],
            "error": {"code": -32603, "message": message, "data": details},
        }),
    })
}

/// The status of the answer to a call.
pub(super) fn status(protocol: HostileProtocol, fault: Option<&TaskFault>) -> &'static str {
    match (protocol, fault) {
        (HostileProtocol::HttpJson, Some(TaskFault::ErrorDetails(_) | TaskFault::LongError(_))) => {
            "400 Bad Request"
        }
        _ => "200 OK",
    }
}

/// Three letters and the number, in base64; decoded they are `<number>` on five digits and a blank.
fn base64_of_number(number: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = format!("{number:05} ");
    text.as_bytes()
        .chunks_exact(3)
        .flat_map(|three| {
            let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
            [18, 12, 6, 0].map(|shift| char::from(ALPHABET[bits >> shift & 63]))
        })
        .collect()
}

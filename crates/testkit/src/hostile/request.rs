//! Reads requests strictly: what a well-behaved client would not send is a complaint.

use std::{collections::BTreeMap, io};

use serde_json::Value;
use tokio::{io::AsyncReadExt as _, net::TcpStream};

use super::HostileProtocol;

/// The largest head taken, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// The largest body taken, in bytes.
const MAX_BODY: usize = 64 << 20;

/// A request as a hostile agent heard it.
#[derive(Debug, Clone)]
pub struct HostileHeard {
    /// `GET` or another verb.
    pub verb: String,
    /// The path with its query.
    pub path: String,
    /// Headers by name in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body; null if there is none, or none that is JSON.
    pub body: Value,
    /// What it asks for: `card`, or an operation by its name in A2A 1.0. Empty if that cannot be told.
    pub asks: String,
}

impl HostileHeard {
    /// Whether it asks for a stream.
    pub fn is_stream(&self) -> bool {
        matches!(self.asks.as_str(), "SubscribeToTask" | "SendStreamingMessage")
    }

    /// The id of the task it is about, if it names one.
    pub(super) fn task(&self) -> Option<&str> {
        if let Some(id) = self.body.pointer("/params/id").or(self.body.pointer("/params/taskId")) {
            return id.as_str();
        }
        let (_, rest) = self.path.split_once("/tasks/")?;
        rest.split(['?', ':', '/']).next()
    }
}

/// Reads one request; `None` when the client has closed the connection before it.
pub(super) async fn read(
    from: &mut TcpStream,
    protocol: HostileProtocol,
) -> io::Result<Option<(HostileHeard, Vec<String>)>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if bytes.len() > MAX_HEAD {
            return Err(io::Error::other("the head of the request is too large"));
        }
        if from.read_buf(&mut bytes).await? == 0 {
            return if bytes.is_empty() { Ok(None) } else { Err(cut()) };
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let line: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [verb, path, "HTTP/1.1"] = line[..] else {
        return Err(io::Error::other("the request is not HTTP/1.1"));
    };
    let mut complaints = Vec::new();
    let mut headers = BTreeMap::new();
    for header in lines {
        let (name, value) = header.split_once(':').unwrap_or((header, ""));
        let name = name.to_ascii_lowercase();
        if headers.insert(name.clone(), value.trim().to_owned()).is_some() {
            complaints.push(format!("header {name} comes twice"));
        }
    }
    let length = headers.get("content-length").map_or(Ok(0), |length| length.parse::<usize>());
    let length = length.map_err(io::Error::other)?.min(MAX_BODY);
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if from.read_buf(&mut body).await? == 0 {
            return Err(cut());
        }
    }
    if body.len() > length {
        complaints.push("a request follows before the last one is answered".to_owned());
    }
    let mut heard = HostileHeard {
        verb: verb.to_owned(),
        path: path.to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        asks: String::new(),
    };
    heard.asks = asked(&heard, protocol).unwrap_or_default();
    complain(&heard, !body.is_empty(), &mut complaints);
    Ok(Some((heard, complaints)))
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Which operation a request asks for.
fn asked(heard: &HostileHeard, protocol: HostileProtocol) -> Option<String> {
    let path = heard.path.split('?').next().unwrap_or_default();
    if heard.verb == "GET" && path == "/.well-known/agent-card.json" {
        return Some("card".to_owned());
    }
    let method = heard.body["method"].as_str();
    let name = match protocol {
        HostileProtocol::JsonRpc => method.filter(|_| path == "/rpc")?,
        HostileProtocol::OldJsonRpc => match method.filter(|_| path == "/rpc")? {
            "message/send" => "SendMessage",
            "message/stream" => "SendStreamingMessage",
            "tasks/get" => "GetTask",
            "tasks/cancel" => "CancelTask",
            "tasks/resubscribe" => "SubscribeToTask",
            "tasks/pushNotificationConfig/list" => "ListTaskPushNotificationConfigs",
            _ => return None,
        },
        HostileProtocol::HttpJson => {
            let path = path.strip_prefix("/rest/")?;
            match (heard.verb.as_str(), path.split_once('/').map_or(path, |(_, rest)| rest)) {
                ("POST", "message:send") => "SendMessage",
                ("POST", "message:stream") => "SendStreamingMessage",
                ("GET", "tasks") => "ListTasks",
                ("POST", task) if task.ends_with(":cancel") => "CancelTask",
                (_, task) if task.ends_with(":subscribe") => "SubscribeToTask",
                ("GET", task) if task.ends_with("/pushNotificationConfigs") => {
                    "ListTaskPushNotificationConfigs"
                }
                ("GET", task) if !task.contains('/') => "GetTask",
                _ => return None,
            }
        }
    };
    Some(name.to_owned())
}

fn complain(heard: &HostileHeard, has_body: bool, complaints: &mut Vec<String>) {
    let asks = &heard.asks;
    let mut wants = |is_so: bool, what: &str| {
        if !is_so {
            complaints.push(format!("{} {}: {what}", heard.verb, heard.path));
        }
    };
    let has = |name: &str| heard.headers.get(name).map(String::as_str);
    wants(!asks.is_empty(), "nothing here is asked for like that");
    wants(has("host").is_some(), "there is no host");
    wants(has("accept-encoding") == Some("identity"), "compressed answers are asked for");
    wants(has("a2a-version").is_some(), "there is no version");
    wants(has("accept").is_some(), "it does not say what it accepts");
    wants(has("expect").is_none() && has("upgrade").is_none(), "it wants another exchange");
    if has_body {
        let is_json = has("content-type").is_some_and(|kind| kind.ends_with("json"));
        wants(is_json && heard.body.is_object(), "its body is not JSON, or says so wrongly");
    }
    if asks == "card" {
        wants(has("x-api-key").is_none(), "the key came to the card");
    }
}

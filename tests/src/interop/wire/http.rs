//! HTTP/1.1 messages in recorded bytes.

/// A request or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// The request line or the status line.
    pub(super) first: String,
    headers: Vec<(String, String)>,
    /// Without the frame of chunks.
    pub(super) body: Vec<u8>,
    /// Whether the body came to its end.
    pub(super) is_whole: bool,
}

impl Message {
    /// A header, by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// The messages of one direction of a connection, the last one as far as it came.
pub(super) fn messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some((message, rest)) = message(bytes) {
        messages.push(message);
        bytes = rest;
    }
    messages
}

fn message(bytes: &[u8]) -> Option<(Message, &[u8])> {
    let (head, rest) = split(bytes, b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let first = lines.next()?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut message = Message { first, headers, body: Vec::new(), is_whole: true };
    let is_answer = message.first.starts_with("HTTP/");
    let rest = if message.header("transfer-encoding").is_some_and(|how| how.contains("chunked")) {
        chunked(&mut message, rest)
    } else {
        let length = message.header("content-length").and_then(|length| length.parse().ok());
        // An answer that says nothing about its length ends with the connection; a request has no body then.
        let length = length.unwrap_or(if is_answer { rest.len() } else { 0 });
        message.is_whole = rest.len() >= length;
        let (body, rest) = rest.split_at(length.min(rest.len()));
        body.clone_into(&mut message.body);
        rest
    };
    Some((message, rest))
}

/// Reads chunks to the last one or as far as they came, and returns what follows.
fn chunked<'b>(message: &mut Message, mut rest: &'b [u8]) -> &'b [u8] {
    loop {
        message.is_whole = false;
        let Some((size, after)) = split(rest, b"\r\n") else { return &[] };
        let size = String::from_utf8_lossy(size);
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else { return &[] };
        let came = size.min(after.len());
        message.body.extend_from_slice(&after[..came]);
        let Some(after) = after[came..].strip_prefix(b"\r\n") else { return &[] };
        rest = after;
        if size == 0 {
            message.is_whole = true;
            return rest;
        }
    }
}

fn split<'b>(bytes: &'b [u8], at: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let place = bytes.windows(at.len()).position(|window| window == at)?;
    Some((&bytes[..place], &bytes[place + at.len()..]))
}

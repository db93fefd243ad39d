//! What is exchanged with an agent, said on standard error as it happens. Keys are masked in it.

use std::{fmt::Write as _, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, Request, Response, Uri};
use http_body::Frame;
use http_body_util::StreamBody;
use volcanic_a2a_client::KeyMask;
use volcanic_base::with_causes;
use volcanic_net::{CallKind, NetBody, NetError, Transport};

use crate::{output::note, screen::visible};

/// How much of a line is shown, in bytes.
const LINE: usize = 64 << 10;

/// A transport that says what it carries.
#[derive(Debug)]
pub(super) struct Traced {
    inner: Arc<dyn Transport>,
    mask: Arc<KeyMask>,
    /// Whether queries may be shown: the address of an agent can have a secret in its own.
    shows_queries: bool,
}

impl Traced {
    pub(super) fn new(inner: Arc<dyn Transport>, mask: Arc<KeyMask>, shows_queries: bool) -> Self {
        Self { inner, mask, shows_queries }
    }

    fn request(&self, request: &Request<Bytes>) -> String {
        let mut text = format!("{} {}", request.method(), self.shown(request.uri()));
        push_headers(&mut text, request.headers());
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(request.body()));
        text
    }

    fn shown(&self, uri: &Uri) -> String {
        let text = uri.to_string();
        match text.split_once('?') {
            Some((address, _)) if !self.shows_queries => format!("{address}?***"),
            Some(_) | None => text,
        }
    }
}

#[async_trait]
impl Transport for Traced {
    async fn send(
        &self,
        request: Request<Bytes>,
        kind: CallKind,
    ) -> Result<Response<NetBody>, NetError> {
        say("> ", &self.mask, self.request(&request));
        let answer = self.inner.send(request, kind).await;
        match &answer {
            Ok(response) => {
                let mut text = response.status().to_string();
                push_headers(&mut text, response.headers());
                say("< ", &self.mask, text);
            }
            Err(error) => say("! ", &self.mask, with_causes(error)),
        }
        answer.map(|response| response.map(|body| overheard(body, Arc::clone(&self.mask))))
    }
}

/// The same body, whose lines are said as they are read.
fn overheard(body: NetBody, mask: Arc<KeyMask>) -> NetBody {
    let lines = Lines { mask, line: Vec::new(), left_out: 0 };
    let chunks = stream::unfold((body, lines), async |(mut body, mut lines)| {
        match body.next_chunk().await {
            Some(chunk) => {
                if let Ok(chunk) = &chunk {
                    lines.take(chunk);
                }
                Some((chunk.map(Frame::data), (body, lines)))
            }
            None => None,
        }
    });
    NetBody::new(StreamBody::new(chunks))
}

/// Cuts what comes into lines; the last one is said in the end, whatever that is.
struct Lines {
    mask: Arc<KeyMask>,
    line: Vec<u8>,
    /// How many bytes of the line are too many to be shown.
    left_out: usize,
}

impl Lines {
    fn take(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let shown = piece.len().min(LINE - self.line.len());
            self.line.extend_from_slice(&piece[..shown]);
            self.left_out += piece.len() - shown;
            if piece.ends_with(b"\n") {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        let mut text = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            // The part of a key that stands right at the end is not known for one.
            text = format!("(a line of {} bytes)", LINE + left_out);
        }
        if !text.trim().is_empty() {
            say("< ", &self.mask, text);
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.end();
    }
}

fn push_headers(text: &mut String, headers: &HeaderMap) {
    for (name, value) in headers {
        let value = if value.is_sensitive() {
            "***".into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{name}: {value}");
    }
}

fn say(mark: &str, mask: &KeyMask, text: String) {
    let text = visible(&mask.text(text));
    let lines: Vec<String> =
        text.lines().filter(|line| !line.is_empty()).map(|line| format!("{mark}{line}")).collect();
    note(&lines.join("\n"));
}

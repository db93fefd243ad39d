//! What stands before the bodies: written for a request, read of an answer.

use std::mem::MaybeUninit;

use bytes::{Buf as _, Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version,
    header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING},
};
use httparse::Header;

use super::{
    Http1Error,
    framing::{Chunks, Framing},
};

/// How large the head of an answer may be, in bytes.
pub(super) const MAX_HEAD: usize = 64 << 10;
/// How many headers an answer may have.
const MAX_HEADERS: usize = 100;
/// How many empty lines may stand before a head, in bytes. Some servers let one stand there.
const MAX_EMPTY: usize = 64;
/// Room for a header, in bytes, so that most heads are written without growing.
const USUAL_HEADER: usize = 48;
/// Up to this size a body is written behind the head in one piece.
const SMALL_BODY: usize = 16 << 10;

/// The head of an answer.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    /// Whether the connection can be used again once the body has come.
    pub(super) keeps: bool,
}

/// Writes a request: its head, with the body behind it if that is small; else the body is returned. `host` and `defaults` are
/// headers that it gets unless it has them.
pub(super) fn write(
    request: &Request<Bytes>,
    host: Option<&HeaderValue>,
    defaults: &[(HeaderName, HeaderValue)],
) -> (Vec<u8>, Bytes) {
    let (method, headers, body) = (request.method(), request.headers(), request.body());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let is_small = body.len() <= SMALL_BODY;
    let room = (headers.len() + defaults.len() + 3) * USUAL_HEADER + path.len();
    let mut text = Vec::with_capacity(room + if is_small { body.len() } else { 0 });
    let mut say = |piece: &[u8]| text.extend_from_slice(piece);
    say(method.as_str().as_bytes());
    // A query may stand behind a host without a path.
    say(if path.starts_with('/') { b" " } else { b" /" });
    say(path.as_bytes());
    say(b" HTTP/1.1\r\n");
    let mut header = |name: &[u8], value: &[u8]| {
        for piece in [name, b": ", value, b"\r\n"] {
            say(piece);
        }
    };
    if let Some(host) = headers.get(HOST).or(host) {
        header(b"host", host.as_bytes());
    }
    let missing = defaults.iter().filter(|(name, _)| !headers.contains_key(name));
    for (name, value) in headers.iter().chain(missing.map(|(name, value)| (name, value))) {
        // How long the body is, is known here; that it is not in chunks, too.
        if !matches!(*name, HOST | CONTENT_LENGTH | TRANSFER_ENCODING) {
            header(name.as_str().as_bytes(), value.as_bytes());
        }
    }
    let expects_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
    if expects_body || !body.is_empty() {
        header(b"content-length", body.len().to_string().as_bytes());
    }
    say(b"\r\n");
    if !is_small {
        return (text, body.clone());
    }
    say(body);
    (text, Bytes::new())
}

/// Takes the head of an answer to `method` out of the buffer, if it is there. Of what was looked at before, `seen` bytes, no
/// more is read than is needed to see that it goes on.
///
/// # Errors
///
/// [`Http1Error`] if what is there cannot become one.
pub(super) fn read(
    buffer: &mut BytesMut,
    seen: usize,
    method: &Method,
) -> Result<Option<Head>, Http1Error> {
    let is_empty = |start: &[u8]| start.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
    if buffer.get(..MAX_EMPTY).is_some_and(is_empty) {
        return Err(Http1Error::NotHttp(httparse::Error::Version));
    }
    if seen > 0 && !has_end(buffer, seen) {
        return if buffer.len() > MAX_HEAD { Err(Http1Error::LargeHead) } else { Ok(None) };
    }
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut answer,
        buffer,
        &mut space,
    );
    let length = match parsed.map_err(Http1Error::NotHttp)? {
        httparse::Status::Complete(length) if length <= MAX_HEAD => length,
        httparse::Status::Partial if buffer.len() <= MAX_HEAD => return Ok(None),
        httparse::Status::Complete(_) | httparse::Status::Partial => {
            return Err(Http1Error::LargeHead);
        }
    };
    let code = answer.code.unwrap_or_default();
    let status = StatusCode::from_u16(code).map_err(|_| Http1Error::Status)?;
    let version = if answer.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut headers = HeaderMap::with_capacity(answer.headers.len());
    for header in &*answer.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_bytes(header.value);
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        } else {
            return Err(Http1Error::NotHttp(httparse::Error::HeaderName));
        }
    }
    let (framing, is_clear) = framing(answer.headers, status, version, method)?;
    let keeps = is_clear && framing != Framing::UntilClosed && is_kept(answer.headers, version);
    buffer.advance(length);
    Ok(Some(Head { status, version, headers, framing, keeps }))
}

/// Whether an empty line has come since `seen` bytes were looked at.
fn has_end(buffer: &[u8], seen: usize) -> bool {
    let new = buffer.get(seen.saturating_sub(3)..).unwrap_or_default();
    memchr::memchr_iter(b'\n', new).any(|at| {
        let rest = new.get(at + 1..).unwrap_or_default();
        rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
    })
}

/// How the body ends, and whether the head leaves no doubt about it.
fn framing(
    headers: &[Header<'_>],
    status: StatusCode,
    version: Version,
    method: &Method,
) -> Result<(Framing, bool), Http1Error> {
    let coding = values(headers, &TRANSFER_ENCODING).last();
    let is_empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if is_empty || status.is_informational() || method == Method::HEAD {
        // Whoever announces a body with a 204 may send it as well. The others announce what they leave out.
        let is_clear = status != StatusCode::NO_CONTENT
            || (coding.is_none() && matches!(content_length(headers), Ok(None | Some(0))));
        return Ok((Framing::Length(0), is_clear));
    }
    let Some(coding) = coding else {
        let length = content_length(headers)?;
        return Ok((length.map_or(Framing::UntilClosed, Framing::Length), true));
    };
    if version == Version::HTTP_10 {
        return Err(Http1Error::Length);
    }
    let last = coding.rsplit(|byte| *byte == b',').next().unwrap_or_default();
    if last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
        // Somebody on the way may have believed a length.
        let is_clear = values(headers, &CONTENT_LENGTH).next().is_none();
        return Ok((Framing::Chunked(Chunks::default()), is_clear));
    }
    Ok((Framing::UntilClosed, true))
}

/// What the headers say of the body's length, as often as they like but always the same.
fn content_length(headers: &[Header<'_>]) -> Result<Option<u64>, Http1Error> {
    let mut said = None;
    for value in values(headers, &CONTENT_LENGTH) {
        for number in value.split(|byte| *byte == b',') {
            let digits = number.trim_ascii();
            let number = Some(digits)
                .filter(|digits| digits.iter().all(u8::is_ascii_digit))
                .and_then(|digits| str::from_utf8(digits).ok()?.parse::<u64>().ok())
                .ok_or(Http1Error::Length)?;
            if said.is_some_and(|said| said != number) {
                return Err(Http1Error::Length);
            }
            said = Some(number);
        }
    }
    Ok(said)
}

/// Whether the other side wants to keep the connection.
fn is_kept(headers: &[Header<'_>], version: Version) -> bool {
    let says = |word: &str| {
        let words = |value: &[u8]| {
            let words = value.split(|byte| *byte == b',');
            words.map(<[u8]>::trim_ascii).any(|found| found.eq_ignore_ascii_case(word.as_bytes()))
        };
        values(headers, &CONNECTION).any(words)
    };
    !says("close") && (version == Version::HTTP_11 || says("keep-alive"))
}

/// What all headers of a name say.
fn values<'h>(headers: &'h [Header<'_>], name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let is_named = move |header: &&Header<'_>| header.name.eq_ignore_ascii_case(name.as_str());
    headers.iter().filter(is_named).map(|header| header.value)
}

#[cfg(test)]
mod tests;

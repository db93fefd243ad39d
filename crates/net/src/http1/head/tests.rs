use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// Reads a head that comes in such pieces, looking at it after each.
fn read_in(pieces: &[&[u8]], method: &Method) -> Result<Option<(Head, Vec<u8>)>, Http1Error> {
    let (mut buffer, mut seen) = (BytesMut::new(), 0);
    for (index, piece) in pieces.iter().enumerate() {
        buffer.extend_from_slice(piece);
        if let Some(head) = read(&mut buffer, seen, method)? {
            return Ok(Some((head, [&buffer[..], &pieces[index + 1..].concat()].concat())));
        }
        seen = buffer.len();
    }
    Ok(None)
}

fn head(text: &str) -> Result<Head, Http1Error> {
    Ok(read_in(&[text.as_bytes()], &Method::POST)?.expect("the head is whole").0)
}

#[track_caller]
fn framed(start: &str, headers: &str, framing: &Framing, keeps: bool) {
    let text = format!("{start}\r\n{headers}\r\n");
    let head = head(&text).unwrap();
    assert_eq!((&head.framing, head.keeps), (framing, keeps), "{text}");
}

#[test]
fn how_a_body_ends_is_found_as_the_specification_orders() {
    const OK: &str = "HTTP/1.1 200 OK";
    const OLD: &str = "HTTP/1.0 200 OK";
    let chunked = || Framing::Chunked(Chunks::default());
    framed(OK, "content-length: 5\r\n", &Framing::Length(5), true);
    framed(OK, "Content-Length:5\r\nCONTENT-LENGTH: 5\r\n", &Framing::Length(5), true);
    framed(OK, "content-length: 5, 5\r\n", &Framing::Length(5), true);
    framed(OK, "transfer-encoding: chunked\r\n", &chunked(), true);
    framed(OK, "transfer-encoding: gzip, Chunked\r\n", &chunked(), true);
    framed(OK, "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n", &chunked(), true);
    framed(OK, "transfer-encoding: gzip\r\n", &Framing::UntilClosed, false);
    framed(OK, "transfer-encoding: chunked, gzip\r\n", &Framing::UntilClosed, false);
    framed(OK, "", &Framing::UntilClosed, false);
    // Whoever sends both lets two readers see two answers: it is read as chunks, and the connection ends.
    framed(OK, "content-length: 5\r\ntransfer-encoding: chunked\r\n", &chunked(), false);
    framed(OK, "connection: close\r\ncontent-length: 5\r\n", &Framing::Length(5), false);
    framed(OK, "connection: x, Close\r\ncontent-length: 5\r\n", &Framing::Length(5), false);
    framed(
        OK,
        "connection: close\r\nconnection: keep-alive\r\ncontent-length: 5\r\n",
        &Framing::Length(5),
        false,
    );
    framed(OLD, "content-length: 5\r\n", &Framing::Length(5), false);
    framed(OLD, "connection: Keep-Alive\r\ncontent-length: 5\r\n", &Framing::Length(5), true);
    framed("HTTP/1.1 204 No Content", "", &Framing::Length(0), true);
    framed("HTTP/1.1 204 No Content", "content-length: 0\r\n", &Framing::Length(0), true);
    // Whoever announces a body that must not be may send it as well.
    framed("HTTP/1.1 204 No Content", "content-length: 5\r\n", &Framing::Length(0), false);
    framed("HTTP/1.1 204 No Content", "transfer-encoding: chunked\r\n", &Framing::Length(0), false);
    framed("HTTP/1.1 304 Not Modified", "", &Framing::Length(0), true);
    framed("HTTP/1.1 103", "", &Framing::Length(0), true);
    framed("HTTP/1.1 404", "content-length: 0\r\n", &Framing::Length(0), true);
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    let (head, _) = read_in(&[text.as_bytes()], &Method::HEAD).unwrap().unwrap();
    assert_eq!((head.framing, head.keeps), (Framing::Length(0), true));
}

#[test]
fn a_length_that_is_not_clear_is_an_error() {
    for header in [
        "content-length: 5\r\ncontent-length: 6\r\n",
        "content-length: 5, 6\r\n",
        "content-length: \r\n",
        "content-length: 5,\r\n",
        "content-length: +5\r\n",
        "content-length: -5\r\n",
        "content-length: 0x5\r\n",
        "content-length: 5 5\r\n",
        "content-length: 99999999999999999999\r\n",
    ] {
        let error = head(&format!("HTTP/1.1 200 OK\r\n{header}\r\n")).unwrap_err();
        assert!(matches!(error, Http1Error::Length), "{header} {error:?}");
    }
    let old = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    assert!(matches!(head(old), Err(Http1Error::Length)));
}

#[test]
fn what_is_no_head_is_an_error_at_once() {
    for text in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nname : space\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\0\r\n\r\n",
        "HTTP/1.1 200 OK\r\na: b\rc\r\n\r\n",
        "<html></html>",
        "{}",
    ] {
        let error = read_in(&[text.as_bytes()], &Method::POST).unwrap_err();
        assert!(matches!(error, Http1Error::NotHttp(_)), "{text:?} {error:?}");
        // What came is in no error: it may be a secret that is sent back.
        assert!(!format!("{error} {error:?}").contains(text.trim()), "{error:?}");
    }
    assert!(matches!(head("HTTP/1.1 099 Low\r\n\r\n"), Err(Http1Error::Status)));
}

#[test]
fn a_head_is_bounded_in_size_and_number() {
    let endless = format!("HTTP/1.1 200 OK\r\na: {}", "x".repeat(2 * MAX_HEAD));
    let pieces: Vec<&[u8]> = endless.as_bytes().chunks(1000).collect();
    for pieces in [&pieces[..], &[endless.as_bytes()]] {
        assert!(matches!(read_in(pieces, &Method::POST), Err(Http1Error::LargeHead)));
    }
    let whole = format!("{endless}\r\n\r\n");
    assert!(matches!(head(&whole), Err(Http1Error::LargeHead)));
    let many = |count: usize| {
        let mut text = "HTTP/1.1 200 OK\r\n".to_owned();
        for number in 0..count {
            write!(text, "h{number}: x\r\n").unwrap();
        }
        text + "content-length: 0\r\n\r\n"
    };
    assert_eq!(head(&many(MAX_HEADERS - 1)).unwrap().headers.len(), MAX_HEADERS);
    let error = head(&many(MAX_HEADERS)).unwrap_err();
    assert!(matches!(error, Http1Error::NotHttp(httparse::Error::TooManyHeaders)), "{error:?}");
}

#[test]
fn empty_lines_before_a_head_are_few() {
    let text = "\r\n".repeat(4) + "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    for piece in [1, 1000] {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(piece).collect();
        assert!(read_in(&pieces, &Method::POST).unwrap().is_some());
        // Each would let all before it be looked at again.
        let endless = "\r\n".repeat(100);
        let pieces: Vec<&[u8]> = endless.as_bytes().chunks(piece).collect();
        let error = read_in(&pieces, &Method::POST).unwrap_err();
        assert!(matches!(error, Http1Error::NotHttp(_)), "{error:?}");
    }
}

#[test]
fn headers_are_kept_as_they_came() {
    let text = "\r\nHTTP/1.1 207 Strange\r\nX-A: 1\r\nx-b:\t two \r\nX-a: 3\r\nempty:\r\n\r\nbody";
    let (head, rest) = read_in(&[text.as_bytes()], &Method::POST).unwrap().unwrap();
    assert_eq!((head.status.as_u16(), head.version), (207, Version::HTTP_11));
    let all: Vec<(&str, &str)> =
        head.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(all, [("x-a", "1"), ("x-a", "3"), ("x-b", "two"), ("empty", "")]);
    assert_eq!(rest, b"body");
}

#[track_caller]
fn written(request: http::request::Builder, body: &'static str, wanted: &str) {
    let request = request.body(Bytes::from(body)).unwrap();
    let host = HeaderValue::from_static("a.example:81");
    let (text, rest) = write(&request, Some(&host), &[]);
    assert_eq!((String::from_utf8(text).unwrap().as_str(), rest.len()), (wanted, 0));
}

#[test]
fn requests_are_written_with_host_and_length() {
    written(
        Request::get("http://user@a.example:81/b/c?d=%20"),
        "",
        "GET /b/c?d=%20 HTTP/1.1\r\nhost: a.example:81\r\n\r\n",
    );
    written(Request::get("http://a.example"), "", "GET / HTTP/1.1\r\nhost: a.example:81\r\n\r\n");
    written(
        Request::get("http://a.example?q"),
        "",
        "GET /?q HTTP/1.1\r\nhost: a.example:81\r\n\r\n",
    );
    written(
        Request::post("http://a.example/").header("x-a", "1").header("x-a", "2"),
        "body",
        "POST / HTTP/1.1\r\nhost: a.example:81\r\nx-a: 1\r\nx-a: 2\r\ncontent-length: 4\r\n\r\nbody",
    );
    for method in ["POST", "PUT", "PATCH"] {
        let wanted =
            format!("{method} / HTTP/1.1\r\nhost: a.example:81\r\ncontent-length: 0\r\n\r\n");
        written(Request::builder().method(method).uri("http://a.example/"), "", &wanted);
    }
    // How the body is framed is not for who asks to say.
    written(
        Request::delete("http://a.example/")
            .header("Host", "b.example")
            .header("Content-Length", "9")
            .header("Transfer-Encoding", "chunked"),
        "x",
        "DELETE / HTTP/1.1\r\nhost: b.example\r\ncontent-length: 1\r\n\r\nx",
    );
}

#[test]
fn what_a_request_does_not_say_itself_is_added() {
    let defaults = [
        (HeaderName::from_static("x-a"), HeaderValue::from_static("default")),
        (HeaderName::from_static("x-b"), HeaderValue::from_static("default")),
    ];
    let request =
        Request::get("http://a.example/").header("x-a", "own").body(Bytes::new()).unwrap();
    let (text, _) = write(&request, None, &defaults);
    let wanted = "GET / HTTP/1.1\r\nx-a: own\r\nx-b: default\r\n\r\n";
    assert_eq!(String::from_utf8(text).unwrap(), wanted);
}

#[test]
fn a_large_body_is_not_copied_behind_the_head() {
    let body = Bytes::from(vec![b'x'; SMALL_BODY + 1]);
    let request = Request::post("http://a.example/").body(body.clone()).unwrap();
    let (text, rest) = write(&request, None, &[]);
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "POST / HTTP/1.1\r\ncontent-length: 16385\r\n\r\n"
    );
    assert_eq!(rest.as_ptr(), body.as_ptr());
}

proptest! {
    #[test]
    fn however_it_is_cut_the_head_is_the_same(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ends in prop::sample::select(vec!["\r\n", "\n"]),
        behind in "[a-z\r\n]{0,4}",
    ) {
        let lines = ["HTTP/1.1 200 Fine", "a: b", "content-length: 7", "c:", "", ""];
        let text = lines.join(ends);
        let text = text + &behind;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> =
            cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
        let (head, rest) = read_in(&pieces, &Method::POST).unwrap().expect("whole");
        prop_assert_eq!(head.headers.len(), 3);
        prop_assert_eq!(head.framing, Framing::Length(7));
        prop_assert_eq!(rest, behind.as_bytes());
    }

    #[test]
    fn any_bytes_are_a_head_or_not(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..10),
    ) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let _ = read_in(&pieces, &Method::POST);
        let started = [&[&b"HTTP/1.1 200 OK\r\n"[..]][..], &pieces].concat();
        let _ = read_in(&started, &Method::POST);
    }
}

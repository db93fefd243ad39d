//! Answers that are too much, or that say when to come back.

use std::time::Duration;

use http::HeaderMap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use volcanic_net::{NetError, retry_after, retry_after_by_date};

use crate::server::{Server, client, get, send};

/// A server that answers with `head`, and then with `piece` until the client goes.
async fn server(head: &'static [u8], piece: &'static [u8]) -> Server {
    Server::raw(move |mut stream| async move {
        let mut seen = [0; 16];
        stream.read_exact(&mut seen).await.unwrap();
        stream.write_all(head).await.unwrap();
        while !piece.is_empty() && stream.write_all(piece).await.is_ok() {}
    })
    .await
}

#[tokio::test]
async fn announced_excess_is_refused_before_it_comes() {
    let server = server(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n", b"").await;
    let body = send(&client(), get(&server.url("/"))).await.unwrap().into_body();
    let error = body.collect(1000).await.unwrap_err();
    assert!(matches!(error, NetError::TooLarge { limit: 1000 }), "{error:?}");
}

#[tokio::test]
async fn body_without_an_end_is_read_up_to_the_limit() {
    for head in [
        &b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"[..],
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
    ] {
        let server = server(head, b"4\r\nmore\r\n").await;
        let body = send(&client(), get(&server.url("/"))).await.unwrap().into_body();
        let error = body.collect(100_000).await.unwrap_err();
        assert!(matches!(error, NetError::TooLarge { limit: 100_000 }), "{error:?}");
    }
}

#[tokio::test]
async fn headers_without_an_end_are_given_up() {
    for (head, piece) in [
        (&b"HTTP/1.1 200 OK\r\nx: "[..], &b"long"[..]),
        (&b"HTTP/1.1 200 OK\r\n"[..], &b"x: y\r\n"[..]),
        (&b"HTTP/1.1 200 "[..], &b"OK "[..]),
    ] {
        let server = server(head, piece).await;
        let error = send(&client(), get(&server.url("/"))).await.unwrap_err();
        assert!(matches!(error, NetError::Closed { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn compressed_body_comes_as_it_was_sent() {
    let answer =
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00";
    let server = server(answer, b"").await;
    let response = send(&client(), get(&server.url("/"))).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.into_body().collect(4).await.unwrap(), &b"\x1f\x8b\x08\x00"[..]);
}

/// The headers of an answer of 503 with these lines among them.
async fn busy(lines: &'static str) -> HeaderMap {
    let server = Server::raw(move |mut stream| async move {
        let mut seen = [0; 16];
        stream.read_exact(&mut seen).await.unwrap();
        let answer =
            format!("HTTP/1.1 503 Service Unavailable\r\n{lines}content-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    send(&client(), get(&server.url("/"))).await.unwrap().headers().clone()
}

#[tokio::test]
async fn moment_to_come_back_is_read_from_the_answer() {
    const DATE: &str = "date: Mon, 30 Nov 2026 12:00:00 GMT\r\n";
    let now = "2026-11-30T12:00:00Z".parse().unwrap();
    for (lines, expected) in [
        ("retry-after: 120\r\n", Some(Duration::from_mins(2))),
        ("retry-after:  7 \r\n", Some(Duration::from_secs(7))),
        ("retry-after: 0\r\n", None),
        ("retry-after: Mon, 30 Nov 2026 12:00:30 GMT\r\n", Some(Duration::from_secs(30))),
        ("retry-after: Sun, 29 Nov 2026 12:00:00 GMT\r\n", None),
        ("retry-after: 99999999999999999999999999\r\n", Some(Duration::MAX)),
        ("retry-after: soon\r\n", None),
        ("retry-after: -5\r\n", None),
        ("retry-after: \u{e9}\r\n", None),
        ("retry-after:\r\n", None),
        ("", None),
    ] {
        let headers = busy(lines).await;
        let pause = |found: Option<Duration>| found.filter(|pause| !pause.is_zero());
        assert_eq!(pause(retry_after(&headers, now)), expected, "{lines}");
        let mut dated = headers.clone();
        dated.insert("date", DATE["date: ".len()..].trim_end().parse().unwrap());
        assert_eq!(pause(retry_after_by_date(&dated)), expected, "{lines}");
    }
}

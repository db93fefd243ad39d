//! Which connection a request goes over, how long it lives, and how its death is noticed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, routing::get as on_get};
use futures::future::join_all;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::{mpsc, oneshot},
    time::timeout,
};
use volcanic_net::{CallKind, NetClient, NetConfig, NetError, Transport as _};

use crate::{
    server::{LIMIT, Server, client, get, send},
    tls::{tls_client, tls_server},
};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Reads one request without a body; `None` if the client has closed.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(read).unwrap())
}

async fn call(client: &NetClient, url: &str) -> Result<(), NetError> {
    send(client, get(url)).await?.into_body().collect(100).await.map(|_| ())
}

#[tokio::test]
async fn host_and_path_are_told_as_http_1_wants_them() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::raw(move |mut stream| {
        let tell = tell.clone();
        async move {
            while let Some(head) = request(&mut stream).await {
                tell.send(head).unwrap();
                stream.write_all(ANSWER).await.unwrap();
            }
        }
    })
    .await;
    let client = client();
    for (path, target) in [("/a/b?c=d%20e", "/a/b?c=d%20e"), ("", "/"), ("?q", "/?q")] {
        call(&client, &server.url(path)).await.unwrap();
        let head = told.recv().await.unwrap();
        let host = format!("host: {}\r\n", server.address);
        assert!(head.starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{head}");
        assert!(head.contains(&host), "{head}");
    }
    let mut named = get(&server.url("/"));
    named.headers_mut().insert("host", "other.example".parse().unwrap());
    send(&client, named).await.unwrap();
    let head = told.recv().await.unwrap();
    assert!(head.contains("host: other.example\r\n") && head.matches("host:").count() == 1);
}

#[tokio::test]
async fn idle_connection_is_closed_when_its_time_is_over() {
    let (tell, told) = oneshot::channel();
    let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
    let server = Server::raw(move |mut stream| {
        let tell = Arc::clone(&tell);
        async move {
            request(&mut stream).await.unwrap();
            stream.write_all(ANSWER).await.unwrap();
            assert_eq!(request(&mut stream).await, None);
            tell.lock().unwrap().take().unwrap().send(()).unwrap();
        }
    })
    .await;
    // Scaled down from four seconds.
    let idle_timeout = Duration::from_millis(50);
    let client = NetClient::new(NetConfig { idle_timeout, ..NetConfig::default() }).unwrap();
    call(&client, &server.url("/")).await.unwrap();
    timeout(LIMIT, told).await.unwrap().unwrap();
}

#[tokio::test]
async fn connection_that_the_server_closed_while_idle_is_not_used_again() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::raw(move |mut stream| {
        let tell = tell.clone();
        async move {
            request(&mut stream).await.unwrap();
            stream.write_all(ANSWER).await.unwrap();
            drop(stream);
            tell.send(()).unwrap();
        }
    })
    .await;
    let client = client();
    for _ in 0..20 {
        call(&client, &server.url("/")).await.unwrap();
        told.recv().await.unwrap();
        // The end of the connection is on its way through the kernel; a later look at the socket is behind it.
        TcpStream::connect(server.address).await.unwrap();
    }
}

#[tokio::test]
async fn connection_that_says_it_will_close_is_not_used_again() {
    let server = Server::raw(|mut stream| async move {
        request(&mut stream).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
        stream.write_all(answer).await.unwrap();
        // Open, but nobody answers here.
        std::future::pending::<()>().await;
    })
    .await;
    let client = client();
    for connections in 1..=3 {
        call(&client, &server.url("/")).await.unwrap();
        assert_eq!(server.connections(), connections);
    }
}

#[tokio::test]
async fn connection_with_something_behind_an_answer_is_closed_at_once() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::raw(move |mut stream| {
        let tell = tell.clone();
        async move {
            request(&mut stream).await.unwrap();
            stream.write_all(&[ANSWER, b"HTTP/1.1 200 OK\r\n"].concat()).await.unwrap();
            assert_eq!(request(&mut stream).await, None);
            tell.send(()).unwrap();
        }
    })
    .await;
    let idle_timeout = Duration::from_hours(1);
    let client = NetClient::new(NetConfig { idle_timeout, ..NetConfig::default() }).unwrap();
    call(&client, &server.url("/")).await.unwrap();
    timeout(LIMIT, told.recv()).await.unwrap().unwrap();
}

#[tokio::test]
async fn answer_that_is_not_read_to_its_end_closes_the_connection() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::raw(move |mut stream| {
        let tell = tell.clone();
        async move {
            request(&mut stream).await.unwrap();
            let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegun";
            stream.write_all(begun).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            tell.send(rest).unwrap();
        }
    })
    .await;
    let client = client();
    let mut body = send(&client, get(&server.url("/"))).await.unwrap().into_body();
    assert_eq!(body.next_chunk().await.unwrap().unwrap(), "begun");
    drop(body);
    assert_eq!(timeout(LIMIT, told.recv()).await.unwrap().unwrap(), b"");
}

#[tokio::test]
async fn request_that_is_given_up_closes_the_connection() {
    let (asked, mut was_asked) = mpsc::unbounded_channel();
    let (left, mut has_left) = mpsc::unbounded_channel();
    let server = Server::raw(move |mut stream| {
        let (asked, left) = (asked.clone(), left.clone());
        async move {
            request(&mut stream).await.unwrap();
            asked.send(()).unwrap();
            assert_eq!(request(&mut stream).await, None);
            left.send(()).unwrap();
        }
    })
    .await;
    let client = client();
    tokio::select! {
        answer = send(&client, get(&server.url("/"))) => panic!("{answer:?}"),
        () = async { was_asked.recv().await.unwrap() } => {}
    }
    timeout(LIMIT, has_left.recv()).await.unwrap().unwrap();
}

/// A request that is larger than what a connection takes while nobody reads.
fn large(url: &str) -> http::Request<bytes::Bytes> {
    http::Request::post(url).body(bytes::Bytes::from(vec![b'x'; 16 << 20])).unwrap()
}

/// A server that reads little of the first request, says `answer`, and then tells what else comes over that connection.
async fn half_listening(answer: &'static [u8]) -> (Server, mpsc::UnboundedReceiver<Vec<u8>>) {
    let (tell, told) = mpsc::unbounded_channel();
    let server = Server::raw(move |mut stream| {
        let tell = tell.clone();
        async move {
            let head = request(&mut stream).await.unwrap();
            if head.starts_with("GET") {
                stream.write_all(ANSWER).await.unwrap();
                return;
            }
            tell.send(head.into_bytes()).unwrap();
            stream.write_all(answer).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            tell.send(rest).unwrap();
        }
    })
    .await;
    (server, told)
}

#[tokio::test]
async fn request_that_is_given_up_half_way_is_not_gone_on_with() {
    let (server, mut told) = half_listening(b"").await;
    let (client, url) = (client(), server.url("/"));
    tokio::select! {
        answer = send(&client, large(&url)) => panic!("{answer:?}"),
        () = async { told.recv().await.map(drop).unwrap() } => {}
    }
    call(&client, &url).await.unwrap();
    let rest = timeout(LIMIT, told.recv()).await.unwrap().unwrap();
    assert!(rest.len() < 16 << 20 && rest.iter().all(|byte| *byte == b'x'));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn request_that_is_answered_half_way_is_not_followed_by_another() {
    for answer in [&b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..], ANSWER] {
        let (server, mut told) = half_listening(answer).await;
        let (client, url) = (client(), server.url("/"));
        let response = send(&client, large(&url)).await.unwrap();
        assert!(told.recv().await.is_some());
        timeout(LIMIT, response.into_body().collect(2)).await.unwrap().unwrap();
        call(&client, &url).await.unwrap();
        let rest = timeout(LIMIT, told.recv()).await.unwrap().unwrap();
        assert!(rest.iter().all(|byte| *byte == b'x'));
        assert_eq!(server.connections(), 2);
    }
}

#[tokio::test]
async fn calls_at_once_have_connections_of_their_own_and_later_ones_find_them() {
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    let gate = Arc::new(tokio::sync::Barrier::new(16));
    let router = Router::new().route(
        "/",
        on_get(move || {
            let (count, gate) = (Arc::clone(&count), Arc::clone(&gate));
            async move {
                gate.wait().await;
                count.fetch_add(1, Ordering::SeqCst);
                "ok"
            }
        }),
    );
    let server = Server::router(router).await;
    let (client, url) = (client(), server.url("/"));
    for round in 1..=4 {
        for done in join_all((0..16).map(|_| call(&client, &url))).await {
            done.unwrap();
        }
        assert_eq!((served.load(Ordering::SeqCst), server.connections()), (round * 16, 16));
    }
}

#[tokio::test]
async fn stream_of_small_pieces_comes_whole_and_in_order() {
    let server = Server::raw(|mut stream| async move {
        while request(&mut stream).await.is_some() {
            let mut answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            for number in 0..5000 {
                let piece = format!("{number};");
                answer.extend(format!("{:x}\r\n{piece}\r\n", piece.len()).bytes());
            }
            answer.extend(b"0\r\n\r\n");
            // Cut at odd places, so that pieces are incomplete when they are looked at.
            for part in answer.chunks(977) {
                stream.write_all(part).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
    let expected: Vec<String> = (0..5000).map(|number| format!("{number};")).collect();
    let expected = expected.concat();
    let client = client();
    for _ in 0..2 {
        let response = client.send(get(&server.url("/")), CallKind::Stream).await.unwrap();
        let body = timeout(LIMIT, response.into_body().collect(1 << 20)).await.unwrap().unwrap();
        assert!(body == expected.as_bytes());
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn large_request_goes_out_while_nobody_reads_the_answer_yet() {
    let router = Router::new()
        .route(
            "/",
            axum::routing::post(|body: axum::body::Bytes| async move { body.len().to_string() }),
        )
        .layer(axum::extract::DefaultBodyLimit::disable());
    let server = Server::router(router).await;
    let size = 8 << 20;
    let body = bytes::Bytes::from(vec![b'x'; size]);
    let request = http::Request::post(server.url("/")).body(body).unwrap();
    let answer = send(&client(), request).await.unwrap().into_body().collect(100).await.unwrap();
    assert_eq!(answer, size.to_string());
}

#[tokio::test]
async fn http_2_carries_many_exchanges_over_one_connection() {
    let router = Router::new().route(
        "/",
        on_get(|request: axum::extract::Request| async move {
            let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
            format!("{:?} {host}", request.version())
        }),
    );
    let (server, file) = tls_server(Some("h2"), move |stream| {
        let service = TowerToHyperService::new(router.clone());
        async move {
            let connection = auto::Builder::new(TokioExecutor::new());
            // It ends when the client goes.
            let _ = connection.serve_connection(TokioIo::new(stream), service).await;
        }
    })
    .await;
    let client = tls_client(&file, &NetConfig::default());
    let place = format!("localhost:{}", server.address.port());
    let url = format!("https://{place}/");
    let read = async || {
        let body = send(&client, get(&url)).await.unwrap().into_body();
        body.collect(100).await.unwrap()
    };
    assert_eq!(read().await, format!("HTTP/2.0 {place}"));
    for body in join_all((0..20).map(|_| read())).await {
        assert_eq!(body, format!("HTTP/2.0 {place}"));
    }
    assert_eq!(server.connections(), 1);
}

/// Reads the frames of an HTTP/2 connection, answers none of them, and tells each one's kind.
async fn hear_http_2(mut stream: impl AsyncRead + Unpin, tell: mpsc::UnboundedSender<u8>) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        let _ = tell.send(head[3]);
    }
}

#[tokio::test]
async fn http_2_connection_that_answers_no_ping_is_given_up() {
    const PING: u8 = 6;
    let (tell, mut told) = mpsc::unbounded_channel();
    let (server, file) = tls_server(Some("h2"), move |mut stream| {
        let tell = tell.clone();
        async move {
            // Empty settings.
            stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
            hear_http_2(stream, tell).await;
        }
    })
    .await;
    // Scaled down from 30 and 15 seconds.
    let config = NetConfig {
        ping_interval: Duration::from_millis(50),
        ping_timeout: Duration::from_millis(50),
        ..NetConfig::default()
    };
    let client = tls_client(&file, &config);
    let url = format!("https://localhost:{}/", server.address.port());
    let error = send(&client, get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Closed { .. }), "{error:?}");
    let mut kinds = Vec::new();
    while let Ok(kind) = told.try_recv() {
        kinds.push(kind);
    }
    assert!(kinds.contains(&PING), "{kinds:?}");
}

//! Connections, and how they end.

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, routing::get};
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use volcanic_a2a_server::{ServeConfig, ServeEnd, serve_with};

use crate::remote::within;

/// A server with one route that waits until it is let go.
struct Waiting {
    address: std::net::SocketAddr,
    entered: Arc<Notify>,
    go_on: Arc<Notify>,
    cancel: CancellationToken,
    serving: JoinSet<ServeEnd>,
}

async fn waiting(config: ServeConfig) -> Waiting {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (entered, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&entered), Arc::clone(&go_on));
    let route = get(move || async move {
        tell.notify_one();
        wait.notified().await;
        "done"
    });
    let cancel = CancellationToken::new();
    let mut serving = JoinSet::new();
    serving.spawn(serve_with(config, listener, Router::new().route("/", route), cancel.clone()));
    Waiting { address, entered, go_on, cancel, serving }
}

async fn request(address: std::net::SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    stream
}

async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let _ = within(stream.read_to_string(&mut text)).await;
    text
}

#[tokio::test]
async fn request_under_way_is_answered_after_the_stop() {
    let mut server = waiting(ServeConfig::default()).await;
    let stream = request(server.address).await;
    within(server.entered.notified()).await;
    server.cancel.cancel();
    server.go_on.notify_one();
    assert!(rest(stream).await.ends_with("done"));
    assert_eq!(within(server.serving.join_next()).await.unwrap().unwrap(), ServeEnd { dropped: 0 });
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn request_that_does_not_end_is_dropped_after_the_grace_period() {
    let config = ServeConfig { grace: Duration::from_millis(50), ..ServeConfig::default() };
    let mut server = waiting(config).await;
    let stream = request(server.address).await;
    within(server.entered.notified()).await;
    server.cancel.cancel();
    assert_eq!(within(server.serving.join_next()).await.unwrap().unwrap(), ServeEnd { dropped: 1 });
    assert_eq!(rest(stream).await, "");
}

#[tokio::test]
async fn idle_connection_does_not_hold_up_the_stop() {
    let mut server = waiting(ServeConfig::default()).await;
    let mut stream = request(server.address).await;
    within(server.entered.notified()).await;
    server.go_on.notify_one();
    let mut answer = [0; 12];
    within(stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    server.cancel.cancel();
    assert_eq!(within(server.serving.join_next()).await.unwrap().unwrap(), ServeEnd { dropped: 0 });
}

#[tokio::test]
async fn host_of_a_request_over_http_2_is_known() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let host = get(|headers: HeaderMap| async move {
        headers.get("host").map(|host| host.to_str().unwrap().to_owned()).unwrap_or_default()
    });
    let mut tasks = JoinSet::new();
    let routes = Router::new().route("/", host);
    let serving = serve_with(ServeConfig::default(), listener, routes, cancel.clone());
    tasks.spawn(async move { assert_eq!(serving.await.dropped, 0) });
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut client, connection) =
        http2::handshake::<_, _, Body>(TokioExecutor::new(), stream).await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    let request = Request::get("http://agent.example:81/").body(Body::empty()).unwrap();
    let answer = within(client.send_request(request)).await.unwrap();
    let body = within(Body::new(answer.into_body()).collect()).await.unwrap().to_bytes();
    assert_eq!(body, "agent.example:81");
    cancel.cancel();
}

#[tokio::test]
async fn head_that_never_ends_is_cut_off() {
    let config =
        ServeConfig { header_timeout: Duration::from_millis(50), ..ServeConfig::default() };
    let server = waiting(config).await;
    for start in ["", "P", "GET / HTTP/1.1\r\nHost: loc"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let answer = rest(stream).await;
        assert!(answer.is_empty() || answer.contains("408"), "{answer}");
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_their_turn() {
    let config = ServeConfig { max_connections: 1, ..ServeConfig::default() };
    let server = waiting(config).await;
    let first = request(server.address).await;
    within(server.entered.notified()).await;
    let second = request(server.address).await;
    let entered = tokio::time::timeout(Duration::from_millis(100), server.entered.notified()).await;
    assert!(entered.is_err(), "the second request should still wait");
    drop(first);
    server.go_on.notify_one();
    within(server.entered.notified()).await;
    server.go_on.notify_one();
    drop(second);
}

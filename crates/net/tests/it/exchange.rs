//! Requests and answers.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, http::HeaderMap, response::Redirect, routing::get as on_get};
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use volcanic_net::{CallKind, GuardPolicy, NetError, Transport as _};

use crate::server::{LIMIT, Server, client, get, send};

#[tokio::test]
async fn call_reaches_the_server_and_the_body_comes_back() {
    let server = Server::router(Router::new().route("/a", on_get(|| async { "hello" }))).await;
    let response = send(&client(), get(&server.url("/a"))).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.into_body().collect(5).await.unwrap(), "hello");
}

#[tokio::test]
async fn redirect_is_an_answer_and_is_not_followed() {
    let followed = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&followed);
    let elsewhere = Server::router(Router::new().fallback(move || async move {
        seen.fetch_add(1, Ordering::SeqCst);
    }))
    .await;
    let target = elsewhere.url("/steal");
    let server = Server::router(
        Router::new().route("/", on_get(move || async move { Redirect::temporary(&target) })),
    )
    .await;
    let mut request = get(&server.url("/"));
    request.headers_mut().insert("x-api-key", "planted".parse().unwrap());
    let response = send(&client(), request).await.unwrap();
    assert_eq!(response.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!((followed.load(Ordering::SeqCst), elsewhere.connections()), (0, 0));
}

#[tokio::test]
async fn no_compression_is_asked_for() {
    let router = Router::new().route(
        "/",
        on_get(|headers: HeaderMap| async move {
            headers.get("accept-encoding").map_or(String::new(), |v| v.to_str().unwrap().to_owned())
        }),
    );
    let server = Server::router(router).await;
    let response = send(&client(), get(&server.url("/"))).await.unwrap();
    assert_eq!(response.into_body().collect(100).await.unwrap(), "identity");
}

#[tokio::test]
async fn calls_share_a_connection_and_streams_have_their_own() {
    let server = Server::router(Router::new().route("/", on_get(|| async { "x" }))).await;
    let client = client();
    for kind in [CallKind::Call, CallKind::Call, CallKind::Stream, CallKind::Stream] {
        let response = client.send(get(&server.url("/")), kind).await.unwrap();
        response.into_body().collect(1).await.unwrap();
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn connection_closed_without_an_answer_leaves_the_fate_unknown() {
    let server = Server::raw(|mut stream| async move {
        let mut seen = [0; 1];
        stream.read_exact(&mut seen).await.unwrap();
    })
    .await;
    let error = send(&client(), get(&server.url("/secret?token=planted"))).await.unwrap_err();
    assert!(matches!(error, NetError::Closed { .. }), "{error:?}");
    assert!(error.is_transient() && !error.never_left());
}

#[tokio::test]
async fn body_cut_in_the_middle_is_an_error_after_what_came() {
    let server = Server::raw(|mut stream| async move {
        let mut seen = [0; 64];
        let _ = stream.read(&mut seen).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await.unwrap();
    })
    .await;
    let mut body = send(&client(), get(&server.url("/"))).await.unwrap().into_body();
    assert_eq!(body.next_chunk().await.unwrap().unwrap(), "half");
    let error = body.next_chunk().await.unwrap().unwrap_err();
    assert!(matches!(error, NetError::Closed { .. }), "{error:?}");
}

#[tokio::test]
async fn interim_answers_are_passed_over_but_not_for_ever() {
    const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </plum>\r\n\r\n";
    let server = Server::raw(|mut stream| async move {
        let mut seen = [0; 64];
        let _ = stream.read(&mut seen).await.unwrap();
        for _ in 0..3 {
            stream.write_all(INTERIM).await.unwrap();
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nplum").await;
    })
    .await;
    let body = send(&client(), get(&server.url("/"))).await.unwrap().into_body();
    assert_eq!(body.collect(4).await.unwrap(), "plum");
    let server = Server::raw(|mut stream| async move {
        // Until the client goes.
        while stream.write_all(INTERIM).await.is_ok() {}
    })
    .await;
    let error = send(&client(), get(&server.url("/"))).await.unwrap_err();
    assert!(matches!(error, NetError::Closed { .. }), "{error:?}");
}

#[tokio::test]
async fn nobody_listening_means_the_request_never_left() {
    let server = Server::raw(|_| async {}).await;
    let url = server.url("/");
    let address = server.address.to_string();
    drop(server);
    // The accept loop ends at its next await; the port refuses from then on.
    let error = tokio::time::timeout(LIMIT, async {
        loop {
            match client().send(get(&url), CallKind::Call).await {
                Err(error @ NetError::Connect { .. }) => break error,
                Ok(_) | Err(_) => tokio::task::yield_now().await,
            }
        }
    })
    .await
    .unwrap();
    assert!(error.never_left() && error.is_transient());
    assert_eq!(error.to_string(), format!("failed to connect to {address}"));
}

#[tokio::test]
async fn errors_show_no_path_query_user_or_header() {
    let server = Server::raw(|mut stream| async move {
        let mut seen = [0; 1];
        stream.read_exact(&mut seen).await.unwrap();
    })
    .await;
    let url = format!("http://user:planted@{}/planted?planted", server.address);
    let mut request = get(&url);
    request.headers_mut().insert("x-api-key", "planted".parse().unwrap());
    let sent = send(&client(), request).await.unwrap_err();
    let https = url.replace("http://", "https://");
    let refused = send(&client(), get(&https)).await.unwrap_err();
    let nowhere = "http://user:planted@nowhere.invalid/planted?planted";
    let unresolved = send(&client(), get(nowhere)).await.unwrap_err();
    assert!(matches!(unresolved, NetError::Resolve { .. }), "{unresolved:?}");
    let mut guarded = get(&url);
    guarded.extensions_mut().insert(GuardPolicy::PublicOnly);
    let forbidden = send(&client(), guarded).await.unwrap_err();
    assert!(matches!(forbidden, NetError::Refused { .. }), "{forbidden:?}");
    for error in [sent, refused, unresolved, forbidden] {
        let mut shown = format!("{error} {error:?} {error:#?}");
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(current) = cause {
            shown += &current.to_string();
            cause = current.source();
        }
        assert!(!shown.contains("planted"), "{shown}");
    }
}

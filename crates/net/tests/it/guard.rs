//! Requests that must not reach the own network.

use axum::{Router, routing::get as on_get};
use volcanic_net::{GuardPolicy, NetClient, NetConfig, NetError};

use crate::server::{Server, client, get, send};

async fn server() -> Server {
    Server::router(Router::new().route("/", on_get(|| async { "inside" }))).await
}

#[tokio::test]
async fn guarded_client_opens_no_connection_to_this_machine() {
    let server = server().await;
    let client =
        NetClient::new(NetConfig { policy: GuardPolicy::PublicOnly, ..NetConfig::default() })
            .unwrap();
    let port = server.address.port();
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "router", "2130706433"] {
        let error = send(&client, get(&format!("http://{host}:{port}/"))).await.unwrap_err();
        assert!(matches!(error, NetError::Refused { .. }), "{host}: {error:?}");
        assert!(error.never_left() && !error.is_transient());
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn one_request_can_be_stricter_than_its_client() {
    let server = server().await;
    let mut request = get(&server.url("/"));
    request.extensions_mut().insert(GuardPolicy::PublicOnly);
    let error = send(&client(), request).await.unwrap_err();
    assert!(matches!(error, NetError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn one_request_cannot_be_laxer_than_its_client() {
    let server = server().await;
    let client =
        NetClient::new(NetConfig { policy: GuardPolicy::PublicOnly, ..NetConfig::default() })
            .unwrap();
    let mut request = get(&server.url("/"));
    request.extensions_mut().insert(GuardPolicy::Open);
    let error = send(&client, request).await.unwrap_err();
    assert!(matches!(error, NetError::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn open_connection_does_not_serve_a_guarded_request() {
    let server = server().await;
    let client = client();
    send(&client, get(&server.url("/"))).await.unwrap().into_body().collect(10).await.unwrap();
    let mut request = get(&server.url("/"));
    request.extensions_mut().insert(GuardPolicy::PublicOnly);
    let error = send(&client, request).await.unwrap_err();
    assert!(matches!(error, NetError::Refused { .. }), "{error:?}");
    assert_eq!(server.connections(), 1);
}

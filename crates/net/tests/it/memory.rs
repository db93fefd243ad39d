//! The transport of tests.

use std::sync::Arc;

use axum::{Router, routing::post};
use bytes::Bytes;
use http::Request;
use volcanic_net::{CallKind, InMemory, Transport};

#[tokio::test]
async fn router_answers_whatever_host_is_named() {
    let router = Router::new().route("/echo", post(|body: Bytes| async move { body }));
    let transport: Arc<dyn Transport> = Arc::new(InMemory::new(router));
    let request = Request::post("https://nowhere.invalid/echo").body(Bytes::from("hi")).unwrap();
    let response = transport.send(request, CallKind::Call).await.unwrap();
    assert_eq!(response.into_body().collect(10).await.unwrap(), "hi");
}

//! What stands in the environment does not lead requests elsewhere.

use std::process::Command;

use axum::{Router, routing::get as on_get};

use crate::server::{Server, client, get, send};

/// Names the server to the process that [`environment_names_no_proxy`] starts.
const SERVER: &str = "NET_TEST_SERVER";

#[tokio::test]
async fn environment_names_no_proxy() {
    let server = Server::router(Router::new().route("/", on_get(|| async { "direct" }))).await;
    let proxy = Server::router(Router::new().fallback(|| async { "proxy" })).await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "environment::calls_with_a_proxy_in_the_environment", "--ignored"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        child.env(name, proxy.url(""));
    }
    child.env_remove("no_proxy").env_remove("NO_PROXY").env(SERVER, server.url("/"));
    let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((server.connections(), proxy.connections()), (1, 0));
}

/// Not a test by itself: it runs in a process that has proxies in its environment.
#[tokio::test]
#[ignore = "started by environment_names_no_proxy"]
#[expect(clippy::disallowed_methods, reason = "the process was started for this test alone")]
async fn calls_with_a_proxy_in_the_environment() {
    let url = std::env::var(SERVER).unwrap();
    let body = send(&client(), get(&url)).await.unwrap().into_body();
    assert_eq!(body.collect(10).await.unwrap(), "direct");
}

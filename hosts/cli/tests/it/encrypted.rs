//! An agent behind TLS and HTTP/2: what of a key and a query the log shows, whatever it is asked for.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, http::HeaderMap, http::Version, serve::Listener};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
    server::TlsStream,
};

use crate::world::World;

const KEY: &str = "k_planted_3f9c2a7e";
const QUERY: &str = "q_planted_81b0d4f6";

/// Takes connections that agree to HTTP/2.
struct Encrypted {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Encrypted {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Serves `routes` on `localhost`; returns the port and the certificate.
async fn serve(routes: Router, tasks: &mut JoinSet<()>) -> (u16, String) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tasks.spawn(async move {
        let _ = axum::serve(Encrypted { listener, acceptor }, routes).await;
    });
    (port, certified.cert.pem())
}

fn card() -> axum::Json<serde_json::Value> {
    axum::Json(json!({
        "name": "demo", "description": "an agent", "version": "1",
        "supportedInterfaces": [{"url": format!("/a2a?token={QUERY}"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": []
    }))
}

#[tokio::test]
async fn no_directive_of_the_log_brings_out_frames_or_what_tls_was_given() {
    let world = World::new();
    let called = |version: Version, headers: HeaderMap, body: String| async move {
        assert_eq!(version, Version::HTTP_2);
        assert_eq!(headers["x-api-key"], KEY);
        let request: serde_json::Value = serde_json::from_str(&body).unwrap();
        let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": format!("you said {KEY}")}]});
        axum::Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": {"message": message}}))
    };
    let routes = Router::new()
        .route("/.well-known/agent-card.json", axum::routing::get(|| async { card() }))
        .route("/a2a", axum::routing::post(called));
    let mut tasks = JoinSet::new();
    let (port, certificate) = serve(routes, &mut tasks).await;
    let certificate = world.write("roots.pem", &certificate).display().to_string();
    let url = format!("https://localhost:{port}/");
    world.agents(&json!([{ "name": "demo", "url": url, "key": "env:A2A_KEY_TEST" }]));
    let directives = "trace,h2::codec=trace,h2::codec::framed_read=trace,h2::hpack=trace,h2[Connection]=trace,rustls=trace,\
        rustls::client::hs=trace,hyper=trace,hyper_util=trace";
    for directives in [directives, "h2::codec=trace", "h2::codec[{}]=trace", "trace"] {
        let variables = [
            ("A2A_KEY_TEST", KEY),
            ("SSL_CERT_FILE", certificate.as_str()),
            ("RUST_LOG", directives),
        ];
        let ran = world.run_with(&["send", "demo", "hello"], &variables).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.contains("you said ***"), "{ran:?}");
        // Bytes of frames are written as lists of numbers, too.
        let numbers: Vec<String> = KEY.bytes().map(|byte| byte.to_string()).collect();
        for secret in [KEY, QUERY, numbers.join(", ").as_str()] {
            assert!(!ran.err.contains(secret), "{directives}: {}", ran.err);
        }
        let is_of_h2 = |line: &&str| line.contains(" h2::") && !line.contains(" INFO ");
        assert_eq!(ran.err.lines().find(is_of_h2), None, "{directives}");
        if directives.contains("trace,") || directives == "trace" {
            assert!(ran.err.contains("volcanic_net"), "nothing is logged: {}", ran.err);
        }
    }
}

//! What goes wrong before there is an answer: names, certificates, connections that end.

use std::{future::Future, io::Write as _, sync::Arc, time::Duration};

use axum::response::IntoResponse as _;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use volcanic_a2a_client::{AgentEntry, ClientConfig};
use volcanic_net::{NetClient, NetConfig, RootCertificates, Transport};

use super::{Key, Nothing, Path, path, seen};
use crate::agent::{KEY, Running, Script, card, connect_with, entry, keyed, network, result, task};

pub(super) static PATHS: [Path; 11] = [
    path(
        "a host that has no address, with the key in the query",
        Nothing("host and port are told"),
        |config| {
            Box::pin(async move {
                failed(
                    &keyed(entry(&format!("http://nowhere.invalid/?key={KEY}"))),
                    network(),
                    &config,
                )
                .await
            })
        },
    ),
    path("a host that has no address, named by the card", Key, |config| {
        Box::pin(named_by_card(config, true))
    }),
    path("an origin that is not trusted, named by the card", Key, |config| {
        Box::pin(named_by_card(config, false))
    }),
    path("nobody listens", Nothing("host and port are told"), |config| {
        Box::pin(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/?key={KEY}", listener.local_addr().unwrap());
            drop(listener);
            failed(&keyed(entry(&url)), network(), &config).await
        })
    }),
    path("certificate of another name", Key, |config| {
        Box::pin(async move {
            let params = CertificateParams::new(vec![format!("{KEY}.example")]).unwrap();
            tls(config, params, true, &[], |_| async {}).await
        })
    }),
    path("certificate of an unknown issuer", Nothing("an issuer is not named"), |config| {
        Box::pin(async move {
            let names = vec!["localhost".to_owned(), format!("{KEY}.example")];
            tls(config, CertificateParams::new(names).unwrap(), false, &[], |_| async {}).await
        })
    }),
    path("certificate that has expired", Nothing("only the time is told"), |config| {
        Box::pin(async move {
            let names = vec!["localhost".to_owned(), format!("{KEY}.example")];
            let mut params = CertificateParams::new(names).unwrap();
            params.not_before = date_time_ymd(2000, 1, 1);
            params.not_after = date_time_ymd(2001, 1, 1);
            tls(config, params, true, &[], |_| async {}).await
        })
    }),
    path("connection over HTTP/2 that is closed with a word", Key, |config| {
        Box::pin(async move {
            let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            tls(config, params, true, &[b"h2"], go_away).await
        })
    }),
    path(
        "connection that is reset in an answer",
        Nothing("a body that breaks off is not told"),
        |config| {
            Box::pin(async move {
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nx-key: {KEY}\r\ncontent-length: 999\r\n\r\n{{\"{KEY}"
                );
                raw(config, answer.into_bytes(), false).await
            })
        },
    ),
    path("answer that is not HTTP", Nothing("what is not understood is not told"), |config| {
        Box::pin(async move {
            raw(config, format!("{KEY} {KEY}\r\n{KEY}\r\n\r\n").into_bytes(), false).await
        })
    }),
    path("answer that does not come in time", Nothing("nothing of it is told"), |config| {
        Box::pin(async move {
            let config = ClientConfig { card_timeout: Duration::from_millis(200), ..config };
            let answer =
                format!("HTTP/1.1 200 OK\r\nx-key: {KEY}\r\ncontent-length: 999\r\n\r\n{{\"{KEY}");
            raw(config, answer.into_bytes(), true).await
        })
    }),
];

async fn failed(
    entry: &AgentEntry,
    transport: Arc<dyn Transport>,
    config: &ClientConfig,
) -> String {
    let error = connect_with(entry, transport, config).await.unwrap_err();
    seen::error(&error)
}

/// A card that names an interface at a host which is called like the key; the owner may have listed that origin.
async fn named_by_card(config: ClientConfig, is_listed: bool) -> String {
    let host = format!("{KEY}.invalid");
    // Undone by whoever reads the address.
    let written = format!("http://{}.invalid/", KEY.replace('_', "%5f"));
    let script = Script::new(|seen| result(seen, &task("t1", "WORKING"))).with_card(move |_| {
        let interface =
            json!({"url": written, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        card(&json!({"supportedInterfaces": [interface]})).into_response()
    });
    let running = Running::start(&script).await;
    let mut entry = keyed(running.entry());
    if !is_listed {
        return failed(&entry, network(), &config).await;
    }
    entry.trusted_origins = vec![format!("http://{host}")];
    match connect_with(&entry, network(), &config).await {
        Ok(agent) => seen::result(&agent.get_task(&"t1".into(), None).await),
        Err(error) => seen::error(&error),
    }
}

/// A server with that certificate, which is trusted or not.
async fn tls<F>(
    config: ClientConfig,
    params: CertificateParams,
    is_trusted: bool,
    protocols: &[&[u8]],
    serve: impl Fn(TlsStream<TcpStream>) -> F + Send + 'static,
) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let mut server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    server.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                serve(stream).await;
            }
        }
    });
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let root = if is_trusted { certificate.pem() } else { other.cert.pem() };
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(root.as_bytes()).unwrap();
    let roots = RootCertificates::PemFile(file.path().to_owned());
    let client = NetClient::new(NetConfig { roots, ..NetConfig::default() }).unwrap();
    failed(&keyed(entry(&format!("https://localhost:{port}"))), Arc::new(client), &config).await
}

/// Takes the preface of HTTP/2 and closes the connection, with the key as the reason.
async fn go_away(mut stream: TlsStream<TcpStream>) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    let length = u8::try_from(8 + KEY.len()).unwrap();
    let mut frames = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    frames.extend([0, 0, length, 7, 0, 0, 0, 0, 0]);
    frames.extend([0, 0, 0, 0, 0, 0, 0, 1]);
    frames.extend(KEY.as_bytes());
    stream.write_all(&frames).await.unwrap();
    stream.flush().await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

/// A server that answers every request with these bytes.
async fn raw(config: ClientConfig, answer: Vec<u8>, stays_open: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&answer).await;
            if stays_open {
                std::future::pending::<()>().await;
            }
        }
    });
    failed(&keyed(entry(&url)), network(), &config).await
}

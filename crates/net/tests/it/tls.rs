//! TLS, and the limit on connecting.

use std::{io::Write as _, sync::Arc, time::Duration};

use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use volcanic_net::{NetClient, NetConfig, NetError, RootCertificates};

use crate::server::{Server, client, get, send};

/// A server for `localhost` that agrees to the protocol `alpn`, or says nothing about it, and the file that its
/// certificate stands in.
pub(crate) async fn tls_server<F>(
    alpn: Option<&str>,
    handle: impl Fn(TlsStream<TcpStream>) -> F + Clone + Send + Sync + 'static,
) -> (Server, tempfile::NamedTempFile)
where
    F: Future<Output = ()> + Send + 'static,
{
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.map(|name| name.as_bytes().to_vec()).into_iter().collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Server::raw(move |stream: TcpStream| {
        let (acceptor, handle) = (acceptor.clone(), handle.clone());
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                handle(stream).await;
            }
        }
    })
    .await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(certified.cert.pem().as_bytes()).unwrap();
    (server, file)
}

/// A client that trusts the certificate in `file`.
pub(crate) fn tls_client(file: &tempfile::NamedTempFile, config: &NetConfig) -> NetClient {
    let roots = RootCertificates::PemFile(file.path().to_owned());
    NetClient::new(NetConfig { roots, ..config.clone() }).unwrap()
}

async fn secret_server() -> (Server, tempfile::NamedTempFile) {
    tls_server(None, |mut stream| async move {
        let mut seen = [0; 16];
        stream.read_exact(&mut seen).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret";
        stream.write_all(answer).await.unwrap();
        stream.shutdown().await.unwrap();
    })
    .await
}

#[tokio::test]
async fn certificate_from_the_configured_file_is_trusted() {
    let (server, file) = secret_server().await;
    let client = tls_client(&file, &NetConfig::default());
    let url = format!("https://localhost:{}/", server.address.port());
    let response = send(&client, get(&url)).await.unwrap();
    assert_eq!(response.into_body().collect(6).await.unwrap(), "secret");
}

#[tokio::test]
async fn body_up_to_the_end_is_whole_only_if_the_server_says_that_it_ends() {
    for says_so in [true, false] {
        let (server, file) = tls_server(None, move |mut stream| async move {
            let mut seen = [0; 16];
            stream.read_exact(&mut seen).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").await.unwrap();
            stream.flush().await.unwrap();
            if says_so {
                stream.shutdown().await.unwrap();
            } else {
                // As somebody on the way would end it.
                stream.get_mut().0.shutdown().await.unwrap();
            }
            let _ = stream.read_to_end(&mut Vec::new()).await;
        })
        .await;
        let client = tls_client(&file, &NetConfig::default());
        let url = format!("https://localhost:{}/", server.address.port());
        let mut body = send(&client, get(&url)).await.unwrap().into_body();
        assert_eq!(body.next_chunk().await.unwrap().unwrap(), "half");
        let end = body.next_chunk().await;
        assert_eq!(end.is_none(), says_so, "{end:?}");
        if let Some(end) = end {
            assert!(matches!(end, Err(NetError::Closed { .. })), "{end:?}");
        }
    }
}

#[tokio::test]
async fn much_goes_there_and_back_over_one_connection() {
    let (server, file) = tls_server(Some("http/1.1"), |mut stream| async move {
        let mut asked = Vec::new();
        loop {
            let end = b"\r\n\r\n";
            let Some(at) = asked.windows(4).position(|found| found == end) else {
                if stream.read_buf(&mut asked).await.unwrap_or(0) == 0 {
                    return;
                }
                continue;
            };
            let head = String::from_utf8(asked.drain(..at + 4).collect()).unwrap();
            let (_, length) = head.split_once("content-length: ").unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            while asked.len() < length {
                stream.read_buf(&mut asked).await.unwrap();
            }
            let body: Vec<u8> = asked.drain(..length).collect();
            // Records as large as they can be, and small ones between.
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                .await
                .unwrap();
            for piece in body.chunks(50_000) {
                stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
                stream.write_all(piece).await.unwrap();
                stream.write_all(b"\r\n").await.unwrap();
            }
            stream.write_all(b"0\r\n\r\n").await.unwrap();
            stream.flush().await.unwrap();
        }
    })
    .await;
    let client = tls_client(&file, &NetConfig::default());
    let url = format!("https://localhost:{}/", server.address.port());
    for size in [1, 16_384, 16_385, 4 << 20, 10] {
        let body: bytes::Bytes = (0_u32..).flat_map(u32::to_le_bytes).take(size).collect();
        let request = http::Request::post(&url).body(body.clone()).unwrap();
        let answer = send(&client, request).await.unwrap().into_body();
        assert!(answer.collect(size).await.unwrap() == body, "{size}");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn unknown_certificate_is_refused_before_the_request_leaves() {
    let (server, _file) = secret_server().await;
    let url = format!("https://localhost:{}/", server.address.port());
    let error = send(&client(), get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Tls { .. }), "{error:?}");
    assert!(error.never_left());
}

#[tokio::test]
async fn certificate_of_another_name_is_refused() {
    let (server, file) = secret_server().await;
    let client = tls_client(&file, &NetConfig::default());
    let url = format!("https://127.0.0.1:{}/", server.address.port());
    let error = send(&client, get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Tls { .. }), "{error:?}");
}

#[tokio::test]
async fn silent_handshake_ends_at_the_connect_timeout() {
    let server = Server::raw(|mut stream| async move {
        let mut sink = Vec::new();
        let _ = stream.read_to_end(&mut sink).await;
    })
    .await;
    // Scaled down from ten seconds: only the limit itself is waited for.
    let connect_timeout = Duration::from_millis(100);
    let client = NetClient::new(NetConfig { connect_timeout, ..NetConfig::default() }).unwrap();
    let url = format!("https://{}/", server.address);
    let error = send(&client, get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Timeout { .. }), "{error:?}");
    assert!(error.never_left() && error.is_transient());
}

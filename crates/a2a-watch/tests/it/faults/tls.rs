//! Agents behind TLS whose certificates go wrong, or whose handshakes break: the watch stays, tells why, keeps the key to
//! itself, and goes on when that is mended. Over real sockets, with pauses scaled down to a five-hundredth.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, SupportedProtocolVersion, version};
use volcanic_a2a_watch::WatchState;
use volcanic_net::{NetConfig, RootCertificates};
use volcanic_testkit::{FaultSeed, drawn_below, drawn_from};

use super::wire::{PATIENCE, Wired, read_request};

/// What the agent's side does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Right,
    /// The certificate has expired.
    Expired,
    /// It is not valid yet.
    Early,
    /// It is for another host.
    OtherHost,
    /// Nobody known has signed it.
    Unknown,
    /// It signs itself.
    SelfSigned,
    /// The connection is reset in the middle of the handshake.
    Reset,
    /// It closes in the middle of the handshake.
    Closed,
    /// What answers is not TLS.
    Plain,
}

const FAULTS: [Mode; 8] = [
    Mode::Expired,
    Mode::Early,
    Mode::OtherHost,
    Mode::Unknown,
    Mode::SelfSigned,
    Mode::Reset,
    Mode::Closed,
    Mode::Plain,
];

/// Certificates, good and bad.
struct Issued {
    root: String,
    all: Vec<(Mode, TlsAcceptor)>,
}

fn acceptor(
    chain: &rcgen::Certificate,
    key: &KeyPair,
    version: &'static SupportedProtocolVersion,
) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

fn authority() -> (rcgen::Certificate, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (certificate, Issuer::new(params, key))
}

impl Issued {
    fn new() -> Self {
        let (root, issuer) = authority();
        let (_, stranger) = authority();
        let mut all = Vec::new();
        let modes = [
            Mode::Right,
            Mode::Expired,
            Mode::Early,
            Mode::OtherHost,
            Mode::Unknown,
            Mode::SelfSigned,
        ];
        for mode in modes {
            let host = if mode == Mode::OtherHost { "other.example" } else { "localhost" };
            let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
            match mode {
                Mode::Expired => params.not_after = rcgen::date_time_ymd(2001, 1, 1),
                Mode::Early => params.not_before = rcgen::date_time_ymd(4000, 1, 1),
                _ => {}
            }
            let key = KeyPair::generate().unwrap();
            let signed = match mode {
                Mode::Unknown => params.signed_by(&key, &stranger).unwrap(),
                Mode::SelfSigned => params.self_signed(&key).unwrap(),
                _ => params.signed_by(&key, &issuer).unwrap(),
            };
            let version = if mode == Mode::Right { &version::TLS13 } else { &version::TLS12 };
            all.push((mode, acceptor(&signed, &key, version)));
        }
        Self { root: root.pem(), all }
    }

    fn acceptor(&self, mode: Mode) -> Option<TlsAcceptor> {
        self.all.iter().find(|(known, _)| *known == mode).map(|(_, acceptor)| acceptor.clone())
    }
}

/// The agent, as far as a test changes it.
struct Shared {
    issued: Issued,
    mode: Mutex<Mode>,
    is_done: Mutex<bool>,
    /// Requests over a wire that was bad.
    leaked: Mutex<Vec<String>>,
    /// Connections in a bad mode.
    tried: watch::Sender<usize>,
}

impl Shared {
    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let mut serving = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            serving.spawn(Arc::clone(&self).serve(stream));
        }
    }

    /// One connection, in the mode that held when it came.
    async fn serve(self: Arc<Self>, mut stream: TcpStream) -> std::io::Result<()> {
        let mode = *self.mode.lock().unwrap();
        let Some(acceptor) = self.issued.acceptor(mode) else {
            stream.read_exact(&mut [0; 32]).await?;
            match mode {
                Mode::Reset => stream.set_zero_linger()?,
                Mode::Plain => stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await?,
                _ => {}
            }
            drop(stream);
            self.tried.send_modify(|tried| *tried += 1);
            return Ok(());
        };
        let accepted = acceptor.accept(stream).await;
        if mode != Mode::Right {
            self.tried.send_modify(|tried| *tried += 1);
        }
        let mut stream = accepted?;
        let Some((head, request)) = read_request(&mut stream, &mut Vec::new()).await? else {
            return Ok(());
        };
        if mode != Mode::Right {
            self.leaked.lock().unwrap().push(head);
            return Ok(());
        }
        let answer = self.answer(&request).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all((head + &answer).as_bytes()).await?;
        stream.shutdown().await
    }

    fn answer(&self, request: &Value) -> Value {
        if request["method"].is_null() {
            return json!({
                "name": "Sealed", "description": "Behind TLS.", "version": "1", "skills": [], "capabilities": {},
                "supportedInterfaces": [{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            });
        }
        let state = if *self.is_done.lock().unwrap() { "COMPLETED" } else { "WORKING" };
        let mut task = json!({"id": "t1", "contextId": "c1", "status": {"state": format!("TASK_STATE_{state}")}});
        if state == "COMPLETED" {
            task["artifacts"] = json!([{"artifactId": "response", "parts": [{"text": "Lisbon"}]}]);
        }
        json!({"jsonrpc": "2.0", "id": request["id"], "result": task})
    }
}

/// What the watch says of itself.
async fn last_seen(wired: &Wired, fits: impl Fn(&str, u32) -> bool) -> String {
    let seen = async {
        loop {
            let views = wired.watches.watches(None).await;
            let (seen, failures) =
                (views[0].last_seen.clone().unwrap_or_default(), views[0].failures);
            if fits(&seen, failures) {
                return seen;
            }
            // There is no event for what a watch notes.
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("the watch does not say so")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_stays_while_encryption_fails_and_goes_on_when_it_is_mended() {
    let seed = FaultSeed::new();
    let issued = Issued::new();
    let mut roots = tempfile::NamedTempFile::new().unwrap();
    roots.write_all(issued.root.as_bytes()).unwrap();
    let shared = Arc::new(Shared {
        issued,
        mode: Mutex::new(Mode::Right),
        is_done: Mutex::new(false),
        leaked: Mutex::default(),
        tried: watch::Sender::new(0),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let mut serving = JoinSet::new();
    serving.spawn(Arc::clone(&shared).accept(listener));
    for round in 0..FaultSeed::times(32) {
        // Each fault four times; two in a row in some rounds.
        let chance = seed.round(round);
        let mut modes = vec![FAULTS[round % FAULTS.len()]];
        if drawn_below(&chance, 2) == 0 {
            modes.push(*drawn_from(&chance, &FAULTS));
        }
        *shared.is_done.lock().unwrap() = false;
        let net = NetConfig {
            roots: RootCertificates::PemFile(roots.path().to_owned()),
            ..NetConfig::default()
        };
        let wired = Wired::follow(&url, ["t1".to_owned()], net, |_| {}).await;
        last_seen(&wired, |seen, failures| seen == "working" && failures == 0).await;
        for mode in &modes {
            *shared.mode.lock().unwrap() = *mode;
            let mut tried = shared.tried.subscribe();
            let before = *tried.borrow_and_update();
            let enough = tried.wait_for(|tried| *tried >= before + 2);
            tokio::time::timeout(PATIENCE, enough).await.expect("nobody tried again").unwrap();
            let why = last_seen(&wired, |seen, failures| seen != "working" && failures > 0).await;
            assert!(why.starts_with("Could not reach agent \"bot\": "), "{modes:?}: {why}");
            assert!(why.len() < 300 && !why.contains("k_secret"), "{modes:?}: {why}");
            let states: Vec<_> = wired.store.all_watches().iter().map(|one| one.state).collect();
            assert_eq!(states, [WatchState::Watching], "{modes:?}");
        }
        assert_eq!(*shared.leaked.lock().unwrap(), Vec::<String>::new(), "{modes:?}");
        *shared.is_done.lock().unwrap() = true;
        *shared.mode.lock().unwrap() = Mode::Right;
        wired.wait_delivered(1).await;
        let delivered = wired.end().await;
        let texts: Vec<_> = delivered.values().flatten().collect();
        assert_eq!(texts.len(), 1, "{modes:?}: {texts:?}");
        assert!(texts[0].ends_with("\nLisbon"), "{modes:?}: {texts:?}");
    }
}

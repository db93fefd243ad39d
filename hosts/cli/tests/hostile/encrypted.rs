//! Agents behind TLS that speak HTTP/2 as nobody should: what it costs, and what is told.

use std::{io, sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
    server::TlsStream,
};
use volcanic_testkit::Measured;

use crate::{
    scene::{KEY, Scene},
    table::GROWTH,
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200` and a content type, in the literal writing of HPACK.
const OK: &[u8] = b"\x88\x00\x0ccontent-type\x10application/json";
/// `:status: 103`.
const EARLY_HINTS: &[u8] = b"\x08\x03103";

/// What a command is told to wait, in seconds, for an agent that says nothing it could end with, …
const SHORT: u64 = 2;

/// … and for one that does: on a machine that is busy as well, that comes first.
const AMPLE: u64 = 45;

/// What such a machine may take beside that wait.
const SLACK: Duration = Duration::from_secs(15);

type Client = TlsStream<TcpStream>;

/// What an agent does in place of an answer: some bytes, and then others again and again.
#[derive(Debug, Clone)]
struct Fault {
    name: &'static str,
    first: Vec<u8>,
    then: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The faults on a stream.
fn faults(stream: u32) -> Vec<Fault> {
    let ok = || frame(HEADERS, END_HEADERS, stream, OK);
    let open = || frame(HEADERS, 0, stream, OK);
    let fault = |name, first: Vec<u8>, then: Vec<u8>| Fault { name, first, then };
    // An entry of the dynamic table of four kilobytes, and then that entry over and over: a thousandfold.
    let entry = [&b"\x40\x01x\x7f\x81\x1e"[..], &[b'x'; 4000]].concat();
    let bomb = [&b"\x88"[..], &entry, &[0xbe; 10_000]].concat();
    vec![
        fault("settings", vec![], frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])),
        fault("empty settings", vec![], frame(SETTINGS, 0, 0, &[])),
        fault("pings", vec![], frame(PING, 0, 0, &[7; 8])),
        fault("window updates", vec![], frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        fault("unknown frames", vec![], frame(0xfe, 0, 0, &[0; 1000])),
        fault("resets", vec![], frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])),
        fault("pushes", vec![], frame(PUSH_PROMISE, END_HEADERS, stream, b"\0\0\0\x02\x82")),
        fault("good byes", vec![], frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0])),
        fault("interim answers", vec![], frame(HEADERS, END_HEADERS, stream, EARLY_HINTS)),
        fault("empty data", ok(), frame(DATA, 0, stream, &[])),
        fault("data", ok(), frame(DATA, 0, stream, &[b' '; 16_000])),
        fault("empty continuations", open(), frame(CONTINUATION, 0, stream, &[])),
        fault("continuations", open(), frame(CONTINUATION, 0, stream, b"\x00\x01x\x01y")),
        fault(
            "trailers",
            [
                ok(),
                frame(DATA, 0, stream, b"{}"),
                frame(HEADERS, END_STREAM, stream, b"\x00\x01x\x01y"),
            ]
            .concat(),
            frame(CONTINUATION, 0, stream, b"\x00\x01x\x01y"),
        ),
        fault("header bomb", frame(HEADERS, END_HEADERS, stream, &bomb), vec![]),
        fault(
            "a frame that is too large",
            [&[0xff; 3][..], &[DATA, 0], &stream.to_be_bytes()].concat(),
            vec![0; 1000],
        ),
        fault("silence", vec![], vec![]),
    ]
}

/// Who is asked, in turn: the card, and what is called then.
struct Server {
    acceptor: TlsAcceptor,
    /// Which request is spoilt, from 0; the ones before it are answered well.
    spoilt: u32,
    /// `None` answers everything well.
    fault: Option<Fault>,
    /// Whether the window for what the client sends is closed.
    has_window: bool,
}

impl Server {
    async fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut client = self.acceptor.accept(stream).await?;
        let mut preface = [0; 24];
        client.read_exact(&mut preface).await?;
        let window: &[u8] = if self.has_window { &[] } else { &[0, 4, 0, 0, 0, 0] };
        client.write_all(&frame(SETTINGS, 0, 0, window)).await?;
        loop {
            let mut head = [0; 9];
            client.read_exact(&mut head).await?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            client.read_exact(&mut payload).await?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            match head[3] {
                SETTINGS if head[4] == 0 => client.write_all(&frame(SETTINGS, 1, 0, &[])).await?,
                // Its body may still be on its way, which matters to none of the answers.
                HEADERS => self.answer(&mut client, stream).await?,
                _ => {}
            }
            client.flush().await?;
        }
    }

    async fn answer(&self, client: &mut Client, stream: u32) -> io::Result<()> {
        // A client counts its streams in odd numbers.
        let asked = stream / 2;
        if let Some(fault) = self.fault.as_ref().filter(|_| asked == self.spoilt) {
            client.write_all(&fault.first).await?;
            client.flush().await?;
            let block = fault.then.repeat(16_384 / fault.then.len().max(1));
            while !block.is_empty() {
                client.write_all(&block).await?;
            }
            return Ok(());
        }
        let answer = if asked == 0 {
            json!({
                "name": "demo", "description": "an agent", "version": "1",
                "supportedInterfaces": [{"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
                "capabilities": {}, "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
            })
        } else {
            let message =
                json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "plums"}]});
            json!({"jsonrpc": "2.0", "id": 1, "result": {"message": message}})
        };
        client.write_all(&frame(HEADERS, END_HEADERS, stream, OK)).await?;
        client.write_all(&frame(DATA, END_STREAM, stream, answer.to_string().as_bytes())).await
    }
}

/// Sends a message to an agent whose answer to this request is spoilt, and waits for so many seconds.
async fn ran(spoilt: u32, fault: Option<Fault>, has_window: bool, wait: u64) -> Measured {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = Arc::new(Server { acceptor, spoilt, fault, has_window });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut serving = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let server = Arc::clone(&server);
            // A client that goes away in the middle is what is wanted.
            serving.spawn(async move { drop(server.serve(stream).await) });
        }
    });
    let scene = Scene::new();
    scene.knows(&url, true);
    scene.write("roots.pem", &certified.cert.pem());
    let roots = scene.path("roots.pem").display().to_string();
    let seconds = wait.to_string();
    let variables =
        [("SSL_CERT_FILE", roots.as_str()), ("A2AClient__CardTimeoutSeconds", seconds.as_str())];
    let before = scene.tree();
    let wait = format!("{wait}s");
    let ran = scene.run(&["send", "demo", "plum", "--wait", &wait], &variables).await;
    assert_eq!(before, scene.tree(), "{ran:?}");
    ran
}

/// What it came to, if that is within bounds.
#[track_caller]
fn judge(name: &str, friendly: &Measured, ran: &Measured, wait: u64) -> (Option<i32>, String) {
    let growth = ran.peak.saturating_sub(friendly.peak);
    println!(
        "{name}: {:?}, {} MiB more, {:?}: {}",
        ran.code,
        growth >> 20,
        ran.took,
        ran.err.trim()
    );
    assert!(growth < GROWTH, "{name}: {} MiB more", growth >> 20);
    assert!(ran.took < Duration::from_secs(wait) + SLACK, "{name}: {ran:?}");
    assert!(!format!("{ran:?}").contains(KEY) && !ran.err.contains("panicked"), "{name}: {ran:?}");
    (ran.code, ran.err.clone())
}

const LATE: (i32, &str) = (5, "did not answer in time");
const BROKE: (i32, &str) = (3, "the connection broke");
const LARGE: (i32, &str) = (1, "is larger than");

#[tokio::test]
async fn what_nobody_should_say_over_http_2_costs_little_and_is_told() {
    let friendly = ran(9, None, true, AMPLE).await;
    assert_eq!((friendly.code, friendly.out.contains("plums")), (Some(0), true), "{friendly:?}");
    let mut wrong = Vec::new();
    for spoilt in [0, 1] {
        for fault in faults(2 * spoilt + 1) {
            let name = fault.name;
            let wanted = match name {
                "data" if spoilt == 0 => LARGE,
                // Beside a card, more of "data" than the window of this connection allows comes before as much as may be
                // read.
                "data"
                | "resets"
                | "pushes"
                | "continuations"
                | "empty continuations"
                | "trailers"
                | "header bomb"
                | "a frame that is too large"
                | "good byes"
                | "empty data" => BROKE,
                _ => LATE,
            };
            let wait = if wanted == LATE { SHORT } else { AMPLE };
            let found = judge(name, &friendly, &ran(spoilt, Some(fault), true, wait).await, wait);
            if found.0 != Some(wanted.0) || !found.1.contains(wanted.1) {
                wrong.push(format!("{name} on {spoilt}: {found:?}, not {wanted:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_window_that_never_opens_is_given_up_in_time() {
    let friendly = ran(9, None, true, AMPLE).await;
    let silence = Fault { name: "no window", first: Vec::new(), then: Vec::new() };
    let found = judge("no window", &friendly, &ran(1, Some(silence), false, SHORT).await, SHORT);
    assert_eq!((found.0, found.1.contains(LATE.1)), (Some(LATE.0), true), "{found:?}");
}

use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::{
    io::{AsyncWriteExt as _, DuplexStream, duplex},
    task::coop,
};

use super::*;

/// Larger than what is said in any of these tests.
const ROOM: usize = 1 << 20;

fn request() -> Request<Bytes> {
    Request::post("http://a.example/").body(Bytes::from_static(b"hello")).unwrap()
}

/// What an exchange brings: status, headers, body, and whether the connection can be used again.
type Found = (u16, Vec<(String, Vec<u8>)>, Vec<u8>, bool);

async fn exchange(connection: &mut Connection<DuplexStream>) -> Result<Found, Http1Error> {
    let (response, mut rest) = connection.exchange(&request(), None, &[]).await?;
    let mut body = Vec::new();
    while !rest.is_over() {
        let data = poll_fn(|context| connection.poll_body(&mut rest, context)).await?;
        assert!(!data.is_empty() || rest.is_over());
        body.extend_from_slice(&data);
    }
    let headers = listed(response.headers());
    Ok((response.status().as_u16(), headers, body, rest.keeps() && connection.is_quiet().await))
}

fn listed(headers: &http::HeaderMap) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

/// The exchange with a server that answers so, in pieces of such a size, and closes then.
async fn answered(answer: &[u8], piece: usize) -> Result<Found, Http1Error> {
    let (ours, mut theirs) = duplex(ROOM);
    let mut connection = Connection::new(ours);
    let says = async {
        for piece in answer.chunks(piece) {
            theirs.write_all(piece).await.unwrap();
            yield_now().await;
        }
        drop(theirs);
    };
    tokio::join!(exchange(&mut connection), says).0
}

#[tokio::test]
async fn a_connection_carries_one_exchange_after_the_other() {
    let (ours, mut theirs) = duplex(ROOM);
    let mut connection = Connection::new(ours);
    assert!(connection.is_quiet().await);
    for (answer, body) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "ok"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "ok"),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\na: b\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "",
        ),
    ] {
        theirs.write_all(answer.as_bytes()).await.unwrap();
        let (_, _, found, keeps) = exchange(&mut connection).await.unwrap();
        assert_eq!((found, keeps), (body.as_bytes().to_vec(), true), "{answer}");
    }
    let mut asked = vec![0; 4 * 60];
    let length = theirs.read(&mut asked).await.unwrap();
    let wanted = "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello".repeat(4);
    assert_eq!(str::from_utf8(&asked[..length]).unwrap(), wanted);
}

#[tokio::test]
async fn what_comes_unasked_or_behind_an_answer_ends_the_connection() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 204 Empty\r\n\r\nx",
    ] {
        let (ours, mut theirs) = duplex(ROOM);
        let mut connection = Connection::new(ours);
        theirs.write_all(answer.as_bytes()).await.unwrap();
        assert!(!exchange(&mut connection).await.unwrap().3, "{answer}");
    }
    let (ours, mut theirs) = duplex(ROOM);
    let mut connection = Connection::new(ours);
    theirs.write_all(b"HTTP/1.1 408 Too slow\r\n").await.unwrap();
    assert!(!connection.is_quiet().await);
    let (ours, theirs) = duplex(ROOM);
    let mut connection = Connection::new(ours);
    drop(theirs);
    assert!(!connection.is_quiet().await);
}

#[tokio::test]
async fn a_connection_is_looked_at_whatever_the_share_of_its_task() {
    let (ours, theirs) = duplex(ROOM);
    let mut connection = Connection::new(ours);
    drop(theirs);
    // Uses up what this task may do before others have their turn.
    while has_budget_remaining() {
        coop::consume_budget().now_or_never();
    }
    assert!(!connection.is_quiet().await);
}

/// A stream on which something comes all the time and nothing of it counts, as records of TLS without content do.
struct Busy {
    reads: usize,
}

impl AsyncRead for Busy {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(coop::poll_proceed(context)).made_progress();
            self.reads += 1;
            assert!(self.reads < 10_000, "nothing ends it");
        }
    }
}

impl AsyncWrite for Busy {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn a_look_takes_no_more_than_the_share_of_its_task() {
    assert!(!Connection::new(Busy { reads: 0 }).is_quiet().await);
}

#[tokio::test]
async fn what_is_shown_of_an_exchange_is_nothing_of_what_was_said() {
    let (ours, mut theirs) = duplex(64);
    let mut connection = Connection::new(ours);
    theirs.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nplanted").await.unwrap();
    let request = Request::post("http://a.example/")
        .header("x-api-key", "planted")
        .body(Bytes::from("planted".repeat(10_000)))
        .unwrap();
    let (_, rest) = connection.exchange(&request, None, &[]).await.unwrap();
    let shown = format!("{rest:?}");
    for planted in ["planted", &format!("{:?}", b"planted")[1..20]] {
        assert!(!shown.contains(planted), "{shown:.300}");
    }
}

#[tokio::test]
async fn ends_before_their_time_are_told_apart() {
    for (answer, wanted) in [
        ("", "NoAnswer"),
        ("HTTP/1.1 200 O", "Cut"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "NoAnswer"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok", "Cut"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", "Cut"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", "Cut"),
        ("HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", "Upgrade"),
        ("hello", "NotHttp(Version)"),
    ] {
        for piece in [1, 1000] {
            let error = answered(answer.as_bytes(), piece).await.unwrap_err();
            assert_eq!(format!("{error:?}"), wanted, "{answer:?} by {piece}");
        }
    }
    let interim = "HTTP/1.1 103 Hints\r\n\r\n".repeat(MAX_INTERIM + 1);
    let error = answered(interim.as_bytes(), 1000).await.unwrap_err();
    assert!(matches!(error, Http1Error::Interim), "{error:?}");
    let body = answered(b"HTTP/1.1 200 OK\r\n\r\nuntil the end", 3).await.unwrap();
    assert_eq!((body.2, body.3), (b"until the end".to_vec(), false));
}

#[tokio::test]
async fn an_answer_may_come_before_the_request_is_out() {
    // The connection takes ten bytes and no more until somebody reads.
    let (ours, mut theirs) = duplex(10);
    let mut connection = Connection::new(ours);
    let size = 100_000;
    let large = Request::post("http://a.example/").body(Bytes::from(vec![b'x'; size])).unwrap();
    let serve = async {
        let mut asked = vec![0; 20];
        theirs.read_exact(&mut asked).await.unwrap();
        theirs.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n").await.unwrap();
        // The answer goes on only when all of the request has come.
        while !asked.ends_with(&vec![b'x'; size]) {
            assert_ne!(theirs.read_buf(&mut asked).await.unwrap(), 0);
        }
        theirs.write_all(b"done").await.unwrap();
        theirs
    };
    let ask = async {
        let (_, mut rest) = connection.exchange(&large, None, &[]).await.unwrap();
        assert!(!rest.keeps());
        let mut body = Vec::new();
        while !rest.is_over() {
            body.extend(poll_fn(|context| connection.poll_body(&mut rest, context)).await.unwrap());
        }
        (body, rest.keeps())
    };
    let (found, _theirs) = tokio::join!(ask, serve);
    assert_eq!(found, (b"done".to_vec(), true));
}

#[tokio::test]
async fn a_request_that_is_refused_half_way_has_its_answer() {
    let (ours, mut theirs) = duplex(64);
    let mut connection = Connection::new(ours);
    let large = Request::post("http://a.example/").body(Bytes::from(vec![b'x'; 100_000])).unwrap();
    theirs.write_all(b"HTTP/1.1 413 Large\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    drop(theirs);
    let (response, rest) = connection.exchange(&large, None, &[]).await.unwrap();
    assert_eq!((response.status().as_u16(), rest.is_over(), rest.keeps()), (413, true, false));
    // Without one the failure of the connection is the reason.
    let (ours, theirs) = duplex(64);
    drop(theirs);
    let error = Connection::new(ours).exchange(&large, None, &[]).await.unwrap_err();
    assert!(
        matches!(&error, Http1Error::Io(io) if io.kind() == io::ErrorKind::BrokenPipe),
        "{error:?}"
    );
}

/// A connection that is gone for who writes, while what was said on it has yet to come to who reads.
struct Gone {
    said: &'static [u8],
    is_late: bool,
}

impl AsyncRead for Gone {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        read: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.is_late) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        read.put_slice(std::mem::take(&mut self.said));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Gone {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn an_answer_that_comes_after_the_connection_has_broken_for_writing_counts() {
    let said = b"HTTP/1.1 413 Large\r\ncontent-length: 0\r\n\r\n";
    let mut connection = Connection::new(Gone { said, is_late: true });
    let (response, rest) = connection.exchange(&request(), None, &[]).await.unwrap();
    assert_eq!((response.status().as_u16(), rest.is_over(), rest.keeps()), (413, true, false));
    let mut connection = Connection::new(Gone { said: b"", is_late: true });
    let error = connection.exchange(&request(), None, &[]).await.unwrap_err();
    assert!(
        matches!(&error, Http1Error::Io(io) if io.kind() == io::ErrorKind::ConnectionReset),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_connection_that_waits_takes_no_memory_for_what_may_come() {
    let (ours, mut theirs) = duplex(ROOM);
    let mut connection = Connection::new(ours);
    theirs.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
    let (_, mut rest) = connection.exchange(&request(), None, &[]).await.unwrap();
    let much = vec![b'x'; 300_000];
    let wire = [format!("{:x}\r\n", much.len()).as_bytes(), &much, b"\r\n"].concat();
    theirs.write_all(&wire).await.unwrap();
    let mut body = Vec::new();
    while body.len() < much.len() {
        body.extend(poll_fn(|context| connection.poll_body(&mut rest, context)).await.unwrap());
    }
    assert!(poll_fn(|context| connection.poll_body(&mut rest, context)).now_or_never().is_none());
    assert!(body == much);
    assert_eq!(connection.buffer.capacity(), 0);
}

/// The same exchange by hyper, whose word counts where both can have one.
async fn by_hyper(answer: &[u8]) -> Option<(u16, Vec<(String, Vec<u8>)>, Vec<u8>)> {
    let (ours, mut theirs) = duplex(ROOM);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.unwrap();
    let ask = async {
        let response = sender.send_request(request().map(Full::new)).await.ok()?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.ok()?.to_bytes().to_vec();
        Some((head.status.as_u16(), listed(&head.headers), body))
    };
    let serve = async {
        // Not before it is asked: an answer to nothing is another matter.
        let mut asked = [0; 1];
        theirs.read_exact(&mut asked).await.unwrap();
        theirs.write_all(answer).await.unwrap();
        drop(theirs);
    };
    let (found, (), _) = tokio::join!(ask, serve, connection);
    found
}

/// Answers as servers, bad ones and attackers send them.
fn answers() -> impl Strategy<Value = String> {
    let start = prop::sample::select(vec![
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200",
        "HTTP/1.0 200 OK",
        "HTTP/1.1 404 Not Found",
        "HTTP/1.1 204 No Content",
        "HTTP/1.1 304 Not Modified",
        "HTTP/1.1 500 \u{e9}",
        "HTTP/1.1  200 OK",
        "HTTP/2.0 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1 600 X",
    ]);
    let header = prop::sample::select(vec![
        "content-length: 3",
        "Content-Length: 3",
        "content-length: 4",
        "content-length: 0",
        "content-length: -1",
        "content-length: x",
        "content-length:",
        "transfer-encoding: chunked",
        "Transfer-Encoding: Chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: gzip",
        "transfer-encoding: chunked, gzip",
        "connection: close",
        "connection: keep-alive",
        "a: b",
        "a:b ",
        "a : b",
        " a: b",
        "a",
        ": b",
        "x\u{e9}: y",
        "x: \u{e9}",
        "x: \t y",
        "content-type: text/plain",
    ]);
    let body = prop::sample::select(vec![
        "",
        "abc",
        "abcd",
        "3\r\nabc\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\n",
        "3\r\nabc",
        "3;x=y\r\nabc\r\n0\r\na: b\r\n\r\n",
        "g\r\nabc\r\n",
        "3\nabc\n0\n\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "03\r\nabc\r\n00\r\n\r\n",
        "0\r\n\r\n",
        "3;x\ny\r\nabc\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\n\n",
        "3\r\nabc\r\n0\r\na: b\n\r\n",
        "0\r\nabc\r\n0\r\n\r\n",
        "1\r\na\r\n2\r\nbc\r\n0\r\n\r\nbehind",
    ]);
    let interim = prop::sample::select(vec![
        "",
        "",
        "",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 X\r\na: b\r\n\r\n",
    ]);
    let end = prop::sample::select(vec!["\r\n", "\r\n", "\r\n", "\n"]);
    (interim, start, prop::collection::vec(header, 0..4), end, body).prop_map(
        |(interim, start, headers, end, body)| {
            let lines: Vec<&str> = [start].into_iter().chain(headers).chain(["", ""]).collect();
            format!("{interim}{}{body}", lines.join(end))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn answers_are_understood_as_hyper_does(answer in answers(), piece in 1_usize..60) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let hyper = runtime.block_on(by_hyper(answer.as_bytes()));
        let ours = runtime.block_on(answered(answer.as_bytes(), piece)).ok();
        let ours = ours.map(|(status, headers, body, _)| (status, headers, body));
        prop_assert_eq!(ours, hyper);
    }
}

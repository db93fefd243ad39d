use std::time::Duration;

use tokio::time::timeout;

use super::*;

/// A server that answers every connection with these bytes after the first of the request, then waits for its end.
async fn server(answer: &'static str) -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            open.spawn(async move {
                let mut buffer = [0; 1024];
                while let Ok(1..) = stream.read(&mut buffer).await {
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (address, tasks)
}

async fn ask(proxy: &RecordingProxy) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(proxy.address()).await?;
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await?;
    Ok(stream)
}

async fn read_to_end(mut stream: TcpStream) -> String {
    let mut text = String::new();
    let read = timeout(Duration::from_secs(10), stream.read_to_string(&mut text)).await;
    read.expect("the connection ends").unwrap();
    text
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"n\":1}\n\n";

#[tokio::test]
async fn a_stream_is_cut_once_in_the_middle_and_the_record_shows_where() {
    let (upstream, _server) = server(STREAM).await;
    let proxy = RecordingProxy::start(upstream).await.unwrap();
    proxy.cut_next_stream();
    let cut = read_to_end(ask(&proxy).await.unwrap()).await;
    assert!(cut.len() < STREAM.len() && STREAM.starts_with(&cut), "{cut}");
    assert!(!proxy.will_cut());
    assert_eq!(proxy.exchanges()[0].response, cut.as_bytes());
    let mut whole = ask(&proxy).await.unwrap();
    whole.shutdown().await.unwrap();
    assert_eq!(read_to_end(whole).await, STREAM);
}

#[tokio::test]
async fn an_answer_that_is_no_stream_passes_whole_while_a_cut_waits() {
    const PLAIN: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"data:\":1}";
    let (upstream, _server) = server(PLAIN).await;
    let proxy = RecordingProxy::start(upstream).await.unwrap();
    proxy.cut_next_stream();
    let mut stream = ask(&proxy).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(read_to_end(stream).await, PLAIN);
    assert!(proxy.will_cut());
}

#[tokio::test]
async fn a_proxy_that_is_down_refuses_closes_what_was_open_and_comes_back_where_it_was() {
    let (upstream, _server) = server(STREAM).await;
    let mut proxy = RecordingProxy::start(upstream).await.unwrap();
    let mut open = ask(&proxy).await.unwrap();
    let mut first = [0; 8];
    open.read_exact(&mut first).await.unwrap();
    proxy.go_down().await;
    let _ = timeout(Duration::from_secs(10), open.read_to_end(&mut Vec::new())).await.unwrap();
    assert!(TcpStream::connect(proxy.address()).await.is_err());
    proxy.come_back().await.unwrap();
    let mut again = ask(&proxy).await.unwrap();
    again.read_exact(&mut first).await.unwrap();
    assert_eq!(proxy.exchanges().len(), 2);
}

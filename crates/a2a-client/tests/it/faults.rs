//! A stream in pieces: cut into two at every byte, ended and broken at every byte, with every kind of line end.

use std::{
    convert::Infallible,
    fmt::Write as _,
    io,
    sync::{Arc, Mutex},
};

use axum::body::{Body, Bytes};
use futures::{StreamExt as _, stream};
use serde_json::json;
use volcanic_a2a_client::{ClientConfig, ClientError, RemoteAgent};
use volcanic_a2a_types::StreamResponse;
use volcanic_net::InMemory;

use crate::agent::{LIMIT, Script, Seen, connect_with, entry, event_stream, task};

/// How long the stream is at least, in bytes.
const LENGTH: usize = 4096;
const LINE_ENDS: [&str; 3] = ["\n", "\r\n", "\r"];

/// What happens behind so many bytes.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The rest comes as another piece.
    Border(usize),
    /// The answer ends.
    End(usize),
    /// The connection breaks.
    Break(usize),
}

/// Stands for the id of a request.
const ID: &str = "01234567-89ab-cdef-0123-456789abcdef";

/// A whole stream, and where each of its events is over.
fn whole(line_end: &str) -> (String, Vec<usize>) {
    let update = |state: &str| json!({"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": {"state": state}}});
    let piece = json!({"artifactUpdate": {"taskId": "t1", "contextId": "c1", "append": true,
        "artifact": {"artifactId": "a", "parts": [{"text": "plum é 漢 ".repeat(9)}]}}});
    let mut events = vec![json!({"task": task("t1", "WORKING")}), update("TASK_STATE_WORKING")];
    events.extend((0..LENGTH / 250).map(|_| piece.clone()));
    events.push(update("TASK_STATE_COMPLETED"));
    let (mut text, mut ends) = (format!(": hello{line_end}{line_end}"), Vec::new());
    for result in events {
        let event = json!({"jsonrpc": "2.0", "id": ID, "result": result});
        // Writing to a string cannot fail.
        let _ = write!(text, "data: {event}{line_end}{line_end}");
        ends.push(text.len());
        let _ = write!(text, ": {line_end}");
    }
    assert!(text.len() >= LENGTH, "{}", text.len());
    (text, ends)
}

fn answer(seen: &Seen, whole: &str, fault: Fault) -> Body {
    // As long as what it replaces, so that offsets stay.
    let id = format!("{:<38}", seen.body["id"].to_string());
    let bytes = Bytes::from(whole.replace(&format!("\"{ID}\""), &id));
    assert_eq!(bytes.len(), whole.len());
    match fault {
        Fault::Border(at) => {
            let pieces = [bytes.slice(..at), bytes.slice(at..)];
            Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>)))
        }
        Fault::End(at) => Body::from(bytes.slice(..at)),
        Fault::Break(at) => {
            let pieces =
                [Ok(bytes.slice(..at)), Err(io::Error::from(io::ErrorKind::ConnectionReset))];
            Body::from_stream(stream::iter(pieces))
        }
    }
}

/// An agent that answers as the shared plan says.
struct Planned {
    remote: RemoteAgent,
    plan: Arc<Mutex<(String, Fault)>>,
}

impl Planned {
    async fn new() -> Self {
        let plan = Arc::new(Mutex::new((String::new(), Fault::Border(0))));
        let script = Script::new({
            let plan = Arc::clone(&plan);
            move |seen| {
                let plan = plan.lock().unwrap();
                event_stream(answer(seen, &plan.0, plan.1))
            }
        });
        let transport = Arc::new(InMemory::new(script.router()));
        let config = ClientConfig::default();
        let remote = connect_with(&entry("http://agent.example/"), transport, &config).await;
        Self { remote: remote.unwrap(), plan }
    }

    async fn events(&self, whole: &str, fault: Fault) -> Vec<Result<StreamResponse, ClientError>> {
        *self.plan.lock().unwrap() = (whole.to_owned(), fault);
        let events = self.remote.subscribe(&"t1".into()).await.unwrap();
        tokio::time::timeout(LIMIT, events.collect()).await.unwrap()
    }
}

/// The events that came whole.
fn good(events: Vec<Result<StreamResponse, ClientError>>) -> Vec<StreamResponse> {
    events.into_iter().filter_map(Result::ok).collect()
}

#[tokio::test]
async fn stream_in_two_pieces_is_the_same_wherever_the_border_is() {
    let planned = Planned::new().await;
    let wholes = LINE_ENDS.map(|line_end| whole(line_end).0);
    let all = good(planned.events(&wholes[0], Fault::Border(0)).await);
    assert!(all.len() > 10, "{all:?}");
    for at in 0..=LENGTH {
        // Beside each line end there is a border in some round, as they are of other lengths.
        let whole = &wholes[at % LINE_ENDS.len()];
        let events = planned.events(whole, Fault::Border(at)).await;
        assert!(events.iter().all(Result::is_ok), "{at}: {events:?}");
        assert!(good(events) == all, "{:?} at {at}", LINE_ENDS[at % LINE_ENDS.len()]);
    }
}

#[tokio::test]
async fn stream_that_ends_or_breaks_at_any_byte_gives_the_events_before_it_and_none_in_part() {
    let planned = Planned::new().await;
    let wholes = LINE_ENDS.map(whole);
    let all = good(planned.events(&wholes[0].0, Fault::Border(0)).await);
    for at in 0..LENGTH {
        let (whole, ends) = &wholes[at % LINE_ENDS.len()];
        let fault = if at % 2 == 0 { Fault::End(at) } else { Fault::Break(at) };
        let events = planned.events(whole, fault).await;
        let broke = events.iter().filter(|event| event.is_err()).count();
        assert!(broke <= 1 && events.iter().rev().skip(1).all(Result::is_ok), "{fault:?}");
        assert!(broke == 1 || matches!(fault, Fault::End(_)), "{fault:?} was not told");
        let over = ends.iter().filter(|end| **end <= at).count();
        let got = good(events);
        // The last one counts without its blank line.
        assert!((over..=over + 1).contains(&got.len()), "{fault:?}: {got:?}");
        assert!(got == all[..got.len()], "{fault:?}: {got:?}");
    }
}

//! Remote agents that are slow on purpose. The limits of time are scaled down to fractions of a second; where the shipped
//! program lets people set them, its own tests try them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use volcanic_a2a_client::{
    AgentEntry, AgentName, ClientConfig, ClientError, RemoteAgent, plain_keys,
};
use volcanic_net::{NetClient, NetConfig};
use volcanic_testkit::{
    HostileAgent, HostilePlace, HostileProtocol, HostileTrick, StreamFault, WireFault,
};

use crate::remote::within;

const PROTOCOLS: [HostileProtocol; 3] =
    [HostileProtocol::JsonRpc, HostileProtocol::HttpJson, HostileProtocol::OldJsonRpc];

/// How late an end may be noticed on a busy machine.
const LATE: Duration = Duration::from_secs(10);

fn hasty() -> ClientConfig {
    ClientConfig {
        call_timeout: Duration::from_millis(500),
        event_pause: Duration::from_millis(300),
        ..ClientConfig::default()
    }
}

pub(crate) async fn connect(agent: &HostileAgent) -> RemoteAgent {
    let entry = AgentEntry::new(AgentName::new("bot").unwrap(), agent.url().parse().unwrap());
    let client = Arc::new(NetClient::new(NetConfig::default()).unwrap());
    within(RemoteAgent::connect(&entry, client, plain_keys(), &hasty())).await.unwrap()
}

#[track_caller]
fn check_late(error: &ClientError, asked_at: Instant, what: &str) {
    assert!(matches!(error, ClientError::TimedOut { .. }), "{what}: {error:?}");
    assert!(asked_at.elapsed() < LATE, "{what}: {:?}", asked_at.elapsed());
}

#[tokio::test]
async fn a_call_that_is_slow_ends_with_its_time() {
    for protocol in PROTOCOLS {
        for fault in
            [WireFault::Silence, WireFault::SlowHead, WireFault::SlowBody, WireFault::OpenEnd]
        {
            let what = format!("{fault:?} over {protocol:?}");
            let trick = HostileTrick::Wire(HostilePlace::Call, fault);
            let agent = HostileAgent::start_over(protocol, trick).await.unwrap();
            let remote = connect(&agent).await;
            let asked_at = Instant::now();
            let error = within(remote.get_task(&"t1".into(), None)).await.unwrap_err();
            check_late(&error, asked_at, &what);
            assert_eq!(agent.complaints(), Vec::<String>::new(), "{what}");
        }
    }
}

#[tokio::test]
async fn a_stream_whose_beginning_is_slow_ends_with_the_time_of_a_call() {
    for protocol in [HostileProtocol::JsonRpc, HostileProtocol::HttpJson] {
        for fault in [WireFault::Silence, WireFault::SlowHead] {
            let what = format!("{fault:?} over {protocol:?}");
            let trick = HostileTrick::Wire(HostilePlace::Stream, fault);
            let agent = HostileAgent::start_over(protocol, trick).await.unwrap();
            let remote = connect(&agent).await;
            let asked_at = Instant::now();
            let error = within(remote.subscribe(&"t1".into())).await.unwrap_err();
            check_late(&error, asked_at, &what);
        }
    }
}

#[tokio::test]
async fn an_event_that_stalls_ends_the_stream_after_its_pause() {
    for protocol in PROTOCOLS {
        let what = format!("{protocol:?}");
        let trick = HostileTrick::Stream(StreamFault::SlowEvent);
        let agent = HostileAgent::start_over(protocol, trick).await.unwrap();
        let remote = connect(&agent).await;
        let mut events = within(remote.subscribe(&"t1".into())).await.unwrap();
        let asked_at = Instant::now();
        let error = loop {
            match within(events.next()).await.expect("the stream ended") {
                Ok(event) => assert!(!event.status().unwrap().state.is_settled(), "{what}"),
                Err(error) => break error,
            }
        };
        check_late(&error, asked_at, &what);
        assert!(within(events.next()).await.is_none(), "{what}");
    }
}

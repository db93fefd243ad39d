use std::sync::Arc;

use axum::Router;
use volcanic_base::Secret;
use volcanic_net::InMemory;

use super::*;
use crate::{AgentName, ClientConfig, KeySource, plain_keys};

fn entry(url: &str) -> AgentEntry {
    AgentEntry::new(AgentName::new("a").unwrap(), Url::parse(url).unwrap())
}

fn keyed(url: &str) -> AgentEntry {
    AgentEntry { key: Some(KeySource::Plain(Secret::new("k_planted"))), ..entry(url) }
}

fn card(interfaces: &[(&str, &str, &str)]) -> AgentCard {
    let mut card = AgentCard::new("n", "d", "1");
    card.supported_interfaces = interfaces
        .iter()
        .map(|(url, binding, version)| AgentInterface::new(*url, *binding, *version))
        .collect();
    card
}

fn chosen(entry: &AgentEntry, card: &AgentCard) -> Result<CallTarget, ClientError> {
    let transport = Arc::new(InMemory::new(Router::new()));
    let line = Line::new(entry, transport, &plain_keys(), &ClientConfig::default()).unwrap();
    choose(entry, card, &SaidInterfaces::default(), &line)
}

/// Where the agent is called whose card says `said`, of which `read` is left without what stands in the entry's query.
fn called(entry: &AgentEntry, read: &[&str], said: &[&str]) -> String {
    let interfaces = |urls: &[&str]| {
        let interfaces: Vec<_> = urls.iter().map(|url| (*url, "JSONRPC", "1.0")).collect();
        card(&interfaces)
    };
    let (read, said) = (interfaces(read), interfaces(said));
    let said = SaidInterfaces::of(&read, said);
    let transport = Arc::new(InMemory::new(Router::new()));
    let line = Line::new(entry, transport, &plain_keys(), &ClientConfig::default()).unwrap();
    choose(entry, &read, &said, &line).unwrap().url.into()
}

#[test]
fn what_stands_in_the_query_of_an_entry_is_part_of_an_address_at_its_own_origin_alone() {
    let mut entry = entry("https://a.example/?assistant=fe096781");
    entry.trusted_origins.push("https://b.example".to_owned());
    for (read, said, expected) in [
        (&["/a2a/***"][..], &["/a2a/fe096781"][..], "https://a.example/a2a/fe096781"),
        (&["https://b.example/***"], &["https://b.example/fe096781"], "https://b.example/***"),
        (&["/a2a"], &["/a2a"], "https://a.example/a2a"),
        // It is not said which of them is meant, or where it is.
        (&["/***", "/***"], &["/fe096781", "/fe096782"], "https://a.example/***"),
        (&["/***", "/***"], &["/fe096781", "/fe096781"], "https://a.example/fe096781"),
        (&["/***"], &["ftp://a.example/fe096781"], "https://a.example/***"),
    ] {
        assert_eq!(called(&entry, read, said), expected, "{said:?}");
    }
}

#[track_caller]
fn check_url(entry: &AgentEntry, interface: &str, expected: &str) {
    let target = chosen(entry, &card(&[(interface, "JSONRPC", "1.0")])).unwrap();
    assert_eq!((target.url.as_str(), target.is_trusted), (expected, true), "{interface}");
}

#[track_caller]
fn check_untrusted(entry: &AgentEntry, interface: &str, expected: &str) {
    let error = chosen(entry, &card(&[(interface, "JSONRPC", "1.0")])).unwrap_err();
    let ClientError::Untrusted { origin, .. } = &error else { panic!("{interface}: {error:?}") };
    assert_eq!(origin, expected);
    assert!(
        error.to_string().contains(&format!("\"trustedOrigins\": [\"{expected}\"]")),
        "{error}"
    );
}

#[test]
fn card_is_below_the_base_or_the_url_itself() {
    for (base, expected) in [
        ("https://a.example", "https://a.example/.well-known/agent-card.json"),
        ("https://a.example/", "https://a.example/.well-known/agent-card.json"),
        ("https://a.example/x/", "https://a.example/x/.well-known/agent-card.json"),
        ("https://a.example/x?k=1", "https://a.example/x/.well-known/agent-card.json?k=1"),
        ("https://a.example/cards/me.json", "https://a.example/cards/me.json"),
    ] {
        assert_eq!(card_url(&Url::parse(base).unwrap()).as_str(), expected);
    }
}

/// The path, binding and version chosen.
fn choice(entry: &AgentEntry, card: &AgentCard) -> (String, AgentBinding, AgentProtocol) {
    let target = chosen(entry, card).unwrap();
    (target.url.path().to_owned(), target.binding, target.protocol)
}

fn wanting(binding: Option<AgentBinding>, protocol: Option<AgentProtocol>) -> AgentEntry {
    AgentEntry { protocol, binding, ..entry("https://a.example") }
}

#[test]
fn first_interface_of_1_0_that_we_speak_is_taken() {
    use {
        AgentBinding::{HttpJson, JsonRpc},
        AgentProtocol::{V1, V03},
    };

    let mut card = card(&[
        ("https://a.example/grpc", "GRPC", "1.0"),
        ("https://a.example/old", "JSONRPC", "0.3.0"),
        ("https://a.example/new", "JSONRPC", "1.1"),
        ("https://a.example/rest", "http+json", "1.0.1"),
        ("https://a.example/one", "jsonrpc", "1.0"),
        ("https://a.example/two", "JSONRPC", "1.0"),
    ]);
    let any = wanting(None, None);
    assert_eq!(choice(&any, &card), ("/rest".to_owned(), HttpJson, V1));
    card.supported_interfaces.remove(3);
    assert_eq!(choice(&any, &card), ("/one".to_owned(), JsonRpc, V1));
    card.supported_interfaces.truncate(3);
    assert_eq!(choice(&any, &card), ("/old".to_owned(), JsonRpc, V03));
}

#[test]
fn entry_overrules_the_order() {
    use {
        AgentBinding::{HttpJson, JsonRpc},
        AgentProtocol::{V1, V03},
    };

    let card = card(&[
        ("https://a.example/rest", "HTTP+JSON", "1.0"),
        ("https://a.example/rpc", "JSONRPC", "1.0"),
        ("https://a.example/old-rest", "HTTP+JSON", "0.3"),
        ("https://a.example/old", "JSONRPC", "0.3"),
    ]);
    for (binding, protocol, path) in [
        (Some(JsonRpc), None, "/rpc"),
        (Some(HttpJson), None, "/rest"),
        (None, Some(V1), "/rest"),
        (Some(JsonRpc), Some(V1), "/rpc"),
        (None, Some(V03), "/old"),
        (Some(JsonRpc), Some(V03), "/old"),
    ] {
        assert_eq!(choice(&wanting(binding, protocol), &card).0, path);
    }
    let error = chosen(&wanting(Some(HttpJson), Some(V03)), &card).unwrap_err().to_string();
    assert!(error.ends_with("what is wanted of it: HTTP+JSON 0.3 is not spoken here."), "{error}");
}

#[test]
fn entry_that_insists_on_something_else_gets_a_reason() {
    let card = card(&[("https://a.example/", "JSONRPC", "1.0"), ("x", "HTTP+JSON", "0.3")]);
    for (entry, wanted) in [
        (wanting(Some(AgentBinding::HttpJson), None), "HTTP+JSON 1.0"),
        (wanting(None, Some(AgentProtocol::V03)), "JSONRPC 0.3"),
    ] {
        let error = chosen(&entry, &card).unwrap_err().to_string();
        let end = format!(
            "it offers JSONRPC 1.0, HTTP+JSON 0.3, and none of that is {wanted}, as is wanted of it."
        );
        assert!(error.ends_with(&end), "{error}");
    }
}

#[test]
fn card_without_interfaces_gets_a_reason() {
    let error = chosen(&entry("https://a.example"), &card(&[])).unwrap_err().to_string();
    assert_eq!(error, "The card of agent \"a\" cannot be used: it names no interface.");
}

#[test]
fn relative_interface_belongs_to_the_cards_own_address() {
    let entry = keyed("https://a.example/x");
    check_url(&entry, "/a2a", "https://a.example/a2a");
    check_url(&entry, "../a2a", "https://a.example/x/a2a");
    check_url(&entry, "//a.example:443/a2a", "https://a.example/a2a");
    check_url(&keyed("https://a.example/c/me.json"), "rpc", "https://a.example/c/rpc");
}

#[test]
fn odd_interface_addresses_are_refused() {
    for url in ["ftp://a.example/", "https://", "https://me:pw@a.example/", "file:///etc/passwd"] {
        let error = chosen(&entry("https://a.example"), &card(&[(url, "JSONRPC", "1.0")]));
        assert!(matches!(error, Err(ClientError::Card { .. })), "{url}: {error:?}");
    }
}

#[test]
fn key_follows_to_no_other_origin_unless_listed() {
    let mut entry = keyed("https://a.example");
    for (interface, origin) in [
        ("https://b.example/a2a", "https://b.example"),
        ("http://a.example/a2a", "http://a.example"),
        ("https://a.example:8443/a2a", "https://a.example:8443"),
        ("https://a.example.evil/a2a", "https://a.example.evil"),
        ("http://127.0.0.1/a2a", "http://127.0.0.1"),
    ] {
        check_untrusted(&entry, interface, origin);
        entry.trusted_origins = vec![origin.to_owned()];
        check_url(&entry, interface, interface);
        entry.trusted_origins.clear();
    }
}

#[test]
fn headers_of_the_entry_are_guarded_like_the_key() {
    let mut entry = entry("https://a.example");
    let secret = KeySource::Plain(Secret::new("gateway"));
    entry.headers = vec![(http::HeaderName::from_static("x-gateway"), secret)];
    check_untrusted(&entry, "https://b.example/", "https://b.example");
}

#[test]
fn without_secrets_another_origin_is_fine_if_it_is_public() {
    let entry = entry("https://a.example");
    let target = chosen(&entry, &card(&[("https://b.example/", "JSONRPC", "1.0")])).unwrap();
    assert_eq!((target.policy, target.is_trusted), (GuardPolicy::PublicOnly, false));
    for private in [
        "http://127.0.0.1:1",
        "http://localhost",
        "http://[::1]",
        "http://10.0.0.1",
        "http://router",
    ] {
        check_untrusted(&entry, private, private);
    }
}

#[test]
fn own_origin_may_be_private() {
    let target = chosen(
        &keyed("http://127.0.0.1:9000"),
        &card(&[("http://127.0.0.1:9000/a2a", "JSONRPC", "1.0")]),
    );
    assert_eq!(target.unwrap().policy, GuardPolicy::Open);
}

#[test]
fn a_tenant_of_ones_own_is_for_interfaces_that_name_none() {
    let entry = AgentEntry { tenant: Some("mine".to_owned()), ..entry("https://a.example") };
    for (named, wanted) in [(None, "mine"), (Some("theirs"), "theirs")] {
        let mut card = card(&[("https://a.example/rpc", "JSONRPC", "1.0")]);
        card.supported_interfaces[0].tenant = named.map(str::to_owned);
        assert_eq!(chosen(&entry, &card).unwrap().tenant.as_deref(), Some(wanted));
    }
}

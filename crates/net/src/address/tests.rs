use serde::Deserialize;

use super::*;

/// Addresses and ranges the guard was designed against.
#[derive(Deserialize)]
struct Fixture {
    must_block: Vec<IpAddr>,
    good: Vec<IpAddr>,
    ranges_v4: Vec<String>,
    ranges_v6: Vec<String>,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("../../tests/fixtures/ssrf-addresses.json")).unwrap()
}

#[test]
fn every_listed_address_is_told_apart() {
    let fixture = fixture();
    assert_eq!((fixture.must_block.len(), fixture.good.len()), (52, 15));
    let passed: Vec<_> = fixture.must_block.iter().filter(|ip| is_public_address(**ip)).collect();
    let refused: Vec<_> = fixture.good.iter().filter(|ip| !is_public_address(**ip)).collect();
    assert_eq!((passed, refused), (vec![], vec![]));
}

#[test]
fn tables_hold_exactly_the_listed_ranges() {
    let fixture = fixture();
    let mut v4: Vec<String> = BLOCKED_V4.iter().map(|(net, len)| format!("{net}/{len}")).collect();
    let mut v6: Vec<String> = BLOCKED_V6.iter().map(|(net, len)| format!("{net}/{len}")).collect();
    let (mut listed_v4, mut listed_v6) = (fixture.ranges_v4, fixture.ranges_v6);
    for list in [&mut v4, &mut v6, &mut listed_v4, &mut listed_v6] {
        list.sort();
    }
    assert_eq!((v4, v6), (listed_v4, listed_v6));
}

#[test]
fn first_and_last_address_of_every_range_are_refused() {
    for (network, prefix) in BLOCKED_V4 {
        let last =
            Ipv4Addr::from_bits(network.to_bits() | u32::MAX.checked_shr(prefix).unwrap_or(0));
        assert!(!is_public_v4(network) && !is_public_v4(last), "{network}/{prefix}");
    }
    for (network, prefix) in BLOCKED_V6 {
        let last = Ipv6Addr::from_bits(network.to_bits() | (u128::MAX >> prefix));
        assert!(!is_public_v6(network) && !is_public_v6(last), "{network}/{prefix}");
    }
}

#[test]
fn private_names_are_refused_by_spelling() {
    for host in [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "printer.local",
        "db.internal",
        "x.home.arpa",
        "router",
        "[::1]",
    ] {
        assert!(!is_public_host(host), "{host}");
        assert!(GuardPolicy::Open.admits_host(host), "{host}");
    }
    for host in
        ["agent.example", "notlocalhost.example", "mylocal.example.", "8.8.8.8", "[2606:4700::1]"]
    {
        assert!(GuardPolicy::PublicOnly.admits_host(host), "{host}");
    }
}

#[test]
fn public_only_is_the_stricter_policy() {
    assert_eq!(GuardPolicy::Open.max(GuardPolicy::PublicOnly), GuardPolicy::PublicOnly);
}

//! Which hosts and addresses are public, so that text from outside cannot send us to our own network.
//!
//! IPv4 is a list of what is refused. IPv6 is the other way round: only the part that is handed out to the public
//! internet passes, less the ranges in it that lead elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where a request may go. The later one is the stricter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuardPolicy {
    /// Anywhere: the owner wrote the URL, and agents on the own machine are normal.
    #[default]
    Open,
    /// Only to public addresses: the URL came from outside. A name one of whose addresses is not public is refused
    /// whole, since a mixed answer is a sign of an attack.
    PublicOnly,
}

impl GuardPolicy {
    /// Whether a connection to `address` is allowed.
    pub(crate) fn admits(self, address: IpAddr) -> bool {
        match self {
            Self::Open => true,
            Self::PublicOnly => is_public_address(address),
        }
    }

    /// Whether a connection to the host `host` of a URL is allowed, as far as its spelling tells.
    pub fn admits_host(self, host: &str) -> bool {
        match self {
            Self::Open => true,
            Self::PublicOnly => is_public_host(host),
        }
    }
}

/// Names that stand for this machine or this network whatever they resolve to.
const PRIVATE_SUFFIXES: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// Whether the host of a URL can be public by its spelling: a public address, or a name with a dot that is not reserved
/// for private networks. A name must still be resolved and its addresses checked.
fn is_public_host(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_public_address(address);
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let reserved = PRIVATE_SUFFIXES.iter().any(|suffix| {
        name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    name.contains('.') && !reserved
}

/// Whether `address` belongs to the public internet.
fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public_v4(mapped),
            None => is_public_v6(address),
        },
    }
}

const BLOCKED_V4: [(Ipv4Addr, u32); 19] = [
    (Ipv4Addr::UNSPECIFIED, 8),            // this host, this network
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT, overlay networks
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, cloud metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments, NAT64 discovery
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation
    (Ipv4Addr::new(192, 31, 196, 0), 24),  // AS112
    (Ipv4Addr::new(192, 52, 193, 0), 24),  // AMT
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relay
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private
    (Ipv4Addr::new(192, 175, 48, 0), 24),  // AS112
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarking
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, broadcast
    (Ipv4Addr::new(168, 63, 129, 16), 32), // a cloud's host agent, at a public address
];

/// The part of IPv6 that is handed out for public use.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

const BLOCKED_V6: [(Ipv6Addr, u32); 6] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // Teredo, benchmarking, ORCHID, drone ids
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4 carries any IPv4 address
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16), // the old test network
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(network, prefix): &(Ipv4Addr, u32)| {
        (address.to_bits() ^ network.to_bits()).leading_zeros() >= *prefix
    };
    !BLOCKED_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let within = |(network, prefix): &(Ipv6Addr, u32)| {
        (address.to_bits() ^ network.to_bits()).leading_zeros() >= *prefix
    };
    within(&PUBLIC_V6) && !BLOCKED_V6.iter().any(within)
}

#[cfg(test)]
mod tests;

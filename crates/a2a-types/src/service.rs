//! What travels in HTTP headers, well-known places and metadata.

use std::{fmt, str::FromStr};

/// Says which version of the protocol a request speaks.
pub const VERSION_HEADER: &str = "A2A-Version";
/// Lists the URIs of extensions: those asked for in a request, those in use in a response.
pub const EXTENSIONS_HEADER: &str = "A2A-Extensions";
/// Carries the token of a push configuration to the webhook. Not in the specification, sent by all SDKs.
pub const NOTIFICATION_TOKEN_HEADER: &str = "X-A2A-Notification-Token";
/// Where an agent's card is found, from the root of its origin.
pub const AGENT_CARD_PATH: &str = "/.well-known/agent-card.json";
/// The media type of A2A objects outside of JSON-RPC.
pub const MEDIA_TYPE_A2A_JSON: &str = "application/a2a+json";
/// The media type of JSON-RPC, and of many peers everywhere.
pub const MEDIA_TYPE_JSON: &str = "application/json";
/// The media type of streams.
pub const MEDIA_TYPE_EVENT_STREAM: &str = "text/event-stream";
/// The metadata member, of a message or a request, that counts the assistants a piece of work has come through. Not in the
/// specification: it bounds chains of assistants that call each other.
pub const HOPS_METADATA: &str = "volcanic.hops";

/// A media type without its parameters.
pub fn media_type_essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Whether a body of this type is read as JSON: peers send either type of the two in both directions.
pub fn is_json_media_type(content_type: &str) -> bool {
    let essence = media_type_essence(content_type);
    [MEDIA_TYPE_A2A_JSON, MEDIA_TYPE_JSON]
        .into_iter()
        .any(|known| essence.eq_ignore_ascii_case(known))
}

/// A version of the protocol. Only major and minor count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion {
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
}

/// A version that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version such as 1.0")]
pub struct ProtocolVersionError(String);

impl ProtocolVersion {
    /// Version 0.3, what a peer speaks that names no version.
    pub const V0_3: Self = Self { major: 0, minor: 3 };
    /// Version 1.0.
    pub const V1_0: Self = Self { major: 1, minor: 0 };
}

/// Reads `Major.Minor`; a missing minor is 0, and what follows (a patch) is ignored as the specification demands.
impl FromStr for ProtocolVersion {
    type Err = ProtocolVersionError;

    fn from_str(text: &str) -> Result<Self, ProtocolVersionError> {
        let number = |digits: &str| {
            let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_plain)
        };
        let mut numbers = text.trim().splitn(3, '.');
        let major = numbers.next().and_then(number);
        let minor = numbers.next().map_or(Some(0), number);
        match (major, minor) {
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            (None | Some(_), None) | (None, Some(_)) => {
                Err(ProtocolVersionError(text.chars().take(40).collect()))
            }
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_types_of_json_are_taken_with_parameters() {
        for text in
            ["application/json", "application/a2a+json; charset=utf-8", " Application/JSON ;q=1"]
        {
            assert!(is_json_media_type(text), "{text}");
        }
        for text in ["", "text/plain", "application/jsonp", "text/event-stream"] {
            assert!(!is_json_media_type(text), "{text}");
        }
    }

    #[test]
    fn hops_are_counted_under_the_name_that_peers_know() {
        assert_eq!(HOPS_METADATA, "volcanic.hops");
    }

    #[test]
    fn only_major_and_minor_count() {
        for text in ["1.0", "1", " 1.0 ", "1.0.1", "1.0.1-rc.2"] {
            assert_eq!(text.parse(), Ok(ProtocolVersion::V1_0), "{text}");
        }
        assert_eq!("0.3.26".parse(), Ok(ProtocolVersion::V0_3));
        assert!(ProtocolVersion::V0_3 < ProtocolVersion::V1_0);
        assert_eq!(ProtocolVersion { major: 1, minor: 7 }.to_string(), "1.7");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "v1.0", "1.x", "one", "1.", "+1.0", "-1.0", "70000.0"] {
            text.parse::<ProtocolVersion>().unwrap_err();
        }
    }
}

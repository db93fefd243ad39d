//! How a key is sent, and which headers nobody may set.

use http::{HeaderName, HeaderValue, header};
use volcanic_a2a_types::{AgentCard, SecurityScheme};
use volcanic_base::Secret;

use crate::{AgentEntry, KeySource};

/// The header for a key when the card names none.
pub(crate) const DEFAULT_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");

/// Whether a header steers the exchange itself or the protocol, so that neither a file nor a card may name it.
pub(crate) fn is_restricted(name: &HeaderName) -> bool {
    const EXACT: [HeaderName; 9] = [
        header::HOST,
        // Each call says itself what it understands.
        header::ACCEPT,
        header::COOKIE,
        header::TRANSFER_ENCODING,
        header::CONNECTION,
        HeaderName::from_static("keep-alive"),
        header::TE,
        header::TRAILER,
        header::UPGRADE,
    ];
    let prefixes = ["content-", "proxy-", "a2a-"];
    EXACT.contains(name) || prefixes.iter().any(|prefix| name.as_str().starts_with(prefix))
}

impl AgentEntry {
    /// Adds a header to every request to the agent.
    ///
    /// # Errors
    ///
    /// Why there cannot be such a header: the exchange itself needs it, or the key travels in it.
    pub fn add_header(&mut self, name: HeaderName, value: KeySource) -> Result<(), String> {
        if is_restricted(&name) || (self.key.is_some() && is_key_header(&name)) {
            return Err(format!("the header {name} cannot be set here"));
        }
        self.headers.push((name, value));
        Ok(())
    }
}

/// Whether a header is one that a key travels in.
pub(crate) fn is_key_header(name: &HeaderName) -> bool {
    *name == header::AUTHORIZATION || *name == DEFAULT_KEY_HEADER
}

/// Why the key cannot be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyHeaderFault {
    /// The card names a header that cannot be used.
    Card,
    /// The key cannot stand in a header; the reason.
    Key(String),
}

/// The header that carries the key, by what the card says: `Authorization: Bearer` when every scheme on it is HTTP
/// bearer, else the header named by its API-key scheme, else `X-API-Key`.
///
/// # Errors
///
/// [`KeyHeaderFault`].
pub(crate) fn key_header(
    card: &AgentCard,
    key: &Secret,
) -> Result<(HeaderName, HeaderValue), KeyHeaderFault> {
    let schemes = || card.security_schemes.values();
    let is_bearer = |scheme: &SecurityScheme| matches!(scheme, SecurityScheme::HttpAuth(http) if http.scheme.eq_ignore_ascii_case("bearer"));
    if !card.security_schemes.is_empty() && schemes().all(is_bearer) {
        let value = header_value(&format!("Bearer {}", key.expose()));
        return Ok((header::AUTHORIZATION, value.map_err(KeyHeaderFault::Key)?));
    }
    let named = schemes().find_map(|scheme| match scheme {
        SecurityScheme::ApiKey(scheme) if scheme.location.eq_ignore_ascii_case("header") => {
            Some(scheme.name.as_str())
        }
        _ => None,
    });
    let name = match named {
        None => DEFAULT_KEY_HEADER,
        Some(name) => HeaderName::from_bytes(name.as_bytes())
            .ok()
            .filter(|name| !is_restricted(name))
            .ok_or(KeyHeaderFault::Card)?,
    };
    Ok((name, header_value(key.expose()).map_err(KeyHeaderFault::Key)?))
}

/// A header's value that is never shown.
pub(crate) fn header_value(value: &str) -> Result<HeaderValue, String> {
    // More than the header type demands: what is not visible ASCII reaches the other side changed, if at all.
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let mut value = HeaderValue::from_str(value)
        .ok()
        .filter(|_| is_plain)
        .ok_or("it holds characters that cannot stand in a header")?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(schemes: &str) -> AgentCard {
        let json =
            format!(r#"{{"name":"n","supportedInterfaces":[],"securitySchemes":{schemes}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    #[track_caller]
    fn check(schemes: &str, header: &str, value: &str) {
        let (name, found) = key_header(&card(schemes), &Secret::new("k1")).unwrap();
        assert_eq!((name.as_str(), found.to_str().unwrap()), (header, value), "{schemes}");
        assert!(found.is_sensitive());
    }

    const BEARER: &str = r#""b":{"httpAuthSecurityScheme":{"scheme":"bearer"}}"#;
    const BASIC: &str = r#""c":{"httpAuthSecurityScheme":{"scheme":"Basic"}}"#;
    const NAMED: &str =
        r#""n":{"apiKeySecurityScheme":{"location":"header","name":"X-Agent-Key"}}"#;
    const QUERY: &str = r#""q":{"apiKeySecurityScheme":{"location":"query","name":"key"}}"#;

    #[test]
    fn bearer_only_when_every_scheme_is_bearer() {
        check(&format!("{{{BEARER}}}"), "authorization", "Bearer k1");
        check(&format!("{{{BEARER},{BASIC}}}"), "x-api-key", "k1");
        check(&format!("{{{BEARER},{NAMED}}}"), "x-agent-key", "k1");
    }

    #[test]
    fn key_goes_into_the_header_the_card_names_or_the_default() {
        check(&format!("{{{NAMED}}}"), "x-agent-key", "k1");
        check(&format!("{{{QUERY}}}"), "x-api-key", "k1");
        check("{}", "x-api-key", "k1");
    }

    #[test]
    fn card_cannot_name_a_header_that_steers_the_exchange() {
        for name in [
            "Host",
            "Accept",
            "Cookie",
            "Content-Length",
            "Connection",
            "A2A-Version",
            "TE",
            "X Key",
            "",
            "é",
        ] {
            let scheme = format!(
                r#"{{"n":{{"apiKeySecurityScheme":{{"location":"header","name":"{name}"}}}}}}"#
            );
            let Ok(card) = serde_json::from_str::<AgentCard>(&format!(
                r#"{{"name":"n","supportedInterfaces":[],"securitySchemes":{scheme}}}"#
            )) else {
                assert_eq!(name, "");
                continue;
            };
            let error = key_header(&card, &Secret::new("k1")).unwrap_err();
            assert_eq!(error, KeyHeaderFault::Card, "{name}");
        }
    }

    #[test]
    fn key_that_cannot_stand_in_a_header_is_refused_without_showing_it() {
        for key in ["a\r\nX: y", "a\0", "clé", "\u{7f}"] {
            let error = key_header(&card("{}"), &Secret::new(key)).unwrap_err();
            let reason = "it holds characters that cannot stand in a header";
            assert_eq!(error, KeyHeaderFault::Key(reason.to_owned()));
        }
    }
}

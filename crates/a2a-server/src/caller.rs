//! Who is calling: the hook that turns request headers into a caller.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use http::{HeaderMap, header};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};
use volcanic_base::Secret;

/// The header that carries a caller's key, beside `Authorization: Bearer`.
pub(crate) const API_KEY_HEADER: &str = "X-API-Key";

/// Whoever sent a request. Every task belongs to one caller and is invisible to all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller {
    /// The caller's name, unique on this server.
    pub name: String,
}

impl Caller {
    /// Creates a caller.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// Why a request has no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The request brings no key.
    #[error("no key was sent")]
    Missing,
    /// The key belongs to nobody, or to more than one caller.
    #[error("the key was not accepted")]
    Refused,
    /// The request comes from where this server takes none.
    #[error("requests from here are not taken")]
    Forbidden,
}

/// Says who sent a request, before a byte of its body is read.
pub trait CallerAuth: Send + Sync + fmt::Debug {
    /// Finds the caller.
    ///
    /// # Errors
    ///
    /// [`AuthError`], which becomes 401 (403 for [`AuthError::Forbidden`]).
    fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, AuthError>;

    /// Whether callers need a key, so that the card says so.
    fn needs_key(&self) -> bool {
        true
    }
}

/// A fixed list of callers and their keys.
///
/// Keys are kept as digests and compared in constant time; a key that two callers share belongs to neither.
pub struct StaticKeys {
    callers: Vec<(Caller, [u8; 32])>,
}

impl StaticKeys {
    /// Takes callers by name with their keys. An empty key is left out: it would let everybody in.
    pub fn new(keys: impl IntoIterator<Item = (String, Secret)>) -> Self {
        let named: BTreeMap<String, Secret> = keys.into_iter().collect();
        let callers = named
            .into_iter()
            .filter(|(_, key)| !key.expose().is_empty())
            .map(|(name, key)| (Caller { name }, digest(key.expose().as_bytes())))
            .collect();
        Self { callers }
    }
}

impl fmt::Debug for StaticKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            self.callers.iter().map(|(caller, _)| caller.name.as_str()).collect();
        f.debug_struct("StaticKeys").field("callers", &names).finish_non_exhaustive()
    }
}

impl CallerAuth for StaticKeys {
    fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, AuthError> {
        let presented = digest(presented_key(headers).ok_or(AuthError::Missing)?);
        // Every key is compared, so the time taken says nothing about which one was nearly right.
        let mut found = None;
        let mut matches = 0_u32;
        for (caller, key) in &self.callers {
            let equal: Choice = key.ct_eq(&presented);
            if bool::from(equal) {
                found = Some(caller);
                matches += 1;
            }
        }
        match (found, matches) {
            (Some(caller), 1) => Ok(caller.clone()),
            (Some(_) | None, _) => Err(AuthError::Refused),
        }
    }
}

/// Takes everybody as one caller, without a key; for demonstrations and tests.
#[derive(Debug, Clone)]
pub struct OpenAccess {
    caller: Caller,
    loopback_only: bool,
}

impl OpenAccess {
    /// Takes requests that name this machine's loopback as their host. A web page that had its own name point here
    /// (DNS rebinding) is turned away by that.
    pub fn loopback() -> Self {
        Self { caller: Caller::named("anyone"), loopback_only: true }
    }

    /// Takes every request. For tests and closed networks only.
    pub fn anyone() -> Self {
        Self { caller: Caller::named("anyone"), loopback_only: false }
    }
}

impl CallerAuth for OpenAccess {
    fn authenticate(&self, headers: &HeaderMap) -> Result<Caller, AuthError> {
        if self.loopback_only && !names_loopback(headers) {
            return Err(AuthError::Forbidden);
        }
        Ok(self.caller.clone())
    }

    fn needs_key(&self) -> bool {
        false
    }
}

/// The key of a request: `X-API-Key`, else `Authorization: Bearer`.
pub(crate) fn presented_key(headers: &HeaderMap) -> Option<&[u8]> {
    match headers.get(API_KEY_HEADER) {
        Some(value) if !value.is_empty() => Some(value.as_bytes()),
        Some(_) | None => bearer_token(headers),
    }
}

/// The credentials of `Authorization: Bearer`.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, rest) = value.split_at_checked(7)?;
    let token = rest.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

fn names_loopback(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Some(authority) =
        host.to_str().ok().and_then(|host| host.parse::<http::uri::Authority>().ok())
    else {
        return false;
    };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    fn keys() -> StaticKeys {
        StaticKeys::new(
            [("ann", "k-ann"), ("bob", "k-bob"), ("eve", "k-bob"), ("nil", "")]
                .map(|(name, key)| (name.to_owned(), Secret::new(key))),
        )
    }

    #[test]
    fn key_in_either_header_names_its_caller() {
        for headers in [
            headers("x-api-key", "k-ann"),
            headers("authorization", "Bearer k-ann"),
            headers("authorization", "bearer   k-ann"),
        ] {
            assert_eq!(keys().authenticate(&headers), Ok(Caller::named("ann")));
        }
    }

    #[test]
    fn missing_wrong_and_shared_keys_are_refused() {
        assert_eq!(keys().authenticate(&HeaderMap::new()), Err(AuthError::Missing));
        assert_eq!(keys().authenticate(&headers("x-api-key", "")), Err(AuthError::Missing));
        assert_eq!(
            keys().authenticate(&headers("authorization", "Basic k-ann")),
            Err(AuthError::Missing)
        );
        assert_eq!(keys().authenticate(&headers("x-api-key", "k-an")), Err(AuthError::Refused));
        assert_eq!(keys().authenticate(&headers("x-api-key", "k-bob")), Err(AuthError::Refused));
    }

    #[test]
    fn debug_shows_names_but_no_key() {
        let shown = format!("{:?}", keys());
        assert!(shown.contains("ann") && !shown.contains("k-ann"), "{shown}");
    }

    #[test]
    fn open_access_takes_only_requests_that_name_the_loopback() {
        for (host, taken) in [
            ("127.0.0.1:8080", true),
            ("localhost", true),
            ("[::1]:9", true),
            ("attacker.example:8080", false),
            ("10.0.0.1", false),
        ] {
            let answer = OpenAccess::loopback().authenticate(&headers("host", host));
            assert_eq!(answer.is_ok(), taken, "{host}");
        }
        assert!(OpenAccess::anyone().authenticate(&headers("host", "agent.test")).is_ok());
    }
}

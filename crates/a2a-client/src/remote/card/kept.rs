//! A public card that was read, how long it counts, and how the agent is asked whether it is still the same.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tokio::time::Instant;
use volcanic_a2a_types::AgentCard;

use super::SaidInterfaces;

/// How long a card counts when the agent does not say.
const DEFAULT_LIFETIME: Duration = Duration::from_hours(1);
/// However short an agent says: a call must not be two requests each time.
const SHORTEST: Duration = Duration::from_mins(1);
/// However long an agent says.
const LONGEST: Duration = Duration::from_hours(24);
/// Longer ones are not repeated, in bytes.
const MAX_VALIDATOR: usize = 1 << 10;

/// What an agent is told of the card that is at hand, and by what it told that.
const VALIDATORS: [(HeaderName, HeaderName); 2] =
    [(header::IF_NONE_MATCH, header::ETAG), (header::IF_MODIFIED_SINCE, header::LAST_MODIFIED)];

/// A public card that was read.
#[derive(Debug, Clone)]
pub(in crate::remote) struct KeptCard {
    pub(in crate::remote) card: Arc<AgentCard>,
    pub(in crate::remote) said: Arc<SaidInterfaces>,
    /// Headers of a request that asks whether it has changed; none if that cannot be asked.
    validators: HeaderMap,
    fresh_until: Instant,
}

impl KeptCard {
    /// A card as it came with these headers.
    pub(super) fn new(card: AgentCard, said: SaidInterfaces, headers: &HeaderMap) -> Self {
        let freshness = Freshness::of(headers);
        let validators = if freshness.may_be_kept { validators(headers) } else { HeaderMap::new() };
        let fresh_until = Instant::now() + freshness.lifetime;
        Self { card: Arc::new(card), said: Arc::new(said), validators, fresh_until }
    }

    /// The same card after an answer without one, which has newer headers.
    pub(super) fn renewed(&self, headers: &HeaderMap) -> Self {
        let freshness = Freshness::of(headers);
        let mut kept = self.validators.clone();
        kept.extend(validators(headers));
        let validators = if freshness.may_be_kept { kept } else { HeaderMap::new() };
        let fresh_until = Instant::now() + freshness.lifetime;
        Self { validators, fresh_until, ..self.clone() }
    }

    pub(super) fn validators(&self) -> &HeaderMap {
        &self.validators
    }

    pub(in crate::remote) fn is_fresh(&self) -> bool {
        Instant::now() < self.fresh_until
    }
}

fn validators(headers: &HeaderMap) -> HeaderMap {
    let found = VALIDATORS.into_iter().filter_map(|(asks, tells)| {
        let value: &HeaderValue = headers.get(tells)?;
        (!value.is_empty() && value.len() <= MAX_VALIDATOR).then(|| (asks, value.clone()))
    });
    found.collect()
}

/// What `Cache-Control` and `Age` say, as to a cache of our own.
#[derive(Debug, PartialEq, Eq)]
struct Freshness {
    lifetime: Duration,
    may_be_kept: bool,
}

impl Freshness {
    fn of(headers: &HeaderMap) -> Self {
        let mut lifetime = None;
        let mut may_be_kept = true;
        let lines = headers.get_all(header::CACHE_CONTROL).iter();
        let directives =
            lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
        for directive in directives {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            let name = name.trim();
            if name.eq_ignore_ascii_case("no-store") {
                (may_be_kept, lifetime) = (false, Some(Duration::ZERO));
            } else if name.eq_ignore_ascii_case("no-cache") {
                lifetime = Some(Duration::ZERO);
            } else if name.eq_ignore_ascii_case("max-age") && lifetime.is_none() {
                // What cannot be read counts as stale.
                lifetime = Some(seconds(value.trim().trim_matches('"')).unwrap_or_default());
            }
        }
        let age = headers.get(header::AGE).and_then(|age| seconds(age.to_str().ok()?.trim()));
        let lifetime = lifetime
            .map_or(DEFAULT_LIFETIME, |lifetime| lifetime.saturating_sub(age.unwrap_or_default()));
        Self { lifetime: lifetime.clamp(SHORTEST, LONGEST), may_be_kept }
    }
}

/// A number of seconds; one that is too large to hold is the largest.
fn seconds(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().map_or(Duration::MAX, Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let parsed = lines.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        parsed.collect()
    }

    #[track_caller]
    fn check(lines: &[(&'static str, &str)], minutes: u64, may_be_kept: bool) {
        let lifetime = Duration::from_mins(minutes);
        assert_eq!(
            Freshness::of(&headers(lines)),
            Freshness { lifetime, may_be_kept },
            "{lines:?}"
        );
    }

    #[test]
    fn lifetime_is_what_the_agent_says_within_bounds() {
        check(&[], 60, true);
        check(&[("cache-control", "public, max-age=600")], 10, true);
        check(&[("cache-control", "Max-Age=\"600\"")], 10, true);
        check(&[("cache-control", "max-age=600"), ("age", "120")], 8, true);
        check(&[("cache-control", "max-age=600"), ("age", "rubbish")], 10, true);
        check(&[("cache-control", "max-age=99999999999999999999999")], 24 * 60, true);
        check(&[("cache-control", "max-age=0")], 1, true);
        check(&[("cache-control", "max-age=soon")], 1, true);
        check(&[("cache-control", "no-cache, max-age=600")], 1, true);
        check(&[("cache-control", "max-age=600, no-cache")], 1, true);
        check(&[("cache-control", "no-store")], 1, false);
        check(&[("cache-control", "s-maxage=600")], 60, true);
    }

    #[test]
    fn only_validators_of_a_sane_length_are_repeated() {
        let long = "x".repeat(MAX_VALIDATOR + 1);
        let lines = [("etag", "W/\"a\""), ("last-modified", long.as_str())];
        let found = validators(&headers(&lines));
        assert_eq!(found, headers(&[("if-none-match", "W/\"a\"")]));
    }
}

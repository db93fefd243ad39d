//! When a remote says to come back.

use std::time::Duration;

use http::{
    HeaderMap,
    header::{DATE, RETRY_AFTER},
};
use jiff::Timestamp;

/// Reads `Retry-After`: seconds or an HTTP date. A date that has passed is no wait at all, a number too large to hold
/// is the longest wait there is (the caller has a cap), and anything else is `None`.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let moment = Timestamp::try_from(httpdate::parse_http_date(value).ok()?).ok()?;
    Some(Duration::try_from(moment.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Reads `Retry-After` with the remote's own `Date` as now, so that the two clocks need not agree. A date without a `Date`
/// beside it is `None`.
pub fn retry_after_by_date(headers: &HeaderMap) -> Option<Duration> {
    let date = headers.get(DATE).and_then(|value| value.to_str().ok());
    let now = date
        .and_then(|value| httpdate::parse_http_date(value.trim()).ok())
        .and_then(|moment| Timestamp::try_from(moment).ok());
    match now {
        Some(now) => retry_after(headers, now),
        // Seconds need no clock; far in the future every date has passed.
        None => retry_after(headers, Timestamp::MAX).filter(|pause| !pause.is_zero()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: Option<Duration>) {
        let now = "2026-11-30T12:00:00Z".parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, value.parse().unwrap());
        assert_eq!(retry_after(&headers, now), expected, "{value}");
    }

    #[test]
    fn seconds_are_taken_as_they_are() {
        check("0", Some(Duration::ZERO));
        check(" 120 ", Some(Duration::from_mins(2)));
    }

    #[test]
    fn huge_numbers_become_the_longest_wait() {
        check("18446744073709551615", Some(Duration::from_secs(u64::MAX)));
        check("99999999999999999999999999", Some(Duration::MAX));
    }

    #[test]
    fn dates_are_counted_from_now() {
        check("Mon, 30 Nov 2026 12:00:30 GMT", Some(Duration::from_secs(30)));
        check("Monday, 30-Nov-26 12:00:30 GMT", Some(Duration::from_secs(30)));
        check("Mon Nov 30 12:00:30 2026", Some(Duration::from_secs(30)));
    }

    #[test]
    fn past_dates_mean_no_wait() {
        check("Mon, 30 Nov 2026 11:00:00 GMT", Some(Duration::ZERO));
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(Duration::ZERO));
    }

    #[test]
    fn the_remotes_own_date_is_its_now() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "Mon, 30 Nov 2026 12:00:30 GMT".parse().unwrap());
        assert_eq!(retry_after_by_date(&headers), None);
        headers.insert(DATE, "Mon, 30 Nov 2026 12:00:00 GMT".parse().unwrap());
        assert_eq!(retry_after_by_date(&headers), Some(Duration::from_secs(30)));
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        assert_eq!(retry_after_by_date(&headers), Some(Duration::from_secs(7)));
        headers.remove(DATE);
        assert_eq!(retry_after_by_date(&headers), Some(Duration::from_secs(7)));
    }

    #[test]
    fn rubbish_is_no_answer() {
        for value in ["", "soon", "-5", "1.5", "5s", "0x10", "Mon, 30 Nov 2026"] {
            check(value, None);
        }
        assert_eq!(retry_after(&HeaderMap::new(), Timestamp::UNIX_EPOCH), None);
    }
}

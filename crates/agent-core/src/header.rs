//! The line before each prompt that tells the model when it was accepted.

use std::sync::LazyLock;

use jiff::{Timestamp, tz::TimeZone};
use regex::Regex;

/// Puts the line before a text: `[2026-10-08 14:05 +02:00 Europe/Berlin, Thu]`.
pub(crate) fn with_header(at: Timestamp, zone: &TimeZone, text: &str) -> String {
    let local = at.to_zoned_datetime(zone.clone());
    // A zone without a name is told by its offset alone.
    let name = zone.iana_name().map(|name| format!(" {name}")).unwrap_or_default();
    format!("[{}{name}, {}]\n{text}", local.strftime("%Y-%m-%d %H:%M %:z"), local.strftime("%a"))
}

/// Takes the line off again; a text without one comes back as it is.
pub(crate) fn without_header(text: &str) -> &str {
    #[expect(
        clippy::expect_used,
        reason = "the pattern is fixed and every test of this module compiles it"
    )]
    static HEADER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\A\[\d{4}-\d{2}-\d{2} \d{2}:\d{2} [+-]\d{2}:\d{2}(?::\d{2})?(?: [^\s\],]+)?, [A-Z][a-z]{2}\]\n")
            .expect("the pattern is valid")
    });
    HEADER.find(text).map_or(text, |header| &text[header.end()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(moment: &str) -> Timestamp {
        moment.parse().unwrap()
    }

    #[test]
    fn header_shows_local_time_offset_zone_and_day() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(
            with_header(at("2026-10-08T12:05:59Z"), &berlin, "hi\nthere"),
            "[2026-10-08 14:05 +02:00 Europe/Berlin, Thu]\nhi\nthere"
        );
        assert_eq!(
            with_header(at("2026-10-08T12:05:59Z"), &TimeZone::UTC, "hi"),
            "[2026-10-08 12:05 +00:00 UTC, Thu]\nhi"
        );
    }

    #[test]
    fn zone_without_a_name_shows_its_offset() {
        let zone = TimeZone::fixed(jiff::tz::offset(-3));
        assert_eq!(
            with_header(at("2026-01-01T01:00:00Z"), &zone, "hi"),
            "[2025-12-31 22:00 -03:00, Wed]\nhi"
        );
    }

    #[test]
    fn header_comes_off_again_and_nothing_else_does() {
        for zone in [TimeZone::UTC, TimeZone::fixed(jiff::tz::offset(5))] {
            let text = "[A2A result from \"x\", task 1 (completed)]\nContext: 2";
            assert_eq!(without_header(&with_header(at("2026-10-08T12:05:59Z"), &zone, text)), text);
            assert_eq!(without_header(text), text);
        }
    }
}

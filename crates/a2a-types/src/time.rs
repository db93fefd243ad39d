//! Moments on the wire.

use std::{fmt, str::FromStr};

use jiff::{Timestamp, civil, fmt::temporal::DateTimePrinter, tz::TimeZone};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::wire::{MAX_SHOWN, Reading, WireValue, text::cut};

/// A moment, written with milliseconds and `Z` as the specification prefers.
///
/// Reading is liberal: zero to nine digits of fraction, any offset, and none at all, which counts as UTC. What is
/// finer than a millisecond is kept in memory and left out when written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireTimestamp(pub Timestamp);

impl WireTimestamp {
    /// The moment.
    pub fn get(self) -> Timestamp {
        self.0
    }
}

impl From<Timestamp> for WireTimestamp {
    fn from(moment: Timestamp) -> Self {
        Self(moment)
    }
}

impl From<WireTimestamp> for Timestamp {
    fn from(moment: WireTimestamp) -> Self {
        moment.0
    }
}

impl FromStr for WireTimestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        text.parse().map(Self).or_else(|error| {
            let naive: civil::DateTime = text.parse().map_err(|_| error)?;
            Ok(Self(TimeZone::UTC.to_timestamp(naive)?))
        })
    }
}

impl fmt::Display for WireTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
        f.write_str(&PRINTER.timestamp_to_string(&self.0))
    }
}

impl Serialize for WireTimestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WireTimestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer, &Reading::whole())?
            .ok_or_else(|| de::Error::custom("a timestamp is needed"))
    }
}

impl<'de> WireValue<'de> for WireTimestamp {
    fn read<D: Deserializer<'de>>(deserializer: D, _: &Reading) -> Result<Option<Self>, D::Error> {
        struct TimestampVisitor;

        impl Visitor<'_> for TimestampVisitor {
            type Value = Option<WireTimestamp>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a timestamp as in RFC 3339")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<WireTimestamp>, E> {
                if text.is_empty() {
                    return Ok(None);
                }
                text.parse()
                    .map(Some)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(cut(text, MAX_SHOWN)), &self))
            }
        }

        deserializer.deserialize_str(TimestampVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(read: &str, written: &str) {
        assert_eq!(read.parse::<WireTimestamp>().unwrap().to_string(), written, "{read}");
    }

    #[test]
    fn reading_is_liberal_and_writing_is_strict() {
        check("2025-10-28T10:30:00Z", "2025-10-28T10:30:00.000Z");
        check("2025-10-28T10:30:00.142Z", "2025-10-28T10:30:00.142Z");
        check("2025-10-28T10:30:00.1Z", "2025-10-28T10:30:00.100Z");
        check("2025-10-28T10:30:00.142999999Z", "2025-10-28T10:30:00.142Z");
        check("2025-10-28T10:30:00.142000+00:00", "2025-10-28T10:30:00.142Z");
        check("2025-10-28T12:30:00+02:00", "2025-10-28T10:30:00.000Z");
        check("2025-10-28t10:30:00z", "2025-10-28T10:30:00.000Z");
        check("2025-10-28T10:30:00.5", "2025-10-28T10:30:00.500Z");
    }

    #[test]
    fn what_is_no_time_is_an_error() {
        for text in ["", "yesterday", "2025-13-01T00:00:00Z", "1761647400"] {
            text.parse::<WireTimestamp>().unwrap_err();
        }
        serde_json::from_str::<WireTimestamp>("17").unwrap_err();
    }
}

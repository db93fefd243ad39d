//! Moments on the wire.

use std::{fmt, str::FromStr};

use jiff::{Timestamp, civil, fmt::temporal::DateTimePrinter, tz::TimeZone};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::wire::{
    MAX_SHOWN, Reading, WireValue,
    quick::{self, Quick, Unusual},
    text::cut,
};

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
        if let Some(moment) = preferred(text.as_bytes()) {
            return Ok(Self(moment));
        }
        text.parse().map(Self).or_else(|error| {
            let naive: civil::DateTime = text.parse().map_err(|_| error)?;
            Ok(Self(TimeZone::UTC.to_timestamp(naive)?))
        })
    }
}

/// Reads a moment of our age in the writing that the specification prefers, `2026-10-28T10:30:00.142Z`. Each task and status
/// has one, and nearly all look like that; a reader that knows all that a date may look like takes many times as long. Of
/// anything else, a second 60 for instance, nothing is said.
fn preferred(text: &[u8]) -> Option<Timestamp> {
    const SHAPE: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
    let text: &[u8; 24] = text.try_into().ok()?;
    let is_shaped = text.iter().zip(SHAPE).all(|(found, wanted)| match wanted {
        b'0' => found.is_ascii_digit(),
        mark => found == mark,
    });
    let number = |from: usize, length: usize| {
        let digits = text.iter().skip(from).take(length);
        digits.fold(0, |number, digit| number * 10 + i64::from(digit & 0xf))
    };
    let (year, month, day) = (number(0, 4), number(5, 2), number(8, 2));
    let (hour, minute, second) = (number(11, 2), number(14, 2), number(17, 2));
    let is_real = (1971..=9000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !(is_shaped && is_real) {
        return None;
    }
    let days =
        days_before(year) + (1..month).map(|month| days_of(year, month)).sum::<i64>() + day - 1;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Timestamp::from_millisecond(seconds * 1000 + number(20, 3)).ok()
}

/// How many days lie between the first day of 1970 and that of a later year.
fn days_before(year: i64) -> i64 {
    let leap_days = |years: i64| years / 4 - years / 100 + years / 400;
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
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
    fn read<D: Deserializer<'de>>(
        deserializer: D,
        reading: &Reading,
    ) -> Result<Option<Self>, D::Error> {
        let is_answer = !reading.is_whole() && !reading.is_request();
        if is_answer {
            deserializer.deserialize_any(TimestampVisitor { is_answer })
        } else {
            deserializer.deserialize_str(TimestampVisitor { is_answer })
        }
    }

    fn fill_option(
        place: &mut Option<Self>,
        quick: &mut Quick<'de>,
        _: &Reading,
    ) -> quick::Result<()> {
        let text = quick.name()?;
        if !text.is_empty() {
            *place = Some(text.parse().map_err(|_| Unusual)?);
        }
        Ok(())
    }
}

struct TimestampVisitor {
    /// An agent's answer must not be lost for its time: one that cannot be read is left out.
    is_answer: bool,
}

impl<'de> Visitor<'de> for TimestampVisitor {
    type Value = Option<WireTimestamp>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timestamp as in RFC 3339")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<WireTimestamp>, E> {
        match text.parse() {
            Ok(moment) => Ok(Some(moment)),
            Err(_) if text.is_empty() || self.is_answer => Ok(None),
            Err(_) => Err(E::invalid_value(de::Unexpected::Str(cut(text, MAX_SHOWN)), &self)),
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<WireTimestamp>, E> {
        Ok(None)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Option<WireTimestamp>, E> {
        Ok(None)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Option<WireTimestamp>, E> {
        Ok(None)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Option<WireTimestamp>, E> {
        Ok(None)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Option<WireTimestamp>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<WireTimestamp>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<WireTimestamp>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{FromWire as _, ListTasksRequest, Task, TaskState, WireLimits};

    proptest! {
        #[test]
        fn the_preferred_writing_is_read_as_any_other(
            milliseconds in -62_000_000_000_000_i64..250_000_000_000_000,
            spoiled in prop::option::of((0..24_usize, "[0-9TZ:. -]")),
        ) {
            let mut text = WireTimestamp(Timestamp::from_millisecond(milliseconds).unwrap()).to_string();
            if let Some((at, character)) = spoiled {
                text.replace_range(at..=at, &character);
            }
            if let Some(moment) = preferred(text.as_bytes()) {
                prop_assert_eq!(text.parse::<Timestamp>().unwrap(), moment, "{}", text);
            }
        }
    }

    #[test]
    fn the_preferred_writing_is_read_quickly() {
        for text in [
            "1971-01-01T00:00:00.000Z",
            "2000-02-29T23:59:59.999Z",
            "2100-02-28T12:00:00.001Z",
            "2100-03-01T12:00:00.001Z",
            "2026-12-31T23:59:59.999Z",
            "9000-12-31T00:00:00.000Z",
        ] {
            let moment = preferred(text.as_bytes()).unwrap();
            assert_eq!(WireTimestamp(moment).to_string(), text);
        }
        for text in [
            "2100-02-29T12:00:00.000Z",
            "2026-04-31T12:00:00.000Z",
            "2026-00-01T12:00:00.000Z",
            "2026-01-00T12:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T12:60:00.000Z",
            "2026-06-30T23:59:60.000Z",
            "1969-12-31T23:59:59.000Z",
            "2026-01-01t12:00:00.000Z",
            "2026-01-01T12:00:00.0000",
            "2026-01-01T12:00:00,000Z",
        ] {
            assert_eq!(preferred(text.as_bytes()), None, "{text}");
        }
    }

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

    #[test]
    fn a_time_that_cannot_be_read_costs_an_answer_nothing_but_itself() {
        for time in
            ["\"yesterday\"", "1761647400", "-1.5", "true", "null", "[{}]", "{\"seconds\": 1}"]
        {
            let task = format!(
                r#"{{"id": "t", "status": {{"timestamp": {time}, "state": "TASK_STATE_WORKING"}}}}"#
            );
            let read = Task::from_wire(&task, WireLimits::Answer).unwrap();
            assert_eq!(
                (read.status.timestamp, read.state()),
                (None, &TaskState::Working),
                "{time}"
            );
            let old = task.replace("TASK_STATE_WORKING", "working");
            let read = Task::from_wire_v03(&old).unwrap();
            assert_eq!(
                (read.status.timestamp, read.state()),
                (None, &TaskState::Working),
                "{time}"
            );
        }
        // Whoever asks is told that it is no time.
        let request = r#"{"statusTimestampAfter": "yesterday"}"#;
        ListTasksRequest::from_wire(request, WireLimits::Request).unwrap_err();
    }
}

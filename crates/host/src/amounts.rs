//! How people write lengths of time and sizes in settings.

use std::time::Duration;

/// A setting that cannot be read. The texts say what is allowed, for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// A number without a unit.
    #[error("a length of time needs a unit, e.g. `{0}s`, `{0}m` or `{0}h`")]
    NoUnit(String),
    /// Hours past a day in the form `hh:mm`.
    #[error("hours go up to 23 in `hh:mm`; write `{0}h` for that many hours")]
    HoursPastDay(u64),
    /// Anything else that is no length of time.
    #[error("allowed are lengths like `90s`, `30m`, `24h`, `1d` or `[d.]hh:mm[:ss]`")]
    NotADuration,
    /// Longer than can be counted.
    #[error("that is too long")]
    TooLong,
    /// Anything that is no size.
    #[error("allowed are bytes or sizes like `500KB`, `10MB`, `1GB`")]
    NotASize,
}

/// Reads a length of time: `90s`, `30m`, `24h`, `1d`, or `[d.]hh:mm[:ss[.f]]`.
///
/// # Errors
/// [`SettingError`] for bare numbers, for `hh` of 24 and more, and for anything else; the text suggests what to write.
pub fn parse_duration(text: &str) -> Result<Duration, SettingError> {
    let text = text.trim();
    if text.contains(':') {
        return clock_form(text);
    }
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(SettingError::NotADuration);
    }
    let number: u64 = number.parse().map_err(|_| SettingError::TooLong)?;
    let seconds = match unit.trim().to_ascii_lowercase().as_str() {
        "" => return Err(SettingError::NoUnit(number.to_string())),
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(SettingError::NotADuration),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or(SettingError::TooLong)
}

fn clock_form(text: &str) -> Result<Duration, SettingError> {
    let fields: Vec<&str> = text.split(':').collect();
    let (first, minutes, rest) = match *fields.as_slice() {
        [first, minutes] => (first, minutes, None),
        [first, minutes, seconds] => (first, minutes, Some(seconds)),
        _ => return Err(SettingError::NotADuration),
    };
    let (days, hours) = match first.split_once('.') {
        Some((days, hours)) => (whole(days)?, whole(hours)?),
        None => (0, whole(first)?),
    };
    if hours > 23 {
        return Err(SettingError::HoursPastDay(hours));
    }
    let minutes = sixtieth(minutes)?;
    let (seconds, nanos) = match rest {
        None => (0, 0),
        Some(rest) => match rest.split_once('.') {
            None => (sixtieth(rest)?, 0),
            Some((seconds, fraction)) => (sixtieth(seconds)?, nanoseconds(fraction)?),
        },
    };
    let seconds = days
        .checked_mul(86_400)
        .and_then(|days| days.checked_add(hours * 3_600 + minutes * 60 + seconds))
        .ok_or(SettingError::TooLong)?;
    Ok(Duration::new(seconds, nanos))
}

fn whole(text: &str) -> Result<u64, SettingError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SettingError::NotADuration);
    }
    text.parse().map_err(|_| SettingError::TooLong)
}

fn sixtieth(text: &str) -> Result<u64, SettingError> {
    match whole(text)? {
        value @ 0..60 => Ok(value),
        _ => Err(SettingError::NotADuration),
    }
}

fn nanoseconds(fraction: &str) -> Result<u32, SettingError> {
    if fraction.len() > 9 {
        return Err(SettingError::NotADuration);
    }
    whole(fraction)?;
    format!("{fraction:0<9}").parse().map_err(|_| SettingError::NotADuration)
}

/// Reads a size in bytes: a plain number, or one with `KB`, `MB` or `GB` (powers of 1024).
///
/// # Errors
/// [`SettingError::NotASize`] for anything else.
pub fn parse_size(text: &str) -> Result<u64, SettingError> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| SettingError::NotASize)?;
    let factor = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "KB" | "KIB" => 1 << 10,
        "MB" | "MIB" => 1 << 20,
        "GB" | "GIB" => 1 << 30,
        _ => return Err(SettingError::NotASize),
    };
    number.checked_mul(factor).ok_or(SettingError::NotASize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_duration(text: &str, wanted: &Result<f64, SettingError>) {
        assert_eq!(&parse_duration(text).map(|length| length.as_secs_f64()), wanted, "{text}");
    }

    #[test]
    fn lengths_are_read_with_units_and_in_clock_form() {
        check_duration("90s", &Ok(90.0));
        check_duration(" 30M ", &Ok(1_800.0));
        check_duration("24h", &Ok(86_400.0));
        check_duration("1d", &Ok(86_400.0));
        check_duration("1.00:00:00", &Ok(86_400.0));
        check_duration("00:30:00", &Ok(1_800.0));
        check_duration("23:59", &Ok(86_340.0));
        check_duration("2.03:04:05.5", &Ok(183_845.5));
    }

    #[test]
    fn bare_numbers_and_long_clocks_are_refused_with_a_suggestion() {
        check_duration("90", &Err(SettingError::NoUnit("90".to_owned())));
        check_duration("24:00", &Err(SettingError::HoursPastDay(24)));
        check_duration("24:00:00", &Err(SettingError::HoursPastDay(24)));
        assert!(parse_duration("24:00").expect_err("refused").to_string().contains("`24h`"));
    }

    #[test]
    fn nonsense_is_no_length() {
        for text in [
            "",
            "s",
            "-5s",
            "5 minutes",
            "1:2:3:4",
            "00:60",
            "00:00:60",
            "1..0:0",
            ":",
            "1:",
            "+1:00",
            "00:00:00.",
            "１s",
        ] {
            check_duration(text, &Err(SettingError::NotADuration));
        }
        check_duration("99999999999999999999s", &Err(SettingError::TooLong));
        check_duration("9999999999999999d", &Err(SettingError::TooLong));
    }

    #[test]
    fn sizes_are_bytes_or_have_units() {
        for (text, wanted) in
            [("10", 10), ("10MB", 10 << 20), ("5 kb", 5 << 10), ("1GiB", 1 << 30), ("7B", 7)]
        {
            assert_eq!(parse_size(text), Ok(wanted), "{text}");
        }
        for text in ["", "MB", "10TB", "-1", "1.5MB", "99999999999999999999", "99999999999GB"] {
            assert_eq!(parse_size(text), Err(SettingError::NotASize), "{text}");
        }
    }
}

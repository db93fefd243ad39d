//! Values that may say "absent" in their own way, and the liberal readings of numbers.

use std::{collections::BTreeMap, fmt};

use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::JsonObject;

/// A value of a member.
pub(crate) trait WireValue<'de>: Sized {
    /// Reads a value that is not `null`; `None` if it stands for absence, as `""` does.
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error>;
}

impl<'de> WireValue<'de> for String {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Ok(Some(Self::deserialize(deserializer)?).filter(|text| !text.is_empty()))
    }
}

impl<'de> WireValue<'de> for bool {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::deserialize(deserializer).map(Some)
    }
}

impl<'de> WireValue<'de> for JsonObject {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::deserialize(deserializer).map(Some)
    }
}

impl<'de, T: Deserialize<'de>> WireValue<'de> for BTreeMap<String, T> {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        Self::deserialize(deserializer).map(Some)
    }
}

/// Reads a number, a number with a zero fraction, or decimal digits in a string.
impl<'de> WireValue<'de> for i32 {
    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Option<Self>, D::Error> {
        struct IntegerVisitor;

        impl Visitor<'_> for IntegerVisitor {
            type Value = Option<i32>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of 32 bits")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<i32>, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
                i32::try_from(number).map(Some).map_err(wrong)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<i32>, E> {
                let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(number), &self);
                i32::try_from(number).map(Some).map_err(wrong)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Option<i32>, E> {
                let is_whole = number.fract() == 0.0 && number.abs() <= f64::from(i32::MAX);
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "whole and in range, as just checked"
                )]
                let whole = is_whole.then_some(number as i32);
                whole
                    .map(Some)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<i32>, E> {
                if text.is_empty() {
                    return Ok(None);
                }
                text.parse()
                    .map(Some)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(IntegerVisitor)
    }
}

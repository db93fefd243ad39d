//! The serving half.

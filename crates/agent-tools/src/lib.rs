//! The owner's tools.

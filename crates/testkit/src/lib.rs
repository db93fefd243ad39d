//! Doubles for tests.

//! The volcanic command line.

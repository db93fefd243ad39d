//! The `volcanic` command line.
fn main() {}

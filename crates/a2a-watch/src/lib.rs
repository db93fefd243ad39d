//! Sends and watches.

//! Several crates over real sockets.

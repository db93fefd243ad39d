//! Several crates over real sockets: the crash judge, and the runs against agents that other people wrote.

pub mod crash;
pub mod interop;

//! The client over real loopback sockets.

#[cfg(test)]
mod exchange;
#[cfg(test)]
mod guard;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod server;
#[cfg(test)]
mod tls;

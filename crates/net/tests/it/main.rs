//! The client over real loopback sockets.

#[cfg(test)]
mod connections;
#[cfg(test)]
mod environment;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod guard;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod server;
#[cfg(test)]
mod tls;

//! A loopback port that stays the demo's own while the process that listens there comes and goes.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use tokio::net::TcpSocket;

/// A port that nobody else is given as long as this lives: it is bound, and only whoever names it can listen there.
#[derive(Debug)]
pub(super) struct Port {
    address: SocketAddr,
    _bound: TcpSocket,
}

impl Port {
    /// Takes a free port.
    pub(super) fn reserve() -> io::Result<Self> {
        let bound = TcpSocket::new_v4()?;
        bound.set_reuseaddr(true)?;
        bound.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self { address: bound.local_addr()?, _bound: bound })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

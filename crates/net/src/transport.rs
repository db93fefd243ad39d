//! The seam between those who make requests and the network.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{NetBody, NetError};

/// What an exchange is. Each kind has connections of its own, since many held streams on one connection starve calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// A request whose answer ends by itself.
    Call,
    /// A request whose answer stays open.
    Stream,
}

/// Carries requests to other machines.
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends `request`, whose URL is absolute, and waits for the head of the answer.
    ///
    /// There is no limit in time but the one on connecting; the caller has its own. Redirects are answers like any
    /// other. A [`GuardPolicy`](crate::GuardPolicy) among the request's extensions makes this one request stricter than
    /// the transport is.
    ///
    /// # Errors
    ///
    /// [`NetError`], which also tells whether the request can have left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the exchange up; the remote may have seen the request.
    async fn send(
        &self,
        request: http::Request<Bytes>,
        kind: CallKind,
    ) -> Result<http::Response<NetBody>, NetError>;
}

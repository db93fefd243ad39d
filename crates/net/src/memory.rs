//! A transport that stays inside the process, for tests.

use std::{convert::Infallible, fmt};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use tower::{Service, ServiceExt as _};

use crate::{CallKind, NetBody, NetError, Transport};

/// Answers every request with a tower service, a router for instance, whatever host it names. Nothing waits on a real
/// socket, so paused time works.
#[derive(Clone)]
pub struct InMemory<S> {
    service: S,
}

impl<S> InMemory<S> {
    /// Creates a transport that asks `service`.
    pub fn new(service: S) -> Self {
        Self { service }
    }
}

#[async_trait]
impl<S, B> Transport for InMemory<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    async fn send(
        &self,
        request: Request<Bytes>,
        _: CallKind,
    ) -> Result<Response<NetBody>, NetError> {
        match self.service.clone().oneshot(request.map(Full::new)).await {
            Ok(response) => Ok(response.map(NetBody::new)),
            Err(never) => match never {},
        }
    }
}

impl<S> fmt::Debug for InMemory<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemory").finish_non_exhaustive()
    }
}

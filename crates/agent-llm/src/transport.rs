//! Rig's HTTP client with limits on every wait and on the size of an answer.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use rig_core::http_client::{
    BoxedStream, Error, HttpClientExt, LazyBody, MultipartForm, Request, Response, Result,
    StreamingResponse,
};
use rig_core::wasm_compat::WasmCompatSend;
use rig_reqwest::ReqwestClient;
use rig_reqwest::reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use rig_reqwest::reqwest::{Client, redirect};
use tokio::time::timeout;

use crate::config::{OpenAiConfig, OpenAiConfigError};

/// How long connecting may take, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The most bytes of one streamed answer: far beyond what a model writes, far below what would hurt.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Limit {
    /// No answer began in time.
    #[error("no answer began within {} s", .0.as_secs_f64())]
    Headers(Duration),
    /// An answer fell silent.
    #[error("the answer fell silent for {} s", .0.as_secs_f64())]
    Idle(Duration),
    /// An answer is longer than anybody needs.
    #[error("the answer is longer than {MAX_REPLY_BYTES} bytes")]
    Size,
}

/// A client for one endpoint.
#[derive(Debug, Clone)]
pub(crate) struct LimitedClient {
    inner: ReqwestClient,
    header_timeout: Duration,
    idle_timeout: Duration,
}

impl LimitedClient {
    /// The key goes into the client's own headers, marked so that no log shows it, and is unknown to rig. Redirects are not
    /// followed: they would carry prompts and key to who knows where. Proxies come from settings, not from the
    /// environment.
    pub(crate) fn new(config: &OpenAiConfig) -> std::result::Result<Self, OpenAiConfigError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = config.key.as_ref().filter(|key| !key.is_empty()) {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
                .map_err(|_| OpenAiConfigError::Key)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let client = Client::builder()
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .build()
            .map_err(|error| OpenAiConfigError::Client(error.into()))?;
        Ok(Self {
            inner: client.into(),
            header_timeout: config.header_timeout,
            idle_timeout: config.idle_timeout,
        })
    }

    /// The body with a limit on each silence and on its size.
    fn limited(&self, mut body: BoxedStream) -> BoxedStream {
        let idle = self.idle_timeout;
        Box::pin(async_stream::stream! {
            let mut received = 0_usize;
            loop {
                match timeout(idle, body.next()).await {
                    Ok(None) => return,
                    Ok(Some(Ok(chunk))) => {
                        received = received.saturating_add(chunk.len());
                        if received > MAX_REPLY_BYTES {
                            yield Err(Error::instance(Limit::Size));
                            return;
                        }
                        yield Ok(chunk);
                    }
                    Ok(Some(Err(error))) => {
                        yield Err(error);
                        return;
                    }
                    Err(_) => {
                        yield Err(Error::instance(Limit::Idle(idle)));
                        return;
                    }
                }
            }
        })
    }
}

impl HttpClientExt for LimitedClient {
    fn send<T, U>(
        &self,
        request: Request<T>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + WasmCompatSend + 'static
    where
        T: Into<Bytes> + WasmCompatSend,
        U: From<Bytes> + WasmCompatSend + 'static,
    {
        self.inner.send(request)
    }

    fn send_multipart<U>(
        &self,
        request: Request<MultipartForm>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + WasmCompatSend + 'static
    where
        U: From<Bytes> + WasmCompatSend + 'static,
    {
        self.inner.send_multipart(request)
    }

    async fn send_streaming<T>(&self, request: Request<T>) -> Result<StreamingResponse>
    where
        T: Into<Bytes> + WasmCompatSend,
    {
        // Also bounds how long the body of a refusal may take: it is read in here.
        let response = timeout(self.header_timeout, self.inner.send_streaming(request))
            .await
            .map_err(|_| Error::instance(Limit::Headers(self.header_timeout)))??;
        Ok(response.map(|body| self.limited(body)))
    }
}

//! What can go wrong between a request and its answer.

use std::{error::Error, io, net::IpAddr, sync::Arc};

/// What a cause is told as in place of its own words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Retold(String);

/// An error of a request.
///
/// It names the host and port at most: never a path, a query, a header or a body, which may carry secrets.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The request cannot be sent anywhere.
    #[error("unusable request: {reason}")]
    Unusable {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The certificates that servers are checked against could not be read.
    #[error("failed to load the trusted certificates")]
    Certificates {
        /// Why.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The host has no address.
    #[error("failed to resolve {host}")]
    Resolve {
        /// Host and port.
        host: String,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The policy forbids the host.
    #[error("{host} is not a public address")]
    Refused {
        /// Host and port.
        host: String,
        /// The address that is not public; `None` when the name alone told.
        address: Option<IpAddr>,
    },
    /// No address of the host took a connection.
    #[error("failed to connect to {host}")]
    Connect {
        /// Host and port.
        host: String,
        /// Why, as the last address said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The two sides did not agree on TLS, or the host could not prove who it is.
    #[error("failed to speak TLS with {host}")]
    Tls {
        /// Host and port.
        host: String,
        /// Why.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// Resolving, connecting and TLS took longer than allowed.
    #[error("{host} did not take the connection in time")]
    Timeout {
        /// Host and port.
        host: String,
    },
    /// The connection broke after the request may have left, or what came was not HTTP.
    #[error("the connection broke")]
    Closed {
        /// Why.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The answer is larger than the caller takes.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The largest size taken, in bytes.
        limit: usize,
    },
}

impl NetError {
    /// Whether the same request may succeed later without anybody changing something here.
    pub fn is_transient(&self) -> bool {
        match self {
            // A remote renews its certificate, a captive portal goes away.
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Timeout { .. }
            | Self::Closed { .. } => true,
            Self::Unusable { .. }
            | Self::Certificates { .. }
            | Self::Refused { .. }
            | Self::TooLarge { .. } => false,
        }
    }

    /// Whether it is certain that the remote has seen nothing of the request.
    pub fn never_left(&self) -> bool {
        match self {
            Self::Unusable { .. }
            | Self::Certificates { .. }
            | Self::Resolve { .. }
            | Self::Refused { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Timeout { .. } => true,
            Self::Closed { .. } | Self::TooLarge { .. } => false,
        }
    }

    /// The same with another text in place of its causes, if `tell` has one for them: TLS and HTTP let the remote put
    /// words into them.
    #[must_use]
    pub fn retold(self, tell: impl Fn(&(dyn Error + 'static)) -> Option<String>) -> Self {
        let io = |source: Arc<io::Error>| match tell(&*source) {
            Some(text) => Arc::new(io::Error::new(source.kind(), Retold(text))),
            None => source,
        };
        let any = |source: Arc<dyn Error + Send + Sync>| match tell(&*source) {
            Some(text) => Arc::new(Retold(text)),
            None => source,
        };
        match self {
            Self::Certificates { source } => Self::Certificates { source: any(source) },
            Self::Resolve { host, source } => Self::Resolve { host, source: io(source) },
            Self::Connect { host, source } => Self::Connect { host, source: io(source) },
            Self::Tls { host, source } => Self::Tls { host, source: any(source) },
            Self::Closed { source } => Self::Closed { source: any(source) },
            Self::Unusable { .. }
            | Self::Refused { .. }
            | Self::Timeout { .. }
            | Self::TooLarge { .. } => self,
        }
    }

    /// An exchange that did not come to its end.
    pub(crate) fn closed(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Closed { source: Arc::new(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_that_are_told_anew_keep_their_kind_and_nothing_else() {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "planted");
        let error = NetError::Connect { host: "a.example:1".to_owned(), source: Arc::new(refused) };
        let kept = error.clone().retold(|_| None);
        assert!(format!("{kept:?}").contains("planted"), "{kept:?}");
        let error = error.retold(|cause| Some(cause.to_string().replace("planted", "***")));
        let NetError::Connect { host, source } = &error else { panic!("{error:?}") };
        assert_eq!((host.as_str(), source.to_string().as_str()), ("a.example:1", "***"));
        assert_eq!(source.kind(), io::ErrorKind::ConnectionRefused);
        assert!(!format!("{error:?}").contains("planted"), "{error:?}");

        let source: Arc<dyn Error + Send + Sync> = Arc::from(Box::from("planted"));
        for error in [
            NetError::Certificates { source: Arc::clone(&source) },
            NetError::Tls { host: String::new(), source: Arc::clone(&source) },
            NetError::Closed { source },
        ] {
            let error = error.retold(|_| Some("***".to_owned()));
            assert_eq!(error.source().unwrap().to_string(), "***");
            assert!(!format!("{error:?}").contains("planted"), "{error:?}");
        }
    }
}

//! The certificates that servers are checked against.

use std::{path::PathBuf, sync::Arc};

use hyper_rustls::ConfigBuilderExt as _;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use volcanic_base::read_to_limit;

use crate::NetError;

/// The largest file of certificates, in bytes. All that browsers trust is a quarter of a megabyte.
pub const MAX_CERTIFICATE_FILE: u64 = 16 << 20;

/// Where the trusted certificates come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RootCertificates {
    /// The operating system's. A system that has none still speaks plain HTTP.
    #[default]
    System,
    /// A file of PEM certificates, which replaces the system's: a regular one of at most 16 MiB.
    PemFile(PathBuf),
}

impl RootCertificates {
    /// Builds the TLS side of a client that trusts these.
    pub(crate) fn tls_config(&self) -> Result<ClientConfig, NetError> {
        let builder = || {
            ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| NetError::Certificates { source: Arc::new(error) })
        };
        let config = match self {
            Self::System => match builder()?.with_native_roots() {
                Ok(config) => config.with_no_client_auth(),
                Err(error) => {
                    tracing::warn!(%error, "no trusted certificates on this system, https will fail");
                    builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
                }
            },
            Self::PemFile(path) => {
                builder()?.with_root_certificates(read_pem(path)?).with_no_client_auth()
            }
        };
        Ok(config)
    }
}

fn read_pem(path: &std::path::Path) -> Result<RootCertStore, NetError> {
    let content = read_to_limit(path, MAX_CERTIFICATE_FILE)
        .map_err(|error| NetError::Certificates { source: Arc::new(error) })?;
    let certificates = CertificateDer::pem_slice_iter(&content)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| NetError::Certificates { source: Arc::new(error) })?;
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store
            .add(certificate)
            .map_err(|error| NetError::Certificates { source: Arc::new(error) })?;
    }
    if store.is_empty() {
        let source = std::io::Error::other("the file holds no certificate");
        return Err(NetError::Certificates { source: Arc::new(source) });
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_without_certificates_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let roots = RootCertificates::PemFile(file.path().to_owned());
        let error = roots.tls_config().unwrap_err();
        assert!(matches!(error, NetError::Certificates { .. }), "{error:?}");
    }

    #[test]
    fn missing_file_is_an_error() {
        let roots = RootCertificates::PemFile(PathBuf::from("/nonexistent/roots.pem"));
        assert!(matches!(roots.tls_config().unwrap_err(), NetError::Certificates { .. }));
    }

    #[test]
    fn what_is_no_file_or_a_huge_one_is_refused_without_reading_it() {
        let folder = tempfile::tempdir().unwrap();
        let huge = folder.path().join("huge.pem");
        std::fs::File::create(&huge).unwrap().set_len(MAX_CERTIFICATE_FILE + 1).unwrap();
        let of = |path: &str| (PathBuf::from(path), "it is no regular file");
        for (path, wanted) in [of("/dev/zero"), of("/"), (huge, "it is larger than 16777216 bytes")]
        {
            match RootCertificates::PemFile(path).tls_config().unwrap_err() {
                NetError::Certificates { source } => assert_eq!(source.to_string(), wanted),
                error => panic!("{error:?}"),
            }
        }
    }

    #[test]
    fn system_roots_never_fail() {
        RootCertificates::System.tls_config().unwrap();
    }
}

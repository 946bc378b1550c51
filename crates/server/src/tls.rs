use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use wire::{ErrorCode, Failure};

use crate::TlsFiles;

/// Reads a certificate and its key.
pub fn config(files: &TlsFiles) -> Result<Arc<ServerConfig>, Failure> {
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(&files.certificate, &error, "Name a PEM file with --tls-cert."))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| unusable(&files.key, &error, "Name a PEM file with --tls-key."))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| {
            unusable(&files.certificate, &error, "Name a certificate and the key that belongs to it.")
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn unusable(path: &Path, error: &dyn std::fmt::Display, remedy: &str) -> Failure {
    Failure::new(ErrorCode::BadSettings, format!("The certificate or key can't be used ({error})."))
        .file(path)
        .remedy(remedy)
}

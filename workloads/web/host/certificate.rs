//! The certificate of a server: made for one trial, for one address, signed by itself.

use std::net::IpAddr;

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use sha2::{Digest, Sha256};

use crate::Failure;

/// What a server shows, and what the driver knows it by.
pub(super) struct Certificate {
    /// The certificate, PEM.
    pub certificate: String,
    /// Its private key, PKCS #8 in PEM.
    pub key: String,
    /// SHA-256 of the certificate.
    pub sha256: Vec<u8>,
}

/// Makes a certificate for an address, with a key on the curve P-256.
///
/// # Errors
/// When no key can be made.
pub(super) fn made(address: IpAddr) -> Result<Certificate, Failure> {
    let failed = |error: rcgen::Error| {
        Failure::new("make a certificate", error.to_string(), "report this: it is a defect of tare")
    };
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let mut parameters = CertificateParams::new(vec![address.to_string()]).map_err(failed)?;
    parameters.distinguished_name.push(DnType::CommonName, address.to_string());
    let signed = parameters.self_signed(&key).map_err(failed)?;
    Ok(Certificate {
        certificate: signed.pem(),
        key: key.serialize_pem(),
        sha256: Sha256::digest(signed.der()).to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_has_its_own_key_and_is_of_its_address() {
        let address: IpAddr = [198, 18, 0, 7].into();
        let (one, other) = (made(address).unwrap(), made(address).unwrap());
        assert!(one.certificate.starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(one.key.starts_with("-----BEGIN PRIVATE KEY-----"));
        assert_ne!(one.key, other.key);
        assert_eq!(one.sha256.len(), 32);
        assert_ne!(one.sha256, other.sha256);
    }
}

//! TLS of the driver: which server is the right one, and whose session is resumed by which connection.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, NamedGroup, OtherError, SignatureScheme};
use sha2::{Digest, Sha256};

/// Bytes of a SHA-256.
pub(crate) const DIGEST_BYTES: usize = 32;

/// What connections of one thread share.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    pub config: Arc<ClientConfig>,
    pub tickets: Arc<Tickets>,
    pub name: ServerName<'static>,
    /// SHA-256 of the certificate that the server must show.
    pub pinned: Option<Vec<u8>>,
}

impl Tls {
    /// Speaks 1.3, or 1.2 with forward secrecy (rustls has no other), to the server that shows the certificate of this SHA-256, or any.
    ///
    /// # Errors
    /// When the provider of cryptography does not have a protocol version, which is a defect of this program.
    pub fn new(pinned: Option<Vec<u8>>, host: &str, address: std::net::IpAddr, resumes: bool) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tickets = Arc::new(Tickets::new(resumes));
        let pin = Arc::new(Pin { sha256: pinned.clone(), provider: Arc::clone(&provider) });
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(pin)
            .with_no_client_auth();
        config.resumption = Resumption::store(Arc::clone(&tickets) as Arc<dyn ClientSessionStore>);
        let name = ServerName::try_from(host.to_owned()).unwrap_or_else(|_| ServerName::IpAddress(address.into()));
        Ok(Self { config: Arc::new(config), tickets, name, pinned })
    }
}

/// Takes a server for the right one by the SHA-256 of its certificate alone: it was made for this run, and nobody has signed it. Its
/// key is checked by the signature of the handshake.
#[derive(Debug)]
struct Pin {
    sha256: Option<Vec<u8>>,
    provider: Arc<CryptoProvider>,
}

/// The certificate is not the one that is known.
#[derive(Debug)]
pub(crate) struct OtherCertificate {
    /// SHA-256 of the one that was shown.
    pub shown: [u8; DIGEST_BYTES],
}

impl fmt::Display for OtherCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the certificate with the SHA-256 {}", hexadecimal(&self.shown))
    }
}

/// Bytes as they are written for people.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl std::error::Error for OtherCertificate {}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(pinned) = &self.sha256 else { return Ok(ServerCertVerified::assertion()) };
        let shown: [u8; DIGEST_BYTES] = Sha256::digest(end_entity).into();
        if pinned.as_slice() == shown {
            return Ok(ServerCertVerified::assertion());
        }
        let other = OtherError(Arc::new(OtherCertificate { shown }));
        Err(Error::InvalidCertificate(CertificateError::Other(other)))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What a server gave a user to resume a session with.
#[derive(Debug)]
enum Ticket {
    Tls12(Tls12ClientSessionValue),
    Tls13(Tls13ClientSessionValue),
}

/// Tickets by user, one each: a user's first connection has none, and no user resumes another's session. rustls asks without
/// saying which connection it asks for, so that the thread says on whose behalf it is at work before it calls.
#[derive(Debug)]
pub(crate) struct Tickets {
    /// Users with one connection have no use for any.
    keeps: bool,
    inner: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    user: usize,
    group: Option<NamedGroup>,
    /// Boxed: most users have none most of the time.
    by_user: Vec<Option<Box<Ticket>>>,
}

impl Tickets {
    fn new(keeps: bool) -> Self {
        Self { keeps, inner: Mutex::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user on whose behalf rustls is called next.
    pub fn of(&self, user: u32) {
        self.lock().user = user as usize;
    }

    /// Another user has taken this one's place.
    pub fn forget(&self, user: u32) {
        if let Some(place) = self.lock().by_user.get_mut(user as usize) {
            *place = None;
        }
    }

    fn keep(&self, ticket: Ticket) {
        if !self.keeps {
            return;
        }
        let mut kept = self.lock();
        let user = kept.user;
        if kept.by_user.len() <= user {
            kept.by_user.resize_with(user + 1, || None);
        }
        kept.by_user[user] = Some(Box::new(ticket));
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _server_name: ServerName<'static>, group: NamedGroup) {
        self.lock().group = Some(group);
    }

    fn kx_hint(&self, _server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().group
    }

    fn set_tls12_session(&self, _server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.keep(Ticket::Tls12(value));
    }

    fn tls12_session(&self, _server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let kept = self.lock();
        match kept.by_user.get(kept.user)?.as_deref()? {
            Ticket::Tls12(value) => Some(value.clone()),
            Ticket::Tls13(_) => None,
        }
    }

    fn remove_tls12_session(&self, _server_name: &ServerName<'static>) {
        let mut kept = self.lock();
        let user = kept.user;
        if let Some(place) = kept.by_user.get_mut(user) {
            *place = None;
        }
    }

    fn insert_tls13_ticket(&self, _server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.keep(Ticket::Tls13(value));
    }

    fn take_tls13_ticket(&self, _server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = self.lock();
        let user = kept.user;
        let place = kept.by_user.get_mut(user)?;
        match place.take().map(|ticket| *ticket) {
            Some(Ticket::Tls13(value)) => Some(value),
            other => {
                *place = other.map(Box::new);
                None
            }
        }
    }
}

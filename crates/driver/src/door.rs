//! The door of a server.

use std::net::{IpAddr, SocketAddr};

use tare_model::token::Token;

/// Where a server listens, and whom it lets in.
#[derive(Debug, Clone, Copy)]
pub struct Door {
    /// The address; the kernel chooses the port.
    pub bind: IpAddr,
    /// Whose connections are accepted; `None`: everybody's.
    pub from: Option<IpAddr>,
    /// What a driver shows; `None`: every driver is let in.
    pub token: Option<Token>,
}

impl Door {
    /// The address, with the port left to the kernel.
    pub(crate) const fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind, 0)
    }
}

impl From<IpAddr> for Door {
    /// A door that is open to every driver.
    fn from(bind: IpAddr) -> Self {
        Self { bind, from: None, token: None }
    }
}

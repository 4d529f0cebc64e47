//! The address of a web server that exists.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use tare_model::field::FieldError;

use crate::Failure;

/// What stands for the guest's address.
const GUEST: &str = "{guest}";

/// `http://host:port`, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    /// Host; `None`: the guest.
    host: Option<String>,
    port: u16,
}

impl Url {
    /// Reads an address of that scheme.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str, scheme: &str) -> Result<Self, FieldError> {
        let refused = |why: String| {
            FieldError::new(&[], format!("`{text}` is no address of a web server: {why}"))
                .help(format!("write {scheme}://HOST:PORT; {{guest}} as the host stands for the guest's address"))
        };
        let rest = text.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://"));
        let rest = rest.ok_or_else(|| refused(format!("it does not begin with {scheme}://")))?;
        let place = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = place.rsplit_once(':').ok_or_else(|| refused("it names no port".to_owned()))?;
        let port: u16 = port.parse().map_err(|_| refused(format!("`{port}` is no port")))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if port == 0 || host.is_empty() || (host != GUEST && host.contains(['/', '{', '}', '@', '?', ' '])) {
            return Err(refused("it must name one host and a port, and nothing else".to_owned()));
        }
        Ok(Self { host: (host != GUEST).then(|| host.to_owned()), port })
    }

    /// The name or address that it is asked for by, with its port.
    pub fn authority(&self, guest: IpAddr) -> String {
        let host = self.host.clone().unwrap_or_else(|| guest.to_string());
        if host.contains(':') { format!("[{host}]:{}", self.port) } else { format!("{host}:{}", self.port) }
    }

    /// The address, the guest's where it is in the guest.
    ///
    /// # Errors
    /// When the host's name means no address.
    pub fn address(&self, guest: IpAddr) -> Result<SocketAddr, Failure> {
        let Some(host) = &self.host else { return Ok(SocketAddr::new(guest, self.port)) };
        let tried = || format!("find the address of the server {host}:{}", self.port);
        let remedy = "check the host in `url`";
        let found = (host.as_str(), self.port).to_socket_addrs();
        let mut found = found.map_err(|error| Failure::new(tried(), error.to_string(), remedy))?;
        found.next().ok_or_else(|| Failure::new(tried(), "its name has none", remedy))
    }
}

/// Refuses several guests on one server that exists.
///
/// # Errors
/// What is refused.
pub(crate) fn one_each(url: Option<&str>, guests: u32) -> Result<(), Failure> {
    let Some(url) = url.filter(|url| guests > 1 && !url.contains(GUEST)) else { return Ok(()) };
    let why = "it is one server, and each guest is to have its own";
    let remedy = "write {guest} as the host in `url`, or ask for one guest";
    Err(Failure::new(format!("have {guests} guests use {url}"), why, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_is_for_one_guest_unless_it_is_in_the_guest() {
        assert!(one_each(Some("http://shop:80"), 1).is_ok() && one_each(Some("http://{guest}:80"), 2).is_ok());
        assert!(
            one_each(Some("http://shop:80"), 2).unwrap_err().remedy.contains("{guest}") && one_each(None, 2).is_ok()
        );
    }

    #[test]
    fn addresses_are_read_and_what_is_none_is_refused_with_the_form() {
        let guest: IpAddr = [198, 18, 0, 7].into();
        let of = |text: &str| Url::read(text, "http").unwrap().address(guest).unwrap().to_string();
        assert_eq!(of("http://{guest}:8080"), "198.18.0.7:8080");
        assert_eq!(of("http://127.0.0.1:80/"), "127.0.0.1:80");
        assert_eq!(of("http://[::1]:80"), "[::1]:80");
        let called = |text: &str| Url::read(text, "http").unwrap().authority(guest);
        assert_eq!(called("http://{guest}:8080"), "198.18.0.7:8080");
        assert_eq!((called("http://[::1]:80"), called("http://shop:81")), ("[::1]:80".into(), "shop:81".into()));
        for wrong in ["https://h:1", "http://h", "http://h:0", "http://h:x", "http://h:1/path", "http://:1", "h:1"] {
            let error = Url::read(wrong, "http").unwrap_err();
            assert!(error.help.unwrap().contains("http://HOST:PORT"), "{wrong}");
        }
    }
}

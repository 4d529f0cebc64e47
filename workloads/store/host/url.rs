//! The address of a server that exists.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use tare_model::field::FieldError;
use tare_model::sql::SqlServer;

use crate::Failure;
use crate::postgres::PORT;

/// What stands for the guest's address.
const GUEST: &str = "{guest}";
/// Where a password is looked for that the address does not have, as PostgreSQL's own clients do.
const PASSWORD: &str = "PGPASSWORD";

/// `postgres://user:password@host:port/database`, read.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Url {
    /// Host; `None`: the guest.
    host: Option<String>,
    port: u16,
    user: String,
    password: Option<String>,
    database: String,
}

impl Url {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it, without the password.
    pub fn read(text: &str) -> Result<Self, FieldError> {
        let rest = text
            .strip_prefix("postgres://")
            .or_else(|| text.strip_prefix("postgresql://"))
            .ok_or_else(|| refused("it does not begin with postgres://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        check_query(query)?;
        let (authority, database) = rest.split_once('/').ok_or_else(|| refused("it names no database"))?;
        // The last one: a password may hold an @ that nobody has encoded.
        let (login, place) = authority.rsplit_once('@').ok_or_else(|| refused("it names no user"))?;
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password)?)),
            None => (login, None),
        };
        let (host, port) = host_and_port(place)?;
        let (user, database) = (decoded(user)?, decoded(database)?);
        if user.is_empty() || database.is_empty() || database.contains('/') {
            return Err(refused("it must name a user and a database"));
        }
        let host = (host != GUEST).then(|| host.to_owned());
        Ok(Self { host, port, user, password, database })
    }

    /// Whether the server is in the guest, so that it cannot be tried before there is one.
    pub const fn is_guest(&self) -> bool {
        self.host.is_none()
    }

    /// The server, with the guest's address where it is in the guest; names mean `schema`.
    ///
    /// # Errors
    /// When the host's name means no address.
    pub fn server(&self, guest: Option<IpAddr>, schema: Option<&str>) -> Result<SqlServer, Failure> {
        let address = match (&self.host, guest) {
            (None, Some(guest)) => Some(SocketAddr::new(guest, self.port)),
            (None, None) => None,
            (Some(host), _) => {
                let failed = |error: std::io::Error| {
                    Failure::new(
                        format!("find the address of the server {host}:{}", self.port),
                        error.to_string(),
                        "check the host in `url`",
                    )
                };
                (host.as_str(), self.port).to_socket_addrs().map_err(failed)?.next()
            }
        };
        let address = address
            .ok_or_else(|| Failure::new("find the server's address", "its name has none", "check the host in `url`"))?;
        let password = self.password.clone().or_else(|| std::env::var(PASSWORD).ok());
        Ok(SqlServer {
            address,
            user: self.user.clone(),
            password,
            database: self.database.clone(),
            schema: schema.map(str::to_owned),
        })
    }
}

/// The password is never printed.
impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = self.host.as_deref().unwrap_or(GUEST);
        write!(f, "postgres://{}@{host}:{}/{}", self.user, self.port, self.database)
    }
}

fn refused(why: &str) -> FieldError {
    FieldError::new(&[], format!("this is no address of a PostgreSQL server: {why}"))
        .help("write postgres://user:password@host:5432/database; {guest} as the host stands for the guest's address")
}

fn host_and_port(place: &str) -> Result<(&str, u16), FieldError> {
    let port = |text: &str| match text {
        "" => Ok(PORT),
        text => text.parse().map_err(|_| refused(&format!("`{text}` is no port"))),
    };
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, port(rest.strip_prefix(':').unwrap_or(rest))?),
        None => match place.rsplit_once(':') {
            Some((host, text)) => (host, port(text)?),
            None => (place, PORT),
        },
    };
    let fit = !host.is_empty() && (host == GUEST || !host.contains(['{', '}', ',', '/', ' ']));
    if fit { Ok((host, port)) } else { Err(refused("it must name one host")) }
}

/// What can be said of encryption is that there is none: the lab's links are the thing measured.
fn check_query(query: &str) -> Result<(), FieldError> {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", "disable" | "allow" | "prefer")) => {}
            Some(("sslmode", mode)) => {
                return Err(FieldError::new(&[], format!("sslmode={mode}: tare speaks to the server without TLS"))
                    .help("measure without TLS (sslmode=disable), and have the server accept that (`host` in pg_hba.conf)"));
            }
            _ => return Err(refused(&format!("the parameter `{pair}` is not known"))),
        }
    }
    Ok(())
}

/// Text with `%41` for `A`.
fn decoded(text: &str) -> Result<String, FieldError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let value = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(value.ok_or_else(|| refused("a % is not followed by two hexadecimal digits; write %25 for %"))?);
        rest = &rest[2..];
    }
    let text = String::from_utf8(bytes).map_err(|_| refused("what is encoded in it is not UTF-8"))?;
    if text.contains('\0') { Err(refused("it holds a NUL")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_what_is_encoded_in_them() {
        let url = Url::read("postgresql://o%40ne:p%3Aw@[::1]:6000/my%20store?sslmode=disable").unwrap();
        assert_eq!((url.host.as_deref(), url.port), (Some("::1"), 6000));
        assert_eq!(
            (url.user.as_str(), url.password.as_deref(), url.database.as_str()),
            ("o@ne", Some("p:w"), "my store")
        );
        let url = Url::read("postgres://u:p@w@host/db").unwrap();
        assert_eq!((url.password.as_deref(), url.host.as_deref(), url.port), (Some("p@w"), Some("host"), 5432));
        assert!(!format!("{url:?}").contains("p@w@"), "{url:?}");
    }

    #[test]
    fn the_guest_stands_for_its_address() {
        let url = Url::read("postgres://u@{guest}:7000/db").unwrap();
        assert!(url.is_guest());
        let server = url.server(Some("10.1.2.3".parse().unwrap()), Some("tare_store")).unwrap();
        assert_eq!(server.address, "10.1.2.3:7000".parse().unwrap());
        assert_eq!(server.schema.as_deref(), Some("tare_store"));
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason_and_without_the_password() {
        for (text, word) in [
            ("http://u:secret@h/db", "postgres://"),
            ("postgres://u:secret@h", "database"),
            ("postgres://h/db", "user"),
            ("postgres://u:secret@/db", "host"),
            ("postgres://u:secret@a,b/db", "host"),
            ("postgres://u:secret@{gast}/db", "host"),
            ("postgres://u:secret@h:x/db", "port"),
            ("postgres://u:secret%2@h/db", "%25"),
            ("postgres://u:secret@h/db?sslmode=verify-full", "without TLS"),
            ("postgres://u:secret@h/db?pool=3", "pool=3"),
        ] {
            let error = Url::read(text).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{text}: {error}");
        }
    }
}

//! The beginning of a session: who asks, what for, and the proof.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use tare_model::sql::SqlServer;

use super::error::PgError;
use super::frame::text;
use super::wire::Wire;

/// What a server may ask for at the beginning (`AuthenticationRequest` of the protocol).
const OK: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// Begins a session on a fresh connection, until the server is ready for statements.
pub(super) fn log_in(wire: &mut Wire, server: &SqlServer) -> Result<(), PgError> {
    let mut buffer = BytesMut::new();
    let mut settings = vec![
        ("user", server.user.as_str()),
        ("database", &server.database),
        ("application_name", "tare"),
        ("client_encoding", "UTF8"),
        // Dates and messages that read the same on every server.
        ("DateStyle", "ISO"),
    ];
    let path = server.schema.as_deref().map(|schema| format!("\"{}\"", schema.replace('"', "\"\"")));
    if let Some(path) = &path {
        settings.push(("search_path", path));
    }
    frontend::startup_message(settings, &mut buffer).map_err(unsendable)?;
    send(wire, &mut buffer)?;
    let mut proof = Proof { server, scram: None, proven: false };
    loop {
        match wire.message()? {
            (b'R', body) => {
                proof.answer(body, &mut buffer)?;
                if !buffer.is_empty() {
                    send(wire, &mut buffer)?;
                }
            }
            (b'E', body) => return Err(explained(PgError::of_response(body))),
            (b'Z', _) => return Ok(()),
            // Settings of the server, the key for cancelling, notices.
            (b'S' | b'K' | b'N', _) => {}
            (kind, _) => return Err(PgError::protocol(&format!("message {kind} while logging in"))),
        }
    }
}

fn send(wire: &mut Wire, buffer: &mut BytesMut) -> Result<(), PgError> {
    wire.output.extend_from_slice(buffer);
    buffer.clear();
    wire.send()
}

/// A text with a zero in it cannot be sent.
fn unsendable(error: std::io::Error) -> PgError {
    PgError::broken(format!("user, database, schema or password cannot be sent: {error}"))
}

/// Adds to a refusal what can be done about it.
fn explained(mut error: PgError) -> PgError {
    error.broken = true;
    let remedy = match error.sqlstate.as_deref() {
        Some("28P01") => "check user and password",
        Some("28000") => {
            "check the server's pg_hba.conf: it must let this user in from this address without TLS, which tare does not speak"
        }
        Some("3D000") => "create the database, or name another",
        Some("53300") => "raise the server's max_connections, or use fewer clients",
        _ => return error,
    };
    error.message = format!("{}; {remedy}", error.message);
    error
}

/// The proof that the server asks for.
struct Proof<'a> {
    server: &'a SqlServer,
    scram: Option<ScramSha256>,
    /// The server has proven that it knows the password as well.
    proven: bool,
}

impl Proof<'_> {
    fn password(&self) -> Result<&[u8], PgError> {
        self.server.password.as_deref().map(str::as_bytes).ok_or_else(|| PgError {
            sqlstate: Some("28P01".to_owned()),
            message: "the server asks for a password and none was given".to_owned(),
            broken: true,
        })
    }

    /// Answers one request of the server into `out`, or leaves it empty.
    fn answer(&mut self, body: &[u8], out: &mut BytesMut) -> Result<(), PgError> {
        let short = || PgError::protocol("a request for authentication that is cut short");
        let bad = |error: std::io::Error| PgError::broken(format!("authentication by SCRAM failed: {error}"));
        let (kind, rest) = body.split_first_chunk::<4>().ok_or_else(short)?;
        match u32::from_be_bytes(*kind) {
            OK if self.scram.is_some() && !self.proven => {
                Err(PgError::broken("the server did not prove that it knows the password; do not trust it"))
            }
            OK => Ok(()),
            // Nobody talks a password out of a proof that was begun without telling it.
            CLEARTEXT | MD5 if self.scram.is_some() => Err(PgError::protocol("a second kind of proof")),
            CLEARTEXT => frontend::password_message(self.password()?, out).map_err(unsendable),
            MD5 => {
                let salt = *rest.first_chunk::<4>().ok_or_else(short)?;
                let hash = md5_hash(self.server.user.as_bytes(), self.password()?, salt);
                frontend::password_message(hash.as_bytes(), out).map_err(unsendable)
            }
            SASL => {
                let mut names = std::iter::successors(text(rest), |(_, after)| text(after)).map(|(name, _)| name);
                if !names.any(|name| name == SCRAM_SHA_256.as_bytes()) {
                    return Err(unsupported("a SASL mechanism other than SCRAM-SHA-256"));
                }
                let scram = ScramSha256::new(self.password()?, ChannelBinding::unsupported());
                frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out).map_err(unsendable)?;
                self.scram = Some(scram);
                Ok(())
            }
            SASL_CONTINUE => {
                let scram = self.scram.as_mut().ok_or_else(short)?;
                scram.update(rest).map_err(bad)?;
                frontend::sasl_response(scram.message(), out).map_err(unsendable)
            }
            SASL_FINAL => {
                self.scram.as_mut().ok_or_else(short)?.finish(rest).map_err(bad)?;
                self.proven = true;
                Ok(())
            }
            2 => Err(unsupported("Kerberos")),
            7..=9 => Err(unsupported("GSSAPI or SSPI")),
            other => Err(unsupported(&format!("an unknown kind of proof ({other})"))),
        }
    }
}

fn unsupported(what: &str) -> PgError {
    PgError::broken(format!(
        "the server asks for {what}, which tare does not speak; let this user in by scram-sha-256, md5, password or trust in its pg_hba.conf"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(password: Option<&str>) -> SqlServer {
        SqlServer {
            password: password.map(str::to_owned),
            ..SqlServer::of("127.0.0.1:5432".parse().unwrap(), "u", "d")
        }
    }

    fn ask(proof: &mut Proof<'_>, kind: u32, rest: &[u8]) -> Result<BytesMut, PgError> {
        let mut out = BytesMut::new();
        proof.answer(&[&kind.to_be_bytes()[..], rest].concat(), &mut out).map(|()| out)
    }

    #[test]
    fn what_is_not_spoken_is_refused_with_a_remedy() {
        let server = server(Some("p"));
        let mut proof = Proof { server: &server, scram: None, proven: false };
        for (kind, rest) in
            [(2, &b""[..]), (7, b""), (9, b""), (77, b""), (SASL, b"SCRAM-SHA-256-PLUS\0\0"), (SASL, b"")]
        {
            assert!(ask(&mut proof, kind, rest).unwrap_err().message.contains("pg_hba.conf"), "{kind}");
        }
        for (kind, rest) in [(MD5, &b"abc"[..]), (SASL_CONTINUE, b"r=x"), (SASL_FINAL, b"v=")] {
            assert!(ask(&mut proof, kind, rest).unwrap_err().message.contains("cut short"), "{kind}");
        }
        assert!(proof.answer(&[0, 0], &mut BytesMut::new()).is_err());
    }

    #[test]
    fn a_server_that_does_not_prove_itself_is_not_trusted() {
        let server = server(Some("p"));
        let mut proof = Proof { server: &server, scram: None, proven: false };
        assert!(ask(&mut proof, SASL, b"SCRAM-SHA-256\0\0").unwrap().starts_with(b"p"));
        assert!(ask(&mut proof, SASL_CONTINUE, b"r=another,s=YQ==,i=4096").is_err(), "a nonce that is not ours");
        assert!(ask(&mut proof, OK, b"").unwrap_err().message.contains("did not prove"));
        for (kind, rest) in [(CLEARTEXT, &b""[..]), (MD5, b"abcd")] {
            assert!(ask(&mut proof, kind, rest).unwrap_err().message.contains("second kind"), "{kind}");
        }
    }

    #[test]
    fn no_password_is_a_refused_login() {
        let server = server(None);
        let mut proof = Proof { server: &server, scram: None, proven: false };
        for (kind, rest) in [(CLEARTEXT, &b""[..]), (MD5, b"abcd"), (SASL, b"SCRAM-SHA-256\0\0")] {
            assert!(ask(&mut proof, kind, rest).unwrap_err().is("28P01"), "{kind}");
        }
        assert!(ask(&mut proof, OK, b"").unwrap().is_empty());
    }
}

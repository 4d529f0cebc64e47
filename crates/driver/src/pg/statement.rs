//! Prepared statements: the hot path.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::connection::Connection;
use super::error::PgError;
use super::frame::rows_of;

/// Object identifiers of the types that parameters have (pg_type.dat).
const INT4: u32 = 23;
const TEXT: u32 = 25;
const INT4_ARRAY: u32 = 1007;
const NUMERIC: u32 = 1700;

/// Kinds of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Int4,
    Text,
    /// `numeric`, of amounts with two digits.
    Cents,
    /// `integer[]`.
    Int4s,
}

impl Kind {
    const fn oid(self) -> u32 {
        match self {
            Self::Int4 => INT4,
            Self::Text => TEXT,
            Self::Cents => NUMERIC,
            Self::Int4s => INT4_ARRAY,
        }
    }
}

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Int4(i32),
    Text(&'a [u8]),
    /// An amount, below 10^10 units.
    Cents(u64),
    Int4s(&'a [i32]),
}

/// What a server says that a statement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Did {
    /// Rows that it counts: of an UPDATE those that it changed.
    pub rows: u64,
    /// A transaction was rolled back. This is what COMMIT says of one in which a statement had failed.
    pub rolled_back: bool,
}

/// Bytes that run a statement once, but for its parameters: Bind up to them, and what follows them.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    sql: &'static str,
    name: String,
    parameters: Vec<Kind>,
    head: Vec<u8>,
}

/// After the parameters: all results binary; Execute of the unnamed portal, all rows; Sync.
const TAIL: [u8; 19] = [0, 1, 0, 1, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4];
/// Bytes of the tail that belong to Bind.
const TAIL_OF_BIND: usize = 4;

impl Statement {
    /// A statement that servers are to know by `name`, which has no zero in it.
    pub fn new(name: &str, sql: &'static str, parameters: &[Kind]) -> Self {
        let mut head = vec![b'B', 0, 0, 0, 0, 0];
        head.extend(name.bytes());
        // All parameters binary.
        head.extend([0, 0, 1, 0, 1]);
        head.extend((parameters.len() as u16).to_be_bytes());
        Self { sql, name: name.to_owned(), parameters: parameters.to_vec(), head }
    }

    /// Appends the messages that run it.
    #[inline]
    fn encode(&self, values: &[Value<'_>], out: &mut Vec<u8>) {
        debug_assert_eq!(values.len(), self.parameters.len(), "{}", self.sql);
        let start = out.len();
        out.extend_from_slice(&self.head);
        for value in values {
            match *value {
                Value::Int4(n) => {
                    out.extend_from_slice(&[0, 0, 0, 4]);
                    out.extend_from_slice(&n.to_be_bytes());
                }
                Value::Cents(cents) => {
                    out.extend_from_slice(&[0, 0, 0, 16]);
                    out.extend_from_slice(&numeric_of(cents));
                }
                Value::Int4s(numbers) => array(numbers, out),
                Value::Text(text) => {
                    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                    out.extend_from_slice(text);
                }
            }
        }
        out.extend_from_slice(&TAIL);
        let bind = (out.len() - start - 1 - (TAIL.len() - TAIL_OF_BIND)) as u32;
        out[start + 1..start + 5].copy_from_slice(&bind.to_be_bytes());
    }
}

/// Digits of a `numeric` are in base 10,000 (numeric.c).
const BASE: u64 = 10_000;

/// The binary form of an amount: four digits, the last one the fraction, and the exponent of the first. The server drops
/// zeros at the front by itself.
#[inline]
fn numeric_of(cents: u64) -> [u8; 16] {
    const HEAD: [u8; 8] = [0, 4, 0, 2, 0, 0, 0, 2];
    let (units, fraction) = (cents / 100, cents % 100 * 100);
    let digits = [units / (BASE * BASE), units / BASE % BASE, units % BASE, fraction];
    let mut form = [0; 16];
    form[..8].copy_from_slice(&HEAD);
    for (place, digit) in form[8..].chunks_exact_mut(2).zip(digits) {
        place.copy_from_slice(&(digit as u16).to_be_bytes());
    }
    form
}

/// An amount in cents from the binary form of a `numeric`; `None` where it is negative, no number, or beyond all prices.
pub(crate) fn cents_of(form: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u16::from_be_bytes(*form.get(at..)?.first_chunk::<2>()?));
    let (digits, weight, sign) = (usize::from(word(0)?), i32::from(word(2)? as i16), word(4)?);
    if sign != 0 || weight > 2 || digits > 16 {
        return None;
    }
    let mut cents = 0;
    for index in 0..digits {
        let digit = u64::from(word(8 + 2 * index)?);
        cents += match weight - index as i32 {
            exponent @ 0..=2 => digit * BASE.pow(exponent as u32) * 100,
            -1 => digit / 100,
            _ => 0,
        };
    }
    Some(cents)
}

/// The binary form of an array of one dimension that begins at 1 and holds no NULL.
#[inline]
fn array(numbers: &[i32], out: &mut Vec<u8>) {
    let words = [20 + 8 * numbers.len() as u32, 1, 0, INT4, numbers.len() as u32, 1];
    words.iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    for number in numbers {
        out.extend_from_slice(&[0, 0, 0, 4]);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

impl Connection {
    /// Has the server parse statements, all in one round trip.
    ///
    /// # Errors
    /// Of the first that the server does not take, such as 42P01 for a table that is missing.
    pub(crate) fn prepare(&mut self, statements: &[&Statement]) -> Result<(), PgError> {
        let mut buffer = BytesMut::new();
        for statement in statements {
            let types = statement.parameters.iter().map(|kind| kind.oid());
            frontend::parse(&statement.name, statement.sql, types, &mut buffer)
                .map_err(|error| PgError::broken(error.to_string()))?;
        }
        frontend::sync(&mut buffer);
        self.send(&buffer)?;
        let mut parsed = 0;
        self.answers(&mut |_| (), &mut parsed).map_err(|error| {
            let sql = statements.get(parsed).map_or("", |statement| statement.sql);
            error.while_trying(&format!("cannot prepare `{sql}`"))
        })?;
        Ok(())
    }

    /// Runs a prepared statement and shows each of its rows; returns what the server says it did.
    ///
    /// # Errors
    /// Why the server refused it, or how the connection broke.
    #[inline]
    pub(crate) fn run(
        &mut self,
        statement: &Statement,
        values: &[Value<'_>],
        mut row: impl FnMut(&[u8]),
    ) -> Result<Did, PgError> {
        statement.encode(values, &mut self.wire.output);
        self.wire.send()?;
        self.answers(&mut row, &mut 0)
    }

    /// Reads until the server is ready for more.
    #[inline]
    fn answers(&mut self, row: &mut impl FnMut(&[u8]), parsed: &mut usize) -> Result<Did, PgError> {
        let mut did = Did::default();
        let mut failed: Option<PgError> = None;
        loop {
            match self.wire.message() {
                Ok((b'D', body)) => row(body),
                Ok((b'2', _)) => {}
                Ok((b'C', body)) => did = Did { rows: rows_of(body), rolled_back: body.starts_with(b"ROLLBACK") },
                Ok((b'Z', _)) => break,
                Ok((b'E', body)) => failed = failed.or(Some(PgError::of_response(body))),
                Ok((b'1', _)) => *parsed += 1,
                // Notices, notifications and settings come when they like; a statement that is empty counts nothing.
                Ok((b'N' | b'A' | b'S' | b'I', _)) => {}
                Ok((kind, _)) => return Err(PgError::protocol(&format!("message {kind} in answer to a statement"))),
                Err(broken) => return Err(PgError::at_the_end(failed, broken)),
            }
        }
        failed.map_or(Ok(did), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Columns;
    use super::super::wire::Wire;
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_statement_is_bind_execute_and_sync_with_lengths_that_are_right() {
        let statement = Statement::new("s1", "SELECT $1, $2, $3", &[Kind::Int4, Kind::Text, Kind::Int4s]);
        let mut out = Vec::new();
        for _ in 0..2 {
            statement.encode(&[Value::Int4(-2), Value::Text("häh".as_bytes()), Value::Int4s(&[5])], &mut out);
        }
        let one = out.len() / 2;
        assert_eq!(out[..one], out[one..], "two in one buffer are twice the same");
        let mut kinds = Vec::new();
        let mut rest = &out[..one];
        while let Some((&[kind, a, b, c, d], _)) = rest.split_first_chunk::<5>() {
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            kinds.push((kind, rest[5..=length].to_vec()));
            rest = &rest[1 + length..];
        }
        assert!(rest.is_empty());
        let bind = [
            &b"\0s1\0"[..],
            &[0, 1, 0, 1, 0, 3],
            &[0, 0, 0, 4, 255, 255, 255, 254],
            &[0, 0, 0, 4],
            "häh".as_bytes(),
            &[0, 0, 0, 28, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5],
            &[0, 1, 0, 1],
        ]
        .concat();
        assert_eq!(kinds, [(b'B', bind), (b'E', vec![0, 0, 0, 0, 0]), (b'S', vec![])]);
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    }

    /// A session with a peer that says `bytes`, which arrive in two pieces.
    fn session(bytes: &[u8], cut: usize) -> (Connection, UnixDatagram) {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let pieces = [&bytes[..cut], &bytes[cut..]];
        pieces.iter().filter(|piece| !piece.is_empty()).for_each(|piece| {
            theirs.send(piece).unwrap();
        });
        (Connection { wire: Wire::new(ours.into()) }, theirs)
    }

    /// Numbers of the rows, and what the server says it did.
    fn ask(session: &mut Connection) -> Result<(Vec<i64>, Did), PgError> {
        let statement = Statement::new("s", "SELECT", &[]);
        let mut rows = Vec::new();
        let did = session.run(&statement, &[], |row| rows.extend(Columns::of(row).integer()))?;
        Ok((rows, did))
    }

    #[test]
    fn answers_are_understood_wherever_they_are_cut_and_whatever_comes_between() {
        let row = message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 7]);
        let between = [
            message(b'N', b"SWARNING\0C01000\0Mbeware\0\0"),
            message(b'S', b"TimeZone\0UTC\0"),
            message(b'A', b"\0\0\0\x01channel\0payload\0"),
        ]
        .concat();
        let good = [message(b'2', b""), row.clone(), between.clone(), row, message(b'C', b"SELECT 2\0")].concat();
        let refused = [between, message(b'E', b"SERROR\0VERROR\0C23505\0Mdouble\0\0")].concat();
        let ready = message(b'Z', b"I");
        let all = [&refused[..], &ready, &good, &ready].concat();
        for cut in 0..all.len() {
            let (mut session, peer) = session(&all, cut);
            let error = ask(&mut session).unwrap_err();
            assert!(error.is("23505") && !error.broken && error.message == "double", "{cut}: {error:?}");
            // The next statement has the next answer.
            assert_eq!(ask(&mut session).unwrap(), (vec![7, 7], Did { rows: 2, rolled_back: false }), "{cut}");
            drop(peer);
        }
    }

    #[test]
    fn an_answer_that_ends_early_leaves_a_connection_of_no_more_use() {
        let row = message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 7]);
        let said = message(b'E', b"SERROR\0VERROR\0C40P01\0Mdeadlock\0\0");
        let all = [message(b'2', b""), row.clone(), said, message(b'Z', b"I")].concat();
        let deadlock = all.len() - message(b'Z', b"I").len();
        for end in 0..all.len() {
            let (mut session, peer) = session(&all[..end], 0);
            session.bound(Some(std::time::Duration::from_millis(1))).unwrap();
            let error = ask(&mut session).unwrap_err();
            // What the server said stands first, but nobody goes on with this connection.
            assert!(error.broken, "{end}: {error:?}");
            assert_eq!(error.is("40P01"), end >= deadlock, "{end}: {error:?}");
            drop(peer);
        }
        // In the simple protocol as well.
        let way: [fn(&mut Connection) -> Option<PgError>; 2] =
            [|s| s.simple("SELECT").err(), |s| s.copy_in("COPY").err()];
        for ask in way {
            let (mut session, peer) = session(&all[5 + row.len()..deadlock], 0);
            session.bound(Some(std::time::Duration::from_millis(1))).unwrap();
            let error = ask(&mut session).unwrap();
            assert!(error.broken && error.is("40P01"), "{error:?}");
            drop(peer);
        }
    }

    #[test]
    fn amounts_come_back_as_they_went() {
        for cents in [0, 1, 99, 100, 999_999, 1_000_000, 1_999_999, 123_456_789_012, 999_999_999_999] {
            assert_eq!(cents_of(&numeric_of(cents)), Some(cents));
        }
        // As the server writes 20.00 (no fraction) and 0.05 (no units).
        assert_eq!(cents_of(&[0, 1, 0, 0, 0, 0, 0, 2, 0, 20]), Some(2_000));
        assert_eq!(cents_of(&[0, 1, 255, 255, 0, 0, 0, 2, 1, 244]), Some(5));
        assert_eq!(cents_of(&[0, 0, 0, 0, 0, 0, 0, 2]), Some(0));
    }

    #[test]
    fn a_number_that_is_none_is_no_amount() {
        let good = numeric_of(123_456_789);
        for cut in 0..good.len() {
            assert_eq!(cents_of(&good[..cut]), None, "{cut}");
        }
        assert_eq!(cents_of(&[0, 0, 0, 0, 0xC0, 0, 0, 0]), None, "not a number");
        assert_eq!(cents_of(&[0, 1, 0, 0, 0x40, 0, 0, 2, 0, 20]), None, "negative");
        for at in 0..good.len() {
            for value in 0..=255u8 {
                let mut bad = good;
                bad[at] = value;
                let _ = cents_of(&bad);
            }
        }
    }
}

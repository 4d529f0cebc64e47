//! Why a server did not do what it was asked, with a remedy.

use tare_model::sql::{SqlFailure, SqlServer};

use crate::Failure;

/// A server that did not do what it was asked, with the remedy that its code suggests.
pub(crate) fn refused(tried: impl Into<String>, server: &SqlServer, failure: &SqlFailure) -> Failure {
    let code = failure.sqlstate.as_deref();
    let remedy = match code {
        None if failure.message.contains("cannot connect") => {
            "and that it can be reached from where load comes from, which for guests in tare's own network is that network: \
             nothing outside can be reached from there"
        }
        None => "see the server's log",
        Some("28P01" | "28000") => {
            "check user, password and database (in `url`, the password may come from PGPASSWORD), and that pg_hba.conf lets the client in by SCRAM or a password, without TLS"
        }
        Some("3D000") => "create the database, or name another",
        Some("42501") => "give the user the right to create a schema in the database (GRANT CREATE ON DATABASE)",
        Some("53300") => "raise `max_connections` of the server, or ask with fewer clients",
        Some("53100") => "the server's disk is full: give it more room, or ask for a smaller `db-size`",
        Some("57014") => "it took too long: ask for a smaller `db-size`, or find out what slows the server down",
        Some(_) => "see the server's log",
    };
    let state = code.map(|code| format!(" (SQLSTATE {code})")).unwrap_or_default();
    let message = failure.message.replace('\n', ", ");
    // The message mostly names what was tried, and more precisely.
    let tried = tried.into();
    let (tried, why) = match message.strip_prefix("cannot ").and_then(|rest| rest.split_once(": ")) {
        Some((better, why)) => (better.to_owned(), why.to_owned()),
        None => (format!("{tried} on {server}"), message),
    };
    Failure::new(tried, format!("{why}{state}"), remedy)
}

//! A SQL server, what it is asked and what it answers.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::clean::Untrusted;
use crate::packed::Task;

/// Where a PostgreSQL server is, and who asks it. The password is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Role.
    pub user: String,
    /// Password; `None` where the server trusts the address.
    pub password: Option<String>,
    /// Database.
    pub database: String,
    /// Schema that unqualified names mean (`search_path`); `None` leaves the server's own.
    pub schema: Option<String>,
}

impl SqlServer {
    /// A server that asks this address for no password, and its own schema.
    pub fn of(address: SocketAddr, user: &str, database: &str) -> Self {
        Self { address, user: user.to_owned(), password: None, database: database.to_owned(), schema: None }
    }
}

impl std::fmt::Debug for SqlServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for SqlServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "postgres://{}@{}/{}", self.user, self.address, self.database)
    }
}

/// Statements for a server, run one after another on one connection, by the simple protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlSpec {
    /// The server.
    pub server: SqlServer,
    /// The statements, one result each. The first that fails ends it.
    pub statements: Vec<String>,
    /// Longest that connecting and all statements together may take, nanoseconds.
    pub timeout_ns: u64,
}

/// Rows of one statement, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SqlRows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// What the server says it did, such as `INSERT 0 1`.
    pub tag: String,
}

/// Why a server did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlFailure {
    /// The server's code of five characters (SQLSTATE), such as `28P01`; `None` when it did not answer.
    pub sqlstate: Option<String>,
    /// What was tried and what was said, for people.
    pub message: String,
}

impl Task for SqlSpec {
    const KIND: &'static str = "ask the database";
    type Outcome = Result<Vec<SqlRows>, SqlFailure>;
}

impl Untrusted for SqlRows {
    fn clean(&mut self) {
        self.tag.clean();
        self.columns.clean();
        self.rows.clean();
    }
}

impl Untrusted for SqlFailure {
    fn clean(&mut self) {
        self.message.clean();
        self.sqlstate.clean();
    }
}

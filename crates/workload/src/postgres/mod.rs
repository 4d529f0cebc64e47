//! PostgreSQL for the workloads that use it: programs, settings, servers in guests and what they tell, and clusters that are made once.

pub(crate) mod cluster;
pub(crate) mod facts;
pub(crate) mod installation;
pub(crate) mod server;
pub(crate) mod settings;

/// PostgreSQL's port.
pub(crate) const PORT: u16 = 5432;

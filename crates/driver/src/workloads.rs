//! The workloads' parts in the agent: a module and an entry each. Their folders have all else.

use crate::task::Kind;

#[path = "../../../workloads/http/agent/mod.rs"]
pub mod http;
#[path = "../../../workloads/java/agent/mod.rs"]
pub mod java;
#[path = "../../../workloads/kv/agent/mod.rs"]
pub mod kv;
#[path = "../../../workloads/social/agent/mod.rs"]
pub mod social;
#[path = "../../../workloads/store/agent/mod.rs"]
pub mod store;
#[path = "../../../workloads/web/agent/mod.rs"]
pub mod web;

/// All kinds of task that the agent does. Raw sockets and PostgreSQL are common to several workloads.
pub(crate) const ALL: &[&[Kind]] = &[
    crate::exchange::KINDS,
    crate::pg::KINDS,
    http::KINDS,
    java::KINDS,
    kv::KINDS,
    social::KINDS,
    store::KINDS,
    web::KINDS,
];

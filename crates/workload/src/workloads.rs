//! The workloads: a module and an entry each. Their folders have all else.

use crate::entry::Entry;

#[path = "../../../workloads/cpu/host/mod.rs"]
pub mod cpu;
#[path = "../../../workloads/exec/host/mod.rs"]
pub mod exec;
#[path = "../../../workloads/guest_start/host/mod.rs"]
pub mod guest_start;
#[path = "../../../workloads/http/host/mod.rs"]
pub mod http;
#[path = "../../../workloads/java/host/mod.rs"]
pub mod java;
#[path = "../../../workloads/kv/host/mod.rs"]
pub mod kv;
#[path = "../../../workloads/null/host/mod.rs"]
pub mod null;
#[path = "../../../workloads/resident_task/host/mod.rs"]
pub mod resident_task;
#[path = "../../../workloads/rr/host/mod.rs"]
pub mod rr;
#[path = "../../../workloads/social/host/mod.rs"]
pub mod social;
#[path = "../../../workloads/store/host/mod.rs"]
pub mod store;
#[path = "../../../workloads/stream/host/mod.rs"]
pub mod stream;
#[path = "../../../workloads/tile/host/mod.rs"]
pub mod tile;
#[path = "../../../workloads/web/host/mod.rs"]
pub mod web;

/// All workloads, in the order in which they are listed.
pub const ALL: &[Entry] = &[
    rr::ENTRY,
    stream::ENTRY,
    store::ENTRY,
    java::ENTRY,
    web::BANKING,
    web::ECOMMERCE,
    web::SUPPORT,
    social::ENTRY,
    kv::ENTRY,
    http::ENTRY,
    cpu::ENTRY,
    tile::ENTRY,
    guest_start::ENTRY,
    resident_task::ENTRY,
    exec::ENTRY,
    null::ENTRY,
];

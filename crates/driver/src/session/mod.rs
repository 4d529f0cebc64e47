//! Drivers of sessions: the engine, and what it and its users need of HTTP, TLS, timers, slots, chance, and what the process may have open.

pub(crate) mod body;
pub(crate) mod draw;
pub(crate) mod engine;
pub(crate) mod fault;
pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod probe;
pub(crate) mod requests;
pub(crate) mod secure;
pub(crate) mod slab;
pub(crate) mod sys;
pub(crate) mod tick;
pub(crate) mod timers;
pub(crate) mod tls;

use crate::timeline::Timeline;

/// When session `index` of `all` joins: they join evenly over the warm-up, or over the ramp-up where there is none, and none leaves before
/// the end of the load. Users of a site that all come at once are no load that a site has.
pub(crate) fn joins_at(timeline: &Timeline, index: u32, all: u32) -> u64 {
    let warm = timeline.driven(timeline.warm_end);
    if warm == 0 {
        return timeline.joins_at(index, all);
    }
    timeline.moment((u128::from(warm) * u128::from(index) / u128::from(all.max(1))) as u64)
}

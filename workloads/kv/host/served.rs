//! What a server has counted, and whether it agrees with what the drivers saw.

use std::collections::BTreeMap;

use super::spec::{KvDone, Protocol, Said};

/// What a server says of itself, by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Server(BTreeMap<String, String>);

/// Its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Served {
    /// GETs, and those that found nothing.
    pub gets: u64,
    pub misses: u64,
    pub sets: u64,
    /// Keys dropped for want of memory.
    pub evictions: u64,
    /// Keys that are there.
    pub items: u64,
}

impl Server {
    pub fn of(said: Said) -> Self {
        Self(said.into_iter().collect())
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn count(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// One number of a line such as `calls=7,usec=20`.
    fn part(&self, name: &str, part: &str) -> u64 {
        let mut parts = self.text(name).split(',').filter_map(|pair| pair.split_once('='));
        parts.find(|(key, _)| *key == part).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
    }

    /// Its counters.
    pub fn served(&self, protocol: Protocol) -> Served {
        match protocol {
            Protocol::Redis => Served {
                gets: self.part("cmdstat_get", "calls"),
                misses: self.count("keyspace_misses"),
                sets: self.part("cmdstat_set", "calls"),
                evictions: self.count("evicted_keys"),
                items: self.part("db0", "keys"),
            },
            Protocol::Memcached => Served {
                gets: self.count("cmd_get"),
                misses: self.count("get_misses"),
                sets: self.count("cmd_set"),
                evictions: self.count("evictions"),
                items: self.count("curr_items"),
            },
        }
    }

    /// What it is and how it is set, as facts.
    pub fn facts(&self, protocol: Protocol) -> impl Iterator<Item = (String, String)> {
        let names: &[(&str, &str)] = match protocol {
            Protocol::Redis => &[
                ("version", "redis_version"),
                ("allocator", "mem_allocator"),
                ("event loop", "multiplexing_api"),
                ("maxmemory", "setting maxmemory"),
                ("maxmemory-policy", "setting maxmemory-policy"),
                ("io-threads", "setting io-threads"),
                ("memory used after loading, bytes", "used_memory"),
            ],
            Protocol::Memcached => &[
                ("version", "version"),
                ("libevent", "libevent"),
                ("threads", "threads"),
                ("maxbytes", "setting maxbytes"),
                ("evictions", "setting evictions"),
                ("item_size_max", "setting item_size_max"),
                ("bytes stored after loading", "bytes"),
            ],
        };
        let known = names.iter().filter_map(|(name, key)| Some((*name, self.0.get(*key)?)));
        known.map(|(name, value)| (format!("server {name}"), value.clone())).collect::<Vec<_>>().into_iter()
    }
}

/// How the server's counters and the drivers' disagree, if they do. A request without an answer may have been served, and a refused one
/// counted.
pub(super) fn disagreement(before: &Served, done: &KvDone, after: &Served, eviction: bool) -> Option<String> {
    let mut wrong = Vec::new();
    let mut same = |what: &str, (from, to): (u64, u64), seen: u64, doubt: u64| {
        let counted = to.wrapping_sub(from);
        if !(seen..=seen + doubt).contains(&counted) {
            let most = if doubt > 0 { format!(" and {doubt} in doubt") } else { String::new() };
            wrong.push(format!("{what}: the server counts {counted}, the drivers {seen}{most}"));
        }
    };
    let (gets, sets) = (done.in_doubt.0 + done.refused, done.in_doubt.1 + done.refused);
    same("GETs", (before.gets, after.gets), done.all.gets, gets);
    same("GETs without a value", (before.misses, after.misses), done.all.misses, gets);
    same("SETs", (before.sets, after.sets), done.all.sets, sets);
    if !eviction {
        same("keys dropped", (before.evictions, after.evictions), 0, 0);
        same("keys", (before.items, after.items), 0, 0);
    }
    (!wrong.is_empty()).then(|| format!("server and drivers disagree: {}", wrong.join("; ")))
}

#[cfg(test)]
#[path = "../tests/served.rs"]
mod tests;

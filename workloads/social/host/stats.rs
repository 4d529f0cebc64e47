//! What an instance counted itself.

use serde::Deserialize;

use super::start::Instance;
use crate::application::fetch;
use crate::{Driven, Failure, WorkSite, WorkloadError};

/// What an instance tells at `/tare/stats`, since its start.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(super) struct Stats {
    pub pages: u64,
    pub files: u64,
    pub not_modified: u64,
    pub stored_files: u64,
    pub refused: u64,
    pub errors: u64,
    pub home_hits: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub store_calls: u64,
    pub store_errors: u64,
    pub store_seconds: f64,
    pub database_calls: u64,
    pub database_errors: u64,
    pub database_seconds: f64,
    pub pool_waits: u64,
    pub pool_wait_seconds: f64,
    pub heap_used_bytes: u64,
    pub collections: u64,
    pub collection_seconds: f64,
    pub cpu_seconds: f64,
}

impl Stats {
    /// Asks an instance.
    ///
    /// # Errors
    /// When it does not answer, or with something else.
    pub fn of(site: &WorkSite<'_>, instance: &Instance) -> Result<Self, WorkloadError> {
        let answer = match fetch(site.client, site.timeout, instance.address, "/tare/stats")? {
            Ok((200, body)) => serde_json::from_slice(&body).map_err(|error| error.to_string()),
            Ok((status, _)) => Err(format!("it answers with status {status}")),
            Err(why) => Err(why),
        };
        answer.map_err(|why| {
            let tried = format!("ask {} of the social application what it counted", instance.name);
            Failure::new(tried, why, "the guest may be short of CPU or memory").into()
        })
    }

    /// Whatever failed in it, by kind, in one sentence; `None`: nothing.
    pub fn failures(&self) -> Option<String> {
        let Self { errors, database_errors, store_errors, .. } = self;
        (errors + database_errors + store_errors > 0).then(|| {
            format!(
                "{errors} requests that failed, {database_errors} errors of the database, {store_errors} of the file store"
            )
        })
    }

    /// What was counted since an earlier moment; the heap is as it is now.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            pages: self.pages.saturating_sub(before.pages),
            files: self.files.saturating_sub(before.files),
            not_modified: self.not_modified.saturating_sub(before.not_modified),
            stored_files: self.stored_files.saturating_sub(before.stored_files),
            refused: self.refused.saturating_sub(before.refused),
            errors: self.errors.saturating_sub(before.errors),
            home_hits: self.home_hits.saturating_sub(before.home_hits),
            cache_hits: self.cache_hits.saturating_sub(before.cache_hits),
            cache_misses: self.cache_misses.saturating_sub(before.cache_misses),
            store_calls: self.store_calls.saturating_sub(before.store_calls),
            store_errors: self.store_errors.saturating_sub(before.store_errors),
            store_seconds: self.store_seconds - before.store_seconds,
            database_calls: self.database_calls.saturating_sub(before.database_calls),
            database_errors: self.database_errors.saturating_sub(before.database_errors),
            database_seconds: self.database_seconds - before.database_seconds,
            pool_waits: self.pool_waits.saturating_sub(before.pool_waits),
            pool_wait_seconds: self.pool_wait_seconds - before.pool_wait_seconds,
            heap_used_bytes: self.heap_used_bytes,
            collections: self.collections.saturating_sub(before.collections),
            collection_seconds: self.collection_seconds - before.collection_seconds,
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
        }
    }
}

/// What instances counted over a drive, all phases, as facts: each in the instances' order.
pub(super) fn tell(driven: &mut Driven, all: &[Stats]) {
    let mut fact = |name: &str, of: &dyn Fn(&Stats) -> String| {
        let values: Vec<String> = all.iter().map(of).collect();
        driven.facts.insert(format!("application: {name}"), values.join("; "));
    };
    fact("pages, all phases", &|one| one.pages.to_string());
    fact("static files, all phases", &|one| one.files.to_string());
    fact("files of the store, all phases", &|one| one.stored_files.to_string());
    fact("requests that were refused, all phases", &|one| one.refused.to_string());
    fact("errors, all phases", &|one| one.errors.to_string());
    fact("anonymous home pages that were there", &|one| one.home_hits.to_string());
    fact("objects found in the cache", &|one| {
        let asked = one.cache_hits + one.cache_misses;
        format!("{:.1} %", 100.0 * one.cache_hits as f64 / asked.max(1) as f64)
    });
    fact("database called, all phases", &|one| one.database_calls.to_string());
    fact("waited for the database", &|one| {
        format!("{:.2} ms a call", one.database_seconds * 1e3 / one.database_calls.max(1) as f64)
    });
    fact("waited for the file store", &|one| {
        format!("{:.2} ms a call", one.store_seconds * 1e3 / one.store_calls.max(1) as f64)
    });
    fact("waited for a connection of the pool", &|one| {
        format!("{} times, {:.3} s", one.pool_waits, one.pool_wait_seconds)
    });
    fact("heap in use", &|one| format!("{} MiB", one.heap_used_bytes >> 20));
    fact("collections", &|one| format!("{}, {:.2} s", one.collections, one.collection_seconds));
    fact("CPU, all phases", &|one| format!("{:.2} s", one.cpu_seconds));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yields::tests::result;
    use crate::yields::{UnitOfWork, from_result};

    /// As an instance tells it.
    const ANSWER: &str = r#"{"requests":10,"pages":7,"files":3,"not_modified":1,"stored_files":2,"stored_bytes":9,"refused":0,"errors":0,
        "sessions":3,"database_calls":20,"database_errors":0,"database_seconds":0.04,"pool_connections":5,"pool_waits":1,
        "pool_wait_seconds":0.002,"store_calls":4,"store_errors":1,"store_seconds":0.008,"cache_hits":3,"cache_misses":1,
        "home_hits":2,"heap_used_bytes":104857600,"collections":2,"collection_seconds":0.01,"cpu_seconds":1.5}"#;

    #[test]
    fn what_an_instance_tells_is_read_and_counted_since_an_earlier_moment() {
        let stats: Stats = serde_json::from_str(ANSWER).unwrap();
        let before = Stats { pages: 2, store_errors: 1, cpu_seconds: 0.5, ..Stats::default() };
        let since = stats.since(&before);
        assert_eq!((since.pages, since.heap_used_bytes), (5, 100 << 20));
        assert!((since.cpu_seconds - 1.0).abs() < 1e-9);
        assert_eq!((since.failures(), stats.failures().is_some()), (None, true));
        let mut driven = from_result(result(10), UnitOfWork::Operation);
        tell(&mut driven, &[since, stats]);
        assert_eq!(driven.facts["application: pages, all phases"], "5; 7");
        assert_eq!(driven.facts["application: waited for the database"], "2.00 ms a call; 2.00 ms a call");
        assert_eq!(driven.facts["application: objects found in the cache"], "75.0 %; 75.0 %");
        assert_eq!(
            driven.facts["application: waited for a connection of the pool"],
            "1 times, 0.002 s; 1 times, 0.002 s"
        );
    }
}

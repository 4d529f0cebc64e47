//! Work for several guests, or on several hosts, at one time.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cancel::Cancel;

/// How soon a wish to stop is seen: soon for a person, rare enough to cost nothing.
const WATCH_EVERY: Duration = Duration::from_millis(200);

/// How many of one host are at work at one time: an sshd turns away some of those beyond ten that have not logged in yet (`MaxStartups`).
const OF_ONE_HOST: usize = 4;
/// What is said of work that panicked.
const PANICKED: &str = "it panicked: a bug in tare";

/// Does `work` for each item: all hosts at one time, and a few items of each. Each item comes with its host. Once `stops` says so, no further one is begun
/// but the first of each host; all that were begun are waited for. The results are in the order of the items, `None` for those that were not begun.
pub fn on_hosts<H: Ord, T: Send, R: Send>(
    items: impl Iterator<Item = (H, T)>,
    stops: impl Fn() -> bool + Sync,
    work: impl Fn(T) -> Result<R, String> + Sync,
) -> Vec<Option<Result<R, String>>> {
    let mut hosts: BTreeMap<H, VecDeque<(usize, T)>> = BTreeMap::new();
    let mut count = 0;
    for (host, item) in items {
        hosts.entry(host).or_default().push_back((count, item));
        count += 1;
    }
    let results = Mutex::new((0..count).map(|_| None).collect::<Vec<_>>());
    let queues: Vec<_> = hosts.into_values().map(|items| (items.len().min(OF_ONE_HOST), Mutex::new(items))).collect();
    let of_host = |queue: &Mutex<VecDeque<(usize, T)>>, mut begins: bool| {
        while begins || !stops() {
            begins = false;
            let Some((n, item)) = lock(queue).pop_front() else { break };
            let done = catch_unwind(AssertUnwindSafe(|| work(item))).unwrap_or_else(|_| Err(PANICKED.to_owned()));
            lock(&results)[n] = Some(done);
        }
    };
    std::thread::scope(|scope| {
        for (threads, queue) in &queues {
            for n in 0..*threads {
                let of_host = &of_host;
                scope.spawn(move || of_host(queue, n == 0));
            }
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// How far the work has come.
struct Progress<R> {
    /// By item: `None` until it has ended well.
    results: Vec<Option<R>>,
    working: Vec<bool>,
    first_failure: Option<(usize, String)>,
}

/// A value is never left half-written under this lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` for each item, all at one time: the first on this thread, which no scheduler has to wake, each other on
/// one of its own. Returns when all have ended. As soon as one fails, or somebody wishes to stop, `abort` is called once
/// for each that is still at work, by number, on another thread; it must make the work end.
///
/// # Errors
/// The first failure, with the item's number.
pub fn each<T: Send, R: Send>(
    cancel: &Cancel,
    items: impl Iterator<Item = T>,
    work: impl Fn(usize, T) -> Result<R, String> + Sync,
    abort: impl Fn(usize) + Sync,
) -> Result<Vec<R>, (usize, String)> {
    let mut items: Vec<(usize, T)> = items.enumerate().collect();
    let results = items.iter().map(|_| None).collect();
    let progress = Mutex::new(Progress { results, working: vec![true; items.len()], first_failure: None });
    let ended = Condvar::new();
    let one = |(n, item): (usize, T)| {
        let done = catch_unwind(AssertUnwindSafe(|| work(n, item)));
        let done = done.unwrap_or_else(|_| Err(PANICKED.to_owned()));
        let mut progress = lock(&progress);
        progress.working[n] = false;
        match done {
            Ok(result) => progress.results[n] = Some(result),
            Err(error) => drop(progress.first_failure.get_or_insert((n, error))),
        }
        ended.notify_all();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut progress = lock(&progress);
            let mut aborted = false;
            while progress.working.contains(&true) {
                if !aborted && (progress.first_failure.is_some() || cancel.reason().is_some()) {
                    aborted = true;
                    let (abort, working) = (&abort, &progress.working);
                    for n in (0..working.len()).filter(|&n| working[n]) {
                        scope.spawn(move || abort(n));
                    }
                }
                progress = ended.wait_timeout(progress, WATCH_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            }
        });
        for item in items.drain(items.len().min(1)..) {
            let one = &one;
            scope.spawn(move || one(item));
        }
        items.into_iter().for_each(one);
    });
    let Progress { results, first_failure, .. } = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    match first_failure {
        Some(failure) => Err(failure),
        None => Ok(results.into_iter().flatten().collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn all_hosts_are_at_work_at_one_time_and_only_a_few_items_of_each() {
        let (at_work, most) = (Mutex::new([0_usize; 2]), Mutex::new([0_usize; 2]));
        let both = std::sync::Barrier::new(2 * OF_ONE_HOST);
        let items = (0..4 * OF_ONE_HOST).map(|n| (n % 2, (n % 2, n)));
        let done = on_hosts(
            items,
            || false,
            |(host, n): (usize, usize)| {
                let now = {
                    let mut at_work = lock(&at_work);
                    at_work[host] += 1;
                    at_work[host]
                };
                {
                    let mut most = lock(&most);
                    most[host] = most[host].max(now);
                }
                // Nobody gets on before so many of each host are at work.
                both.wait();
                lock(&at_work)[host] -= 1;
                if n == 3 { panic!("on purpose") } else { Ok(n) }
            },
        );
        let done: Vec<_> = done.into_iter().map(Option::unwrap).collect();
        assert!(done.iter().enumerate().all(|(n, own)| *own == if n == 3 { Err(PANICKED.into()) } else { Ok(n) }));
        assert_eq!(*lock(&most), [OF_ONE_HOST; 2]);
    }

    #[test]
    fn nothing_but_the_first_of_each_host_is_begun_once_it_is_to_stop() {
        let failed = Cancel::new();
        let done = on_hosts(
            (0..3 * OF_ONE_HOST).map(|n| ("a", n)),
            || failed.reason().is_some(),
            |_| {
                failed.cancel("failed");
                Err::<(), _>("failed".to_owned())
            },
        );
        let begun = done.iter().flatten().count();
        assert!((1..=OF_ONE_HOST).contains(&begun), "{done:?}");
        let done = on_hosts((0..8).map(|n| (n % 2, n)), || true, Ok);
        assert_eq!(done[..2], [Some(Ok(0)), Some(Ok(1))]);
        assert!(done[2..].iter().all(Option::is_none), "{done:?}");
    }

    #[test]
    fn results_come_in_the_order_of_the_items_and_nothing_is_aborted() {
        let slow_first = |n: usize, item: u64| {
            std::thread::sleep(Duration::from_millis(20 * (2 - item)));
            Ok(n as u64 * 10 + item)
        };
        let done = each(&Cancel::new(), 0..3_u64, slow_first, |n| panic!("{n} was aborted"));
        assert_eq!(done, Ok(vec![0, 11, 22]));
    }

    #[test]
    fn the_first_failure_is_reported_and_ends_the_others() {
        let aborted = [Cancel::new(), Cancel::new(), Cancel::new()];
        let work = |n: usize, _| match n {
            1 => Err::<(), _>("failed".to_owned()),
            // It ends only because it is aborted. That is not a failure of its own, and it is not reported.
            _ => Err(format!("ended: {:?}", aborted[n].wait(LONG))),
        };
        let done = each(&Cancel::new(), 0..3, work, |n| aborted[n].cancel("aborted"));
        assert_eq!(done, Err((1, "failed".to_owned())));
        assert!(aborted[0].reason().is_some() && aborted[2].reason().is_some() && aborted[1].reason().is_none());
    }

    #[test]
    fn a_wish_to_stop_and_a_panic_end_the_others_too() {
        let (cancel, aborted) = (Cancel::new(), Mutex::new(Vec::new()));
        cancel.cancel("test");
        let ended = Cancel::new();
        let done = each(
            &cancel,
            0..2,
            |_, _| Ok::<_, String>(ended.wait(LONG).is_some()),
            |n| {
                if let Ok(mut aborted) = aborted.lock() {
                    aborted.push(n);
                    if aborted.len() == 2 {
                        ended.cancel("aborted");
                    }
                }
            },
        );
        assert_eq!(done, Ok(vec![true, true]));
        let ended = Cancel::new();
        let work = |n: usize, _| if n == 0 { panic!("on purpose") } else { Ok(ended.wait(LONG)) };
        let done = each(&Cancel::new(), 0..2, work, |_| ended.cancel("aborted"));
        assert_eq!(done, Err((0, PANICKED.to_owned())));
    }
}

//! Run time of kernel threads: what works for the guests outside of all control groups (ksoftirqd, kworkers, vhost of
//! kernels before 6.4 where it is left in the root group).
//!
//! The time of each is the scheduler's (`/proc/TID/schedstat`, nanoseconds). The kernel does not split it by CPU. A thread
//! that is bound counts where it is bound. What another one ran since it was last read counts as run on the CPU on
//! which it was last seen.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tare_model::sample::Source;

use crate::collector::{Catalog, Collector, SeriesId, Values};
use crate::reader::Reader;
use crate::text;

/// Time between two searches for kernel threads that are new or have begun to run, nanoseconds. Workers that are idle stay for
/// five minutes (IDLE_WORKER_TIMEOUT of kernel/workqueue.c), so that none comes and goes between two.
const SEARCH_NS: u64 = 1_000_000_000;

/// `PF_KTHREAD` of include/linux/sched.h, in the flags of `/proc/TID/stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The number of kthreadd, the parent of all kernel threads.
const KTHREADD: u32 = 2;

/// One kernel thread.
struct Thread {
    directory: PathBuf,
    /// Whether it runs on CPUs of the SUT alone.
    bound: bool,
    /// Its run time when it was last read, nanoseconds.
    run_ns: u64,
    /// Kept open once it has run: only then it is read at every sample.
    reader: Option<Reader>,
}

impl Thread {
    /// What it has run on `cpus` since it was last read, nanoseconds.
    fn gain_ns(&mut self, cpus: &[u32]) -> io::Result<u64> {
        let run_ns = match &mut self.reader {
            Some(reader) => run_ns(reader.read()?)?,
            None => run_ns(&std::fs::read_to_string(self.directory.join("schedstat"))?)?,
        };
        let gain = run_ns.saturating_sub(self.run_ns);
        self.run_ns = run_ns;
        let here = gain > 0 && (self.bound || self.was_on(cpus)?);
        Ok(if here { gain } else { 0 })
    }

    fn was_on(&self, cpus: &[u32]) -> io::Result<bool> {
        let stat = std::fs::read_to_string(self.directory.join("stat"))?;
        Ok(stat_field(&stat, 39).is_some_and(|cpu| cpus.iter().any(|&own| u64::from(own) == cpu)))
    }
}

fn run_ns(schedstat: &str) -> io::Result<u64> {
    let first = schedstat.split_ascii_whitespace().next().and_then(|number| number.parse().ok());
    first.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Field `number` of `/proc/PID/stat` (proc_pid_stat(5) counts from 1). The name before may hold blanks and brackets.
fn stat_field(stat: &str, number: usize) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// Kernel threads that may run on the SUT's CPUs, and what they have run there.
struct Threads {
    proc: PathBuf,
    cpus: Vec<u32>,
    /// Whether the interrupts that ksoftirqd serves count as softirq: then it is left out here
    /// (irqtime_account_process_tick() in kernel/sched/cputime.c).
    softirqs_apart: bool,
    all: BTreeMap<u32, Thread>,
    /// Numbers that were seen to be something else.
    others: HashSet<u32>,
    total_ns: u64,
}

impl Threads {
    /// Looks for threads that are new, and keeps those open that have begun to run. What a new one has run so far counts
    /// if `counted`.
    fn search(&mut self, counted: bool) -> io::Result<()> {
        let entries = std::fs::read_dir(&self.proc)?;
        let present: HashSet<u32> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        self.all.retain(|id, _| present.contains(id));
        self.others.retain(|id| present.contains(id));
        let group = accounting_group(&self.proc.join(KTHREADD.to_string()));
        for id in present {
            if self.others.contains(&id) || self.all.contains_key(&id) {
                continue;
            }
            match self.recognise(id, group.as_deref()) {
                Some(thread) => drop(self.all.insert(id, thread)),
                None => drop(self.others.insert(id)),
            }
        }
        for thread in self.all.values_mut().filter(|thread| thread.reader.is_none()) {
            // One that has just ended is dropped by the next search.
            let before_ns = thread.run_ns;
            let gain_ns = thread.gain_ns(&self.cpus).unwrap_or(0);
            if counted {
                self.total_ns += gain_ns;
                if thread.run_ns > before_ns {
                    thread.reader = Reader::open(&thread.directory.join("schedstat")).ok();
                }
            }
        }
        Ok(())
    }

    /// A kernel thread that is charged to the group that kthreadd is in and may run on the SUT's CPUs. One in another group,
    /// such as a machine's vhost, is that group's.
    fn recognise(&self, id: u32, group: Option<&str>) -> Option<Thread> {
        let directory = self.proc.join(id.to_string());
        let read = |file: &str| std::fs::read_to_string(directory.join(file)).ok();
        let stat = read("stat")?;
        let is_kernels = stat_field(&stat, 9)? & KERNEL_THREAD != 0 && accounting_group(&directory).as_deref() == group;
        if !is_kernels || (self.softirqs_apart && stat.contains("(ksoftirqd/")) {
            return None;
        }
        let status = read("status")?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let allowed = text::cpu_list(allowed.trim())?;
        let bound = allowed.iter().all(|cpu| self.cpus.contains(cpu));
        let reaches = allowed.iter().any(|cpu| self.cpus.contains(cpu));
        reaches.then_some(Thread { directory, bound, run_ns: 0, reader: None })
    }

    /// Adds what the threads that run have run since the last time.
    fn read(&mut self) -> u64 {
        for thread in self.all.values_mut().filter(|thread| thread.reader.is_some()) {
            // One that has ended keeps what it was counted.
            self.total_ns += thread.gain_ns(&self.cpus).unwrap_or(0);
        }
        self.total_ns
    }
}

/// The control group that is charged for a task's CPU time.
fn accounting_group(directory: &Path) -> Option<String> {
    let groups = std::fs::read_to_string(directory.join("cgroup")).ok()?;
    let path = |wanted: fn(&str, &str) -> bool| {
        groups.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            wanted(number, controllers).then(|| path.to_owned())
        })
    };
    path(|_, controllers| controllers.split(',').any(|one| one == "cpuacct"))
        .or_else(|| path(|number, _| number == "0"))
}

/// A panic while the lock is held leaves whole numbers behind.
fn lock(threads: &Mutex<Threads>) -> MutexGuard<'_, Threads> {
    threads.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the threads that run, as `sut_kernel_thread_s`: at the edges of turns too.
pub(crate) struct KernelThreads {
    threads: Arc<Mutex<Threads>>,
    series: SeriesId,
}

/// Finds those that are new or have begun to run, once in [`SEARCH_NS`] and not at edges, for it reads all of `/proc`.
pub(crate) struct KernelThreadSearch {
    threads: Arc<Mutex<Threads>>,
    due_ns: u64,
}

impl KernelThreads {
    /// Both; `None` (and a note) where no kernel thread is seen, or the kernel does not count their run time.
    pub fn new(
        root: &Path,
        source: &Source,
        cpus: &[u32],
        softirqs_apart: bool,
        catalog: &mut Catalog,
    ) -> Option<(Self, KernelThreadSearch)> {
        let (all, others) = (BTreeMap::new(), HashSet::new());
        let mut threads =
            Threads { proc: root.join("proc"), cpus: cpus.to_vec(), softirqs_apart, all, others, total_ns: 0 };
        let kthreadd = threads.proc.join(KTHREADD.to_string()).join("schedstat");
        if let Err(error) = std::fs::read_to_string(&kthreadd).and_then(|_| threads.search(false)) {
            let what = "sut_kernel_thread_s: kernel threads count as foreign tasks here";
            catalog.absent(format!("{what}: {}: {error}", kthreadd.display()));
            return None;
        }
        let threads = Arc::new(Mutex::new(threads));
        let search = KernelThreadSearch { threads: Arc::clone(&threads), due_ns: 0 };
        Some((Self { threads, series: catalog.add(source, "sut_kernel_thread_s") }, search))
    }
}

impl Collector for KernelThreads {
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()> {
        values.push(at_ns, self.series, lock(&self.threads).read() as f64 / 1e9);
        Ok(())
    }

    fn name(&self) -> String {
        "kernel threads".to_owned()
    }
}

impl Collector for KernelThreadSearch {
    fn collect(&mut self, at_ns: u64, _: &mut Values) -> io::Result<()> {
        if at_ns >= self.due_ns {
            self.due_ns = at_ns + SEARCH_NS;
            lock(&self.threads).search(true)?;
        }
        Ok(())
    }

    fn name(&self) -> String {
        "the search for kernel threads".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task of a made-up `/proc`: its name, flags, group, allowed CPUs, last CPU and run time.
    fn task(root: &Path, id: u32, (name, flags, group): (&str, u64, &str), (allowed, cpu): (&str, u32), run_ns: u64) {
        let dir = root.join("proc").join(id.to_string());
        std::fs::create_dir_all(&dir).unwrap();
        let zeros = "0 ".repeat(29);
        let stat = format!("{id} ({name}) S 2 0 0 0 -1 {flags} {zeros}{cpu} 0 0\n");
        let files = [
            ("stat", stat),
            ("status", format!("Name:\t{name}\nCpus_allowed_list:\t{allowed}\n")),
            ("cgroup", format!("3:cpu,cpuacct:{group}\n0::/elsewhere\n")),
            ("schedstat", format!("{run_ns} 5 6\n")),
        ];
        files.into_iter().for_each(|(file, text)| std::fs::write(dir.join(file), text).unwrap());
    }

    fn threads(root: &Path, softirqs_apart: bool) -> Arc<Mutex<Threads>> {
        let mut catalog = Catalog::default();
        let (read, _) = KernelThreads::new(root, &Source::Host, &[0, 1], softirqs_apart, &mut catalog).unwrap();
        read.threads
    }

    #[test]
    fn what_kernel_threads_run_on_the_suts_cpus_counts_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let kernel = |name| (name, KERNEL_THREAD | 0x40, "/");
        task(root, 2, kernel("kthreadd"), ("0-3", 3), 1_000);
        task(root, 13, kernel("ksoftirqd/0"), ("0", 0), 1_000);
        task(root, 14, kernel("ksoftirqd/3"), ("3", 3), 1_000);
        task(root, 15, kernel("kworker/u8:1) x"), ("0-3", 1), 1_000);
        task(root, 16, ("vhost-77", KERNEL_THREAD, "/tare-r/g"), ("0-3", 0), 1_000);
        task(root, 17, ("cc1", 0x40_0000, "/"), ("0-3", 0), 1_000);
        let threads = threads(root, false);
        let mut threads = lock(&threads);
        assert_eq!(threads.read(), 0, "what was run before does not count");
        let run = |id: u32, ns: u64| {
            std::fs::write(root.join(format!("proc/{id}/schedstat")), format!("{ns} 5 6\n")).unwrap();
        };
        [13, 14, 15, 16, 17].into_iter().for_each(|id| run(id, 2_000));
        threads.search(true).unwrap();
        assert_eq!(threads.read(), 2_000, "ksoftirqd/0 and the worker on CPU 1");
        run(13, 2_500);
        assert_eq!(threads.read(), 2_500, "one that runs is read without a search");
        task(root, 15, kernel("kworker/u8:1) x"), ("0-3", 2), 9_000);
        assert_eq!(threads.read(), 2_500, "it ran elsewhere");
        task(root, 20, kernel("kworker/0:5"), ("0", 0), 700);
        std::fs::remove_dir_all(root.join("proc/13")).unwrap();
        threads.search(true).unwrap();
        assert_eq!(threads.read(), 3_200, "all of a new one, and what was counted of one that ended stays");
    }

    #[test]
    fn ksoftirqd_is_left_out_where_its_time_counts_as_softirq() {
        let root = tempfile::tempdir().unwrap();
        task(root.path(), 2, ("kthreadd", KERNEL_THREAD, "/"), ("0-3", 3), 0);
        task(root.path(), 13, ("ksoftirqd/0", KERNEL_THREAD, "/"), ("0", 0), 0);
        for (apart, counted) in [(false, 2), (true, 1)] {
            assert_eq!(lock(&threads(root.path(), apart)).all.len(), counted);
        }
    }

    #[test]
    fn a_host_that_shows_no_kernel_threads_is_noted() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        let mut catalog = Catalog::default();
        assert!(KernelThreads::new(root.path(), &Source::Host, &[0], false, &mut catalog).is_none());
        let (_, absent) = catalog.resolve(Values::default());
        assert!(absent[0].contains("count as foreign"), "{absent:?}");
    }
}

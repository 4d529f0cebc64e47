//! QEMU's monitor: what the machine is made of, and its start.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use qapi::qmp::{self, CpuInfoFast, RunState, StatsFilter, StatsProvider, StatsRequest, StatsVCPUFilter, StatsValue};
use qapi::{Command, ExecuteError, Qmp, Stream};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use tare_model::kvm::{COUNTS, series};

use super::command::BACKEND;
use crate::CountReader;
use crate::guest::Counts;

/// How long an answer of the monitor's may take. The guest does not run yet.
const ANSWER: Duration = Duration::from_secs(20);
/// The same while the guest runs: samples are not to wait for it.
const ANSWER_UNDER_LOAD: Duration = Duration::from_secs(2);
/// How long a QEMU that closed its monitor may take to end.
const ENDS: Duration = Duration::from_millis(200);
/// How long it may take to take a snapshot in.
const TAKEN_IN: Duration = Duration::from_secs(120);
/// How often it is looked whether the monitor listens, or a snapshot is there.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Longest path of a Unix socket, bytes (`sun_path` of unix(7), with its end).
pub(super) const SOCKET_PATH_BYTES: usize = 107;

type Line = Qmp<Stream<BufReader<UnixStream>, UnixStream>>;

/// The monitor of a machine.
pub(super) struct Monitor {
    /// `None` once an answer did not come: the next one might be that.
    qmp: Option<Line>,
    socket: UnixStream,
}

/// What QEMU made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// Thread of each virtual CPU, in their order.
    pub vcpus: Vec<u32>,
    /// Threads that serve disks.
    pub iothreads: Vec<u32>,
    /// Whether KVM is in use.
    pub kvm: bool,
    /// Whether its memory is open to merging.
    pub merge: bool,
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// Its disks.
    pub disks: Vec<DiskMade>,
}

/// A disk as QEMU says that it has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DiskMade {
    /// Name of the node that the guest's device is on.
    pub node: String,
    /// What reads the format, such as `qcow2`.
    pub driver: String,
    /// Whether the host's cache is passed by.
    pub direct: bool,
    /// Whether the guest's flushes are ignored.
    pub no_flush: bool,
    /// Whether a write may be reported as done before it is flushed.
    pub write_back: bool,
}

impl Monitor {
    /// Waits until the monitor listens. `ended` tells whether QEMU is gone.
    ///
    /// # Errors
    /// When QEMU ended, or does not listen in time.
    pub(super) fn connect(path: &Path, ended: impl Fn() -> bool, timeout: Duration) -> Result<Self, String> {
        let stream = wait_for(&ended, timeout, || UnixStream::connect(path))?;
        let failed = |error: std::io::Error| error.to_string();
        let socket = stream.try_clone().map_err(failed)?;
        limit(&socket, ANSWER).map_err(failed)?;
        match greeted(stream) {
            Ok(monitor) => Ok(Self { qmp: Some(monitor), socket }),
            Err(error) => {
                // A QEMU that gives up closes its monitor first, and ends a moment later.
                let why = wait_for(&ended, ENDS, || Err::<(), _>(std::io::Error::other(error.to_string())));
                Err(format!("its monitor does not answer: {}", why.err().unwrap_or_default()))
            }
        }
    }

    /// The same for several who ask.
    pub(super) fn shared(self) -> SharedMonitor {
        SharedMonitor(Arc::new(Mutex::new(self)))
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the monitor refuses, or does not answer in time: it is then not asked again.
    pub(super) fn ask<C: Command>(&mut self, command: &C) -> Result<C::Ok, String> {
        let Some(qmp) = &mut self.qmp else { return Err("its monitor has not answered before".to_owned()) };
        let answer = qmp.execute(command);
        if let Err(ExecuteError::Io(_)) = &answer {
            self.qmp = None;
        }
        answer.map_err(|error| format!("its monitor answered `{}` with: {error}", C::NAME))
    }

    /// What QEMU made of what was asked.
    ///
    /// # Errors
    /// When the monitor does not answer.
    pub(super) fn made(&mut self) -> Result<Made, String> {
        let thread = |id: i64| u32::try_from(id).map_err(|_| format!("its monitor tells of a thread {id}"));
        let mut vcpus = Vec::new();
        for cpu in self.ask(&qmp::query_cpus_fast {})? {
            // This build is for x86 alone: the check of the host sees to that.
            if let CpuInfoFast::x86_64(cpu) | CpuInfoFast::i386(cpu) = cpu {
                vcpus.push((cpu.cpu_index, thread(cpu.thread_id)?));
            }
        }
        vcpus.sort_unstable();
        let iothreads = self.ask(&qmp::query_iothreads {})?;
        let memory = self.ask(&qmp::query_memory_size_summary {})?;
        let backends = self.ask(&qmp::query_memdev {})?;
        let disks = self.ask(&qmp::query_block {})?.into_iter().filter_map(|disk| disk.inserted);
        let disks = disks.map(|disk| DiskMade {
            node: disk.node_name.unwrap_or_default(),
            driver: disk.drv,
            direct: disk.cache.direct,
            no_flush: disk.cache.no_flush,
            write_back: disk.cache.writeback,
        });
        let disks = disks.collect();
        let merge = backends.iter().any(|backend| backend.id.as_deref() == Some(BACKEND) && backend.merge);
        Ok(Made {
            merge,
            disks,
            vcpus: vcpus.into_iter().map(|(_, id)| id).collect(),
            iothreads: iothreads.iter().map(|info| thread(info.thread_id)).collect::<Result<_, _>>()?,
            kvm: self.ask(&qmp::query_kvm {})?.enabled,
            memory_bytes: memory.base_memory.saturating_add(memory.plugged_memory.unwrap_or(0)),
        })
    }

    /// Lets the guest run; one that is taken in from a file once all of it is there, for until then the order would be forgotten.
    ///
    /// # Errors
    /// When the monitor does not answer, or a guest is not taken in within two minutes.
    pub(super) fn run(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while self.ask(&qmp::query_status {})?.status == RunState::inmigrate {
            if began.elapsed() > TAKEN_IN {
                return Err(format!("its snapshot is not taken in after {TAKEN_IN:?}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        self.ask(&qmp::cont {})?;
        limit(&self.socket, ANSWER_UNDER_LOAD).map_err(|error| error.to_string())
    }

    /// Stops the virtual CPUs where they stand, or lets them run again.
    ///
    /// # Errors
    /// When the monitor does not answer.
    pub(super) fn pause(&mut self, still: bool) -> Result<(), String> {
        if still { self.ask(&qmp::stop {}).map(drop) } else { self.ask(&qmp::cont {}).map(drop) }
    }

    /// Hands an open file over to QEMU, for which commands may call it by a name.
    ///
    /// # Errors
    /// When the monitor does not take it.
    pub(super) fn hand_over(&mut self, file: &File, name: &str) -> Result<(), String> {
        let Some(qmp) = &mut self.qmp else { return Err("its monitor has not answered before".to_owned()) };
        let order = format!("{{\"execute\": \"getfd\", \"arguments\": {{\"fdname\": \"{name}\"}}}}\n");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let files = [file.as_fd()];
        beside.push(SendAncillaryMessage::ScmRights(&files));
        sendmsg(&self.socket, &[IoSlice::new(order.as_bytes())], &mut beside, SendFlags::empty())
            .map_err(|error| format!("its monitor takes no file: {error}"))?;
        let answer = qmp.read_response::<qmp::getfd>();
        answer.map(drop).map_err(|error| format!("its monitor answered `getfd` with: {error}"))
    }

    /// What KVM counts of the guest, all virtual CPUs together, by the names of the series.
    ///
    /// # Errors
    /// When QEMU does not tell (before 7.1), KVM counts nothing, or the monitor does not answer.
    pub(super) fn counts(&mut self) -> Result<Vec<(String, f64)>, String> {
        let names = COUNTS.iter().map(|(name, _)| (*name).to_owned()).collect();
        let request = StatsRequest { names: Some(names), provider: StatsProvider::kvm };
        let all = StatsVCPUFilter { vcpus: None };
        let answer = self.ask(&qmp::query_stats(StatsFilter::vcpu { providers: Some(vec![request]), vcpu: all }))?;
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        for count in answer.into_iter().flat_map(|of_vcpu| of_vcpu.stats) {
            if let StatsValue::scalar(value) = count.value {
                *counts.entry(series(&count.name)).or_default() += value as f64;
            }
        }
        if counts.is_empty() { Err("KVM counts nothing".to_owned()) } else { Ok(counts.into_iter().collect()) }
    }
}

/// Exchanges greetings.
fn greeted(stream: UnixStream) -> std::io::Result<Line> {
    let mut reader = BufReader::new(stream.try_clone()?);
    // The library panics where the other end closes before it greets.
    if reader.fill_buf()?.is_empty() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let mut monitor = Qmp::new(Stream::new(reader, stream));
    monitor.handshake()?;
    Ok(monitor)
}

fn limit(socket: &UnixStream, answer: Duration) -> std::io::Result<()> {
    socket.set_read_timeout(Some(answer))?;
    socket.set_write_timeout(Some(answer))
}

/// The monitor of a machine, for several who ask, one at a time.
#[derive(Clone)]
pub(super) struct SharedMonitor(Arc<Mutex<Monitor>>);

impl SharedMonitor {
    pub(super) fn lock(&self) -> MutexGuard<'_, Monitor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What reads the counts over the monitor, as often as it is asked.
pub(super) fn counts(monitor: &SharedMonitor) -> Counts {
    let monitor = monitor.clone();
    Box::new(move || {
        let monitor = monitor.clone();
        Box::new(move || monitor.lock().counts().map_err(std::io::Error::other)) as CountReader
    })
}

/// Tries until it works.
///
/// # Errors
/// When it is over with what is waited for, or the time is.
pub(super) fn wait_for<T>(
    ended: impl Fn() -> bool,
    timeout: Duration,
    attempt: impl Fn() -> std::io::Result<T>,
) -> Result<T, String> {
    let deadline = Instant::now() + timeout;
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(_) if ended() => return Err("it ended at once".into()),
            Err(error) if Instant::now() >= deadline => {
                return Err(format!("it is not ready after {timeout:?}: {error}"));
            }
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// Binds each thread to one of the CPUs, in turn.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn pin(threads: &[u32], cpus: &[u32]) -> Result<(), String> {
    for (&thread, &cpu) in threads.iter().zip(cpus.iter().cycle()) {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        sched_setaffinity(pid(thread), &set).map_err(|error| format!("virtual CPU on CPU {cpu}: {error}"))?;
    }
    Ok(())
}

fn pid(thread: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(thread).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use rustix::thread::sched_getaffinity;

    use crate::machine::pinning;

    #[test]
    fn threads_are_pinned_in_turn_and_read_back() {
        let own = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let before = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| before.is_set(cpu)).unwrap();
        let first = [u32::try_from(first).unwrap()];
        pin(&[own], &first).unwrap();
        assert!(pinning::row(1, &[own], &first).equal);
        pin(&[], &[]).unwrap();
    }

    #[test]
    fn a_monitor_that_is_none_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("q");
        let short = Duration::from_millis(20);
        assert!(Monitor::connect(&path, || true, ANSWER).err().unwrap().contains("ended"));
        assert!(Monitor::connect(&path, || false, short).err().unwrap().contains("not ready"));
        let listener = UnixListener::bind(&path).unwrap();
        let other = std::thread::spawn(move || {
            listener.accept().unwrap().0.write_all(b"Welcome!\n").unwrap();
            listener
        });
        assert!(Monitor::connect(&path, || false, ANSWER).err().unwrap().contains("monitor"));
        let listener = other.join().unwrap();
        // One that gives up closes its monitor while it ends.
        let other = std::thread::spawn(move || drop(listener.accept().unwrap()));
        assert!(Monitor::connect(&path, || true, ANSWER).err().unwrap().contains("ended"));
        other.join().unwrap();
    }

    #[test]
    fn what_the_monitor_tells_is_understood() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("q");
        let listener = UnixListener::bind(&path).unwrap();
        let answers = [
            r#"{"return": {}}"#,
            r#"{"event": "RESUME", "timestamp": {"seconds": 1, "microseconds": 2}}
{"return": [{"thread-id": 12, "cpu-index": 1, "qom-path": "/b", "target": "x86_64"}, {"thread-id": 11, "cpu-index": 0, "qom-path": "/a", "target": "x86_64"}]}"#,
            r#"{"return": [{"id": "root-io", "thread-id": 13, "poll-max-ns": 0, "poll-grow": 0, "poll-shrink": 0, "aio-max-batch": 0}]}"#,
            r#"{"return": {"base-memory": 1048576, "plugged-memory": 0}}"#,
            r#"{"return": [{"id": "ram", "size": 1048576, "merge": true, "dump": true, "prealloc": false, "share": false, "host-nodes": [], "policy": "default"}]}"#,
            r#"{"return": [{"device": "", "qdev": "/x", "type": "unknown", "locked": false, "removable": false, "inserted": {"node-name": "data", "drv": "qcow2", "ro": false, "file": "/d", "backing_file_depth": 1, "encrypted": false, "bps": 0, "bps_rd": 0, "bps_wr": 0, "iops": 0, "iops_rd": 0, "iops_wr": 0, "detect_zeroes": "off", "write_threshold": 0, "image": {"filename": "/d", "format": "qcow2", "virtual-size": 1048576}, "cache": {"writeback": true, "direct": true, "no-flush": false}}}]}"#,
            r#"{"return": {"enabled": false, "present": true}}"#,
        ];
        let other = peer(listener, answers.map(str::to_owned).to_vec());
        let made = Monitor::connect(&path, || false, ANSWER).unwrap().made().unwrap();
        let disk =
            DiskMade { node: "data".into(), driver: "qcow2".into(), direct: true, no_flush: false, write_back: true };
        let (vcpus, iothreads, disks) = (vec![11, 12], vec![13], vec![disk]);
        assert_eq!(made, Made { vcpus, iothreads, kvm: false, merge: true, memory_bytes: 1 << 20, disks });
        other.join().unwrap();
    }

    /// A monitor that gives these answers, whatever it is asked, and gives what it was asked.
    fn peer(listener: UnixListener, answers: Vec<String>) -> std::thread::JoinHandle<Vec<String>> {
        std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let version = r#""version": {"qemu": {"micro": 0, "minor": 2, "major": 7}, "package": ""}"#;
            writeln!(stream, "{{\"QMP\": {{{version}, \"capabilities\": []}}}}").unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut answer = |answer: String| {
                let asked = lines.next()?.ok()?;
                writeln!(stream, "{answer}").unwrap();
                Some(asked)
            };
            answers.into_iter().map_while(&mut answer).collect()
        })
    }

    #[test]
    fn what_kvm_counts_is_summed_over_virtual_cpus() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("q");
        let listener = UnixListener::bind(&path).unwrap();
        let of_vcpu = |exits: u32| {
            format!(
                r#"{{"provider": "kvm", "qom-path": "/machine/unattached/device[{exits}]", "stats": [{{"name": "exits", "value": {exits}}}, {{"name": "halt_exits", "value": 2}}, {{"name": "halt_wait_hist", "value": [1, 2]}}, {{"name": "blocking", "value": true}}]}}"#
            )
        };
        let answers = [
            r#"{"return": {}}"#.to_owned(),
            format!(r#"{{"return": [{}, {}]}}"#, of_vcpu(5), of_vcpu(7)),
            r#"{"return": []}"#.to_owned(),
            r#"{"error": {"class": "CommandNotFound", "desc": "The command query-stats has not been found"}}"#
                .to_owned(),
            format!(r#"{{"return": [{}]}}"#, of_vcpu(9)),
        ];
        let other = peer(listener, answers.to_vec());
        let mut monitor = Monitor::connect(&path, || false, ANSWER).unwrap();
        assert_eq!(monitor.counts().unwrap(), [("kvm_exits".to_owned(), 12.0), ("kvm_halt_exits".to_owned(), 4.0)]);
        assert!(monitor.counts().unwrap_err().contains("counts nothing"));
        assert!(monitor.counts().unwrap_err().contains("not been found"), "an older QEMU");
        let mut reader = counts(&monitor.shared())();
        assert_eq!(reader().unwrap()[0], ("kvm_exits".to_owned(), 9.0));
        let asked = other.join().unwrap();
        assert!(asked[1].contains(r#""target":"vcpu""#) && asked[1].contains(r#""provider":"kvm""#), "{asked:?}");
        assert!(reader().is_err(), "it is gone");
        assert!(reader().unwrap_err().to_string().contains("not answered before"));
    }
}

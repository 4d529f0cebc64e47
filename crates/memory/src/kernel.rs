//! What the kernel counts and is set to: `/sys/kernel/mm/ksm`, `/sys/kernel/mm/transparent_hugepage`, and its scanner's CPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use tare_model::Refusal;
use tare_model::merging::{HostMemory, MergeCounters, MergeRule};

use crate::cost;
use crate::error::{MemoryError, Result};
use crate::host;
use crate::rules::{Memory, Set};
use crate::settings::{AdvisorSettings, Settings};
use crate::sys;

/// The kernel's thread that scans.
const SCANNER: &str = "ksmd";

/// The kernel's merging of equal pages on this host, or in a tree that looks like one.
#[derive(Debug, Clone)]
pub struct Kernel {
    root: PathBuf,
    scanner: Arc<OnceLock<u32>>,
    held_by_others: u64,
}

impl Kernel {
    /// This host's.
    pub fn host() -> Self {
        Self::at("/")
    }

    /// That of a tree with `sys/kernel/mm` and `proc` in it: for tests.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), scanner: Arc::default(), held_by_others: 0 }
    }

    /// Lets rules see a host on which so many bytes more are held by somebody else: for benches, which can then show a host that
    /// is short of memory without driving it there.
    #[must_use]
    pub const fn with_held_by_others(mut self, bytes: u64) -> Self {
        self.held_by_others = bytes;
        self
    }

    /// Where all settings lie.
    pub(crate) fn settings_root(&self) -> PathBuf {
        self.root.join("sys/kernel/mm")
    }

    pub(crate) fn ksm(&self, name: &str) -> PathBuf {
        self.settings_root().join("ksm").join(name)
    }

    pub(crate) fn huge_pages(&self) -> PathBuf {
        self.settings_root().join("transparent_hugepage/enabled")
    }

    /// Why memory cannot be merged here, and what would help; `None`: that of programs that ask for it can, as hypervisors do.
    pub fn refusal(&self) -> Option<Refusal> {
        let run = self.ksm("run");
        if !run.exists() {
            return Some(Refusal::new(
                format!("there is no {}: this kernel was built without KSM", run.display()),
                "Use a kernel with CONFIG_KSM=y (all distributions' are), or leave out `merging`",
            ));
        }
        if let Err(e) = fs::OpenOptions::new().write(true).open(&run) {
            return Some(Refusal::new(
                format!("{} cannot be written: {e}", run.display()),
                "Run as root, outside a container that mounts /sys read-only",
            ));
        }
        let error = self.scanner().err()?;
        Some(Refusal::new(error.to_string(), "Run in the host's own process namespace"))
    }

    /// Why the memory of programs that do not ask for merging themselves cannot be opened to it, and what would help; `None`: it
    /// can. Whether memory can be merged at all is [`Self::refusal`]'s to say.
    pub fn opening_refusal(&self) -> Option<Refusal> {
        // Another tree than the host's is not what answers this process.
        let refused = if self.root == Path::new("/") { sys::may_merge().err() } else { None };
        refused.map(|e| {
            let remedy = "Linux 6.4 or newer is needed, and the capability CAP_SYS_RESOURCE";
            Refusal::new(format!("the kernel refuses prctl(PR_SET_MEMORY_MERGE): {e}"), remedy)
        })
    }

    /// What the kernel has counted, and what its scanner has cost. Counters that this kernel does not have are 0.
    ///
    /// # Errors
    /// When a file cannot be read or understood, or the scanner is not found.
    pub fn counters(&self) -> Result<MergeCounters> {
        let count = |name: &str| number::<u64>(&self.ksm(name));
        let newer = |name: &str| Ok::<u64, MemoryError>(optional(&self.ksm(name))?.unwrap_or(0));
        Ok(MergeCounters {
            pages_shared: count("pages_shared")?,
            pages_sharing: count("pages_sharing")?,
            pages_unshared: count("pages_unshared")?,
            pages_volatile: count("pages_volatile")?,
            pages_skipped: newer("pages_skipped")?,
            pages_scanned: newer("pages_scanned")?,
            zero_pages: newer("ksm_zero_pages")?,
            full_scans: count("full_scans")?,
            profit_bytes: optional(&self.ksm("general_profit"))?.unwrap_or(0),
            scanner_cpu_s: self.scanner_cpu_s()?,
        })
    }

    /// What the kernel is set to.
    ///
    /// # Errors
    /// When a file cannot be read or understood.
    pub fn settings(&self) -> Result<Settings> {
        let flag = |name: &str| optional::<u32>(&self.ksm(name)).map(|found| found.map(|value| value != 0));
        let advisor = match self.advisor_mode()? {
            None => None,
            Some(mode) => Some(AdvisorSettings {
                mode,
                target_scan_time_s: number(&self.ksm("advisor_target_scan_time"))?,
                max_cpu: number(&self.ksm("advisor_max_cpu"))?,
                min_pages_to_scan: number(&self.ksm("advisor_min_pages_to_scan"))?,
                max_pages_to_scan: number(&self.ksm("advisor_max_pages_to_scan"))?,
            }),
        };
        Ok(Settings {
            run: number(&self.ksm("run"))?,
            pages_to_scan: number(&self.ksm("pages_to_scan"))?,
            sleep_ms: number(&self.ksm("sleep_millisecs"))?,
            use_zero_pages: flag("use_zero_pages")?,
            smart_scan: flag("smart_scan")?,
            merge_across_nodes: flag("merge_across_nodes")?,
            max_page_sharing: optional(&self.ksm("max_page_sharing"))?,
            stable_node_chains_prune_ms: optional(&self.ksm("stable_node_chains_prune_millisecs"))?,
            advisor,
            huge_pages: self.chosen(&self.huge_pages())?,
        })
    }

    /// What must be written back after the host was set as `wanted`, each file with what it holds now, in the order in which it can
    /// be. Only what will be touched. `stop_merging`: whether merging is stopped where `wanted` does not merge.
    ///
    /// `pages_to_scan` is the advisor's while that is on, and cannot be written then: it is noted only when the advisor is off, and
    /// after `advisor_mode`. Where the advisor is on, its goals come first, since it starts with what it finds. `run` is last,
    /// so that nothing runs by values that are not yet what they were.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn found(&self, wanted: &HostMemory, stop_merging: bool) -> Result<Vec<(PathBuf, String)>> {
        let mut found = Vec::new();
        if let Some(merging) = wanted.merging {
            let mode = self.advisor_mode()?;
            let advised = mode.as_deref().is_some_and(|mode| mode != "none");
            if !advised {
                found.extend(mode.clone().map(|mode| (self.ksm("advisor_mode"), mode)));
                note_number(&self.ksm("pages_to_scan"), &mut found)?;
            }
            note_number(&self.ksm("sleep_millisecs"), &mut found)?;
            if self.has("use_zero_pages") {
                note_number(&self.ksm("use_zero_pages"), &mut found)?;
            }
            if matches!(merging.rule, MergeRule::Advisor { .. }) && self.has("advisor_mode") {
                note_number(&self.ksm("advisor_target_scan_time"), &mut found)?;
                note_number(&self.ksm("advisor_max_cpu"), &mut found)?;
            }
            if advised {
                found.extend(mode.map(|mode| (self.ksm("advisor_mode"), mode)));
            }
        }
        if wanted.huge_pages.is_some() {
            let path = self.huge_pages();
            let word = self.chosen(&path)?.ok_or_else(|| no_huge_pages(&path))?;
            found.push((path, word));
        }
        if wanted.merging.is_some() || (stop_merging && self.has("run")) {
            note_number(&self.ksm("run"), &mut found)?;
        }
        Ok(found)
    }

    /// Memory of the host as rules see it.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let path = self.root.join("proc/meminfo");
        let mut memory = Memory::from(host::memory(&read(&path)?)?);
        memory.available_bytes = memory.available_bytes.saturating_sub(self.held_by_others);
        memory.free_bytes = memory.free_bytes.saturating_sub(self.held_by_others);
        Ok(memory)
    }

    /// Writes a setting, unless it is set so already: some act on being written alone.
    pub(crate) fn write(&self, path: &Path, value: &str) -> Result<()> {
        let text = read(path)?;
        if tare_lab::chosen_word(&text).unwrap_or(&text).trim() == value {
            return Ok(());
        }
        fs::write(path, value).map_err(|e| MemoryError::file(format!("write {value} to"), path, e))
    }

    /// Sets what a rule wants.
    pub(crate) fn apply(&self, set: Set) -> Result<()> {
        let write = |name: &str, value: &str| self.write(&self.ksm(name), value);
        match set {
            Set::Stop => write("run", "0"),
            Set::Scan { pages, sleep_ms } => {
                if self.has("advisor_mode") {
                    // While it is on, pages are its own.
                    write("advisor_mode", "none")?;
                }
                write("pages_to_scan", &pages.to_string())?;
                write("sleep_millisecs", &sleep_ms.to_string())?;
                write("run", "1")
            }
            Set::Advise { target_scan_time_s, max_cpu, sleep_ms } => {
                write("advisor_target_scan_time", &target_scan_time_s.to_string())?;
                write("advisor_max_cpu", &max_cpu.to_string())?;
                write("sleep_millisecs", &sleep_ms.to_string())?;
                write("advisor_mode", "scan-time")?;
                write("run", "1")
            }
        }
    }

    /// Stops merging, and takes apart what is merged: an arm that does not merge must not profit from what the kernel merged before
    /// of other processes. Where those do not belong to the study, the host's own merging, if it has any, finds them again
    /// after the arm. What the kernel has kept of processes that are gone, its books on them among it, is freed as well. A host
    /// whose memory would not suffice is left as it is.
    pub(crate) fn stop_and_take_apart(&self) -> Result<()> {
        let run = self.ksm("run");
        let counted = self.counters()?;
        if counted.pages_sharing + counted.zero_pages + counted.pages_unshared + counted.pages_volatile > 0 {
            let merged = self.merged_in_use(counted.saved(rustix::param::page_size() as u64).0)?;
            let available = self.memory()?.available_bytes;
            if merged > available / 2 {
                return Err(MemoryError::Unsupported {
                    tried: "stop merging for an arm that does not merge".into(),
                    why: format!(
                        "{merged} bytes of other processes are merged, and taking them apart might exhaust the {available} available"
                    ),
                    remedy: "End the programs whose memory is merged (`tare ksm status` counts it)".into(),
                });
            }
            return self.write(&run, "2").and_then(|()| self.write(&run, "0"));
        }
        // 2 is stopped as well.
        if read(&run)?.trim() == "1" { self.write(&run, "0") } else { Ok(()) }
    }

    /// What would have to be copied if all were taken apart, bytes. While the scanner is stopped, the kernel goes on counting what
    /// processes had merged that are gone: `counted` is the most that it can be, and all there is to go by where it does not count
    /// by process.
    fn merged_in_use(&self, counted: u64) -> Result<u64> {
        let proc = self.root.join("proc");
        let entries = fs::read_dir(&proc).map_err(|e| MemoryError::file("list", &proc, e))?;
        let texts = entries.flatten().filter_map(|entry| fs::read_to_string(entry.path().join("ksm_stat")).ok());
        let pages = texts.map(|text| cost::merger_of(&text)).map(|merger| merger.merging_pages + merger.zero_pages);
        let all = pages.reduce(|all, pages| all + pages);
        Ok(all.map_or(counted, |pages| counted.min(pages * rustix::param::page_size() as u64)))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.ksm(name).exists()
    }

    /// The advisor's mode; `None` where the kernel has none.
    pub(crate) fn advisor_mode(&self) -> Result<Option<String>> {
        self.chosen(&self.ksm("advisor_mode"))
    }

    /// Of a file such as `[none] scan-time`, what stands in brackets; `None` where there is no such file.
    fn chosen(&self, path: &Path) -> Result<Option<String>> {
        if !path.exists() {
            return Ok(None);
        }
        let text = read(path)?;
        match tare_lab::chosen_word(&text) {
            Some(word) => Ok(Some(word.to_owned())),
            None => Err(form(path, &text, "words, one of them in brackets")),
        }
    }

    /// CPU time of the scanner, seconds: to the nanosecond where the kernel keeps it, else in its ticks.
    fn scanner_cpu_s(&self) -> Result<f64> {
        let process = self.root.join("proc").join(self.scanner()?.to_string());
        let exact = process.join("schedstat");
        if let Ok(text) = fs::read_to_string(&exact) {
            let ns: Option<u64> = text.split_whitespace().next().and_then(|field| field.parse().ok());
            return ns.map(|ns| ns as f64 / 1e9).ok_or_else(|| form(&exact, &text, "nanoseconds"));
        }
        let path = process.join("stat");
        let text = read(&path)?;
        // The name is in parentheses; user and system time are the 14th and 15th field (proc(5)).
        let ticks = text.rsplit_once(')').and_then(|(_, tail)| {
            let mut fields = tail.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
            Some(fields.next()? + fields.next()?)
        });
        let ticks = ticks.ok_or_else(|| form(&path, &text, "a process's state as in proc(5)"))?;
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// The scanner's process number. It lives as long as the kernel.
    fn scanner(&self) -> Result<u32> {
        if let Some(pid) = self.scanner.get() {
            return Ok(*pid);
        }
        let proc = self.root.join("proc");
        let entries = fs::read_dir(&proc).map_err(|e| MemoryError::file("list", &proc, e))?;
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let found = numbers.into_iter().find(|pid| is_scanner(&proc.join(pid.to_string()).join("stat")));
        let pid = found.ok_or_else(|| MemoryError::Unsupported {
            tried: format!("find the kernel's thread {SCANNER} in {}", proc.display()),
            why: "there is none".into(),
            remedy: "Use a kernel with CONFIG_KSM=y, in the host's own process namespace".into(),
        })?;
        Ok(*self.scanner.get_or_init(|| pid))
    }
}

/// A thread of the kernel by that name: its parent is process 2. Programs may bear any name.
fn is_scanner(stat: &Path) -> bool {
    let Ok(text) = fs::read_to_string(stat) else { return false };
    let Some((head, tail)) = text.rsplit_once(')') else { return false };
    head.split_once('(').is_some_and(|(_, name)| name == SCANNER) && tail.split_whitespace().nth(1) == Some("2")
}

fn no_huge_pages(path: &Path) -> MemoryError {
    MemoryError::Unsupported {
        tried: "set where transparent huge pages are used".into(),
        why: format!("there is no {}", path.display()),
        remedy: "Use a kernel with CONFIG_TRANSPARENT_HUGEPAGE=y, or leave out `huge-pages`".into(),
    }
}

fn note_number(path: &Path, found: &mut Vec<(PathBuf, String)>) -> Result<()> {
    found.push((path.to_owned(), number::<u64>(path)?.to_string()));
    Ok(())
}

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| MemoryError::file("read", path, e))
}

fn number<T: FromStr>(path: &Path) -> Result<T> {
    let text = read(path)?;
    text.trim().parse().map_err(|_| form(path, &text, "a number"))
}

/// A number that not every kernel has.
fn optional<T: FromStr>(path: &Path) -> Result<Option<T>> {
    if path.exists() { number(path).map(Some) } else { Ok(None) }
}

fn form(path: &Path, held: &str, expected: &'static str) -> MemoryError {
    MemoryError::Form { path: path.to_owned(), held: held.trim().chars().take(80).collect(), expected }
}

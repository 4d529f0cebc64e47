//! A tree that looks like the kernel's, and a ledger that keeps what it is given.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tare_lab::{Ledger, LedgerError, Resource};
use tare_memory::{Guests, Kernel};
use tempfile::TempDir;

/// What a kernel of 6.18 holds at its start, and what it does not tell of merging is 0.
const FILES: [(&str, &str); 26] = [
    ("sys/kernel/mm/ksm/run", "0\n"),
    ("sys/kernel/mm/ksm/pages_to_scan", "100\n"),
    ("sys/kernel/mm/ksm/sleep_millisecs", "20\n"),
    ("sys/kernel/mm/ksm/use_zero_pages", "0\n"),
    ("sys/kernel/mm/ksm/smart_scan", "1\n"),
    ("sys/kernel/mm/ksm/merge_across_nodes", "1\n"),
    ("sys/kernel/mm/ksm/max_page_sharing", "256\n"),
    ("sys/kernel/mm/ksm/stable_node_chains_prune_millisecs", "2000\n"),
    ("sys/kernel/mm/ksm/advisor_mode", "[none] scan-time\n"),
    ("sys/kernel/mm/ksm/advisor_max_cpu", "70\n"),
    ("sys/kernel/mm/ksm/advisor_target_scan_time", "200\n"),
    ("sys/kernel/mm/ksm/advisor_min_pages_to_scan", "500\n"),
    ("sys/kernel/mm/ksm/advisor_max_pages_to_scan", "30000\n"),
    ("sys/kernel/mm/ksm/general_profit", "-64\n"),
    ("sys/kernel/mm/ksm/pages_scanned", "0\n"),
    ("sys/kernel/mm/ksm/pages_shared", "0\n"),
    ("sys/kernel/mm/ksm/pages_sharing", "0\n"),
    ("sys/kernel/mm/ksm/pages_unshared", "0\n"),
    ("sys/kernel/mm/ksm/pages_volatile", "0\n"),
    ("sys/kernel/mm/ksm/pages_skipped", "0\n"),
    ("sys/kernel/mm/ksm/full_scans", "0\n"),
    ("sys/kernel/mm/ksm/ksm_zero_pages", "0\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    (
        "proc/meminfo",
        "MemTotal: 25165824 kB\nMemFree: 1048576 kB\nMemAvailable: 2097152 kB\nBuffers: 1024 kB\nCached: 1024 kB\n",
    ),
    ("proc/36/stat", "36 (ksmd) S 1 0 0 0 -1 0 0 0 0 0 9999 9999 0 0 20 0 1 0 0 0 0\n"),
    ("proc/37/stat", "37 (ksmd) S 2 0 0 0 -1 0 0 0 0 0 150 100 0 0 25 5 1 0 26 0 0\n"),
];

pub struct Tree(TempDir);

impl Tree {
    pub fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (name, held) in FILES {
            let path = tree.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, held).unwrap();
        }
        tree
    }

    pub fn kernel(&self) -> Kernel {
        Kernel::at(self.0.path())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("sys/kernel/mm").join(name)
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Of `ksm/NAME`.
    pub fn held(&self, name: &str) -> String {
        fs::read_to_string(self.path("ksm").join(name)).unwrap().trim().to_owned()
    }

    pub fn set(&self, name: &str, value: &str) {
        fs::write(self.path("ksm").join(name), value).unwrap();
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path("ksm").join(name)).unwrap();
    }

    /// All settings, to be compared.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let settings = FILES.iter().filter(|(name, _)| name.starts_with("sys"));
        settings
            .map(|(name, _)| (*name, fs::read_to_string(self.0.path().join(name)).unwrap_or_default().trim().into()))
            .collect()
    }
}

#[derive(Default)]
pub struct Kept {
    pub planned: Mutex<Vec<Resource>>,
    pub released: Mutex<Vec<u64>>,
    /// Whether it refuses to keep anything.
    pub refuses: bool,
}

impl Ledger for Kept {
    fn planned(&self, resource: &Resource) -> Result<u64, LedgerError> {
        if self.refuses {
            return Err(LedgerError("the disk is full".into()));
        }
        let mut planned = self.planned.lock().unwrap();
        planned.push(resource.clone());
        Ok(planned.len() as u64)
    }

    fn released(&self, id: u64) -> Result<(), LedgerError> {
        self.released.lock().unwrap().push(id);
        Ok(())
    }
}

pub fn no_guests() -> Arc<dyn Fn() -> Guests + Send + Sync> {
    Arc::new(Guests::default)
}

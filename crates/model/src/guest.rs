//! What is asked for a guest, and what the kernel granted.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::ByteSize;

/// The size of a guest, the same on every arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GuestSize {
    /// CPUs: the CPU quota, and the virtual CPUs of a virtual machine.
    pub cpus: u32,
    /// Memory: the hard limit, and the memory of a virtual machine.
    pub memory: ByteSize,
}

/// One guest to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSpec {
    /// Name, unique in the run, fit for file names and interfaces: lower case letters, digits, `-`.
    pub name: String,
    /// CPUs and memory.
    pub size: GuestSize,
    /// Host CPUs that the guest may run on; empty means any.
    pub cpu_set: Vec<u32>,
    /// Data that the guest is given; `None`: none.
    pub data: Option<GuestData>,
    /// Whether the host may merge the guest's memory with equal memory of others.
    pub merge: bool,
    /// Whether it has a balloon that can be sized, by which it gives memory back to the host.
    pub balloon: bool,
    /// The filter of system calls, where the guest shares the host's kernel.
    pub seccomp: Seccomp,
}

impl GuestSpec {
    /// A guest without data, on any CPU, whose memory is neither merged nor taken back, and whose filter is the usual one.
    pub fn new(name: impl Into<String>, size: GuestSize) -> Self {
        let seccomp = Seccomp::Default;
        Self { name: name.into(), size, cpu_set: Vec::new(), data: None, merge: false, balloon: false, seccomp }
    }
}

/// The filter of system calls of a guest that shares the host's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// What container engines allow by default, without ptrace, io_uring and NUMA policies. Everything else is refused with
    /// EPERM, calls that are newer than the list with ENOSYS; programs of 32 bits are killed.
    #[default]
    Default,
    /// No filter.
    Off,
}

impl Seccomp {
    /// Every level with its name.
    pub const ALL: [(&'static str, Self); 2] = [("default", Self::Default), ("off", Self::Off)];

    /// Its name in study files and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Off => "off",
        }
    }

    /// The level of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }
}

/// Data that a guest is given: a copy of its own, restored before the guest starts and taken away with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestData {
    /// The gold copy: a directory on the controller's host that is complete and never written. Owners and modes of its
    /// files are kept in every copy.
    pub gold: PathBuf,
    /// Size of the guest's volume where that is a disk of its own, bytes: the gold copy and the room that the workload
    /// needs beyond it, but for what a log grows to.
    pub size: ByteSize,
    /// Whether nobody writes to it, so that guests which see the host's files may all be shown the gold copy itself.
    pub shared: bool,
    /// The part that an arm may give storage of its own; `None`: there is none.
    pub log: Option<GuestLog>,
}

impl GuestData {
    /// Size of a volume that holds the log as well, bytes.
    pub fn with_log(&self) -> ByteSize {
        ByteSize(self.size.0.saturating_add(self.log.as_ref().map_or(0, |log| log.size.0)))
    }
}

/// A part of the data to which a database writes in sequence, and which it waits for: its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestLog {
    /// Its gold copy: a directory as that of the data, with a copy of what these hold of the log as well.
    pub gold: PathBuf,
    /// What it may grow to, bytes.
    pub size: ByteSize,
}

/// What holds for commands of a study's in a guest where the study says nothing else: what the image says that the guest was
/// made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandDefaults {
    /// Variables that are added to the guest's environment.
    pub env: Vec<(String, String)>,
    /// Working directory.
    pub directory: Option<String>,
}

/// Where a guest finds its data, and how it got there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataPlace {
    /// Directory in the guest that shows what the gold copy shows.
    pub path: String,
    /// What it lies on, for people, such as `directory on ext4 of the host` or `virtio-blk, raw file on ext4 of the host`.
    pub storage: String,
    /// What that is on the host, a directory, a file or a block device; `None` where it is elsewhere.
    pub on_host: Option<PathBuf>,
    /// Seconds that restoring took, until it was on the disk and out of the host's page cache. Not part of the guest's
    /// start.
    pub restore_s: f64,
    /// How it was restored, for people, such as `copied` or `cloned (reflink)`.
    pub restored_by: String,
    /// Where the guest finds the log, where its arm has storage for that alone. That place has none itself.
    pub log: Option<Box<DataPlace>>,
}

/// One line of the parity check: what was asked of a resource and what the kernel granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParityRow {
    /// The resource, such as `cpu quota`.
    pub resource: String,
    /// What was asked, as written for people.
    pub asked: String,
    /// What was read back; `None` when this host cannot grant it (the reason is in `note`).
    pub granted: Option<String>,
    /// Whether what was granted is what was asked.
    pub equal: bool,
    /// Where it was read, or why it could not be.
    pub note: String,
}

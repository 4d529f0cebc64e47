//! What stands beside the guests of a test bed, what they are attached by and what their data lie on. Workloads and platforms declare it
//! before a run, from parameters and options alone.

use serde::{Deserialize, Serialize};

/// The test bed beyond what the study itself says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Layout {
    /// One for each case, in the order of the study.
    pub cases: Vec<CaseLayout>,
    /// One for each arm, in the order of the study.
    pub arms: Vec<ArmLayout>,
}

impl Layout {
    /// What is in the guests of a case and beside them; empty where that is not known.
    pub fn works(&self, case: &str) -> &[Work] {
        self.cases.iter().find(|own| own.case == case).map_or(&[], |own| &own.guests)
    }

    /// How the guests of an arm are attached; `None` where that is not known.
    pub fn attachment(&self, arm: &str) -> Option<&Attachment> {
        self.arms.iter().find(|own| own.arm == arm).map(|own| &own.attachment)
    }
}

/// The guests of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaseLayout {
    /// Case id.
    pub case: String,
    /// The guest, or those of a tile in their order.
    pub guests: Vec<Work>,
}

/// What a workload has in one guest and beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Work {
    /// What serves, in the order in which a request meets it.
    pub services: Vec<Service>,
    /// What the guest itself is given; `None`: no data.
    pub data: Option<Given>,
}

impl Work {
    /// One that has nothing beside the guest: what serves in it, and what it is given.
    pub fn in_guest(services: &[&str], data: Option<Given>) -> Self {
        let services = services.iter().map(|what| Service::new(what, ServicePlace::Guest)).collect();
        Self { services, data }
    }

    /// Whether some of it needs a place beside the guest on the host.
    pub fn has_services_beside(&self) -> bool {
        self.services.iter().any(|service| service.place == ServicePlace::Beside)
    }

    /// Whether the guest asks the driver's side for some of it.
    pub fn asks_driver_side(&self) -> bool {
        self.services.iter().any(|service| service.place == ServicePlace::Driver)
    }

    /// The same in a study that names a host for what guests ask the driver's side for.
    #[must_use]
    pub fn with_services_host(mut self) -> Self {
        for service in self.services.iter_mut().filter(|service| service.place == ServicePlace::Driver) {
            service.place = ServicePlace::ServicesHost;
        }
        self
    }
}

/// A server that a workload starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// What it is, in a few words, such as `PostgreSQL`.
    pub what: String,
    /// Where it runs.
    pub place: ServicePlace,
    /// What it is given, in a directory of the host's; `None`: no data.
    pub data: Option<String>,
}

impl Service {
    /// One without data.
    pub fn new(what: &str, place: ServicePlace) -> Self {
        Self { what: what.to_owned(), place, data: None }
    }
}

/// Where a service runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServicePlace {
    /// In the guest: it is measured.
    Guest,
    /// On the guests' host, one for each guest, with an address of its own on the lab's network, on the drivers' CPUs.
    Beside,
    /// On the machine of the guest's first driver, in its network namespace and on its CPUs. So a workload declares what a guest asks the driver's
    /// side for.
    Driver,
    /// The same on the host that the study names for it ([`crate::study::Roles::services`]).
    ServicesHost,
}

/// Data that a guest is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// What they are, in a few words, such as `a database`.
    pub what: String,
    /// Whether all guests read the same; otherwise each has a copy that it writes to.
    pub shared: bool,
}

impl Given {
    /// Of which each guest has a copy.
    pub fn own(what: &str) -> Self {
        Self { what: what.to_owned(), shared: false }
    }

    /// Which all guests read and none writes to.
    pub fn shared(what: &str) -> Self {
        Self { what: what.to_owned(), shared: true }
    }
}

/// The guests of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmLayout {
    /// Arm id.
    pub arm: String,
    /// How they are attached.
    #[serde(flatten)]
    pub attachment: Attachment,
}

/// How a guest is attached to the network, and where its data lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// By what it reaches the network, in a few words, such as `veth pair`.
    pub link: String,
    /// On what lies what each guest has to itself: one path for each disk. Empty where the platform cannot hand data over.
    pub own: Vec<StoragePath>,
    /// On what lie data that all guests read; `None` where the platform cannot hand data over.
    pub shared: Option<StoragePath>,
}

impl Attachment {
    /// One by which no data are handed over.
    pub fn by(link: impl Into<String>) -> Self {
        Self { link: link.into(), own: Vec::new(), shared: None }
    }
}

/// The way from a guest to what it reads and writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoragePath {
    /// What is on it: `data`, or a part of them that has a disk to itself.
    pub holds: String,
    /// As what the guest sees it, such as `virtio-blk disk`; `None`: as a directory, as the host does.
    pub device: Option<String>,
    /// What it is on the host.
    pub store: Store,
    /// Whether the guest has it without data of a workload's, too.
    pub always: bool,
}

/// What data lie on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Store {
    /// A directory of the host's.
    Directory {
        /// Whether the study names it; otherwise it is tare's own.
        named: bool,
        /// Whether it may be in memory (tmpfs).
        in_memory: bool,
    },
    /// The one copy that the host keeps in tare's cache, which nobody writes to.
    Kept,
    /// A file on the host.
    File {
        /// Its format, such as `raw` or `qcow2`.
        format: String,
    },
    /// A block device of the host's.
    Device,
    /// A unit of an iSCSI target.
    Unit {
        /// Whether the target is a storage server of the user's; otherwise it is the lab's own.
        san: bool,
        /// Who logs in to it.
        initiator: Initiator,
    },
}

/// Who logs in to an iSCSI target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initiator {
    /// The hypervisor: the guest sees a disk.
    Hypervisor,
    /// The guest, over its own network card.
    Guest,
}

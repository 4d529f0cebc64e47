//! One member of a tile, and its workload at work in one guest.

use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::units::ByteSize;

use crate::{Driven, Prepared, Schedule, WorkSite, Workload, WorkloadError};

/// One guest of each tile.
pub struct Member {
    /// Its name, unique in the tile.
    pub name: String,
    /// What it is, for members of the same workload and parameters: these are given the same data.
    pub kind: String,
    /// What runs in it.
    pub workload: Box<dyn Workload>,
    /// How load is offered to it.
    pub load: LoadModel,
    /// Instances of the application in it.
    pub instances: u32,
    /// CPUs of its guest; `None`: those of the case.
    pub cpus: Option<u32>,
    /// Memory of its guest; `None`: that of the case.
    pub memory: Option<ByteSize>,
}

/// A load and a number of instances in place of those of a case.
#[derive(Debug, Clone, Copy)]
struct Own {
    load: LoadModel,
    instances: u32,
}

impl Own {
    fn site<'a>(self, site: &WorkSite<'a>) -> WorkSite<'a> {
        WorkSite { load: self.load, instances: self.instances, ..*site }
    }
}

fn failed(name: &str, error: WorkloadError) -> WorkloadError {
    WorkloadError::Member { name: name.to_owned(), source: Box::new(error) }
}

impl Member {
    /// The size of its guest, where the case asks for `asked`.
    pub fn size(&self, asked: GuestSize) -> GuestSize {
        GuestSize { cpus: self.cpus.unwrap_or(asked.cpus), memory: self.memory.unwrap_or(asked.memory) }
    }

    /// Whether another is given the same data, if its guest is as large.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind && self.load == other.load && self.instances == other.instances
    }

    /// An error under the member's name.
    pub(super) fn failed(&self, error: WorkloadError) -> WorkloadError {
        failed(&self.name, error)
    }

    const fn own(&self) -> Own {
        Own { load: self.load, instances: self.instances }
    }

    /// A guest as the member's workload sees it. Its number stays that among all guests, so that what depends on it, such as seeds, differs
    /// between members too.
    pub(super) fn site<'a>(&self, site: &WorkSite<'a>) -> WorkSite<'a> {
        self.own().site(site)
    }
}

/// A member's workload in one guest.
pub(super) struct AtWork {
    name: String,
    own: Own,
    inner: Box<dyn Prepared>,
}

impl AtWork {
    pub fn new(member: &Member, inner: Box<dyn Prepared>) -> Self {
        Self { name: member.name.clone(), own: member.own(), inner }
    }
}

impl Prepared for AtWork {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        self.inner.connect(&self.own.site(site), schedule).map_err(|error| failed(&self.name, error))
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        self.inner.drive(&self.own.site(site), schedule).map_err(|error| failed(&self.name, error))
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let wrong = self.inner.verify(&self.own.site(site), driven).map_err(|error| failed(&self.name, error))?;
        let named = |why: String| format!("{}: {why}", self.name);
        // Whoever asks takes the one before the other.
        driven.invalid = driven.invalid.take().map(named);
        Ok(wrong.map(named))
    }

    fn stay(&mut self) {
        self.inner.stay();
    }

    fn end(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        self.inner.end(&self.own.site(site)).map_err(|error| failed(&self.name, error))
    }
}

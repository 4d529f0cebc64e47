//! `tile`: several guests with different work, each a workload of its own, that are repeated as one unit.
//!
//! Guest `i` of a trial is member `i` modulo their number. `docs/reference/tile.md` tells what a study says of them, and
//! `docs/adr/0016-tiles.md` why it is done so.

mod figures;
mod member;
mod parameters;
mod view;

pub use member::Member;

use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::metric::MetricSpec;
use tare_model::units::ByteSize;
use tare_model::{Refusal, Span};

use crate::entry::{Entry, filled, schema};
use crate::{Data, Driven, Footprint, GuestTraits, Prepared, SetupSite, Traits, WorkSite, Workload, WorkloadError};
use member::AtWork;
use parameters::{Parameters, members, no_load, normalised};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: parameters::NAME,
    summary: "several guests with different workloads as one unit, repeated until one of them misses its objective (`density`)",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        no_load(load)?;
        Ok(Box::new(Tile::of(members(parameters)?)))
    },
    normalise: |parameters| filled(normalised(parameters)?),
    view: Some(&view::Tiles),
};

/// Several workloads as one.
pub struct Tile {
    members: Vec<Member>,
}

impl Tile {
    /// A tile of these members, in the order in which they are added.
    pub const fn of(members: Vec<Member>) -> Self {
        Self { members }
    }

    /// The member that the `index`-th guest of a trial is.
    fn member(&self, index: u32) -> Option<&Member> {
        self.members.get((index as usize).checked_rem(self.members.len())?)
    }

    /// What is missing for the first of its members that cannot run here.
    fn refusal_of(&self, ask: impl Fn(&dyn Workload) -> Option<Refusal>) -> Option<Refusal> {
        self.members.iter().find_map(|member| {
            let Refusal { reason, remedy } = ask(&*member.workload)?;
            Some(Refusal::new(format!("member `{}`: {reason}", member.name), remedy))
        })
    }

    /// What each member is given, as it is made; those that are equal share it.
    fn data_of(
        &self,
        asked: GuestSize,
        make: impl Fn(&Member) -> Result<Data, WorkloadError>,
    ) -> Result<Data, WorkloadError> {
        let mut all = Data::default();
        for (number, member) in self.members.iter().enumerate() {
            let same = |other: &Member| other.is_like(member) && other.size(asked) == member.size(asked);
            let (guest, service) = match self.members.iter().take(number).position(same) {
                Some(same) => (all.guests.get(same).cloned().flatten(), all.services.get(same).cloned().flatten()),
                None => {
                    let made = make(member)?;
                    (made.guest(0).cloned(), made.service(0).cloned())
                }
            };
            all.guests.push(guest);
            all.services.push(service);
        }
        Ok(all)
    }
}

impl Workload for Tile {
    fn metrics(&self) -> Vec<MetricSpec> {
        figures::specs(&self.members)
    }

    /// All guests of a tile are added before load is offered: fewer are not measured.
    fn traits(&self, guest: &GuestSize, instances: u32) -> Traits {
        let members = self.members.iter().map(|member| {
            let size = member.size(*guest);
            (member, size, member.workload.traits(&size, instances))
        });
        let members: Vec<(&Member, GuestSize, Traits)> = members.collect();
        let one = |(member, size, of): &(&Member, GuestSize, Traits)| {
            let name = Some(member.name.clone());
            let work = of.guest(0).map(|guest| guest.work.clone()).unwrap_or_default();
            GuestTraits { name, size: *size, touches: of.touches(), work }
        };
        Traits {
            density: true,
            longest: members.iter().filter_map(|(.., of)| of.longest).max(),
            set_up: members.iter().map(|(.., of)| of.set_up).max().unwrap_or(Span::ZERO),
            guests: members.iter().map(one).collect(),
            ..Traits::of(*guest)
        }
    }

    fn fits(&self, guest: &GuestSize, _: u32) -> Result<(), FieldError> {
        self.members.iter().enumerate().try_for_each(|(number, member)| {
            let within = |error: FieldError| error.within(&["members", &number.to_string(), "parameters"]);
            member.workload.fits(&member.size(*guest), member.instances).map_err(within)
        })
    }

    /// What is kept counts once for members that keep equally much of one workload, as for cases. What a guest takes is the mean of a tile, its
    /// log within the rest.
    fn footprint(&self, guest: &GuestSize, _: u32) -> Footprint {
        let all = self
            .members
            .iter()
            .map(|member| (member, member.workload.footprint(&member.size(*guest), member.instances)));
        let all: Vec<(&Member, Footprint)> = all.collect();
        let guests = all.iter().map(|(_, of)| of.guest.0).fold(0, u64::saturating_add);
        let first = |number: usize, member: &Member, kept: ByteSize| {
            !all.iter().take(number).any(|(other, of)| other.kind == member.kind && of.kept == kept)
        };
        let kept = all.iter().enumerate().filter(|(number, (member, of))| first(*number, member, of.kept));
        let kept = kept.map(|(_, (_, of))| of.kept.0).fold(0, u64::saturating_add);
        Footprint { kept: ByteSize(kept), guest: ByteSize(guests.div_ceil(all.len().max(1) as u64)), log: ByteSize(0) }
    }

    fn look(&self) -> Option<Refusal> {
        self.refusal_of(|workload| workload.look())
    }

    fn refusal(&self) -> Option<Refusal> {
        self.refusal_of(|workload| workload.refusal())
    }

    fn named_programs(&self) -> Vec<String> {
        self.members.iter().flat_map(|member| member.workload.named_programs()).collect()
    }

    fn set_up_once(&self, site: &SetupSite<'_>) -> Result<Data, WorkloadError> {
        let guests = site.guests.div_ceil(u32::try_from(self.members.len()).unwrap_or(1).max(1));
        self.data_of(site.size, |member| {
            let note = |text: &str| (site.note)(&format!("{}: {text}", member.name));
            let own = SetupSite { size: member.size(site.size), guests, note: &note, ..*site };
            member.workload.set_up_once(&own).map_err(|error| member.failed(error))
        })
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        figures::combine(&self.members, guests)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        let member = self.member(site.index).ok_or(WorkloadError::NotConnected)?;
        let own = member.site(site);
        let inner = member.workload.prepare(&own).map_err(|error| member.failed(error))?;
        Ok(Box::new(AtWork::new(member, inner)))
    }
}

#[cfg(test)]
mod tests;

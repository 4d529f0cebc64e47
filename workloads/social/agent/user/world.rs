//! A drive compiled: all that users share.

use std::ops::Range;

use crate::social::contents::{SITE_FILES, person_name, static_file};
use crate::social::spec::{Cycle, OPERATIONS, Operation, Scale, SocialDrive, TRANSITIONS};
use tare_model::drive::DriveSpec;
use tare_model::marker::file_id;

use crate::session::draw::{Aliases, Dice, threshold};

/// A file that belongs to the site or to the page of an operation.
#[derive(Debug)]
pub(crate) struct Static {
    pub path: String,
    pub bytes: u64,
    /// What its markers are made with.
    pub id: u64,
}

/// One instance of the application.
#[derive(Debug)]
pub(crate) struct Instance {
    /// What requests carry as `Host`.
    pub host: String,
    /// Its users.
    pub users: u32,
}

/// What all users share.
#[derive(Debug)]
pub(crate) struct World {
    pub scale: Scale,
    pub seed: u64,
    /// Seed of all chance.
    pub chance: u64,
    pub check: bool,
    pub names: u64,
    pub cycle: Cycle,
    /// As [`Dice::happens`] wants them.
    pub revalidating: u64,
    pub attend: u64,
    pub statics: Vec<Static>,
    pub instances: Vec<Instance>,
    chain: Vec<Aliases>,
    own: [Range<u8>; OPERATIONS],
}

impl World {
    /// Compiles a drive that was checked.
    pub fn new(spec: &DriveSpec, drive: &SocialDrive) -> Self {
        let of = spec.targets.len() as u32;
        let clients = spec.load.connections();
        let instance = |(at, target): (u32, &std::net::SocketAddr)| Instance {
            host: target.to_string(),
            users: clients / of + u32::from(at < clients % of),
        };
        let instances = (0..).zip(&spec.targets).map(instance).collect();
        Self::of(drive, spec.seed, instances)
    }

    /// The same of instances that are known.
    pub(super) fn of(drive: &SocialDrive, chance: u64, instances: Vec<Instance>) -> Self {
        let mut statics: Vec<Static> = (0..SITE_FILES).map(|n| file(None, n)).collect();
        let own = Operation::ALL.map(|operation| {
            let from = statics.len() as u8;
            statics.extend((0..operation.static_files()).map(|n| file(Some(operation), n)));
            from..statics.len() as u8
        });
        let chain = TRANSITIONS.iter().map(|row| Aliases::new(&row.map(f64::from))).collect();
        Self {
            scale: drive.scale,
            seed: drive.data_seed,
            chance,
            check: drive.check,
            names: drive.names,
            cycle: drive.cycle,
            revalidating: threshold(drive.revalidating),
            attend: threshold(drive.attend),
            statics,
            instances,
            chain,
            own,
        }
    }

    /// What follows an operation.
    #[inline]
    pub fn after(&self, operation: Operation, dice: &mut Dice) -> Operation {
        Operation::ALL[self.chain[operation.index()].choose(dice)]
    }

    /// The static files of an operation's page beside those of the whole site, as indexes into `statics`.
    pub fn own(&self, operation: Operation) -> Range<u8> {
        self.own[operation.index()].clone()
    }

    /// First and last name of a loaded person, as pages have it.
    pub fn name(&self, person: u32) -> String {
        let (first, last) = person_name(self.seed, person.into());
        format!("{first} {last}")
    }
}

fn file(of: Option<Operation>, n: u32) -> Static {
    let (path, bytes) = static_file(of, n);
    let id = file_id(path.as_bytes());
    Static { path, bytes, id }
}

#[cfg(test)]
mod tests {
    use super::super::simulate::tests::drive;
    use super::*;

    #[test]
    fn every_static_file_has_a_bit_of_64_and_lies_where_its_operation_says() {
        let world = World::of(&drive(), 1, Vec::new());
        assert!(world.statics.len() <= 64, "{}", world.statics.len());
        for operation in Operation::ALL {
            let own = world.own(operation);
            assert_eq!(u32::from(own.end - own.start), operation.static_files());
            assert!(own.clone().all(|n| world.statics[usize::from(n)].path.contains(operation.name())));
        }
        assert_eq!(world.statics[0].path, "/static/site/00.js");
    }
}

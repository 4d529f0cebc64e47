//! Users who go their way without a server: what mix of operations their table makes, and what they load.

use crate::social::contents::mix;
use crate::social::spec::{OPERATIONS, Operation, PageLook, SocialDrive, StoredFile};

use super::member::Member;
use super::page::Page;
use super::visit::{Asked, Posted, Visit};
use super::world::{Instance, World};

/// What simulated users did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Simulated {
    /// By operation, in the order of [`Operation::ALL`].
    pub operations: [u64; OPERATIONS],
    /// Sum of the cycle times, nanoseconds.
    pub cycles_ns: u128,
    /// Requests, with those of static files and pictures.
    pub requests: u64,
    /// Of which ask whether a file has changed.
    pub unchanged: u64,
    /// Bytes of static files and pictures that were asked for in full.
    pub file_bytes: u64,
    /// Home pages, their references and the pictures that are loaded for them.
    pub home: PageLook,
    /// The same of events' pages.
    pub event: PageLook,
    /// Users who said that they will attend, and views of events in which they could.
    pub attended: (u64, u64),
    /// What is kept of users' sessions at the end, in the mean, bytes.
    pub member_bytes: f64,
}

impl Simulated {
    /// Operations of all kinds.
    pub fn total(&self) -> u64 {
        self.operations.iter().sum()
    }
}

/// Has so many users of one instance do so many operations, one after the other and each in turn, as the driver's users do them, but ask nobody
/// and wait for nothing: home pages have the same ten events, pages of tags ten of their own, an event's page one person who announced it and
/// some who attend. The same seed has the same result.
pub fn simulate(drive: &SocialDrive, users: u32, operations: u64, seed: u64) -> Simulated {
    let world = World::of(drive, seed, vec![Instance { host: String::new(), users }]);
    let mut members: Vec<Member> = (0..users).map(|index| Member::new(&world, 0, index)).collect();
    let mut seen = Simulated::default();
    let mut visit = Visit::default();
    for nth in 0..operations {
        let member = &mut members[(nth % u64::from(users.max(1))) as usize];
        let operation = member.next(&world);
        seen.operations[operation.index()] += 1;
        visit.begin(&world, member, operation);
        while let Some(asked) = visit.next(&world, member) {
            visit.asked = asked;
            answer(&world, &mut visit, member, &mut seen);
        }
        seen.look(operation, &visit);
        seen.cycles_ns += u128::from(member.cycle_ns(&world, operation));
    }
    let kept: usize = members.iter().map(Member::kept).sum();
    seen.member_bytes = kept as f64 / f64::from(users.max(1));
    seen
}

impl Simulated {
    fn look(&mut self, operation: Operation, visit: &Visit) {
        let look = PageLook {
            pages: 1,
            references: visit.references().into(),
            loaded: visit.loaded.into(),
            bytes: visit.picture_bytes,
        };
        let sum = match operation {
            Operation::Home => &mut self.home,
            Operation::EventDetail => {
                self.attended.0 += u64::from(visit.posted == Posted::Acknowledged);
                self.attended.1 += u64::from(visit.could_attend());
                &mut self.event
            }
            _ => return,
        };
        sum.add(look);
    }
}

/// What the application would have answered, as far as users go on from it.
fn answer(world: &World, visit: &mut Visit, member: &mut Member, seen: &mut Simulated) {
    seen.requests += 1;
    match visit.asked {
        Asked::Page => {
            visit.page.clear();
            page(world, visit.operation, visit.target, member.login > 0, &mut visit.page);
        }
        Asked::Static(_, true) => seen.unchanged += 1,
        Asked::Static(n, false) => seen.file_bytes += world.statics[usize::from(n)].bytes,
        Asked::Picture(kind, _) => {
            visit.picture_bytes += kind.bytes();
            seen.file_bytes += kind.bytes();
        }
        Asked::Person => visit.place = world.scale.people + 1,
        Asked::Event => visit.place = world.scale.events + 1,
        Asked::Logout | Asked::Login | Asked::Attend | Asked::Name => {}
    }
    visit.settle(world, member);
}

fn page(world: &World, operation: Operation, target: u32, logged_in: bool, page: &mut Page) {
    let below = |what: u64, n: u64, bound: u32| 1 + (mix(world.seed, what, n) % u64::from(bound.max(1))) as u32;
    match operation {
        Operation::Home | Operation::Login | Operation::TagSearch => {
            for n in 0..10 {
                let of_tag = below(100, u64::from(target) << 8 | n, world.scale.events);
                let event = if operation == Operation::TagSearch { of_tag } else { n as u32 + 1 };
                page.events[n as usize] = event;
                page.pictures.push((StoredFile::EventThumbnail, event));
            }
            page.listed = 10;
        }
        Operation::EventDetail => {
            page.attend = Some(logged_in);
            page.attendees = Some(10);
            page.pictures.push((StoredFile::EventImage, target));
            for n in 0..3 {
                page.person = below(101, u64::from(target) << 8 | n, world.scale.people);
                page.pictures.push((StoredFile::PersonThumbnail, page.person));
            }
        }
        Operation::PersonDetail => {
            page.pictures.push((StoredFile::PersonImage, target));
            page.person = below(102, target.into(), world.scale.people);
        }
        Operation::AddPerson | Operation::AddEvent => {}
    }
    page.references = page.pictures.len() as u32;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::social::spec::{Cycle, Scale, stationary};

    pub fn drive() -> SocialDrive {
        SocialDrive {
            scale: Scale::of(25),
            data_seed: 5,
            cycle: Cycle::default(),
            revalidating: 0.6,
            attend: 0.1,
            check: true,
            timeout_ns: 1_000_000_000,
            names: 7,
            threads: 1,
        }
    }

    #[test]
    fn a_million_operations_have_the_mix_of_the_table() {
        let seen = simulate(&drive(), 100, 1_000_000, 11);
        assert_eq!(seen.total(), 1_000_000);
        for ((operation, count), target) in Operation::ALL.iter().zip(seen.operations).zip(stationary()) {
            let share = count as f64 / 1e6;
            // Three standard deviations of the most frequent, were they independent.
            assert!((share - target).abs() < 0.0015, "{operation:?}: {share} in place of {target}");
        }
    }

    #[test]
    fn what_users_load_is_what_the_acceptance_of_the_benchmark_expects() {
        let drive = SocialDrive { scale: Scale::of(100), ..drive() };
        let seen = simulate(&drive, 100, 300_000, 12);
        let home = seen.home.pages as f64;
        assert_eq!(seen.home.references, 10 * seen.home.pages);
        let loaded = seen.home.loaded as f64 / home;
        // By a margin, so that a trial misses the acceptance (3 of 10) no more by chance.
        assert!((3.2..3.5).contains(&loaded), "{loaded} pictures a home page");
        assert!(seen.home.bytes as f64 / home >= 18_000.0);
        let event = seen.event.loaded as f64 / seen.event.pages as f64;
        assert!(event >= 1.0, "{event} pictures a page of an event");
        let attended = seen.attended.0 as f64 / seen.event.pages as f64;
        assert!((0.08..0.1).contains(&attended), "{attended} of views");
        // The least lengths of cycles add a little to their mean.
        let mean = seen.cycles_ns as f64 / 3e5 / 1e9;
        assert!((mean / drive.cycle.mean_s() - 1.0).abs() < 0.02, "{mean}");
        assert!(seen.member_bytes < 600.0, "{} bytes a user", seen.member_bytes);
    }
}

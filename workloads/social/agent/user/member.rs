//! One user: all that is kept of them between two operations, but their connection and their cookie.

use crate::social::spec::{Operation, PEOPLE_A_USER, StoredFile};

use super::world::World;
use crate::session::draw::Dice;

/// Events that are remembered of a page that lists some: ten, and five that the user attends.
pub(super) const EVENTS: usize = 15;
/// Places that the memory of pictures grows by: they are hundreds at most, and most sessions are short.
const GROWTH: usize = 16;

/// A user.
#[derive(Debug)]
pub(crate) struct Member {
    pub(super) dice: Dice,
    /// Pictures that the browser has, in order; see [`key`].
    seen: Vec<u32>,
    /// Static files that the browser has, by their index.
    have: u64,
    /// The events of the last page that listed some.
    pub(super) events: [u32; EVENTS],
    pub(super) listed: u8,
    /// One of the people that the last event's or person's page named, all equally likely; 0: it named none.
    pub(super) person: u32,
    /// Which user of the instance, from 0.
    pub(super) index: u32,
    /// Who is logged in; 0: nobody.
    pub(super) login: u32,
    /// How many people and events this user has uploaded or tried to.
    pub(super) uploaded: u32,
    /// The person or event that the last operation uploaded; 0: it uploaded none.
    pub(super) fresh: u32,
    pub(super) instance: u16,
    last: Option<Operation>,
    revalidates: bool,
}

/// What a picture is known by in a browser: no two of those that there can be have the same.
pub(super) const fn key(kind: StoredFile, id: u32) -> u32 {
    id.wrapping_mul(StoredFile::ALL.len() as u32).wrapping_add(kind as u32)
}

impl Member {
    /// User `index` of an instance, both from 0, with a browser as a session has it at its beginning.
    pub fn new(world: &World, instance: u16, index: u32) -> Self {
        let mut member = Self {
            dice: Dice::new(world.chance, u64::from(instance) << 32 | u64::from(index)),
            seen: Vec::new(),
            have: 0,
            events: [0; EVENTS],
            listed: 0,
            person: 0,
            index,
            login: 0,
            uploaded: 0,
            fresh: 0,
            instance,
            last: None,
            revalidates: false,
        };
        member.begin_session(world);
        member
    }

    /// Which instance of the application is theirs, from 0.
    pub const fn instance(&self) -> u16 {
        self.instance
    }

    /// Begins with nobody logged in and another browser: at first, after each logout, and with each login.
    pub fn begin_session(&mut self, world: &World) {
        self.seen = Vec::new();
        self.have = 0;
        self.login = 0;
        self.revalidates = self.dice.happens(world.revalidating);
    }

    /// After a fault that leaves open where they are: they begin as if they had just come.
    pub fn begin_anew(&mut self, world: &World) {
        self.begin_session(world);
        self.last = None;
        (self.fresh, self.person, self.listed) = (0, 0, 0);
    }

    /// What they do next: Home first, then as the table of transitions has it.
    pub fn next(&mut self, world: &World) -> Operation {
        let next = self.last.map_or(Operation::Home, |last| world.after(last, &mut self.dice));
        self.last = Some(next);
        next
    }

    /// From the start of an operation to that of the next, nanoseconds: negative exponential, clipped, and no shorter than the operation allows.
    pub fn cycle_ns(&mut self, world: &World, operation: Operation) -> u64 {
        let cycle = &world.cycle;
        let drawn = ((-self.dice.unit().ln() * cycle.mean_ns as f64) as u64).min(cycle.most_ns);
        drawn.max(match operation {
            Operation::AddPerson => cycle.add_person_ns,
            Operation::AddEvent => cycle.add_event_ns,
            _ => 0,
        })
    }

    /// Who they log in as this time.
    pub(super) fn someone(&mut self, world: &World) -> u32 {
        let users = world.instances.get(usize::from(self.instance)).map_or(1, |instance| instance.users);
        self.dice.below(PEOPLE_A_USER) * users + self.index + 1
    }

    /// One of the events of the last page that listed some, or any that is loaded.
    pub(super) fn some_event(&mut self, world: &World) -> u32 {
        match self.listed {
            0 => 1 + self.dice.below(world.scale.events.max(1)),
            listed => self.events[self.dice.below(listed.into()) as usize],
        }
    }

    /// A person that the last page named, or any that is loaded.
    pub(super) fn some_person(&mut self, world: &World) -> u32 {
        match self.person {
            0 => 1 + self.dice.below(world.scale.people.max(1)),
            person => person,
        }
    }

    /// Bytes that are kept of them.
    pub(super) const fn kept(&self) -> usize {
        size_of::<Self>() + self.seen.capacity() * size_of::<u32>()
    }

    /// Whether the browser is to ask for a static file at all, and if so whether only for a change.
    pub(super) const fn wants_static(&mut self, n: u8) -> Option<bool> {
        if self.revalidates {
            return Some(true);
        }
        let bit = 1 << n;
        if self.have & bit != 0 {
            return None;
        }
        self.have |= bit;
        Some(false)
    }

    /// Whether the browser has no such picture yet; from now on it has.
    pub(super) fn wants_picture(&mut self, kind: StoredFile, id: u32) -> bool {
        let Err(at) = self.seen.binary_search(&key(kind, id)) else { return false };
        if self.seen.len() == self.seen.capacity() {
            self.seen.reserve_exact(GROWTH);
        }
        self.seen.insert(at, key(kind, id));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulate::tests::drive;
    use super::super::world::Instance;
    use super::*;

    fn world(revalidating: f64) -> World {
        let drive = crate::social::spec::SocialDrive { revalidating, ..drive() };
        World::of(&drive, 3, vec![Instance { host: "a:1".to_owned(), users: 25 }])
    }

    #[test]
    fn a_browser_asks_once_a_session_or_for_a_change_every_time() {
        let world_of_empty = world(0.0);
        let mut member = Member::new(&world_of_empty, 0, 0);
        assert_eq!(
            (member.wants_static(7), member.wants_static(7), member.wants_static(47)),
            (Some(false), None, Some(false))
        );
        assert!(
            member.wants_picture(StoredFile::EventThumbnail, 9) && !member.wants_picture(StoredFile::EventThumbnail, 9)
        );
        assert!(member.wants_picture(StoredFile::EventImage, 9), "another picture of the same event");
        member.begin_session(&world_of_empty);
        assert!(member.wants_static(7) == Some(false) && member.wants_picture(StoredFile::EventThumbnail, 9));
        let world = world(1.0);
        let mut member = Member::new(&world, 0, 0);
        assert_eq!((member.wants_static(7), member.wants_static(7)), (Some(true), Some(true)));
    }

    #[test]
    fn nobody_logs_in_as_somebody_elses_person() {
        let world = world(0.5);
        let mut taken = std::collections::BTreeMap::new();
        for index in 0..25 {
            let mut member = Member::new(&world, 0, index);
            for _ in 0..1000 {
                let person = member.someone(&world);
                assert!((1..=world.scale.people).contains(&person));
                assert_eq!(*taken.entry(person).or_insert(index), index);
            }
        }
        assert!(taken.len() > 2_490, "of 2,500 people {} logged in", taken.len());
    }

    #[test]
    fn cycles_have_the_mean_that_clipping_leaves_and_a_least_length_where_things_are_uploaded() {
        let world = world(0.5);
        let mut member = Member::new(&world, 0, 0);
        let mut sum = 0u64;
        for _ in 0..200_000 {
            let cycle = member.cycle_ns(&world, Operation::Home);
            assert!(cycle <= world.cycle.most_ns);
            sum += cycle;
        }
        let mean = sum as f64 / 200_000.0 / 1e9;
        assert!((mean / world.cycle.mean_s() - 1.0).abs() < 0.01, "{mean}");
        for _ in 0..1000 {
            assert!(member.cycle_ns(&world, Operation::AddPerson) >= world.cycle.add_person_ns);
            assert!(member.cycle_ns(&world, Operation::AddEvent) >= world.cycle.add_event_ns);
        }
    }

    #[test]
    fn a_member_is_small() {
        assert!(size_of::<Member>() <= 152, "{}", size_of::<Member>());
    }
}

//! What one thread counts, and what all of them tell together.

use crate::social::spec::{Added, InstanceDone, OPERATIONS, Operation, PageLook, stationary};
use tare_model::trial::RequestType;

use super::visit::{Posted, Visit};
use super::world::World;
use crate::session::engine::Ended;
use crate::session::requests::{self, Counts, Faults, Verdict};

/// What an operation that was right has shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    look: PageLook,
    could_attend: bool,
    attended: bool,
}

impl Looks {
    /// Of one that has ended.
    pub fn of(visit: &Visit) -> Self {
        let look = PageLook {
            pages: 1,
            references: visit.references().into(),
            loaded: visit.loaded.into(),
            bytes: visit.picture_bytes,
        };
        Self { look, could_attend: visit.could_attend(), attended: visit.posted == Posted::Acknowledged }
    }
}

/// Counts of one thread.
#[derive(Debug)]
pub(crate) struct Tally {
    instances: Vec<Each>,
    faults: Faults,
}

/// Counts of one instance of the application.
#[derive(Debug)]
struct Each {
    operations: [Counts; OPERATIONS],
    /// How many, as drawn and as they were, nanoseconds.
    cycles: (u64, u64, u64),
    requests: u64,
    not_modified: u64,
    home: PageLook,
    event: PageLook,
    attended: u64,
    could_attend: u64,
    added: Added,
    in_doubt: Added,
}

impl Each {
    fn new() -> Self {
        Self {
            operations: std::array::from_fn(|_| Counts::new()),
            cycles: (0, 0, 0),
            requests: 0,
            not_modified: 0,
            home: PageLook::default(),
            event: PageLook::default(),
            attended: 0,
            could_attend: 0,
            added: Added::default(),
            in_doubt: Added::default(),
        }
    }
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(world: &World) -> Self {
        Self { instances: world.instances.iter().map(|_| Each::new()).collect(), faults: Faults::default() }
    }

    /// Counts an operation. One with a fault has failed however soon it came, and so has one that took longer than its limit. Outside the
    /// measured window only the fault is counted.
    pub fn ended(&mut self, instance: u16, operation: Operation, ended: &Ended, in_window: bool) {
        self.faults.count(ended);
        if in_window {
            let verdict = if is_good(operation, ended) { Verdict::Good } else { Verdict::Failed };
            self.instances[usize::from(instance)].operations[operation.index()].count(ended, verdict);
        }
    }

    /// Counts one that was due in the measured window and did not end in it, if it has failed: what is answered too late, or never, is not
    /// overlooked because the window was over meanwhile.
    pub fn ended_late(&mut self, instance: u16, operation: Operation, ended: &Ended) {
        self.ended(instance, operation, ended, !is_good(operation, ended));
    }

    /// What an operation that ended in the measured window, and was right, has shown.
    pub fn looked(&mut self, instance: u16, operation: Operation, looks: &Looks) {
        let each = &mut self.instances[usize::from(instance)];
        match operation {
            Operation::Home => add_look(&mut each.home, &looks.look),
            Operation::EventDetail => {
                add_look(&mut each.event, &looks.look);
                each.could_attend += u64::from(looks.could_attend);
                each.attended += u64::from(looks.attended);
            }
            _ => {}
        }
    }

    /// What an operation has uploaded, whenever; `sent`: its request had gone out in full.
    pub fn posted(&mut self, instance: u16, operation: Operation, posted: Posted, sent: bool) {
        let each = &mut self.instances[usize::from(instance)];
        let added = match posted {
            Posted::Acknowledged => &mut each.added,
            Posted::Asked if sent => &mut each.in_doubt,
            Posted::Asked | Posted::Refused | Posted::Nothing => return,
        };
        match operation {
            Operation::AddPerson => added.people += 1,
            Operation::AddEvent => added.events += 1,
            _ => added.attendances += 1,
        }
    }

    /// A cycle that ended in the measured window.
    pub fn cycle(&mut self, instance: u16, drawn_ns: u64, was_ns: u64) {
        let (count, drawn, was) = &mut self.instances[usize::from(instance)].cycles;
        *count += 1;
        *drawn += drawn_ns;
        *was += was_ns;
    }

    /// A request that was sent in the measured window.
    pub fn request(&mut self, instance: u16) {
        self.instances[usize::from(instance)].requests += 1;
    }

    /// An answer, in the measured window, that a file has not changed.
    pub fn not_modified(&mut self, instance: u16) {
        self.instances[usize::from(instance)].not_modified += 1;
    }

    /// What all threads counted together: by instance, and faults of all phases by kind.
    pub fn merge(world: &World, tallies: Vec<Self>) -> (Vec<InstanceDone>, Vec<(String, u64)>) {
        let mut faults = Faults::default();
        let mut instances: Vec<Vec<Each>> = world.instances.iter().map(|_| Vec::new()).collect();
        for tally in tallies {
            for (all, each) in instances.iter_mut().zip(tally.instances) {
                all.push(each);
            }
            faults.add(tally.faults);
        }
        let done =
            world.instances.iter().zip(instances).map(|(instance, parts)| together(instance.users, parts)).collect();
        (done, faults.named())
    }
}

fn is_good(operation: Operation, ended: &Ended) -> bool {
    ended.fault.is_none() && ended.response_ns as f64 <= operation.limit_s() * 1e9
}

/// What all threads counted of one instance.
fn together(users: u32, parts: Vec<Each>) -> InstanceDone {
    let mut done = InstanceDone { users, ..InstanceDone::default() };
    let mut operations: [Vec<Counts>; OPERATIONS] = Default::default();
    for part in parts {
        operations.iter_mut().zip(part.operations).for_each(|(all, counts)| all.push(counts));
        let (count, drawn, was) = part.cycles;
        done.cycles.0 += count;
        done.cycles.1 += drawn as f64 / 1e9;
        done.cycles.2 += was as f64 / 1e9;
        done.requests += part.requests;
        done.not_modified += part.not_modified;
        add_look(&mut done.home, &part.home);
        add_look(&mut done.event, &part.event);
        done.attended += part.attended;
        done.could_attend += part.could_attend;
        add_added(&mut done.added, part.added);
        add_added(&mut done.in_doubt, part.in_doubt);
    }
    let merged = Operation::ALL.into_iter().zip(stationary()).zip(operations).map(|((operation, target), counts)| {
        let (name, target) = (operation.name().to_owned(), Some(target));
        requests::merge(RequestType { name, target, ..RequestType::default() }, counts.into_iter())
    });
    done.operations = merged.collect();
    done
}

const fn add_look(sum: &mut PageLook, look: &PageLook) {
    sum.pages += look.pages;
    sum.references += look.references;
    sum.loaded += look.loaded;
    sum.bytes += look.bytes;
}

const fn add_added(sum: &mut Added, added: Added) {
    sum.people += added.people;
    sum.events += added.events;
    sum.attendances += added.attendances;
}

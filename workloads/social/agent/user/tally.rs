//! What one thread counts, and what all of them tell together.

use crate::social::spec::{InstanceDone, OPERATIONS, Operation, PageLook, stationary};
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
    /// All else.
    done: InstanceDone,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(world: &World) -> Self {
        let nothing = |_| Each { operations: std::array::from_fn(|_| Counts::new()), done: InstanceDone::default() };
        Self { instances: world.instances.iter().map(nothing).collect(), faults: Faults::default() }
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
        let done = &mut self.instances[usize::from(instance)].done;
        match operation {
            Operation::Home => done.home.add(looks.look),
            Operation::EventDetail => {
                done.event.add(looks.look);
                done.could_attend += u64::from(looks.could_attend);
                done.attended += u64::from(looks.attended);
            }
            _ => {}
        }
    }

    /// What an operation has uploaded, whenever; `sent`: its request had gone out in full.
    pub fn posted(&mut self, instance: u16, operation: Operation, posted: Posted, sent: bool) {
        let done = &mut self.instances[usize::from(instance)].done;
        let added = match posted {
            Posted::Acknowledged => &mut done.added,
            Posted::Asked if sent => &mut done.in_doubt,
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
        let cycles = &mut self.instances[usize::from(instance)].done.cycles;
        *cycles = (cycles.0 + 1, cycles.1 + drawn_ns as f64 / 1e9, cycles.2 + was_ns as f64 / 1e9);
    }

    /// A request that was sent in the measured window.
    pub fn request(&mut self, instance: u16) {
        self.instances[usize::from(instance)].done.requests += 1;
    }

    /// An answer, in the measured window, that a file has not changed.
    pub fn not_modified(&mut self, instance: u16) {
        self.instances[usize::from(instance)].done.not_modified += 1;
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
        done.add_counts(&part.done);
    }
    let merged = Operation::ALL.into_iter().zip(stationary()).zip(operations).map(|((operation, target), counts)| {
        let (name, target) = (operation.name().to_owned(), Some(target));
        requests::merge(RequestType { name, target, ..RequestType::default() }, counts.into_iter())
    });
    done.operations = merged.collect();
    done
}

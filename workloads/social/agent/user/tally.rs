//! What one thread counts, and what all of them tell together.

use std::collections::BTreeMap;

use crate::social::spec::{Added, InstanceDone, OPERATIONS, Operation, PageLook, stationary};
use tare_model::trial::RequestType;

use super::visit::{Posted, Visit};
use super::world::World;
use crate::record::Recorder;
use crate::session::fault::{Fault, TIMEOUT, UNFINISHED};

/// An operation that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// From the intended start until the last picture had come, or until it was given up, nanoseconds.
    pub response_ns: u64,
    /// Bytes that came, heads and all files counted.
    pub bytes: u64,
    /// The first thing that was wrong with it, if anything was.
    pub fault: Option<Fault>,
}

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
    faults: BTreeMap<Fault, u64>,
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

#[derive(Debug)]
struct Counts {
    good: u64,
    failed: u64,
    validation_errors: u64,
    bytes: u64,
    /// Of those that have a response time.
    response_ns: u64,
    timed: u64,
    times: Recorder,
}

impl Counts {
    fn new() -> Self {
        let times = Recorder::new(true);
        Self { good: 0, failed: 0, validation_errors: 0, bytes: 0, response_ns: 0, timed: 0, times }
    }
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
        Self { instances: world.instances.iter().map(|_| Each::new()).collect(), faults: BTreeMap::new() }
    }

    /// Counts an operation. One with a fault has failed however soon it came, and so has one that took longer than its limit. Outside the
    /// measured window only the fault is counted.
    pub fn ended(&mut self, instance: u16, operation: Operation, ended: &Ended, in_window: bool) {
        if let Some(fault) = ended.fault {
            *self.faults.entry(fault).or_insert(0) += 1;
        }
        if !in_window {
            return;
        }
        let counts = &mut self.instances[usize::from(instance)].operations[operation.index()];
        if is_good(operation, ended) {
            counts.good += 1;
        } else {
            counts.failed += 1;
        }
        counts.validation_errors += u64::from(ended.fault.is_some());
        counts.bytes += ended.bytes;
        // Wrong answers have no response time. Time-outs do: at least the time-out.
        if ended.fault.is_none_or(|fault| fault == TIMEOUT || fault == UNFINISHED) {
            counts.timed += 1;
            counts.response_ns += ended.response_ns;
            counts.times.record(ended.response_ns);
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
        let mut faults: BTreeMap<Fault, u64> = BTreeMap::new();
        let mut instances: Vec<Vec<Each>> = world.instances.iter().map(|_| Vec::new()).collect();
        for tally in tallies {
            for (all, each) in instances.iter_mut().zip(tally.instances) {
                all.push(each);
            }
            for (fault, count) in tally.faults {
                *faults.entry(fault).or_insert(0) += count;
            }
        }
        let done =
            world.instances.iter().zip(instances).map(|(instance, parts)| together(instance.users, parts)).collect();
        (done, faults.into_iter().map(|(fault, count)| (fault.to_string(), count)).collect())
    }
}

fn is_good(operation: Operation, ended: &Ended) -> bool {
    ended.fault.is_none() && ended.response_ns as f64 <= operation.limit_s() * 1e9
}

/// What all threads counted of one instance.
fn together(users: u32, parts: Vec<Each>) -> InstanceDone {
    let of = |(operation, target): (Operation, f64)| RequestType {
        name: operation.name().to_owned(),
        target: Some(target),
        ..RequestType::default()
    };
    let operations = Operation::ALL.into_iter().zip(stationary()).map(of).collect();
    let mut done = InstanceDone { users, operations, ..InstanceDone::default() };
    let mut timed = [(0u128, 0u64); OPERATIONS];
    for part in parts {
        for ((kind, counts), timed) in done.operations.iter_mut().zip(part.operations).zip(&mut timed) {
            timed.0 += u128::from(counts.response_ns);
            timed.1 += counts.timed;
            add(kind, counts);
        }
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
    for (kind, (ns, timed)) in done.operations.iter_mut().zip(timed) {
        // Those without a response time have the mean of the others, so that errors that come soon flatter nobody.
        kind.response_s = ns as f64 / 1e9 * kind.requests as f64 / timed.max(1) as f64;
    }
    done
}

fn add(kind: &mut RequestType, counts: Counts) {
    kind.requests += counts.good + counts.failed;
    kind.good += counts.good;
    kind.failed += counts.failed;
    kind.validation_errors += counts.validation_errors;
    kind.bytes += counts.bytes;
    kind.times.merge(&counts.times.into_histogram());
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

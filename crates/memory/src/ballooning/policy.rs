//! The policy of the memory overcommit manager: how large machines are to be, from what was seen of them and of the host.

use std::collections::{BTreeMap, VecDeque};

use tare_model::ballooning::{Ballooning, MachineMemory};

use crate::rules::Memory;

/// Samples of which a figure is the mean (`sample-history-length` of MoM's configuration).
pub const WINDOW: usize = 10;
/// Most that a machine grows or shrinks in one decision, a share of what it has.
const MOST_CHANGE: f64 = 0.05;
/// A smaller change is not worth an operation, a share of what it has.
const LEAST_CHANGE: f64 = 0.0025;
/// What a machine keeps less than it uses when the host has nothing left, a share of what it has.
const BELOW_USED: f64 = 0.05;

/// The last samples of a figure.
#[derive(Debug, Clone, Default)]
struct Window(VecDeque<f64>);

impl Window {
    fn add(&mut self, value: f64) {
        if self.0.len() == WINDOW {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }
}

#[derive(Debug, Clone, Default)]
struct Machine {
    last: MachineMemory,
    used: Window,
}

/// Sizes machines by what was seen of them.
#[derive(Debug, Clone)]
pub struct Policy {
    asked: Ballooning,
    /// Free memory of the host, a share of all.
    free: Window,
    machines: BTreeMap<String, Machine>,
}

impl Policy {
    /// Nothing was seen yet.
    pub const fn new(asked: Ballooning) -> Self {
        Self { asked, free: Window(VecDeque::new()), machines: BTreeMap::new() }
    }

    /// Takes a sample: the host, and what the machines said, by their names. Those that do not stand any more are forgotten; one
    /// that did not answer is not.
    pub fn see(&mut self, host: &Memory, standing: &[String], said: &[(String, MachineMemory)]) {
        self.free.add(host.free_bytes as f64 / host.total_bytes.max(1) as f64);
        self.machines.retain(|name, _| standing.contains(name));
        for (name, seen) in said {
            let machine = self.machines.entry(name.clone()).or_default();
            machine.last = *seen;
            machine.used.add(seen.current.saturating_sub(seen.unused) as f64);
        }
    }

    /// The machines whose size is to change, and what it is to be, bytes.
    pub fn decide(&self) -> Vec<(String, u64)> {
        let Some(free) = self.free.mean() else { return Vec::new() };
        let sized = self.machines.iter().filter_map(|(name, machine)| {
            let used = machine.used.mean()?;
            let size = if free < self.asked.pressure {
                self.shrunk(free, used, machine.last)
            } else {
                self.grown(used, machine.last)
            };
            Some((name.clone(), size?))
        });
        sized.collect()
    }

    /// Less: what the machine uses, and as much of what is unused as the host can still spare. `None`: it stays as it is.
    ///
    /// MoM's file takes the smaller of this and what is guaranteed, by which a machine to which nothing is guaranteed would shrink
    /// without end; the larger is what its comment describes.
    fn shrunk(&self, free: f64, used: f64, machine: MachineMemory) -> Option<u64> {
        let current = machine.current as f64;
        let spared = if free <= self.asked.critical {
            free - BELOW_USED
        } else {
            self.asked.guest_free * free / self.asked.pressure
        };
        let least = (self.asked.guaranteed.0 as f64).max(used + spared * current);
        let size = (current * (1.0 - MOST_CHANGE)).max(least);
        (size <= current).then_some(size).and_then(|size| worth_it(current, size))
    }

    /// More, up to what was promised. `None`: it stays as it is.
    fn grown(&self, used: f64, machine: MachineMemory) -> Option<u64> {
        let (current, most) = (machine.current as f64, machine.most as f64);
        if machine.current >= machine.most {
            return None;
        }
        let size = (current * (1.0 + MOST_CHANGE)).max(used + self.asked.guest_free * most);
        worth_it(current, size.min(most))
    }
}

fn worth_it(current: f64, size: f64) -> Option<u64> {
    ((size - current).abs() > LEAST_CHANGE * current).then_some(size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::units::ByteSize;

    const GIB: u64 = 1 << 30;

    fn host(free_percent: u64) -> Memory {
        Memory { total_bytes: 100 * GIB, free_bytes: free_percent * GIB, ..Memory::default() }
    }

    fn machine(current: u64, unused: u64) -> (String, MachineMemory) {
        ("a".to_owned(), MachineMemory { current, most: 4 * GIB, unused })
    }

    fn see(policy: &mut Policy, free_percent: u64, current: u64, unused: u64) {
        policy.see(&host(free_percent), &["a".to_owned()], &[machine(current, unused)]);
    }

    /// What is decided after one sample.
    fn size(asked: Ballooning, free_percent: u64, of: (u64, u64)) -> Option<u64> {
        let mut policy = Policy::new(asked);
        see(&mut policy, free_percent, of.0, of.1);
        policy.decide().first().map(|(_, size)| *size)
    }

    fn share(part: f64) -> u64 {
        (part * GIB as f64) as u64
    }

    #[test]
    fn a_machine_shrinks_by_a_twentieth_at_most_and_keeps_a_part_of_what_is_unused() {
        let mom = Ballooning::MOM;
        assert_eq!(size(mom, 10, (4 * GIB, 3 * GIB)), Some(share(4.0 * 0.95)));
        // Half of the pressure: half of a fifth stays unused. It uses 3.5 GiB, so 3.5 + 0.1 x 4.
        assert_eq!(size(mom, 10, (4 * GIB, GIB / 2)), Some(share(3.9)));
        // What would be left is more than it has.
        assert_eq!(size(mom, 19, (4 * GIB, GIB / 4)), None);
        // A change of less than a four-hundredth: 3.59 used, and 0.1 of 4 kept.
        assert_eq!(size(mom, 10, (4 * GIB, share(0.405))), None);
    }

    #[test]
    fn under_critical_pressure_it_keeps_less_than_it_uses_but_what_is_guaranteed() {
        let used_up = (4 * GIB, 0);
        assert_eq!(size(Ballooning::MOM, 2, used_up), Some(share(4.0 * 0.97)));
        assert_eq!(size(Ballooning::MOM, 6, used_up), None);
        let kept = Ballooning { guaranteed: ByteSize(4 * GIB), ..Ballooning::MOM };
        assert_eq!(size(kept, 2, used_up), None);
    }

    #[test]
    fn without_pressure_it_grows_to_what_it_was_promised() {
        let mom = Ballooning::MOM;
        assert_eq!(size(mom, 20, (2 * GIB, GIB)), Some(share(2.0 * 1.05)));
        // A fifth of what was promised is to be unused, at once.
        assert_eq!(size(mom, 50, (2 * GIB, 0)), Some(share(2.8)));
        assert_eq!(size(mom, 50, (share(3.9), GIB)), Some(4 * GIB));
        assert_eq!(size(mom, 50, (4 * GIB, 0)), None);
    }

    #[test]
    fn figures_are_means_of_the_last_samples_and_a_machine_that_went_is_forgotten() {
        let mut policy = Policy::new(Ballooning::MOM);
        (0..9).for_each(|_| see(&mut policy, 30, 4 * GIB, 3 * GIB));
        // 28 % in the mean: a single low sample is not pressure yet.
        see(&mut policy, 10, 4 * GIB, 3 * GIB);
        assert_eq!(policy.decide(), []);
        (0..9).for_each(|_| see(&mut policy, 10, 4 * GIB, 3 * GIB));
        assert_eq!(policy.decide().len(), 1);
        policy.see(&host(10), &["a".to_owned()], &[]);
        assert_eq!(policy.decide().len(), 1, "it did not answer");
        policy.see(&host(10), &[], &[]);
        assert_eq!(policy.decide(), []);
    }
}
